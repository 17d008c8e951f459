//! Aggregates: exact sums and averages, ordered-set aggregates.

mod grouped_totals;
mod ordered_set;
mod sliding;
mod sum;
mod totals;

pub use ordered_set::ordered_sets;
pub(crate) use sliding::no_partial_aggregation;
pub use sum::{average, checked_sum, has_exact_state, wide_sum};
