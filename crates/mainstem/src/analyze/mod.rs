//! From a statement's tree to a plan whose names, types and casts are SQL's, where DataFusion's analyzer would do
//! otherwise.
//!
//! Comes in: a statement's tree, later the plan that DataFusion's planner has made of it. Goes out: the tree in syntax
//! that the planner reads (`rewrite`), and plans whose arithmetic and casts call functions of `mainstem_postgres`
//! (`types`). The order of the rules stands in `optimize::pipeline`.
//!
//! It does not own: subqueries (`decorrelate`), what runs faster (`optimize`), what functions compute
//! (`mainstem_postgres`).

mod ast;
mod grouping;
mod names;
pub(crate) mod plan_walk;
mod rewrite;
mod set_operations;
mod types;

pub(crate) use ast::expr::cast;
pub(crate) use ast::row_comparisons::check_rows;
pub(crate) use ast::{balance, with_settings};
pub(crate) use grouping::grouping_arguments;
pub(crate) use names::{
    BesideStar, KnownTable, Naming, OutputNames, add_dependent_columns, cast_label, mark_relations, name_duplicates,
    name_repeated, resolve_names, rows_without_marks,
};
pub(crate) use rewrite::rewrite;
pub(crate) use set_operations::multiset_operations;
pub(crate) use types::{
    DecimalOperators, ExtractPlanner, RealOperators, TypedLiterals, bpchar, checked_arithmetic, coerced_types,
    decimal_of, decimal_operators, in_range, padded, resolve_types, rounded_decimals, sql_casts, type_literals,
    typed_literals, window_frames,
};
