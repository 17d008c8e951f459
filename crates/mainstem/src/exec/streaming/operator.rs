//! GROUP BY of rows that come in the order of what they are grouped by.
//!
//! Comes in: batches, in which the rows of a group follow one another. Goes out: what DataFusion's `AggregateExec` in
//! one step gives: a row for each group, with its values and what the functions make of its rows.
//!
//! 1. [`OrderedGroups`] number the groups of a batch's rows.
//! 2. Functions take their arguments with the numbers.
//! 3. As soon as there is a batch of groups that have ended, they go out; fewer, if they take much memory or come
//!    slowly.
//!
//! DataFusion 55.2 hashes rows that come in order, too, and takes groups that have ended out of the hash table one by
//! one: half of the time of TPC-H's Q18.
//!
//! Invariant: it holds the groups of about two batches at most, and of those that hold much none but the last.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode, PlanProperties, Statistics,
};
use futures::{StreamExt, stream};

use super::groups::{OrderedGroups, has_exact_comparison};
use crate::exec::code_aggregates::{Function, takes_any_order};

/// Bytes of groups that go out as soon as they have ended, however few they are.
const HELD_BYTES_MAX: usize = 1 << 20;
/// Batches of the input at most for one of the output.
const INPUTS_MAX: usize = 16;

/// Puts [`StreamingAggregateExec`] in the place of aggregations in one step whose rows come in order. Runs when nobody
/// looks for DataFusion's operator any more.
#[derive(Debug)]
pub(in crate::exec) struct OrderedGroupBy;

impl PhysicalOptimizerRule for OrderedGroupBy {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match node.downcast_ref::<AggregateExec>().filter(|aggregate| is_ordered(aggregate)) {
                Some(aggregate) => Transformed::yes(Arc::new(StreamingAggregateExec::new(aggregate.clone()))),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "ordered_group_by"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the groups of `aggregate` come one after the other, and are known by comparing rows.
fn is_ordered(aggregate: &AggregateExec) -> bool {
    let groups = aggregate.group_expr();
    let schema = aggregate.input_schema();
    let is_exact = |expr: &Arc<dyn PhysicalExpr>| expr.data_type(&schema).is_ok_and(|of| has_exact_comparison(&of));
    matches!(aggregate.mode(), AggregateMode::Single | AggregateMode::SinglePartitioned)
        && *aggregate.input_order_mode() == InputOrderMode::Sorted
        && aggregate.limit_options().is_none()
        && groups.is_single()
        && !groups.is_empty()
        && groups.expr().iter().all(|(expr, _)| is_exact(expr))
        && takes_any_order(aggregate)
}

/// See the module.
#[derive(Debug)]
pub(in crate::exec) struct StreamingAggregateExec {
    /// What it stands for: how it is shown, and what is known of its rows.
    aggregate: AggregateExec,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl StreamingAggregateExec {
    fn new(aggregate: AggregateExec) -> Self {
        let input = aggregate.input().clone();
        Self { aggregate, input, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// What it stands for; its rows come in the same order.
    pub(in crate::exec) fn aggregate(&self) -> &AggregateExec {
        &self.aggregate
    }
}

impl DisplayAs for StreamingAggregateExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let DisplayFormatType::Default | DisplayFormatType::Verbose = format {
            f.write_str("Streaming")?;
        }
        self.aggregate.fmt_as(format, f)
    }
}

impl ExecutionPlan for StreamingAggregateExec {
    fn name(&self) -> &str {
        "StreamingAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.aggregate.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.aggregate.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next();
        let input = input.ok_or_else(|| internal_datafusion_err!("an aggregation without an input"))?;
        Ok(Arc::new(Self { aggregate: self.aggregate.clone(), input, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let exprs: Vec<_> = self.aggregate.group_expr().expr().iter().map(|(expr, _)| expr.clone()).collect();
        let functions = self.aggregate.aggr_expr().iter().zip(self.aggregate.filter_expr());
        let functions = functions.map(|(function, filter)| Function::new(function, filter.as_ref()));
        let state = Aggregation {
            input: self.input.execute(partition, context.clone())?,
            schema: self.schema(),
            groups: OrderedGroups::new(exprs.len()),
            exprs,
            functions: functions.collect::<Result<_>>()?,
            numbers: Vec::new(),
            inputs: 0,
            memory: MemoryConsumer::new("groups in order").register(context.memory_pool()),
            batch_rows: context.session_config().batch_size().max(1),
            has_ended: false,
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = stream::try_unfold(state, |mut state| async move {
            Ok::<_, DataFusionError>(state.next_batch().await?.map(|batch| (batch, state)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.aggregate.statistics_from_inputs(inputs, args)
    }
}

/// One partition.
struct Aggregation {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    /// What rows are grouped by.
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    groups: OrderedGroups,
    functions: Vec<Function>,
    /// Of the rows of a batch; kept for its memory.
    numbers: Vec<usize>,
    /// Batches since groups went out.
    inputs: usize,
    memory: MemoryReservation,
    batch_rows: usize,
    /// Whether there are no more rows: the last group has ended, too.
    has_ended: bool,
    metrics: BaselineMetrics,
}

impl Aggregation {
    /// Groups that have ended; `None` if there are no more.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let time = self.metrics.elapsed_compute().clone();
        while !self.has_ended && !self.is_due() {
            let Some(batch) = self.input.next().await.transpose()? else {
                self.has_ended = true;
                break;
            };
            let _timer = time.timer();
            self.update(&batch)?;
        }
        let _timer = time.timer();
        self.inputs = 0;
        // The last group may go on.
        let ended = self.groups.len().saturating_sub(usize::from(!self.has_ended));
        let batch = self.take(self.batch_rows.min(ended))?;
        Ok(batch.map(|batch| batch.record_output(&self.metrics)))
    }

    /// Whether groups that have ended, of which there is one at least, go out before more rows come.
    fn is_due(&self) -> bool {
        let ended = self.groups.len().saturating_sub(1);
        ended >= self.batch_rows || ended > 0 && (self.inputs >= INPUTS_MAX || self.memory.size() > HELD_BYTES_MAX)
    }

    fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        self.inputs += 1;
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let columns = self.exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(rows));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        self.groups.number(&columns, &mut self.numbers)?;
        let groups = self.groups.len();
        for function in &mut self.functions {
            function.update(batch, &self.numbers, groups)?;
        }
        self.recount()
    }

    fn recount(&mut self) -> Result<()> {
        let memory = self.functions.iter().map(|function| function.accumulator.size()).sum::<usize>();
        self.memory.try_resize(memory + self.groups.memory())
    }

    /// The first `count` groups; `None` of none.
    fn take(&mut self, count: usize) -> Result<Option<RecordBatch>> {
        if count == 0 {
            return Ok(None);
        }
        let emit_to = if count == self.groups.len() { EmitTo::All } else { EmitTo::First(count) };
        let mut columns = self.groups.take(count)?;
        for function in &mut self.functions {
            columns.push(function.accumulator.evaluate(emit_to)?);
        }
        self.recount()?;
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }
}
