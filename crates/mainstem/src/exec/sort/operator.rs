//! The operator: collects rows, sorts them, and passes them on.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    replace_children_if_necessary,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::bounded;
use super::collected::{Collected, Sorted, pieces_of};
use super::threshold::Threshold;
use crate::provider::RuntimeFilter;

/// Rows that a limit collects beyond those it keeps, before it drops all others.
const ROWS_BEYOND_LIMIT: usize = 16_384;
/// The part of the memory of queries that a batch takes in a sort that spills: one in so many.
const PIECES: usize = 32;
/// Rows of such a batch, at least.
const PIECE_ROWS_MIN: usize = 16;

/// A sort in memory; see the module above.
#[derive(Debug)]
pub(in crate::exec) struct RadixSort {
    /// What sorts rows for which there is no memory.
    external: SortExec,
    /// What scans are told of the rows that the limit keeps.
    bound: Option<Arc<RuntimeFilter>>,
    metrics: ExecutionPlanMetricsSet,
}

impl RadixSort {
    /// The operator in the place of `sort`, whose limit tightens `bound`.
    pub(super) fn new(sort: &SortExec, bound: Option<Arc<RuntimeFilter>>) -> Self {
        Self { external: sort.clone(), bound, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// The same, with scans of its input that learn where the limit ends. The rows that they leave out must be needed
    /// by no partition: there is one, or a merge of all takes the first rows.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn bounded(&self, config: &ConfigOptions) -> Result<Option<Self>> {
        let bounded = bounded(&self.external, config)?;
        Ok(bounded.map(|(sort, bound)| Self::new(&sort, Some(bound))))
    }

    /// The sort that it stands for.
    pub(super) fn sort(&self) -> &SortExec {
        &self.external
    }

    /// Whether a run leaves a bound behind that is not that of the next one.
    pub(in crate::exec) fn tightens(&self) -> bool {
        self.bound.is_some()
    }
}

impl DisplayAs for RadixSort {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.external.fmt_as(format, f)
    }
}

impl ExecutionPlan for RadixSort {
    fn name(&self) -> &str {
        self.external.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.external.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.external.input_distribution_requirements()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.external.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.external.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let external: Arc<dyn ExecutionPlan> = Arc::new(self.external.clone());
        let external = replace_children_if_necessary(external, children)?;
        Ok(match external.downcast_ref::<SortExec>() {
            Some(sort) => Arc::new(Self::new(sort, self.bound.clone())),
            None => external,
        })
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.external.input().execute(partition, context.clone())?;
        let schema = input.schema();
        let sort = Sort {
            rows: Collected::new(schema.clone(), self.external.expr()),
            limit: self.external.fetch().unwrap_or(usize::MAX),
            threshold: None,
            bound: self.bound.clone(),
            memory: MemoryConsumer::new("sort").with_can_spill(true).register(context.memory_pool()),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            external: self.external.clone(),
            context,
        };
        let sorted = stream::once(sort.run(input)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, sorted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut metrics = self.metrics.clone_inner();
        let spilled =
            self.external.metrics().into_iter().flat_map(|external| external.iter().cloned().collect::<Vec<_>>());
        spilled.for_each(|metric| metrics.push(metric));
        Some(metrics)
    }

    fn fetch(&self) -> Option<usize> {
        self.external.fetch()
    }
}

/// One partition.
struct Sort {
    rows: Collected,
    limit: usize,
    /// Of the last row within the limit, once so many have come.
    threshold: Option<Threshold>,
    bound: Option<Arc<RuntimeFilter>>,
    memory: MemoryReservation,
    metrics: BaselineMetrics,
    external: SortExec,
    context: Arc<TaskContext>,
}

impl Sort {
    async fn run(mut self, mut input: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        while let Some(batch) = input.next().await.transpose()? {
            let timer = self.metrics.elapsed_compute().clone();
            let timer = timer.timer();
            self.add(&batch)?;
            timer.done();
            if !self.has_room()? {
                return self.sort_externally(input);
            }
        }
        drop(input);
        if self.rows.rows() == 0 {
            let schema = self.external.schema();
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::empty())));
        }
        let timer = self.metrics.elapsed_compute().clone();
        let timer = timer.timer();
        let sorted = self.rows.sort(self.limit)?;
        timer.done();
        Ok(self.emit(sorted))
    }

    /// Whether there is memory for the rows, without those behind the limit if need be.
    fn has_room(&mut self) -> Result<bool> {
        if self.rows.rows() > u32::MAX as usize {
            return Ok(false);
        }
        if self.memory.try_resize(self.rows.bytes()).is_ok() {
            return Ok(true);
        }
        if self.rows.rows() <= self.limit {
            return Ok(false);
        }
        self.keep()?;
        Ok(self.memory.try_resize(self.rows.bytes()).is_ok())
    }

    /// Drops all rows behind the limit, and tells scans where it ends.
    fn keep(&mut self) -> Result<()> {
        self.threshold = self.rows.keep(self.limit)?;
        if let (Some(bound), Some(last)) = (&self.bound, self.threshold.as_ref().and_then(Threshold::leading)) {
            bound.tighten(last);
        }
        Ok(())
    }

    /// Adds the rows of `batch` that are within the limit as far as is known.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let key = self.rows.key_of(batch)?;
        let wanted = match &self.threshold {
            Some(threshold) => match threshold.before(&key)? {
                Some(wanted) => Some(wanted),
                None => return Ok(()),
            },
            None => None,
        };
        self.rows.push(batch, &key, wanted)?;
        if self.rows.rows() >= self.limit.saturating_add(self.limit.max(ROWS_BEYOND_LIMIT)) {
            self.keep()?;
        }
        Ok(())
    }

    /// Passes `sorted` on, batch by batch.
    fn emit(self, sorted: Sorted) -> SendableRecordBatchStream {
        let size = self.context.session_config().batch_size();
        let Self { memory, metrics, external, .. } = self;
        let batches = (0..sorted.rows()).step_by(size).map(move |start| {
            // Held for as long as the rows are.
            let _ = &memory;
            let timer = metrics.elapsed_compute().timer();
            let batch = sorted.batch(start..sorted.rows().min(start + size)).map_err(DataFusionError::from);
            timer.done();
            match metrics.record_poll(Poll::Ready(Some(batch))) {
                Poll::Ready(Some(batch)) => batch,
                _ => Err(DataFusionError::Internal("a batch is not passed on".into())),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(external.schema(), stream::iter(batches)))
    }

    /// Hands what was collected, and what is still to come of `input`, to a sort that spills.
    fn sort_externally(self, input: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        let Self { rows, memory, external, context, limit, .. } = self;
        // Who takes the rows counts them; until then they take less than the half of what was counted for a sort.
        drop(memory);
        let size = rows_of_piece(rows.bytes(), rows.rows(), &context);
        let collected = stream::iter(rows.into_batches(size).map(|batch| batch.map_err(DataFusionError::from)));
        let rest = input.map_ok(move |batch| stream::iter(pieces_of(&batch, size)).map_err(DataFusionError::from));
        let all = RecordBatchStreamAdapter::new(schema.clone(), collected.chain(rest.try_flatten()));
        let input: Arc<dyn ExecutionPlan> = Arc::new(Handed::new(schema, Box::pin(all)));
        let mut sort = replace_children_if_necessary(Arc::new(external.with_fetch(None)), vec![input])?;
        if limit < usize::MAX {
            sort = Arc::new(LocalLimitExec::new(sort, limit));
        }
        sort.execute(0, Arc::new(with_batch_size(&context, size)))
    }
}

/// Rows of a batch, as many as take a small part of the memory of queries if `rows` take `bytes`. A sort that spills
/// has a batch of each run twice while it merges them: of wide rows, some thousand may be more than all memory.
fn rows_of_piece(bytes: usize, rows: usize, context: &TaskContext) -> usize {
    let all = context.session_config().batch_size();
    let MemoryLimit::Finite(limit) = context.memory_pool().memory_limit() else { return all };
    (limit / PIECES * rows.max(1)).checked_div(bytes).unwrap_or(all).max(PIECE_ROWS_MIN).min(all)
}

/// `context` with batches of `size` rows, for a sort, which looks for no functions.
fn with_batch_size(context: &TaskContext, size: usize) -> TaskContext {
    TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone().with_batch_size(size),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        context.runtime_env(),
    )
}

/// Rows that come from a stream, once.
struct Handed {
    rows: Mutex<Option<SendableRecordBatchStream>>,
    properties: Arc<PlanProperties>,
}

impl Handed {
    fn new(schema: SchemaRef, rows: SendableRecordBatchStream) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { rows: Mutex::new(Some(rows)), properties: Arc::new(properties) }
    }
}

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handed")
    }
}

impl DisplayAs for Handed {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handed")
    }
}

impl ExecutionPlan for Handed {
    fn name(&self) -> &str {
        "Handed"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.rows.lock().take();
        rows.ok_or_else(|| DataFusionError::Internal("rows are handed over once".into()))
    }
}
