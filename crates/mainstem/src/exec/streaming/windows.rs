//! Windows whose partitions are groups of the leading column of a table's sort key read rows in its order.
//!
//! Comes in: a physical plan. Goes out: the same plan, in which such windows have neither a sort nor an exchange below
//! them: the scan is cut into ranges of the key, in order, so that no partition of a window is in two of them.
//!
//! Invariant: as that of `aggregates`. It does not own: how rows are read in order (`storage::scan::OrderedScan`).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::aggregates::leaves_free;
use super::ranges::{in_disjoint_ranges, index_of};
use crate::exec::spilling::may_read_in_key_order;

type Plan = Arc<dyn ExecutionPlan>;

/// The rule; see the module.
#[derive(Debug)]
pub(in crate::exec) struct StreamingWindows;

impl PhysicalOptimizerRule for StreamingWindows {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        if may_read_in_key_order(config) { rewrite(&plan, true) } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "streaming_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `plan`, whose partitions nobody relies on if `is_free`.
fn rewrite(plan: &Plan, is_free: bool) -> Result<Plan> {
    if is_free && let Some(streaming) = streaming(plan, &mut Vec::new())? {
        return Ok(streaming);
    }
    let children = plan.children().into_iter().enumerate();
    let children = children.map(|(at, child)| rewrite(child, leaves_free(plan, at, is_free)));
    replace_children_if_necessary(plan.clone(), children.collect::<Result<Vec<_>>>()?)
}

/// `plan` without a sort and an exchange, if it is windows over them, below others that `partitions` are those of.
fn streaming(plan: &Plan, partitions: &mut Vec<Vec<Arc<dyn PhysicalExpr>>>) -> Result<Option<Plan>> {
    let window = if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        Some((window.input(), window.window_expr()))
    } else {
        plan.downcast_ref::<WindowAggExec>().map(|window| (window.input(), window.window_expr()))
    };
    let Some((input, exprs)) = window else { return sorted(plan, partitions) };
    partitions.extend(exprs.iter().map(|expr| expr.partition_by().to_vec()));
    let Some(input) = streaming(input, partitions)? else { return Ok(None) };
    Ok(Some(replace_children_if_necessary(plan.clone(), vec![input])?))
}

/// The rows of `plan`, a sort above an exchange, in the same order without either; None where that cannot be, or rows
/// of one of `partitions` would be in two ranges.
fn sorted(plan: &Plan, partitions: &[Vec<Arc<dyn PhysicalExpr>>]) -> Result<Option<Plan>> {
    let Some(sort) = plan.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) else { return Ok(None) };
    let Some(exchange) = sort.input().downcast_ref::<RepartitionExec>() else { return Ok(None) };
    let Partitioning::Hash(by, _) = exchange.partitioning() else { return Ok(None) };
    let schema = sort.schema();
    let column = |part: &datafusion::physical_expr::PhysicalSortExpr| {
        let at = index_of(&part.expr)?;
        let has_nulls_first = part.options.nulls_first && schema.fields().get(at)?.is_nullable();
        (!part.options.descending && !has_nulls_first).then_some(at)
    };
    let ats: Option<Vec<usize>> = sort.expr().iter().map(column).collect();
    let Some((ats, first)) = ats.and_then(|ats| Some((ats.clone(), *ats.first()?))) else { return Ok(None) };
    let has_first = |exprs: &[Arc<dyn PhysicalExpr>]| exprs.iter().any(|expr| index_of(expr) == Some(first));
    if !has_first(by) || partitions.is_empty() || !partitions.iter().all(|exprs| has_first(exprs)) {
        return Ok(None);
    }
    in_disjoint_ranges(exchange.input(), &ats)
}
