//! GROUP BY on the leading column of a table's sort key reads each group from one place, and is done with it when the
//! next one begins.
//!
//! Comes in: a physical plan. Goes out: the same plan, in which such an aggregation has one step instead of two with a
//! repartition between them: the scan is cut into ranges of the key, in order, so that no group is in two partitions,
//! and DataFusion's aggregation emits groups as they end.
//!
//! Invariant: the rows of such an aggregation are no longer partitioned by hash, so no operator above may rely on that:
//! only where the next exchange takes rows as they come. It does not own: how rows are read in order
//! (`storage::scan::OrderedScan`).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::ranges::{in_disjoint_ranges, index_of};
use crate::exec::spilling::may_read_in_key_order;

type Plan = Arc<dyn ExecutionPlan>;

/// The rule; see the module.
#[derive(Debug)]
pub(in crate::exec) struct StreamingAggregates;

impl PhysicalOptimizerRule for StreamingAggregates {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        if may_read_in_key_order(config) { rewrite(&plan, true, config) } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "streaming_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `plan`, whose partitions nobody relies on if `is_free`.
fn rewrite(plan: &Plan, is_free: bool, config: &ConfigOptions) -> Result<Plan> {
    if is_free && let Some(streaming) = streaming(plan, config)? {
        return Ok(streaming);
    }
    let children = plan.children().into_iter().enumerate();
    let children = children.map(|(at, child)| rewrite(child, leaves_free(plan, at, is_free), config));
    replace_children_if_necessary(plan.clone(), children.collect::<Result<Vec<_>>>()?)
}

/// Whether nobody relies on the partitions of child `at` of `plan`, if nobody does on the plan's own where `is_free`.
pub(in crate::exec) fn leaves_free(plan: &Arc<dyn ExecutionPlan>, at: usize, is_free: bool) -> bool {
    if plan.is::<CoalescePartitionsExec>() || plan.is::<RepartitionExec>() || plan.is::<SortPreservingMergeExec>() {
        return true;
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return is_free && *aggregate.mode() == AggregateMode::Partial;
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        // The build side is one partition, whoever makes it; the rows come as those of the probe side.
        return is_free && at == 1 && *join.partition_mode() == PartitionMode::CollectLeft;
    }
    is_free
        && (plan.is::<FilterExec>()
            || plan.is::<ProjectionExec>()
            || plan.is::<CooperativeExec>()
            || plan.is::<SortExec>()
            || plan.is::<UnionExec>())
}

/// `plan` in one step, if it is an aggregation in two of the rows of a table, by the column that leads its sort key.
fn streaming(plan: &Plan, config: &ConfigOptions) -> Result<Option<Plan>> {
    let Some(last) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let is_last = *last.mode() == AggregateMode::FinalPartitioned && last.limit_options().is_none();
    let Some(exchange) = last.input().downcast_ref::<RepartitionExec>().filter(|_| is_last) else { return Ok(None) };
    let Some(first) = exchange.input().downcast_ref::<AggregateExec>() else { return Ok(None) };
    if *first.mode() != AggregateMode::Partial || !first.group_expr().is_single() {
        return Ok(None);
    }
    for (group, _) in first.group_expr().expr() {
        let Some(at) = index_of(group) else { continue };
        let Some(input) = in_disjoint_ranges(first.input(), &[at])? else { continue };
        let first = replace_children_if_necessary(exchange.input().clone(), vec![input])?;
        let both = replace_children_if_necessary(plan.clone(), vec![first])?;
        let one = CombinePartialFinalAggregate::new().optimize(both, config)?;
        let is_one =
            one.downcast_ref::<AggregateExec>().is_some_and(|one| *one.mode() == AggregateMode::SinglePartitioned);
        return Ok(is_one.then_some(one));
    }
    Ok(None)
}
