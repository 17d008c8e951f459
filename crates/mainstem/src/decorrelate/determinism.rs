//! Whether rows are the same when they are computed again.
//!
//! What queries refer to of the outer rows is computed a second time and joined by value (`unnest`): a sum of doubles
//! that were added in another order finds nothing there.
//!
//! Comes in: a plan. Goes out: whether all of its values are the same, to the bit, in whatever order its rows come. Not
//! so are random values, LIMIT, DISTINCT ON, aggregates that depend on the order (of doubles, of lists), numbers of
//! rows and other windows that tell peers apart. Other plans are refused with 0A000, and so are
//! long ones: each LATERAL query of a chain doubles what is before it.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, Result};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, JoinType, LogicalPlan, WindowFrameUnits};
use mainstem_postgres::registry::{AnyOrder, any_order, is_aggregate};

use super::has_one_row;
use super::outer_columns::{Names, all_outer_columns, unsupported};

/// Plans of more nodes are not computed twice.
const NODES_MAX: usize = 500;

/// `plan` with more rows: those that LIMIT leaves out need not be the same when it is computed again.
pub(super) fn without_limits(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Limit(limit) => without_limits(Arc::unwrap_or_clone(limit.input)),
        LogicalPlan::Projection(mut projection) => {
            projection.input = Arc::new(without_limits(Arc::unwrap_or_clone(projection.input)));
            LogicalPlan::Projection(projection)
        }
        LogicalPlan::Filter(mut filter) => {
            filter.input = Arc::new(without_limits(Arc::unwrap_or_clone(filter.input)));
            LogicalPlan::Filter(filter)
        }
        LogicalPlan::Sort(sort) => without_limits(Arc::unwrap_or_clone(sort.input)),
        LogicalPlan::SubqueryAlias(mut alias) => {
            alias.input = Arc::new(without_limits(Arc::unwrap_or_clone(alias.input)));
            LogicalPlan::SubqueryAlias(alias)
        }
        LogicalPlan::Join(mut join) if join.join_type == JoinType::Inner => {
            join.left = Arc::new(without_limits(Arc::unwrap_or_clone(join.left)));
            join.right = Arc::new(without_limits(Arc::unwrap_or_clone(join.right)));
            LogicalPlan::Join(join)
        }
        other => other,
    }
}

/// Refuses rows that may be others when they are computed again.
///
/// # Errors
/// 0A000.
pub(super) fn check_repeatable(plan: &LogicalPlan) -> Result<()> {
    let what = "a LATERAL or correlated query beside rows that may differ when they are read again (random ones, LIMIT, \
                sums of doubles, numbers of rows: use CREATE TABLE AS)";
    // Where they are themselves of such a query, its numbers stand for its LIMIT.
    let order = if all_outer_columns(plan)?.is_empty() { Order::Any } else { Order::Stable };
    if !is_repeatable(plan, order)? || reads_work_table(plan)? {
        return Err(unsupported(what));
    }
    let what = "LATERAL or correlated queries beside so many others (use CREATE TABLE AS)";
    if nodes(plan)? <= NODES_MAX { Ok(()) } else { Err(unsupported(what)) }
}

/// In which order rows may come when they are computed again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Any,
    /// As before where a sort has put them. It is taken for that where rows cannot be kept: of LIMIT, and of the
    /// numbers and first values that stand for LIMIT and single rows in queries that have been placed.
    Stable,
}

/// Whether `plan` has the same rows each time that it is computed, to the bit.
fn is_repeatable(plan: &LogicalPlan, order: Order) -> Result<bool> {
    let mut is_repeatable = true;
    plan.apply_with_subqueries(|plan| {
        is_repeatable &= match plan {
            LogicalPlan::Limit(limit) => has_one_row(&limit.input) || order == Order::Stable && has_order(&limit.input),
            LogicalPlan::Distinct(Distinct::On(_)) => false,
            LogicalPlan::Aggregate(totals) => {
                // How many rows there are is the same, whichever they are.
                if let LogicalPlan::Limit(limit) = &*totals.input
                    && totals.group_expr.is_empty()
                    && counts(&totals.aggr_expr)
                {
                    is_repeatable &= self::is_repeatable(&limit.input, order)?;
                    return Ok(TreeNodeRecursion::Jump);
                }
                let schema = totals.input.schema();
                totals.aggr_expr.iter().all(|total| has_any_order(total, schema, order))
            }
            LogicalPlan::Window(window) => {
                let schema = window.input.schema();
                window.window_expr.iter().all(|function| has_any_order(function, schema, order))
            }
            _ => true,
        };
        plan.apply_expressions(|expr| {
            is_repeatable &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_repeatable)
}

/// Whether `total`, an aggregate or a window function, is the same whatever the order of rows that its own does not
/// distinguish.
fn has_any_order(total: &Expr, schema: &DFSchema, order: Order) -> bool {
    let is_exact =
        |args: &[Expr]| args.iter().all(|arg| arg.get_type(schema).is_ok_and(|data_type| !data_type.is_floating()));
    let of_aggregate = |name: &str, args: &[Expr]| match any_order(name) {
        AnyOrder::Yes => true,
        AnyOrder::OfExactValues => is_exact(args),
        AnyOrder::No => false,
    };
    match total {
        Expr::Alias(alias) => {
            order == Order::Stable && Names::has(&alias.name) || has_any_order(&alias.expr, schema, order)
        }
        Expr::AggregateFunction(call) => of_aggregate(call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => {
            let is_of_peers =
                call.params.window_frame.units != WindowFrameUnits::Rows || call.params.order_by.is_empty();
            let name = call.fun.name();
            (is_of_peers || !is_aggregate(name)) && of_aggregate(name, &call.params.args)
        }
        _ => false,
    }
}

/// Whether `plan` reads the rows of the last step of a recursive WITH, which can be read once.
///
/// # Errors
/// Those of walks over expressions.
fn reads_work_table(plan: &LogicalPlan) -> Result<bool> {
    let mut reads = false;
    plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::TableScan(scan) = plan {
            let provider = source_as_provider(&scan.source)?;
            reads |= provider.downcast_ref::<CteWorkTable>().is_some();
        }
        Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(reads)
}

/// Whether something in `plan` has another value each time that it is computed.
///
/// # Errors
/// Those of walks over expressions.
pub(super) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            found |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether all of `totals` count rows.
fn counts(totals: &[Expr]) -> bool {
    totals.iter().all(|total| match total {
        Expr::Alias(alias) => counts(std::slice::from_ref(&alias.expr)),
        Expr::AggregateFunction(call) => {
            call.func.name() == "count" && call.params.args.iter().all(|arg| matches!(arg, Expr::Literal(..)))
        }
        _ => false,
    })
}

/// How many nodes `plan` has, of more than the most that matter one more.
fn nodes(plan: &LogicalPlan) -> Result<usize> {
    let mut nodes = 0;
    plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(if nodes > NODES_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(nodes)
}

fn has_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(projection) => has_order(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_order(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}
