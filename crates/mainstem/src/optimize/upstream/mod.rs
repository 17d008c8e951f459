//! What DataFusion 55.2 does wrong, each mended in a file of its own around the rule that does it.
//!
//! Comes in: DataFusion's own rules, one by one, found by their names. Goes out: the same rules, kept from what they do
//! wrong, and rules of ours that mend what they made. Each file says which version and public issue it is about; its
//! tests have a canary that fails once DataFusion is right without it.

mod aggregates;
mod computed_keys;
mod decorrelate_lateral_join;
mod eliminate_cross_join;
mod excepted;
mod filter_pushdown;
mod interval_analysis;
mod limits;
mod null_simplification;
mod ordered_output;

pub(crate) use aggregates::{answers_of_scans, exact_sums_beside_distinct, sort_keys_once};
pub(crate) use computed_keys::computed_keys_as_columns;
pub(crate) use decorrelate_lateral_join::with_schemas_above_laterals;
pub(crate) use eliminate_cross_join::null_safe_joins;
pub(crate) use filter_pushdown::{guarded, pushes_by_name};
pub(crate) use interval_analysis::safely_analysed;
pub(crate) use limits::{partition_limits, safe_group_limits, window_limits};
pub(crate) use null_simplification::{null_safe_simplification, simplified};
pub(crate) use ordered_output::OrderedOutput;

#[cfg(test)]
mod tests;
