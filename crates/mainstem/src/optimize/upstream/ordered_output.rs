//! Rows that were put in order and are computed with above that: `CHAR(n)` gets its blanks above ORDER BY.
//!
//! DataFusion 55.2 asks for an order where the sort is; what stands above it is spread over partitions, whose rows come
//! back as they are ready: in order if they are one batch, else in any order. No public issue is known: its own planner
//! computes below a sort. Sorts of subqueries, whose order SQL does not promise, it drops.
//!
//! Comes in: a physical plan. Goes out: the same, where no projection, filter or limit between its top and a sort works
//! with rows in any other order. It does not own: orders that scans have, or that operators need.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

/// The rule; see the module.
#[derive(Debug)]
pub(crate) struct OrderedOutput;

impl PhysicalOptimizerRule for OrderedOutput {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(in_order(&plan)?.unwrap_or(plan))
    }

    fn name(&self) -> &'static str {
        "ordered_output"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `node`, whose rows are those of a sort, as one partition in its order; `None` if there is no sort.
fn in_order(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if node.is::<SortPreservingMergeExec>() || node.is::<SortExec>() {
        let is_one = node.output_partitioning().partition_count() == 1;
        return Ok(is_one.then(|| node.clone()));
    }
    let spreads = node
        .downcast_ref::<RepartitionExec>()
        .map(|node| matches!(node.partitioning(), Partitioning::RoundRobinBatch(_)));
    let gathers = node.downcast_ref::<CoalescePartitionsExec>();
    let passes = node.is::<ProjectionExec>()
        || node.is::<FilterExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>();
    let children = node.children();
    let ([child], true) = (children.as_slice(), passes || gathers.is_some() || spreads == Some(true)) else {
        return Ok(None);
    };
    let Some(rows) = in_order(child)? else { return Ok(None) };
    Ok(Some(match gathers.map(|node| node.fetch()) {
        Some(Some(limit)) => Arc::new(GlobalLimitExec::new(rows, 0, Some(limit))),
        _ if passes => replace_children_if_necessary(node.clone(), vec![rows])?,
        _ => rows,
    }))
}
