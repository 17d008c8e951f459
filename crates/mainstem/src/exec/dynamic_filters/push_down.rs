//! From a column of a plan's rows to the scans that its values come from.
//!
//! A filter on a column says that whoever reads the rows drops those with other values, and NULLs. So an operator may
//! hand it on where dropping the rows of its input that have another value takes away rows of its output that have
//! another value, and changes no other row. Columns are followed by position.

use std::sync::Arc;

use datafusion::common::{JoinType, Result};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::key_collector::KeyCollector;
use crate::provider::{RuntimeFilter, StoreSource};

type Plan = Arc<dyn ExecutionPlan>;

/// `plan`, whose scans that column `at` comes from read rows with `keys` alone; None when it comes from none.
///
/// # Errors
/// Internal.
pub(super) fn push_down(plan: &Plan, at: usize, keys: &Arc<RuntimeFilter>, min_rows: u64) -> Result<Option<Plan>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let source = scan.data_source().downcast_ref::<StoreSource>();
        let filtered = source.and_then(|source| source.with_dynamic_filter(at, keys, min_rows));
        return Ok(filtered.map(|source| DataSourceExec::from_data_source(source) as Plan));
    }
    // Which rows a limit takes is not to depend on the filter.
    if plan.fetch().is_some() {
        return Ok(None);
    }
    let inputs = inputs_of(plan, at);
    let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
    let mut is_taken = false;
    for (child, at) in children.iter_mut().zip(inputs) {
        let Some(at) = at else { continue };
        if let Some(filtered) = push_down(child, at, keys, min_rows)? {
            *child = filtered;
            is_taken = true;
        }
    }
    Ok(if is_taken { Some(replace_children_if_necessary(plan.clone(), children)?) } else { None })
}

/// For each child of `plan`: its column to which a filter on column `at` may be handed on.
fn inputs_of(plan: &Plan, at: usize) -> Vec<Option<usize>> {
    if plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<KeyCollector>()
    {
        vec![Some(at)]
    } else if plan.is::<UnionExec>() {
        vec![Some(at); plan.children().len()]
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let exprs = projection.expr();
        // A number that is drawn for each row is not to be drawn for fewer.
        let is_plain = !exprs.iter().any(|item| is_volatile(&item.expr));
        vec![exprs.get(at).filter(|_| is_plain).and_then(|item| index_of(&item.expr))]
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let at = filter.projection().as_ref().map_or(Some(at), |projection| projection.get(at).copied());
        vec![at.filter(|_| !is_volatile(filter.predicate()))]
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        let is_plain = groups.is_single() && aggregate.limit_options().is_none();
        vec![groups.expr().get(at).filter(|_| is_plain).and_then(|(expr, _)| index_of(expr))]
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let (left, right) = sides(join, at);
        vec![left, right]
    } else if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        let left = join.left().schema().fields().len();
        vec![Some(at).filter(|at| *at < left), at.checked_sub(left)]
    } else {
        vec![None; plan.children().len()]
    }
}

fn index_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// The columns of a join's sides that its output column `at` comes from, or equals where it has a value.
fn sides(join: &HashJoinExec, at: usize) -> (Option<usize>, Option<usize>) {
    use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
    let Some(at) = join.projection.as_ref().map_or(Some(at), |projection| projection.get(at).copied()) else {
        return (None, None);
    };
    let (left, right) = (join.left().schema().fields().len(), join.right().schema().fields().len());
    let is_left = match join.join_type() {
        Inner | Left | Right | Full => at < left,
        LeftSemi | LeftAnti => true,
        RightSemi | RightAnti => false,
        // The mark is of no side.
        LeftMark if at < left => true,
        RightMark if at < right => false,
        LeftMark | RightMark => return (None, None),
    };
    // A key of the other side equals it in every row of the output that has a partner. Without rows of the other side
    // that have another value, only rows of the output change that have another value; but NOT IN looks at all of them.
    let pairs = || join.on().iter().filter(|_| !join.null_aware).map(|(left, right)| (index_of(left), index_of(right)));
    let right_of = |at| pairs().find(|(left, _)| *left == Some(at)).and_then(|(_, right)| right);
    let left_of = |at| pairs().find(|(_, right)| *right == Some(at)).and_then(|(left, _)| left);
    match join.join_type() {
        Inner | Left | LeftSemi | LeftAnti if is_left => (Some(at), right_of(at)),
        LeftMark => (Some(at), None),
        Inner | Right if !is_left => {
            let at = at.saturating_sub(left);
            (left_of(at), Some(at))
        }
        RightSemi | RightAnti => (left_of(at), Some(at)),
        RightMark => (None, Some(at)),
        _ => (None, None),
    }
}
