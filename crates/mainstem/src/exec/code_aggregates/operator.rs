//! The first step of an aggregation, by codes.
//!
//! Comes in: batches whose texts are Arrow dictionaries. Goes out: what DataFusion's `AggregateExec` in mode `Partial`
//! gives: a row for each group, with its values and the states of the functions. When groups are many, or memory is
//! short, those that there are go out, and others begin.
//!
//! 1. [`Groups`] numbers the groups of a batch's rows.
//! 2. Functions take their arguments with the numbers.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use super::groups::Groups;

/// See the module.
#[derive(Debug)]
pub(super) struct CodeAggregateExec {
    /// What it stands for: how it is shown, and what is known of its rows.
    aggregate: AggregateExec,
    input: Arc<dyn ExecutionPlan>,
    /// Of the input: those that rows are grouped by.
    columns: Vec<usize>,
    metrics: ExecutionPlanMetricsSet,
}

impl CodeAggregateExec {
    /// The operator in the place of `aggregate`, over `input`, which has its rows with texts as dictionaries.
    pub(super) fn new(aggregate: AggregateExec, input: Arc<dyn ExecutionPlan>, columns: Vec<usize>) -> Self {
        Self { aggregate, input, columns, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for CodeAggregateExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Shown<'a>(&'a AggregateExec, DisplayFormatType);
        impl fmt::Display for Shown<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt_as(self.1, f)
            }
        }
        let shown = Shown(&self.aggregate, format).to_string();
        f.write_str(&shown.replacen("AggregateExec", "CodeAggregateExec", 1))
    }
}

impl ExecutionPlan for CodeAggregateExec {
    fn name(&self) -> &str {
        "CodeAggregateExec"
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
        let input = input.ok_or_else(|| DataFusionError::Internal("an aggregation without an input".into()))?;
        Ok(Arc::new(Self::new(self.aggregate.clone(), input, self.columns.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let types = self.columns.iter().filter_map(|at| self.aggregate.input_schema().fields().get(*at).cloned());
        let types: Vec<DataType> = types.map(|field| field.data_type().clone()).collect();
        let groups = Groups::new(&types);
        let functions =
            self.aggregate.aggr_expr().iter().zip(self.aggregate.filter_expr()).map(|(function, filter)| {
                let accumulator = function.create_groups_accumulator()?;
                Ok(Function { arguments: function.expressions(), filter: filter.clone(), accumulator })
            });
        let state = Aggregation {
            input: self.input.execute(partition, context.clone())?,
            schema: schema.clone(),
            columns: self.columns.clone(),
            groups: groups.ok_or_else(|| DataFusionError::Internal("groups that have no codes".into()))?,
            functions: functions.collect::<Result<_>>()?,
            memory: MemoryConsumer::new("groups by codes").register(context.memory_pool()),
            batch_rows: context.session_config().batch_size(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = stream::try_unfold(Some(state), |state| async move {
            let Some(mut state) = state else { return Ok(None) };
            let (batches, is_last) = state.next_groups().await?;
            Ok::<_, DataFusionError>(Some((stream::iter(batches).map(Ok), (!is_last).then_some(state))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches.try_flatten())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// One aggregate function over the groups.
struct Function {
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    accumulator: Box<dyn GroupsAccumulator>,
}

impl Function {
    fn update(&mut self, batch: &RecordBatch, numbers: &[usize], groups: usize) -> Result<()> {
        let rows = batch.num_rows();
        let values = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(rows);
        let arguments = self.arguments.iter().map(values).collect::<Result<Vec<_>>>()?;
        let filter = self.filter.as_ref().map(values).transpose()?;
        let filter: Option<&BooleanArray> = filter.as_ref().map(|filter| as_boolean_array(filter)).transpose()?;
        self.accumulator.update_batch(&arguments, numbers, filter, groups)
    }
}

/// One partition.
struct Aggregation {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    columns: Vec<usize>,
    groups: Groups,
    functions: Vec<Function>,
    memory: MemoryReservation,
    batch_rows: usize,
    metrics: BaselineMetrics,
}

impl Aggregation {
    /// The groups of the rows up to where they have to be taken, and whether there are no more rows.
    async fn next_groups(&mut self) -> Result<(Vec<RecordBatch>, bool)> {
        while let Some(batch) = self.input.next().await {
            let batch = batch?;
            let time = self.metrics.elapsed_compute().clone();
            let timer = time.timer();
            self.update(&batch)?;
            timer.done();
            let memory = self.groups.memory() + self.functions.iter().map(|f| f.accumulator.size()).sum::<usize>();
            if self.groups.is_full() || self.memory.try_resize(memory).is_err() {
                return Ok((self.take()?, false));
            }
        }
        Ok((self.take()?, true))
    }

    fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns: Vec<ArrayRef> = self.columns.iter().filter_map(|at| batch.columns().get(*at).cloned()).collect();
        let numbers = self.groups.number(&columns)?;
        let groups = self.groups.len();
        self.functions.iter_mut().try_for_each(|function| function.update(batch, &numbers, groups))
    }

    /// All groups, as batches.
    fn take(&mut self) -> Result<Vec<RecordBatch>> {
        let groups = self.groups.len();
        if groups == 0 {
            return Ok(Vec::new());
        }
        let mut columns = self.groups.take()?;
        for function in &mut self.functions {
            columns.extend(function.accumulator.state(EmitTo::All)?);
        }
        self.memory.try_resize(0)?;
        let all = RecordBatch::try_new(self.schema.clone(), columns)?;
        self.metrics.output_rows().add(groups);
        let rows = self.batch_rows.max(1);
        Ok((0..groups).step_by(rows).map(|from| all.slice(from, rows.min(groups - from))).collect())
    }
}
