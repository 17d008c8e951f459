//! Probe sides of hash joins that begin while the build side is still read.
//!
//! DataFusion 55.2's hash join asks its probe side for the first rows when its hash table is made, which one thread
//! does. Joins inside the probe side begin no earlier, so that tables of several joins are made one after the other,
//! each by one thread, while the others wait.
//!
//! Comes in: a physical plan in which all else is settled. Goes out: the same plan, in which the probe side of a join
//! with a large build side stands below an [`EagerProbe`], if there is another join in it. That has a task of its own
//! ask for the first batch as soon as the plan is started, and hands the rest of its input on as it is.
//!
//! Invariants: rows, their order and partitions stay. An error of a first batch that nobody asks for is nobody's. A
//! probe side that waits for the keys of the build side waits in its task. It does not own: how long (`RuntimeFilter`).

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, Statistics, replace_children_if_necessary,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::merge_joins::MergeJoin;
use super::spilling_joins::SpillingHashJoin;

type Plan = Arc<dyn ExecutionPlan>;

/// Rows of a build side whose hash table takes long enough, by estimate: about a millisecond.
const BUILD_ROWS_MIN: usize = 1 << 16;

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct EagerProbes;

impl PhysicalOptimizerRule for EagerProbes {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        if config.execution.target_partitions < 2 {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
            if !has_join(join.right())? || !is_large(join.left()) {
                return Ok(Transformed::no(node));
            }
            let (build, probe) = (join.left().clone(), Arc::new(EagerProbe { input: join.right().clone() }));
            Ok(Transformed::yes(replace_children_if_necessary(node, vec![build, probe])?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "eager_probes"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn has_join(plan: &Plan) -> Result<bool> {
    plan.exists(|node| Ok(node.is::<HashJoinExec>() || node.is::<SpillingHashJoin>() || node.is::<MergeJoin>()))
}

/// Whether `plan` may have many rows: nobody knows of some that there are few.
fn is_large(plan: &Plan) -> bool {
    let known = StatisticsContext::new().compute(&**plan, &StatisticsArgs::new());
    let rows = known.ok().and_then(|known| known.num_rows.get_value().copied());
    rows.is_none_or(|rows| rows >= BUILD_ROWS_MIN)
}

/// See the module.
#[derive(Debug)]
struct EagerProbe {
    input: Plan,
}

impl DisplayAs for EagerProbe {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EagerProbe")
    }
}

impl ExecutionPlan for EagerProbe {
    fn name(&self) -> &'static str {
        "EagerProbe"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let input = children.into_iter().next().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Self { input }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut input = self.input.execute(partition, context)?;
        let schema = input.schema();
        // Aborted when nobody waits for it any more.
        let first = SpawnedTask::spawn(async move { (input.next().await, input) });
        let rows = stream::once(async move {
            let (first, rest) = first.join_unwind().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?;
            Ok::<_, DataFusionError>(stream::iter(first).chain(rest))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let known = inputs.first().cloned();
        Ok(known.unwrap_or_else(|| Arc::new(Statistics::new_unknown(&self.schema()))))
    }
}
