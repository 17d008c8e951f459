//! The operator: a hash join over as much of its build side as there is memory for at once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SpillManager, Statistics,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use crate::exec::spilling::{DEPTH_MAX, Partitions, Room, TABLE_BYTES};

/// What is done to a plan before it runs.
pub(in crate::exec) type Prepare = Arc<dyn Fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> + Send + Sync>;
/// The part of the memory of queries that is left to other operators: one in so many.
const LEFT_TO_OTHERS: usize = 4;

/// See the module.
pub(in crate::exec) struct SpillingHashJoin {
    join: Arc<HashJoinExec>,
    prepare: Option<Prepare>,
    metrics: ExecutionPlanMetricsSet,
}

impl fmt::Debug for SpillingHashJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillingHashJoin").field("join", &self.join).finish_non_exhaustive()
    }
}

impl SpillingHashJoin {
    /// One that does what `join` does.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn new(join: &HashJoinExec) -> Result<Self> {
        let join = Arc::new(join.builder().reset_state().build()?);
        Ok(Self { join, prepare: Option::None, metrics: ExecutionPlanMetricsSet::new() })
    }

    /// The same, which has `prepare` look at each join before it runs.
    pub(in crate::exec) fn prepared_by(&self, prepare: Prepare) -> Self {
        Self { join: self.join.clone(), prepare: Some(prepare), metrics: self.metrics.clone() }
    }
}

impl DisplayAs for SpillingHashJoin {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spilling")?;
        self.join.fmt_as(format, f)
    }
}

impl ExecutionPlan for SpillingHashJoin {
    fn name(&self) -> &'static str {
        "SpillingHashJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.join.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let join = Arc::new(self.join.builder().with_new_children(children)?.reset_state().build()?);
        Ok(Arc::new(Self { join, prepare: self.prepare.clone(), metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let of_build_side = match self.join.partition_mode() {
            PartitionMode::Partitioned => partition,
            _ => 0,
        };
        let build = self.join.left().execute(of_build_side, context.clone())?;
        let probe = self.join.right().execute(partition, context.clone())?;
        let spilled = SpillMetrics::new(&self.metrics, partition);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let output = baseline.clone();
        let (join, prepare) = (self.join.clone(), self.prepare.clone());
        let work = Arc::new(Work { join, prepare, spilled, baseline, context });
        let rows = stream::once(work.run(build, probe, 0)).try_flatten();
        let rows = rows.inspect_ok(move |batch| output.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.join.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.join.child_stats_requests(partition)
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.join.statistics_from_inputs(inputs, args)
    }
}

/// One partition of the join.
struct Work {
    join: Arc<HashJoinExec>,
    prepare: Option<Prepare>,
    spilled: SpillMetrics,
    baseline: BaselineMetrics,
    context: Arc<TaskContext>,
}

impl Work {
    /// The join of `build` and `probe`, which were divided `depth` times.
    fn run(
        self: Arc<Self>,
        mut build: SendableRecordBatchStream,
        probe: SendableRecordBatchStream,
        depth: u32,
    ) -> BoxFuture<'static, Result<SendableRecordBatchStream>> {
        async move {
            let mut collected = Collected::new(&self.context);
            while let Some(batch) = build.next().await.transpose()? {
                if collected.add(batch) {
                    continue;
                }
                if depth < DEPTH_MAX {
                    return self.divided(collected, build, probe, depth).await;
                }
                // DataFusion's join says what it lacks.
                let schema = build.schema();
                let all = collected.into_stream(schema.clone()).chain(build);
                return self.joined(Box::pin(RecordBatchStreamAdapter::new(schema, all)), probe);
            }
            let build = collected.into_stream(build.schema());
            self.joined(build, probe)
        }
        .boxed()
    }

    /// DataFusion's join of `build` and `probe`.
    fn joined(
        &self,
        build: SendableRecordBatchStream,
        probe: SendableRecordBatchStream,
    ) -> Result<SendableRecordBatchStream> {
        let left = one_partition(self.join.left().schema(), build)?;
        let right = one_partition(self.join.right().schema(), probe)?;
        let join = self.join.builder().with_new_children(vec![left, right])?;
        let join = join.with_partition_mode(PartitionMode::CollectLeft).reset_state().recompute_properties();
        let mut join = join.build_exec()?;
        if let Some(prepare) = &self.prepare {
            join = prepare(join)?;
        }
        let rows = join.execute(0, self.context.clone())?;
        // It has counted its time once its rows are dropped, which they are before what stands behind them begins.
        let elapsed = self.baseline.elapsed_compute().clone();
        let counted = stream::once(async move {
            elapsed.add_duration(Duration::from_nanos(elapsed_in(&*join)));
        });
        let rows = rows.chain(counted.filter_map(|()| async { None }));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.join.schema(), rows)))
    }

    /// Both sides divided into files by the hashes of their keys, and then joined file by file.
    async fn divided(
        self: Arc<Self>,
        collected: Collected,
        mut build: SendableRecordBatchStream,
        mut probe: SendableRecordBatchStream,
        depth: u32,
    ) -> Result<SendableRecordBatchStream> {
        let (of_build, of_probe) = self.join.on().iter().cloned().unzip();
        let nulls = self.join.null_equality();
        let mut builds = Partitions::new(self.manager(build.schema()), of_build, nulls, depth);
        let mut collected = collected.into_stream(build.schema());
        self.write(&mut collected, &mut builds).await?;
        self.write(&mut build, &mut builds).await?;
        drop(build);
        let builds = builds.finish()?;
        let mut probes = Partitions::new(self.manager(probe.schema()), of_probe, nulls, depth);
        self.write(&mut probe, &mut probes).await?;
        drop(probe);
        let schema = self.join.schema();
        let pairs = stream::iter(builds.into_iter().zip(probes.finish()?));
        let rows = pairs.then(move |(build, probe)| {
            let work = self.clone();
            async move { work.run(build.read()?, probe.read()?, depth + 1).await }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }

    /// Writes `rows` to `files`.
    async fn write(&self, rows: &mut SendableRecordBatchStream, files: &mut Partitions) -> Result<()> {
        while let Some(batch) = rows.next().await.transpose()? {
            let _timer = self.baseline.elapsed_compute().timer();
            files.add(&batch)?;
        }
        Ok(())
    }

    fn manager(&self, schema: SchemaRef) -> SpillManager {
        let compression = self.context.session_config().spill_compression();
        SpillManager::new(self.context.runtime_env(), self.spilled.clone(), schema).with_compression_type(compression)
    }
}

/// Rows of the build side, and the room for what they will take.
struct Collected {
    batches: Vec<(RecordBatch, usize)>,
    /// Batches may share their buffers.
    counter: RecordBatchMemoryCounter,
    room: Room,
}

impl Collected {
    fn new(context: &TaskContext) -> Self {
        let room = Room::new("join", LEFT_TO_OTHERS, context);
        Self { batches: Vec::new(), counter: RecordBatchMemoryCounter::new(), room }
    }

    /// Adds `batch`; whether there is memory for it.
    fn add(&mut self, batch: RecordBatch) -> bool {
        let bytes = self.counter.count_batch(&batch) + batch.num_rows() * TABLE_BYTES as usize;
        let fits = self.room.grow(bytes);
        self.batches.push((batch, if fits { bytes } else { 0 }));
        fits
    }

    /// The batches, whose memory is whoever's takes them.
    fn into_stream(self, schema: SchemaRef) -> SendableRecordBatchStream {
        let Self { batches, room, .. } = self;
        let batches = batches.into_iter().map(move |(batch, bytes)| {
            room.shrink(bytes);
            Ok(batch)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
    }
}

/// Nanoseconds that `join` has counted, or what it was wrapped in.
fn elapsed_in(join: &dyn ExecutionPlan) -> u64 {
    match join.metrics() {
        Some(metrics) => metrics.elapsed_compute().unwrap_or(0) as u64,
        None => join.children().into_iter().map(|child| elapsed_in(&**child)).sum(),
    }
}

/// `rows` as a plan of one partition, which can be run once.
fn one_partition(schema: SchemaRef, rows: SendableRecordBatchStream) -> Result<Arc<dyn ExecutionPlan>> {
    let once = Arc::new(Once { schema: schema.clone(), rows: Mutex::new(Some(rows)) });
    Ok(Arc::new(StreamingTableExec::try_new(schema, vec![once], Option::None, Option::None, false, Option::None)?))
}

struct Once {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        self.rows.lock().take().unwrap_or_else(|| {
            let again =
                stream::once(async { Err(internal_datafusion_err!("rows of a join that are asked for again")) });
            Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), again))
        })
    }
}
