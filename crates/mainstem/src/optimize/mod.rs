//! Rules over plans that are typed: which rows an expression is asked about, what DataFusion does wrong, the order of
//! joins, and the order of all rules.

mod join_order;
mod narrowed_patterns;
mod short_circuit;
mod subquery_sorts;
mod unique_keys;
pub(crate) mod upstream;

pub(crate) use join_order::ordered_joins;
pub(crate) use narrowed_patterns::narrowed_patterns;
pub(crate) use short_circuit::{short_circuit_expression, short_circuit_plan};
pub(crate) use subquery_sorts::seen_sorts;
pub(crate) use unique_keys::{WithoutDependencies, with_unique_keys};
pub(crate) use upstream::{
    OrderedOutput, answers_of_scans, computed_keys_as_columns, exact_sums_beside_distinct, guarded, null_safe_joins,
    null_safe_simplification, partition_limits, pushes_by_name, safe_group_limits, safely_analysed, simplified,
    sort_keys_once, window_limits, with_schemas_above_laterals,
};
