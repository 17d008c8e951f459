//! The first step of an aggregation, by codes.
//!
//! Comes in: batches whose texts are Arrow dictionaries. Goes out: what DataFusion's `AggregateExec` in mode `Partial`
//! gives: a row for each group, with its values and the states of the functions. When groups are many, or memory is
//! short, those that there are go out, and others begin.
//!
//! 1. [`Keys`] number the groups of a batch's rows.
//! 2. Functions take their arguments with the numbers.
//!
//! Where nearly each row is a group of its own, as the first rows tell, states are made of the later ones as they are.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::aggregates::group_values::GroupValues;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};
use mainstem_postgres::aggregate::has_exact_state;

use super::function::Function;
use super::groups::Groups;
use super::integers::{IntegerGroups, IntegerRange};

/// Rows after which is known whether groups are nearly as many.
const PROBED_ROWS: usize = 100_000;
/// Groups by integers at most, after which they have to be taken.
const INTEGERS_MAX: usize = 1 << 31;

/// See the module.
#[derive(Debug)]
pub(super) struct CodeAggregateExec {
    /// What it stands for: how it is shown, and what is known of its rows.
    aggregate: AggregateExec,
    input: Arc<dyn ExecutionPlan>,
    /// Of the input: those that rows are grouped by.
    columns: Vec<usize>,
    /// That of the values of the column, if it is one of integers near each other.
    range: Option<IntegerRange>,
    metrics: ExecutionPlanMetricsSet,
}

impl CodeAggregateExec {
    /// The operator in the place of `aggregate`, over `input`, which has its rows with texts as dictionaries.
    pub(super) fn of_codes(aggregate: AggregateExec, input: Arc<dyn ExecutionPlan>, columns: Vec<usize>) -> Self {
        Self { aggregate, input, columns, range: None, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// The operator in the place of `aggregate`, whose groups are integers of `range` in column `at` of its input.
    pub(super) fn of_integers(aggregate: AggregateExec, at: usize, range: IntegerRange) -> Self {
        let input = aggregate.input().clone();
        Self { aggregate, input, columns: vec![at], range: Some(range), metrics: ExecutionPlanMetricsSet::new() }
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
        let (aggregate, columns) = (self.aggregate.clone(), self.columns.clone());
        Ok(Arc::new(Self { aggregate, input, columns, range: self.range, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let types = self.columns.iter().filter_map(|at| self.aggregate.input_schema().fields().get(*at).cloned());
        let types: Vec<DataType> = types.map(|field| field.data_type().clone()).collect();
        let keys = Keys::new(&types, self.range);
        let (functions, states) = functions_of(&self.aggregate)?;
        let state = Aggregation {
            input: self.input.execute(partition, context.clone())?,
            schema: schema.clone(),
            columns: self.columns.clone(),
            keys: keys.ok_or_else(|| DataFusionError::Internal("groups that have no codes".into()))?,
            functions,
            states,
            memory: MemoryConsumer::new("groups by codes").register(context.memory_pool()),
            batch_rows: context.session_config().batch_size(),
            rows: 0,
            is_passing: false,
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

/// The functions of `aggregate`, and for each of its aggregates which one has its state: sums and averages of the same
/// values have one state, which is computed once.
fn functions_of(aggregate: &AggregateExec) -> Result<(Vec<Function>, Vec<usize>)> {
    let (mut functions, mut states) = (Vec::<Function>::new(), Vec::new());
    // Those of which the state is a sum and a count.
    let mut totals = Vec::new();
    for (aggregate, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
        let function = Function::new(aggregate, filter.as_ref())?;
        let is_total = has_exact_state(&aggregate.state_fields()?);
        let is_same = |other: &Function| other.arguments == function.arguments && other.filter == function.filter;
        let known = functions.iter().zip(&totals).position(|(other, total)| is_total && *total && is_same(other));
        states.push(known.unwrap_or(functions.len()));
        if known.is_none() {
            functions.push(function);
            totals.push(is_total);
        }
    }
    Ok((functions, states))
}

/// The groups that there are, by what their rows have in common.
enum Keys {
    Codes(Groups),
    Integers(IntegerGroups),
}

impl Keys {
    /// None yet, by columns of `types`, or by integers of `range`; `None` where one of them cannot be.
    fn new(types: &[DataType], range: Option<IntegerRange>) -> Option<Self> {
        match range {
            Some(range) => IntegerGroups::new(types.first()?, range).map(Self::Integers),
            None => Groups::new(types).map(Self::Codes),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Codes(groups) => groups.len(),
            Self::Integers(groups) => groups.len(),
        }
    }

    /// Whether they have to be taken before more rows come.
    fn is_full(&self) -> bool {
        match self {
            Self::Codes(groups) => groups.is_full(),
            Self::Integers(groups) => groups.len() > INTEGERS_MAX,
        }
    }

    /// Bytes of memory.
    fn memory(&self) -> usize {
        match self {
            Self::Codes(groups) => groups.memory(),
            Self::Integers(groups) => groups.size(),
        }
    }

    /// The number of each row's group, whose values are in `columns`.
    fn number(&mut self, columns: &[ArrayRef]) -> Result<Vec<usize>> {
        match self {
            Self::Codes(groups) => groups.number(columns),
            Self::Integers(groups) => {
                let mut numbers = Vec::with_capacity(columns.first().map_or(0, |column| column.len()));
                groups.intern(columns, &mut numbers)?;
                Ok(numbers)
            }
        }
    }

    /// The values of all groups; none is left.
    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Codes(groups) => groups.take(),
            Self::Integers(groups) => groups.emit(EmitTo::All),
        }
    }

    /// Whether `rows` rows had so many groups that it is not worth to look for them.
    fn are_nearly_rows(&self, rows: usize) -> bool {
        matches!(self, Self::Integers(groups) if rows >= PROBED_ROWS && groups.len() > rows / 5 * 4)
    }
}

/// One partition.
struct Aggregation {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    columns: Vec<usize>,
    keys: Keys,
    functions: Vec<Function>,
    /// The function that has the state of each aggregate.
    states: Vec<usize>,
    memory: MemoryReservation,
    batch_rows: usize,
    /// Rows so far.
    rows: usize,
    /// Whether states are made of rows as they are.
    is_passing: bool,
    metrics: BaselineMetrics,
}

impl Aggregation {
    /// The groups of the rows up to where they have to be taken, and whether there are no more rows.
    async fn next_groups(&mut self) -> Result<(Vec<RecordBatch>, bool)> {
        while let Some(batch) = self.input.next().await {
            let batch = batch?;
            let time = self.metrics.elapsed_compute().clone();
            let _timer = time.timer();
            if self.is_passing {
                return Ok((vec![self.states(&batch)?], false));
            }
            self.update(&batch)?;
            let memory = self.keys.memory() + self.functions.iter().map(|f| f.accumulator.size()).sum::<usize>();
            self.is_passing = self.keys.are_nearly_rows(self.rows);
            if self.is_passing || self.keys.is_full() || self.memory.try_resize(memory).is_err() {
                return Ok((self.take()?, false));
            }
        }
        Ok((self.take()?, true))
    }

    fn keys_of(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        self.columns.iter().filter_map(|at| batch.columns().get(*at).cloned()).collect()
    }

    fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.rows += batch.num_rows();
        let numbers = self.keys.number(&self.keys_of(batch))?;
        let groups = self.keys.len();
        self.functions.iter_mut().try_for_each(|function| function.update(batch, &numbers, groups))
    }

    /// The states of each aggregate, of those of the functions.
    fn of_each(&self, states: &[Vec<ArrayRef>]) -> impl Iterator<Item = ArrayRef> {
        self.states.iter().filter_map(|at| states.get(*at)).flatten().cloned()
    }

    /// Each row of `batch` as a group.
    fn states(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = self.keys_of(batch);
        let states = self.functions.iter().map(|function| function.states(batch)).collect::<Result<Vec<_>>>()?;
        columns.extend(self.of_each(&states));
        self.metrics.output_rows().add(batch.num_rows());
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// All groups, as batches.
    fn take(&mut self) -> Result<Vec<RecordBatch>> {
        let groups = self.keys.len();
        if groups == 0 {
            return Ok(Vec::new());
        }
        let mut columns = self.keys.take()?;
        let states = self.functions.iter_mut().map(|function| function.accumulator.state(EmitTo::All));
        let states = states.collect::<Result<Vec<_>>>()?;
        columns.extend(self.of_each(&states));
        self.memory.try_resize(0)?;
        let all = RecordBatch::try_new(self.schema.clone(), columns)?;
        self.metrics.output_rows().add(groups);
        let rows = self.batch_rows.max(1);
        Ok((0..groups).step_by(rows).map(|from| all.slice(from, rows.min(groups - from))).collect())
    }
}
