//! Rewrites of a statement's tree: what SQL says and DataFusion's planner reads otherwise, or not at all.
//!
//! Comes in: a statement's tree, or one expression of it. Goes out: the same in syntax that the planner reads. Each
//! file is one rewrite; their order is that of `rewrite`. It does not own: names (`names`).

mod balance;
pub(super) mod expr;
mod interval_literals;
pub(super) mod lag_lead;
pub(super) mod normalize;
pub(super) mod patterns;
pub(super) mod positions;
pub(super) mod row_comparisons;
pub(super) mod set_returning;
mod settings;
pub(super) mod sort_keys;

pub(crate) use balance::balance;
pub(crate) use settings::with_settings;
