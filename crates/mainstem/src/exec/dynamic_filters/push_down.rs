//! From a column of a plan's rows to the scans that its values come from.
//!
//! A filter on a column says that whoever reads the rows drops those with other values, and NULLs. So an operator may
//! hand it on where dropping the rows of its input that have another value takes away rows of its output that have
//! another value, and changes no other row. Columns are followed by position.
//!
//! Rows that have another value may change, though: where an outer join loses partners, rows come without them; where
//! an anti join does, rows come that had one; and where rows are left out while groups are collected, groups lack rows.
//! Whoever drops them does so later, and an expression in between could fail for them. So a filter is handed on there
//! only if all expressions above have an answer for any value; and to groups, too, if they see it from their first row
//! on ([`RuntimeFilter::take_whole`]).

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::{JoinType, Result};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
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
use crate::provider::{RuntimeFilter, StoreSource, is_total};

type Plan = Arc<dyn ExecutionPlan>;

/// `plan`, whose scans that column `at` comes from read rows with `keys` alone; None when it comes from none.
///
/// # Errors
/// Internal.
pub(super) fn push_down(plan: &Plan, at: usize, keys: &Arc<RuntimeFilter>, min_rows: u64) -> Result<Option<Plan>> {
    push_below(plan, at, keys, min_rows, false)
}

/// As [`push_down`]; `may_fail` says whether an expression above may have no answer for some values.
fn push_below(
    plan: &Plan,
    at: usize,
    keys: &Arc<RuntimeFilter>,
    min_rows: u64,
    may_fail: bool,
) -> Result<Option<Plan>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let source = scan.data_source().downcast_ref::<StoreSource>();
        let filtered = source.and_then(|source| source.with_dynamic_filter(at, keys, min_rows));
        return Ok(filtered.map(|source| DataSourceExec::from_data_source(source) as Plan));
    }
    // Which rows a limit takes is not to depend on the filter.
    if plan.fetch().is_some() {
        return Ok(None);
    }
    let mut inputs = inputs_of(plan, at);
    if may_fail {
        let is_changed = changes_others(plan);
        inputs.iter_mut().zip(is_changed).filter(|(_, is_changed)| *is_changed).for_each(|(at, _)| *at = None);
        if plan.is::<AggregateExec>() && !keys.take_whole() {
            return Ok(None);
        }
    }
    let may_fail = may_fail || has_failing(plan);
    let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
    let mut is_taken = false;
    for (child, at) in children.iter_mut().zip(inputs) {
        let Some(at) = at else { continue };
        if let Some(filtered) = push_below(child, at, keys, min_rows, may_fail)? {
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

/// For each child of `plan` whether dropping some of its rows may change rows of the output in place of dropping them.
fn changes_others(plan: &Plan) -> Vec<bool> {
    use JoinType::{Full, Left, LeftAnti, Right, RightAnti};
    match plan.downcast_ref::<HashJoinExec>().map(|join| *join.join_type()) {
        Some(Left | LeftAnti) => vec![false, true],
        Some(Right | RightAnti) => vec![true, false],
        Some(Full) => vec![true, true],
        _ => vec![false; plan.children().len()],
    }
}

/// Whether `plan` evaluates an expression that may have no answer for some values.
fn has_failing(plan: &Plan) -> bool {
    let children = plan.children();
    let Some(schema) = children.first().map(|child| child.schema()) else { return false };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        fail(projection.expr().iter().map(|item| &item.expr), &schema)
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        fail([filter.predicate()], &schema)
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        fail(sort.expr().iter().map(|part| &part.expr), &schema)
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr().expr().iter().map(|(expr, _)| expr);
        let filters = aggregate.filter_expr().iter().flatten();
        let functions = aggregate.aggr_expr();
        let never_fail = |function: &str| matches!(function, "count" | "min" | "max");
        // A second step is given states, whose expressions are those of the first.
        let arguments: Vec<_> = functions.iter().flat_map(|function| function.expressions()).collect();
        let is_first = matches!(aggregate.mode().input_mode(), AggregateInputMode::Raw);
        functions.iter().any(|function| !never_fail(function.fun().name()))
            || fail(groups.chain(filters).chain(arguments.iter().filter(|_| is_first)), &schema)
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let (left, right) = (join.left().schema(), join.right().schema());
        fail(join.on().iter().map(|(key, _)| key), &left)
            || fail(join.on().iter().map(|(_, key)| key), &right)
            || join.filter().is_some_and(|filter| !is_total(filter.expression(), filter.schema()))
    } else {
        false
    }
}

/// Whether one of `exprs`, over rows of `schema`, may have no answer.
fn fail<'a>(exprs: impl IntoIterator<Item = &'a Arc<dyn PhysicalExpr>>, schema: &Schema) -> bool {
    exprs.into_iter().any(|expr| !is_total(expr, schema))
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
