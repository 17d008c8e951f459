//! Aggregates: exact sums and averages, ordered-set aggregates, floats in their one form.

mod adapter;
mod floats;
mod grouped_totals;
mod ordered_set;
mod sliding;
mod sum;
mod totals;

pub(crate) use adapter::{AggregateChange, adapt};
pub use floats::of_floats;
pub use ordered_set::ordered_sets;
pub(crate) use sliding::no_partial_aggregation;
pub use sum::{average, checked_sum, has_exact_state, wide_sum};
