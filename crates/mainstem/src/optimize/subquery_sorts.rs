//! ORDER BY of subqueries: kept where somebody sees the order, gone elsewhere.
//!
//! SQL promises no order of a derived table. PostgreSQL and DuckDB keep it where nothing changes the rows on the way,
//! and people rely on that: `WITH q AS (SELECT id, c FROM t ORDER BY c) SELECT id FROM q LIMIT 2`. DataFusion 55.2
//! drops each such ORDER BY when it plans a FROM clause; here it is told not to (`enable_subquery_sort_elimination`).
//!
//! Comes in: a plan as it was planned. Goes out: the same, without sorts whose order nobody sees.
//!
//! - An order is seen by the result of the query, by LIMIT and OFFSET, by window functions without keys, and by
//!   aggregates that keep values in the order of their rows. It is seen through projections, filters and aliases.
//! - Joins, set operations, DISTINCT, other aggregates and other sorts do not see it.
//!
//! It does not own: how operators keep an order (`upstream`).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

/// Aggregates that depend on the order of their rows.
const IN_ORDER: &[&str] = &["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Whether the aggregate called `name` depends on the order of its rows.
pub(crate) fn sees_order(name: &str) -> bool {
    IN_ORDER.contains(&name)
}

/// `plan` without sorts whose order nobody sees.
///
/// # Errors
/// Internal.
pub(crate) fn seen_sorts(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(kept(plan, true)?.data)
}

/// `plan`, whose order somebody sees if `is_seen`.
fn kept(plan: LogicalPlan, is_seen: bool) -> Result<Transformed<LogicalPlan>> {
    let plan = plan.map_subqueries(|query| kept(query, true))?;
    plan.transform_data(|plan| match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() && !is_seen => {
            Ok(Transformed::yes(kept(Arc::unwrap_or_clone(sort.input), false)?.data))
        }
        plan => {
            let of_input = sees_input(&plan, is_seen);
            plan.map_children(|input| kept(input, of_input))
        }
    })
}

/// Whether the order of the rows of the inputs of `node` is seen, if that of its own rows `is_seen`.
fn sees_input(node: &LogicalPlan, is_seen: bool) -> bool {
    match node {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => is_seen,
        LogicalPlan::Sort(_) | LogicalPlan::Join(_) | LogicalPlan::Union(_) => false,
        LogicalPlan::Distinct(Distinct::All(_) | Distinct::On(_)) => false,
        LogicalPlan::Window(window) => window.window_expr.iter().any(|expr| match unaliased(expr) {
            Expr::WindowFunction(call) => call.params.partition_by.is_empty() && call.params.order_by.is_empty(),
            _ => true,
        }),
        LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.iter().any(|expr| match unaliased(expr) {
            Expr::AggregateFunction(call) => sees_order(call.func.name()) && call.params.order_by.is_empty(),
            _ => true,
        }),
        _ => true,
    }
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}
