//! Rows that were put in order and are computed with above that: `CHAR(n)` gets its blanks above ORDER BY.
//!
//! DataFusion 55.2 asks for an order where the sort is; what stands above it is spread over partitions, whose rows come
//! back as they are ready: in order if they are one batch, else in any order. No public issue is known: its own planner
//! computes below a sort. Sorts of subqueries, whose order SQL does not promise, it drops.
//!
//! Comes in: a physical plan. Goes out: the same, where no projection, filter or limit between what has an order and
//! whoever sees it works with rows in any other. An order is seen by the result, by limits anywhere, by windows without
//! keys, and by aggregates that keep values in the order in which they come (`subquery_sorts`). What has an order is a
//! sort, or an operator that needs none, as a scan in the order of its key or a window. It does not own: orders that
//! operators need of what is below them.
//!
//! It cannot tell a query without ORDER BY from others: what is computed above an order in one partition is computed by
//! one thread then, too. A large scan is not in one partition; a window over all rows is.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::Partitioning;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

use crate::optimize::subquery_sorts::sees_order;

/// The rule; see the module.
#[derive(Debug)]
pub(crate) struct OrderedOutput;

impl PhysicalOptimizerRule for OrderedOutput {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = in_order(&plan)?.unwrap_or(plan);
        let below = plan.transform_up(|node| {
            if !sees_order_of_input(&node) {
                return Ok(Transformed::no(node));
            }
            let [child] = node.children()[..] else { return Ok(Transformed::no(node)) };
            Ok(match in_order(child)? {
                Some(rows) if !Arc::ptr_eq(&rows, child) => {
                    Transformed::yes(replace_children_if_necessary(node, vec![rows])?)
                }
                _ => Transformed::no(node),
            })
        });
        Ok(below?.data)
    }

    fn name(&self) -> &'static str {
        "ordered_output"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the rows of `node` depend on the order in which its input comes, though it requires none.
fn sees_order_of_input(node: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return depends_on_order(aggregate);
    }
    node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        || (node.is::<BoundedWindowAggExec>() || node.is::<WindowAggExec>())
            && node.required_input_ordering().iter().all(Option::is_none)
}

/// Whether an aggregate of `aggregate` keeps values in the order in which they come, and says no other.
fn depends_on_order(aggregate: &AggregateExec) -> bool {
    let reads_rows =
        matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned);
    reads_rows && aggregate.aggr_expr().iter().any(|call| sees_order(call.fun().name()) && call.order_bys().is_empty())
}

/// `node` as one partition in the order of what is below it, or its own; `None` if there is no order, or several
/// partitions have it.
fn in_order(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if node.output_ordering().is_some() && node.output_partitioning().partition_count() == 1 {
        return Ok(Some(node.clone()));
    }
    let spreads = node
        .downcast_ref::<RepartitionExec>()
        .is_some_and(|node| matches!(node.partitioning(), Partitioning::RoundRobinBatch(_)));
    let gathers = node.downcast_ref::<CoalescePartitionsExec>();
    let mut children: Vec<_> = node.children().into_iter().cloned().collect();
    let Some(child) = children.first_mut().filter(|_| passes(&**node) || gathers.is_some() || spreads) else {
        return Ok(None);
    };
    let Some(rows) = in_order(child)? else { return Ok(None) };
    Ok(Some(match gathers.map(|node| node.fetch()) {
        Some(Some(limit)) => Arc::new(GlobalLimitExec::new(rows, 0, Some(limit))),
        None if !spreads => {
            *child = rows;
            replace_children_if_necessary(node.clone(), children)?
        }
        _ => rows,
    }))
}

/// Whether rows leave `node` as its first child hands them over.
fn passes(node: &dyn ExecutionPlan) -> bool {
    node.is::<ProjectionExec>()
        || node.is::<FilterExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        // Its other children are the subqueries.
        || node.is::<ScalarSubqueryExec>()
        || node.is::<CooperativeExec>()
        || node.is::<BufferExec>()
}
