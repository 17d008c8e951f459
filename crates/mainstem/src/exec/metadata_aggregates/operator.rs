//! The operator: partial states of an aggregation, and more for the rows that metadata and codes answer for.
//!
//! Comes in: the states of the rows that are read, of each partition. Goes out: before them, of the first partition
//! what metadata tells, and of each what it has added up of the pieces on codes, which all partitions share.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::{StreamExt, stream};
use mainstem_storage::row::{Value, array_of};
use mainstem_storage::scan::{AggregateScan, EmittedRows, ZoneAggregates, ZoneValue};
use mainstem_storage::schema::DataType as ColumnType;

use crate::provider::{Executions, StoreSource, yields_once};

/// What the state of an aggregate is made of: the rows, or what is told of what was asked at a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Rows,
    Count(usize),
    Bound(usize, ColumnType),
    Sum(usize),
}

/// See the module.
#[derive(Debug)]
pub(in crate::exec) struct MetadataAggregates {
    /// The first step of an aggregation, over the rows that are read.
    input: Arc<dyn ExecutionPlan>,
    /// What they are read from.
    source: Arc<StoreSource>,
    /// Of each aggregate.
    states: Vec<State>,
    on_codes: Executions<Arc<AggregateScan>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl MetadataAggregates {
    /// The states of `input`, and those of the rows that `source`, which it reads, leaves out.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, source: Arc<StoreSource>, states: Vec<State>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let (on_codes, metrics) = (Executions::default(), ExecutionPlanMetricsSet::new());
        Self { input, source, states, on_codes, metrics, properties: Arc::new(properties) }
    }

    fn aggregates(&self) -> &[Arc<AggregateFunctionExpr>] {
        self.input.downcast_ref::<AggregateExec>().map_or(&[], AggregateExec::aggr_expr)
    }

    /// The pieces that `partition` adds up with the others.
    fn pieces(&self, partition: usize) -> Result<Option<Arc<AggregateScan>>> {
        let open = || self.source.aggregate_scan()?.map(Arc::new).ok_or_else(|| internal_datafusion_err!("no codes"));
        match (self.source.is_of_kept_plan(), partition) {
            (true, 0) => Ok(self.source.aggregate_scan()?.map(Arc::new)),
            (true, _) => Ok(None),
            (false, _) => self.on_codes.join(partition, open).map(Some),
        }
    }
}

/// After so much time others, and whoever cancels, have their turn: to give it after each piece costs more than a
/// piece.
const TURN: Duration = Duration::from_millis(1);

/// Adds the pieces up that nobody else does.
async fn add_up(pieces: Arc<AggregateScan>, counts: Counts) -> Result<ZoneAggregates> {
    let (mut totals, mut rows) = (pieces.nothing(), EmittedRows::default());
    yields_once().await;
    let mut began = Instant::now();
    loop {
        let timer = counts.time.timer();
        let has_added = pieces.add_next(&mut totals, &mut rows).map_err(|e| DataFusionError::External(Box::new(e)))?;
        timer.done();
        if !has_added {
            break;
        }
        if began.elapsed() >= TURN {
            yields_once().await;
            began = Instant::now();
        }
    }
    counts.add(rows);
    Ok(totals)
}

/// Of a partition, what it added up and in which time, as EXPLAIN ANALYZE shows them.
struct Counts {
    time: Time,
    main: Count,
    delta: Count,
    own: Count,
}

impl Counts {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            time: MetricBuilder::new(metrics).elapsed_compute(partition),
            main: counter("added_from_main"),
            delta: counter("added_from_delta"),
            own: counter("added_from_own_writes"),
        }
    }

    fn add(&self, rows: EmittedRows) {
        for (counter, rows) in [(&self.main, rows.main), (&self.delta, rows.delta), (&self.own, rows.own)] {
            counter.add(usize::try_from(rows).unwrap_or(usize::MAX));
        }
    }
}

/// The states of `aggregates` over the rows of `known`, one row.
fn batch_of(
    aggregates: &[Arc<AggregateFunctionExpr>],
    states: &[State],
    schema: SchemaRef,
    known: &ZoneAggregates,
) -> Result<RecordBatch> {
    if aggregates.len() != states.len() {
        return Err(internal_datafusion_err!("aggregates from metadata over what is no aggregation"));
    }
    let mut columns = Vec::new();
    for (aggregate, state) in aggregates.iter().zip(states) {
        for scalar in scalars(aggregate, *state, known)? {
            columns.push(scalar.to_array()?);
        }
    }
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// The state of `aggregate` over the rows of `known`.
fn scalars(aggregate: &AggregateFunctionExpr, state: State, known: &ZoneAggregates) -> Result<Vec<ScalarValue>> {
    let values = |at: usize| {
        let values = known.values.get(at);
        values.ok_or_else(|| internal_datafusion_err!("metadata was not asked for an aggregate"))
    };
    let mut accumulator = aggregate.create_accumulator()?;
    match state {
        State::Rows => accumulator.merge_batch(&[counts(std::iter::once(known.rows))?])?,
        State::Count(at) => accumulator.merge_batch(&[counts_of(values(at)?)?])?,
        State::Bound(at, data_type) => {
            let bounds = array_of(values(at)?.iter().map(|value| &value.value), data_type);
            accumulator.update_batch(&[bounds.map_err(|e| DataFusionError::External(Box::new(e)))?])?;
        }
        State::Sum(at) => accumulator.merge_batch(&[sums_of(values(at)?)?, counts_of(values(at)?)?])?,
    }
    accumulator.state()
}

fn counts_of(values: &[ZoneValue]) -> Result<ArrayRef> {
    counts(values.iter().map(|value| value.count))
}

fn counts(counts: impl Iterator<Item = u64>) -> Result<ArrayRef> {
    let count = |count| i64::try_from(count).map_err(|_| internal_datafusion_err!("{count} rows"));
    Ok(Arc::new(counts.map(count).collect::<Result<Int64Array>>()?))
}

fn sums_of(values: &[ZoneValue]) -> Result<ArrayRef> {
    let sum = |value: &ZoneValue| match value.value {
        Value::Decimal(sum) => Ok(sum),
        _ => Err(internal_datafusion_err!("metadata has no sum")),
    };
    let sums = values.iter().map(sum).collect::<Result<Decimal128Array>>()?;
    Ok(Arc::new(sums.with_precision_and_scale(38, 0)?))
}

impl DisplayAs for MetadataAggregates {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.aggregates().iter().map(|aggregate| aggregate.name()).collect();
        write!(f, "MetadataAggregateExec: aggr=[{}]", names.join(", "))
    }
}

impl ExecutionPlan for MetadataAggregates {
    fn name(&self) -> &'static str {
        "MetadataAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let child = <[_; 1]>::try_from(children);
        let [input] = child.map_err(|_| internal_datafusion_err!("aggregates from metadata have one input"))?;
        Ok(Arc::new(Self::new(input, self.source.clone(), self.states.clone())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let read = self.input.execute(partition, context)?;
        let known = if partition == 0 { Some(self.source.zone_aggregates()?) } else { None };
        let known = known.filter(|known| known.segments > 0);
        let pieces = self.pieces(partition)?.filter(|pieces| pieces.rows() > 0);
        if known.is_none() && pieces.is_none() {
            return Ok(read);
        }
        let (aggregates, states, schema) = (self.aggregates().to_vec(), self.states.clone(), self.input.schema());
        let known = stream::iter(known.map(Ok));
        // A plan that is kept would count run after run.
        let metrics = if self.source.is_of_kept_plan() { ExecutionPlanMetricsSet::new() } else { self.metrics.clone() };
        let added = stream::iter(pieces).then(move |pieces| add_up(pieces, Counts::new(&metrics, partition)));
        let of_schema = schema.clone();
        let told = known.chain(added).map(move |totals| batch_of(&aggregates, &states, of_schema.clone(), &totals?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, told.chain(read))))
    }
}
