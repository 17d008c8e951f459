//! The batches of one partition of a scan.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::RecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream};
use mainstem_storage::scan::{EmittedRows, OrderedScan, ScanWorker};

/// Rows of a batch below which those of other places are added: each batch costs every operator something.
const ROWS_OF_BATCH_MIN: usize = 4_096;
/// Places whose rows are put together at most, so that whoever needs only a few rows does not wait for many.
const BATCHES_TOGETHER_MAX: usize = 32;

/// Batches of one partition.
pub(super) struct StoreStream {
    /// For the keys that its rows are to have, and for other partitions.
    pub(super) waits: Option<BoxFuture<'static, ()>>,
    pub(super) rows: StoreRows,
    pub(super) schema: SchemaRef,
    pub(super) row_ref_at: Option<usize>,
    pub(super) left: usize,
    pub(super) metrics: BaselineMetrics,
    pub(super) origins: Origins,
}

/// Where the batches come from.
pub(super) enum StoreRows {
    AsTheyCome(ScanWorker),
    /// With room for the keys that the scan holds.
    InOrder(Box<OrderedScan>, MemoryReservation),
    /// By their keys, before the scan was opened.
    Found(Option<RecordBatch>),
}

impl StoreRows {
    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let external = |e| DataFusionError::External(Box::new(e));
        match self {
            Self::AsTheyCome(worker) => worker.next().map(|batch| batch.map_err(external)),
            Self::InOrder(scan, memory) => {
                let batch = scan.next()?.map_err(external);
                Some(batch.and_then(|batch| memory.try_resize(scan.memory()).map(|()| batch)))
            }
            Self::Found(batch) => batch.take().map(Ok),
        }
    }

    /// The next batch; of a scan that finds few rows in a place, those of several places together.
    fn next_filled(&mut self) -> Option<Result<RecordBatch>> {
        let first = match self.next()? {
            Ok(batch) if matches!(self, Self::AsTheyCome(_)) && (1..ROWS_OF_BATCH_MIN).contains(&batch.num_rows()) => {
                batch
            }
            other => return Some(other),
        };
        let (schema, mut rows) = (first.schema(), first.num_rows());
        let mut batches = vec![first];
        while rows < ROWS_OF_BATCH_MIN && batches.len() < BATCHES_TOGETHER_MAX {
            match self.next() {
                // Many rows were looked at in vain: whoever cancels is to have a turn.
                Some(Ok(batch)) if batch.num_rows() == 0 => break,
                Some(Ok(batch)) => {
                    rows += batch.num_rows();
                    batches.push(batch);
                }
                Some(Err(e)) => return Some(Err(e)),
                None => break,
            }
        }
        match batches.as_slice() {
            [_] => batches.pop().map(Ok),
            _ => Some(concat_batches(&schema, &batches).map_err(DataFusionError::from)),
        }
    }

    fn emitted(&self) -> EmittedRows {
        match self {
            Self::AsTheyCome(worker) => worker.emitted(),
            Self::InOrder(scan, _) => scan.emitted(),
            Self::Found(_) => EmittedRows::default(),
        }
    }
}

/// Rows by where they live, as EXPLAIN ANALYZE shows them.
pub(super) struct Origins {
    main: Count,
    delta: Count,
    /// Of the transaction itself, not committed yet.
    own: Count,
    counted: EmittedRows,
    /// Left out for the keys of joins.
    dropped: Option<Count>,
    /// Left out for expressions that the scan evaluates.
    filtered: Option<Count>,
}

impl Origins {
    /// Of a scan that is told keys, and evaluates expressions, or not.
    pub(super) fn new(
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
        has_keys: bool,
        has_expressions: bool,
    ) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            main: counter("rows_from_main"),
            delta: counter("rows_from_delta"),
            own: counter("rows_from_own_writes"),
            dropped: has_keys.then(|| counter("rows_dropped_by_keys")),
            filtered: has_expressions.then(|| counter("rows_dropped_by_condition")),
            counted: EmittedRows::default(),
        }
    }

    /// Counts what came since the last time.
    fn count(&mut self, emitted: EmittedRows) {
        let before = std::mem::replace(&mut self.counted, emitted);
        let more = |now: u64, before: u64| usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX);
        self.main.add(more(emitted.main, before.main));
        self.delta.add(more(emitted.delta, before.delta));
        self.own.add(more(emitted.own, before.own));
        if let Some(dropped) = &self.dropped {
            dropped.add(more(emitted.dropped, before.dropped));
        }
        if let Some(filtered) = &self.filtered {
            filtered.add(more(emitted.filtered, before.filtered));
        }
    }
}

/// Leaves the thread to others once, of several partitions before they read.
///
/// One partition makes the hash table that all of a join want, and wakes the others when it is there. A worker of tokio
/// 1.54 keeps the task that was woken last until its own task rests, and lets no other worker have it: the task would
/// read everything alone. A task that wakes itself stands in a queue that other workers take from.
pub(crate) fn yields_once() -> impl Future<Output = ()> {
    let mut has_yielded = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

impl StoreStream {
    fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        if self.left == 0 {
            return None;
        }
        let timer = self.metrics.elapsed_compute().timer();
        let batch = self.rows.next_filled();
        timer.done();
        self.origins.count(self.rows.emitted());
        let batch = match batch? {
            Ok(batch) => batch,
            Err(e) => return Some(Err(e)),
        };
        let batch = if batch.num_rows() > self.left { batch.slice(0, self.left) } else { batch };
        self.left -= batch.num_rows();
        Some(self.arrange(batch))
    }

    /// `batch` as the plan knows its columns.
    fn arrange(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let (_, mut columns, _) = batch.into_parts();
        if let Some(at) = self.row_ref_at
            && let Some(refs) = columns.pop()
        {
            columns.insert(at.min(columns.len()), refs);
        }
        // Functions ask the fields of a batch for CHAR(n), of which the store's know nothing.
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &rows)?)
    }
}

impl Stream for StoreStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(waits) = &mut self.waits {
            ready!(waits.poll_unpin(context));
            self.waits = None;
        }
        let batch = self.next_batch();
        if let Some(Ok(batch)) = &batch
            && batch.num_rows() == 0
        {
            // Nothing is left of many rows: others, and whoever cancels, have their turn.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.metrics.record_poll(Poll::Ready(batch))
    }
}

impl RecordBatchStream for StoreStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
