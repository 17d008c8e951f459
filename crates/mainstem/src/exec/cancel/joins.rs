//! Joins that can be canceled while they run.
//!
//! Comes in: a physical plan that is ready to run, and what cancels its statement. Goes out: a plan that does the same.
//!
//! A query is canceled where its tasks yield. DataFusion's yield by the batches that they take from sources, but of one
//! such batch a join makes any number of rows, or compares any number of pairs without making a row. So
//!
//! - each join asks, and from time to time yields, by the batches it makes, too. Not by tokio's budget
//!   (`CooperativeExec`): it is one for the whole task, and a hundred joins inside one another use it up before the
//!   innermost makes anything, again and again;
//! - the filter of a nested-loop or hash join asks before it is evaluated, which is for at most a batch of pairs. Semi,
//!   anti and mark joins by hash have one that is always true, for of any number of pairs they make few rows.
//!
//! It does not own: who cancels, and what happens then (`runtime`).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, JoinType, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::expressions::lit;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, PiecewiseMergeJoinExec,
    SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::Stream;

use crate::exec::Cancel;
use crate::exec::merge_joins::MergeJoin;
use crate::exec::spilling_joins::SpillingHashJoin;

/// A task that was told to end does so after about so many batches of a join.
const BATCHES_BETWEEN_YIELDS: usize = 64;

/// `plan`, whose joins end once `cancel` says so.
///
/// # Errors
/// Those of DataFusion for plans that are none.
pub(crate) fn cancelable_joins(plan: Arc<dyn ExecutionPlan>, cancel: &Cancel) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = |node: Arc<dyn ExecutionPlan>| -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let join: Arc<dyn ExecutionPlan> = if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
            match join.filter() {
                Some(filter) => {
                    let filter = asking(filter, cancel);
                    Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?)
                }
                None => node,
            }
        } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            match join.filter() {
                Some(filter) => join.builder().with_filter(Some(asking(filter, cancel))).build_exec()?,
                None if makes_few_rows(join) => {
                    let always = JoinFilter::new(lit(true), Vec::new(), Arc::new(Schema::empty()));
                    join.builder().with_filter(Some(asking(&always, cancel))).build_exec()?
                }
                None => node,
            }
        } else if let Some(join) = node.downcast_ref::<SpillingHashJoin>() {
            let cancel = cancel.clone();
            let prepare = Arc::new(move |plan| cancelable_joins(plan, &cancel));
            return Ok(Transformed::yes(Arc::new(join.prepared_by(prepare))));
        } else if let Some(join) = node.downcast_ref::<MergeJoin>() {
            Arc::new(join.with_filter(|filter| asking(filter, cancel)))
        } else if node.is::<CrossJoinExec>()
            || node.is::<PiecewiseMergeJoinExec>()
            || node.is::<SortMergeJoinExec>()
            || node.is::<SymmetricHashJoinExec>()
        {
            node
        } else {
            return Ok(Transformed::no(node));
        };
        Ok(Transformed::yes(Arc::new(AskingJoin { join, cancel: cancel.clone() })))
    };
    plan.transform_up(wrapped).data()
}

/// Whether a join without a filter may compare any number of pairs before it makes a batch: of many pairs of equal keys
/// it makes no row, or one.
fn makes_few_rows(join: &HashJoinExec) -> bool {
    use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
    // A filter beside a null-aware join would be part of its condition.
    !join.null_aware && matches!(join.join_type(), LeftSemi | LeftAnti | LeftMark | RightSemi | RightAnti | RightMark)
}

fn asking(filter: &JoinFilter, cancel: &Cancel) -> JoinFilter {
    let asking = Asking { condition: filter.expression().clone(), cancel: cancel.clone() };
    JoinFilter::new(Arc::new(asking), filter.column_indices().to_vec(), filter.schema().clone())
}

/// A join that makes no more batches once the statement was canceled.
#[derive(Debug)]
struct AskingJoin {
    join: Arc<dyn ExecutionPlan>,
    cancel: Cancel,
}

impl DisplayAs for AskingJoin {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AskingJoin")
    }
}

impl ExecutionPlan for AskingJoin {
    fn name(&self) -> &str {
        "AskingJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.join]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let join = children.pop().unwrap_or_else(|| self.join.clone());
        Ok(Arc::new(Self { join, cancel: self.cancel.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = self.join.execute(partition, context)?;
        // Of several partitions one has made what all want: behind its first batch others have a turn, as where scans
        // begin (`provider::source::stream`).
        let is_one = self.join.output_partitioning().partition_count() == 1;
        let since_yield = if is_one { 0 } else { BATCHES_BETWEEN_YIELDS - 1 };
        Ok(Box::pin(AskingBatches { batches, cancel: self.cancel.clone(), since_yield }))
    }
}

/// Batches of a join.
struct AskingBatches {
    batches: SendableRecordBatchStream,
    cancel: Cancel,
    /// Batches made since the task had a chance to end.
    since_yield: usize,
}

impl Stream for AskingBatches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.cancel.check().map_err(|e| DataFusionError::External(Box::new(e)))?;
        if self.since_yield == BATCHES_BETWEEN_YIELDS {
            self.since_yield = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = self.batches.as_mut().poll_next(context);
        if polled.is_ready() {
            self.since_yield += 1;
        }
        polled
    }
}

impl RecordBatchStream for AskingBatches {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}

/// A condition that is not evaluated once the statement was canceled.
#[derive(Debug)]
struct Asking {
    condition: Arc<dyn PhysicalExpr>,
    cancel: Cancel,
}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Asking {}

impl Hash for Asking {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for Asking {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.condition.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.condition.nullable(input_schema)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancel.check().map_err(|e| DataFusionError::External(Box::new(e)))?;
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let condition = children.pop().unwrap_or_else(|| self.condition.clone());
        Ok(Arc::new(Self { condition, cancel: self.cancel.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
