//! Plans whose rows are computed one by one, each from one row of a table: what RETURNING, DEFAULT, CHECK, and the
//! SELECT of an UPDATE or DELETE have to be. Aggregates, windows and set-returning expressions are refused there.

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, LogicalPlan};
use mainstem_storage::{Error, Result};

use crate::sql::state;

/// What stands below the projections and filters of `plan`.
///
/// # Errors
/// 42803, 42P20, 0A000 when its rows are not rows of that; `clause` is what is named then.
pub(super) fn tables_of<'a>(plan: &'a LogicalPlan, clause: &str) -> Result<&'a LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => tables_of(&projection.input, clause),
        LogicalPlan::Filter(filter) => match filter.predicate.exists(|e| Ok(matches!(e, Expr::WindowFunction(_)))) {
            Ok(true) => Err(window(clause)),
            _ => tables_of(&filter.input, clause),
        },
        LogicalPlan::Aggregate(_) => {
            Err(Error::invalid(state::GROUPING, format!("aggregate functions are not allowed in {clause}")))
        }
        LogicalPlan::Window(_) => Err(window(clause)),
        LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) => Ok(plan),
        _ => Err(Error::unsupported(format_args!("a set-returning expression in {clause}"))),
    }
}

fn window(clause: &str) -> Error {
    Error::invalid(state::WINDOWING, format!("window functions are not allowed in {clause}"))
}

/// Checks that rows of the SELECT of a write are rows of its tables.
pub(super) fn check_row_wise(plan: &LogicalPlan, statement: &str) -> Result<()> {
    match plan {
        LogicalPlan::Sort(sort) => tables_of(&sort.input, statement),
        plan => tables_of(plan, statement),
    }
    .map(|_| ())
}

/// Checks that `plan` computes each of its rows from one row of its table, or from nothing.
pub(super) fn check_projection(plan: &LogicalPlan, clause: &str) -> Result<()> {
    match plan {
        LogicalPlan::Projection(projection) => match &*projection.input {
            LogicalPlan::EmptyRelation(_) => Ok(()),
            input => tables_of(input, clause).map(|_| ()),
        },
        _ => Err(Error::internal("expressions that are no projection")),
    }
}
