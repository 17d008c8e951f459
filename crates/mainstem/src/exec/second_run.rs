//! A query whose hash joins find no room for their build sides is run once more, by joins that spill.
//!
//! Comes in: the rows of a first run by hash joins, which are fastest where there is memory, and the optimised plan.
//! Goes out: the rows of the first run; or, if it was out of memory before it had any, those of a second one.
//!
//! 1. Whether the first run has rows is known when its first batch comes. From then on it is not run again.
//! 2. The second physical plan is made by the same rules and one more ([`MergeJoins`]), right behind the one that has
//!    chosen the joins, so that those that see to partitions and order see to those of merge joins. Its sorts, and its
//!    joins of many rows with one key, put aside on disk what they have no memory for.
//!
//! Invariant: both runs read the same snapshots, which the optimised plan holds. It does not own: null-aware joins,
//! which there are by hash only: they end in 53200 as before.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{StreamExt, TryStreamExt, future, stream};
use mainstem_storage::error::sqlstate;

use super::cancel::cancelable_joins;
use super::runtime::Cancel;
use crate::error::from_datafusion;

/// The rule that has chosen the joins.
const JOINS_CHOSEN: &str = "join_selection";

/// What a second run is made of.
pub(super) struct SecondRun {
    state: SessionState,
    optimized: LogicalPlan,
    cancel: Cancel,
}

impl SecondRun {
    /// For the query whose first run is `plan`; `None` if no other joins would help it.
    pub(super) fn of(
        plan: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        optimized: &LogicalPlan,
        cancel: &Cancel,
    ) -> Option<Self> {
        let can = plan.exists(|node| Ok(can_merge(node))).unwrap_or_default();
        can.then(|| Self { state: state.clone(), optimized: optimized.clone(), cancel: cancel.clone() })
    }

    /// The rows of `first`, or of a second run in its place.
    pub(super) fn behind(
        self,
        first: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> SendableRecordBatchStream {
        let schema = first.schema();
        let rows = async move {
            let mut first =
                first.skip_while(|batch| future::ready(matches!(batch, Ok(batch) if batch.num_rows() == 0)));
            match first.next().await {
                Some(Err(error)) if is_out_of_memory(&error) => {
                    // What it has taken is needed.
                    drop(first);
                    Ok(execute_stream(self.plan().await?, context)?.boxed())
                }
                head => Ok::<_, DataFusionError>(stream::iter(head).chain(first).boxed()),
            }
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(rows).try_flatten()))
    }

    /// The plan by joins that spill.
    async fn plan(self) -> Result<Arc<dyn ExecutionPlan>> {
        let mut rules = self.state.physical_optimizers().to_vec();
        let behind = rules.iter().position(|rule| rule.name() == JOINS_CHOSEN).map_or(0, |at| at + 1);
        rules.insert(behind, Arc::new(MergeJoins));
        let state = SessionStateBuilder::new_from_existing(self.state).with_physical_optimizer_rules(rules).build();
        let planner = state.query_planner().clone();
        let plan = planner.create_physical_plan(&self.optimized, &state).await?;
        cancelable_joins(plan, &self.cancel)
    }
}

fn is_out_of_memory(error: &DataFusionError) -> bool {
    from_datafusion(error).sqlstate() == sqlstate::OUT_OF_MEMORY
}

/// Makes merge joins of hash joins.
#[derive(Debug)]
struct MergeJoins;

impl PhysicalOptimizerRule for MergeJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(merging).data()
    }

    fn name(&self) -> &'static str {
        "merge_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether `plan` is a join that can be one by merging, too.
fn can_merge(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<HashJoinExec>().is_some_and(|join| !join.null_aware && join.fetch().is_none())
}

fn merging(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>().filter(|_| can_merge(&node)) else {
        return Ok(Transformed::no(node));
    };
    let merge = SortMergeJoinExec::try_new(
        join.left().clone(),
        join.right().clone(),
        join.on().to_vec(),
        join.filter().cloned(),
        *join.join_type(),
        vec![SortOptions::default(); join.on().len()],
        join.null_equality(),
    )?;
    let merge: Arc<dyn ExecutionPlan> = Arc::new(merge);
    let Some(projection) = &join.projection else { return Ok(Transformed::yes(merge)) };
    let schema = merge.schema();
    let shown = projection.iter().map(|&at| {
        let name = schema.field(at).name();
        (Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>, name.clone())
    });
    let shown = ProjectionExec::try_new(shown.collect::<Vec<_>>(), merge)?;
    Ok(Transformed::yes(Arc::new(shown)))
}
