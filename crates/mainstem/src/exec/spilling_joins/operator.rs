//! The operator: a hash join over as much of its build side as there is memory for at once.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SpillManager};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::TABLE_BYTES;
use super::partitions::Partitions;

/// What is done to a plan before it runs.
pub(in crate::exec) type Prepare = Arc<dyn Fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> + Send + Sync>;
/// Levels of division: beyond them keys are alike, and no hash would take them apart.
const DEPTH_MAX: u32 = 4;
/// The part of the memory of queries that is left to other operators: one in so many.
const LEFT_TO_OTHERS: usize = 4;
/// The part of it that a join may take whatever others have: one in so many. Less would be divided without end.
const ALWAYS: usize = 64;

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
        let work = Arc::new(Work { join: self.join.clone(), prepare: self.prepare.clone(), spilled, context });
        let rows = stream::once(work.run(build, probe, 0)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.join.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// One partition of the join.
struct Work {
    join: Arc<HashJoinExec>,
    prepare: Option<Prepare>,
    spilled: SpillMetrics,
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
        join.execute(0, self.context.clone())
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
        while let Some(batch) = collected.next().await.transpose()? {
            builds.add(&batch)?;
        }
        while let Some(batch) = build.next().await.transpose()? {
            builds.add(&batch)?;
        }
        drop(build);
        let builds = builds.finish()?;
        let mut probes = Partitions::new(self.manager(probe.schema()), of_probe, nulls, depth);
        while let Some(batch) = probe.next().await.transpose()? {
            probes.add(&batch)?;
        }
        drop(probe);
        let schema = self.join.schema();
        let pairs = stream::iter(builds.into_iter().zip(probes.finish()?));
        let rows = pairs.then(move |(build, probe)| {
            let work = self.clone();
            async move { work.run(build.read()?, probe.read()?, depth + 1).await }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }

    fn manager(&self, schema: SchemaRef) -> SpillManager {
        let compression = self.context.session_config().spill_compression();
        SpillManager::new(self.context.runtime_env(), self.spilled.clone(), schema).with_compression_type(compression)
    }
}

/// Rows of the build side, and what they will take: as much as there is, but for a part that is left to the operators
/// around, of which some cannot spill. (An even share, as sorts have it, would be so small beside exchanges that files
/// are divided again and again.)
struct Collected {
    batches: Vec<(RecordBatch, usize)>,
    /// Batches may share their buffers.
    counter: RecordBatchMemoryCounter,
    memory: MemoryReservation,
    pool: Arc<dyn MemoryPool>,
}

impl Collected {
    fn new(context: &TaskContext) -> Self {
        let pool = context.memory_pool().clone();
        let memory = MemoryConsumer::new("join").register(&pool);
        Self { batches: Vec::new(), counter: RecordBatchMemoryCounter::new(), memory, pool }
    }

    /// Adds `batch`; whether there is memory for it.
    fn add(&mut self, batch: RecordBatch) -> bool {
        let bytes = self.counter.count_batch(&batch) + batch.num_rows() * TABLE_BYTES as usize;
        let may_grow = match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => {
                self.pool.reserved().saturating_add(bytes) <= limit - limit / LEFT_TO_OTHERS
                    || self.memory.size().saturating_add(bytes) <= limit / ALWAYS
            }
            _ => true,
        };
        let fits = may_grow && self.memory.try_grow(bytes).is_ok();
        self.batches.push((batch, if fits { bytes } else { 0 }));
        fits
    }

    /// The batches, whose memory is whoever's takes them.
    fn into_stream(self, schema: SchemaRef) -> SendableRecordBatchStream {
        let Self { batches, memory, .. } = self;
        let batches = batches.into_iter().map(move |(batch, bytes)| {
            memory.shrink(bytes);
            Ok(batch)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
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
