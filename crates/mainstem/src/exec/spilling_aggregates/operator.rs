//! The operator: an aggregation of as many groups as there is memory for at once.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{NullEquality, Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties, SpillManager,
    Statistics, replace_children_if_necessary,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use super::table::{Table, Takes};
use crate::exec::code_aggregates::IntegerRange;
use crate::exec::spilling::{DEPTH_MAX, Partitions, Room};

/// The part of the memory of queries that is left to other operators: one in so many. Sorts above and first steps below
/// spill, too, and need some to do it in.
const LEFT_TO_OTHERS: usize = 2;

/// See the module.
#[derive(Debug)]
pub(in crate::exec) struct SpillingAggregate {
    aggregate: Arc<AggregateExec>,
    /// That of the keys, if they are integers near each other.
    range: Option<IntegerRange>,
    /// Of groups in files: keys, and the states of each aggregate.
    states: SchemaRef,
    metrics: ExecutionPlanMetricsSet,
}

impl SpillingAggregate {
    /// One that does what `aggregate` does, whose keys may be integers of `range`.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn new(aggregate: &AggregateExec, range: Option<IntegerRange>) -> Result<Self> {
        let states = match Takes::of(aggregate) {
            Takes::States => aggregate.input().schema(),
            Takes::Rows => AggregateExec::try_new(
                AggregateMode::Partial,
                aggregate.group_expr().clone(),
                aggregate.aggr_expr().to_vec(),
                aggregate.filter_expr().to_vec(),
                aggregate.input().clone(),
                aggregate.input_schema(),
            )?
            .schema(),
        };
        Ok(Self { aggregate: Arc::new(aggregate.clone()), range, states, metrics: ExecutionPlanMetricsSet::new() })
    }

    /// What it stands for.
    pub(in crate::exec) fn aggregate(&self) -> &AggregateExec {
        &self.aggregate
    }

    /// The same in the place of `aggregate`, which groups by the same keys.
    ///
    /// # Errors
    /// Internal.
    pub(in crate::exec) fn in_place_of(&self, aggregate: &AggregateExec) -> Result<Self> {
        Self::new(aggregate, self.range)
    }
}

impl DisplayAs for SpillingAggregate {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spilling")?;
        self.aggregate.fmt_as(format, f)
    }
}

impl ExecutionPlan for SpillingAggregate {
    fn name(&self) -> &'static str {
        "SpillingAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.aggregate.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.aggregate.input_distribution_requirements()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.aggregate.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.aggregate.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let aggregate = replace_children_if_necessary(self.aggregate.clone(), children)?;
        let aggregate = aggregate.downcast_ref::<AggregateExec>();
        let aggregate = aggregate.ok_or_else(|| internal_datafusion_err!("an aggregation became another"))?;
        Ok(Arc::new(Self::new(aggregate, self.range)?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.aggregate.input().execute(partition, context.clone())?;
        let work = Work {
            aggregate: self.aggregate.clone(),
            range: self.range,
            states: self.states.clone(),
            spilled: SpillMetrics::new(&self.metrics, partition),
            baseline: BaselineMetrics::new(&self.metrics, partition),
            context,
        };
        let (work, takes) = (Arc::new(work), Takes::of(&self.aggregate));
        let output = work.baseline.clone();
        let rows = stream::once(work.run(input, takes, 0)).try_flatten();
        let rows = rows.inspect_ok(move |batch| output.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.aggregate.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.aggregate.child_stats_requests(partition)
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.aggregate.statistics_from_inputs(inputs, args)
    }
}

/// One partition of the aggregation.
struct Work {
    aggregate: Arc<AggregateExec>,
    range: Option<IntegerRange>,
    states: SchemaRef,
    spilled: SpillMetrics,
    baseline: BaselineMetrics,
    context: Arc<TaskContext>,
}

impl Work {
    /// The groups of `input`, which was divided `depth` times.
    fn run(
        self: Arc<Self>,
        mut input: SendableRecordBatchStream,
        takes: Takes,
        depth: u32,
    ) -> BoxFuture<'static, Result<SendableRecordBatchStream>> {
        async move {
            let schema = input.schema();
            let room = Room::new("aggregation", LEFT_TO_OTHERS, &self.context);
            let mut table = self.table(&schema, takes)?;
            let mut files = None;
            while let Some(batch) = input.next().await.transpose()? {
                let _timer = self.baseline.elapsed_compute().timer();
                table.add(&batch)?;
                drop(batch);
                if room.resize(table.bytes()) {
                    continue;
                }
                if depth == DEPTH_MAX || table.len() < 2 {
                    // One group cannot be divided: then the pool says what is lacking.
                    room.insist(table.bytes())?;
                    continue;
                }
                let full = std::mem::replace(&mut table, self.table(&schema, takes)?);
                self.write(full, files.get_or_insert_with(|| self.files(depth)))?;
                room.resize(0);
            }
            // What reads has nothing to hold any more.
            drop(input);
            let Some(mut files) = files else {
                // Of no rows a grouping set without columns makes a group.
                let has_no_rows = takes == Takes::Rows && table.len() == 0;
                return if has_no_rows { self.of_no_rows(schema) } else { self.values(table, room) };
            };
            self.write(table, &mut files)?;
            drop(room);
            let groups = files.finish()?.into_iter().filter(|file| !file.is_empty());
            let schema = self.aggregate.schema();
            let groups = stream::iter(groups).then(move |file| {
                let work = self.clone();
                async move { work.run(file.read()?, Takes::States, depth + 1).await }
            });
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, groups.try_flatten())) as SendableRecordBatchStream)
        }
        .boxed()
    }

    /// One without groups, made of what has the columns of `input`.
    fn table(&self, input: &Schema, takes: Takes) -> Result<Table> {
        Table::new(&self.aggregate, self.range, input, takes)
    }

    /// DataFusion's answer for an input without rows, whose columns are `schema`.
    fn of_no_rows(&self, schema: SchemaRef) -> Result<SendableRecordBatchStream> {
        let aggregate = replace_children_if_necessary(self.aggregate.clone(), vec![Arc::new(EmptyExec::new(schema))])?;
        aggregate.execute(0, self.context.clone())
    }

    /// Files that take states by their keys.
    fn files(&self, depth: u32) -> Partitions {
        let compression = self.context.session_config().spill_compression();
        let manager = SpillManager::new(self.context.runtime_env(), self.spilled.clone(), self.states.clone());
        let keys = self.aggregate.group_expr().as_final().input_exprs();
        Partitions::new(manager.with_compression_type(compression), keys, NullEquality::NullEqualsNull, depth)
    }

    /// Writes the states of the groups of `table` to `files`.
    fn write(&self, table: Table, files: &mut Partitions) -> Result<()> {
        let states = table.into_states(self.states.clone())?;
        self.pieces(&states).try_for_each(|piece| files.add(&piece))?;
        files.flush()
    }

    /// The answer for the groups of `table`, which has `room` until all is taken.
    fn values(&self, table: Table, room: Room) -> Result<SendableRecordBatchStream> {
        let _timer = self.baseline.elapsed_compute().timer();
        let schema = self.aggregate.schema();
        let values = table.into_values(schema.clone())?;
        let pieces: Vec<_> = self.pieces(&values).collect();
        let pieces = pieces.into_iter().map(move |piece| {
            let _until_all_is_taken = &room;
            Ok(piece)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(pieces))))
    }

    /// `batch` in batches of the size that operators hand on.
    fn pieces(&self, batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
        let (rows, size) = (batch.num_rows(), self.context.session_config().batch_size());
        (0..rows).step_by(size).map(move |start| batch.slice(start, size.min(rows - start)))
    }
}
