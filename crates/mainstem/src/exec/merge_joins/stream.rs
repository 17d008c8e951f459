//! The batches of one partition of a merge join.
//!
//! Comes in: two streams in the order of their keys. Goes out: batches in that order.
//!
//! 1. The rows of the first side are taken a window at a time: those with keys below the last one that is at hand of
//!    the other side, all of whose partners are at hand, too.
//! 2. The rows of that last key may go on in the batches to come: they are gathered, and joined with all rows of the
//!    first side that have it.
//! 3. [`Window`] joins. Small batches are put together.
//!
//! Invariant: what is held is one batch of each side, and of the other one the rows of one key.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{
    DataType, Date32Type, Int16Type, Int32Type, Int64Type, SchemaRef, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures::StreamExt;
use mainstem_storage::limits::BATCH_ROWS;

use super::groups::leading;
use super::window::{Keyed, Kind, Terms, Window};

/// Rows of a batch below which it waits for more.
const ROWS_OF_BATCH_MIN: usize = 1_024;

/// A side as far as it was read.
pub(super) struct Side {
    stream: SendableRecordBatchStream,
    /// Its column of keys.
    key_at: usize,
    batch: Keyed,
    /// Rows of the batch that are done.
    done: usize,
    has_ended: bool,
}

impl Side {
    pub(super) fn new(stream: SendableRecordBatchStream, key_at: usize) -> Self {
        let batch = Keyed { batch: RecordBatch::new_empty(stream.schema()), keys: ScalarBuffer::from(Vec::new()) };
        Self { stream, key_at, batch, done: 0, has_ended: false }
    }

    /// Keys of the rows at hand.
    fn keys(&self) -> &[i64] {
        self.batch.keys.get(self.done..).unwrap_or_default()
    }

    /// The next `len` rows, which then are done.
    fn take(&mut self, len: usize) -> Keyed {
        let taken = self.batch.slice(self.done, len);
        self.done += len;
        taken
    }

    /// Goes on to the next batch that has rows; false where there is none.
    async fn advance(&mut self) -> Result<bool> {
        while !self.has_ended {
            match self.stream.next().await.transpose()? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    let keys = keys_of(&batch, self.key_at)?;
                    (self.batch, self.done) = (Keyed { batch, keys }, 0);
                    return Ok(true);
                }
                None => self.has_ended = true,
            }
        }
        self.done = self.batch.keys.len();
        Ok(false)
    }

    /// Goes on to the first row with a key of at least `key`; false where there is none.
    async fn seek(&mut self, key: i64) -> Result<bool> {
        while self.keys().last().is_none_or(|last| *last < key) {
            if !self.advance().await? {
                return Ok(false);
            }
        }
        self.done += leading(self.keys(), |at_hand| at_hand < key);
        Ok(true)
    }

    /// All rows with `key`, which the next row has.
    async fn take_group(&mut self, key: i64, memory: &MemoryReservation) -> Result<Keyed> {
        let mut parts = Vec::new();
        loop {
            let count = leading(self.keys(), |at_hand| at_hand == key);
            let part = self.take(count);
            if count > 0 {
                parts.push(part);
            }
            if !self.keys().is_empty() || !self.advance().await? {
                break;
            }
            memory.try_grow(parts.last().map_or(0, |part| part.batch.get_array_memory_size()))?;
        }
        if let [part] = parts.as_slice() {
            return Ok(part.clone());
        }
        let batch = concat_batches(&self.stream.schema(), parts.iter().map(|part| &part.batch))?;
        memory.try_resize(batch.get_array_memory_size())?;
        let keys = ScalarBuffer::from(vec![key; batch.num_rows()]);
        Ok(Keyed { batch, keys })
    }
}

fn keys_of(batch: &RecordBatch, at: usize) -> Result<ScalarBuffer<i64>> {
    let Some(keys) = batch.columns().get(at) else { return internal_err!("a merge join lacks its key") };
    Ok(match keys.data_type() {
        DataType::Int16 => keys.as_primitive::<Int16Type>().values().iter().map(|key| i64::from(*key)).collect(),
        DataType::Int32 => keys.as_primitive::<Int32Type>().values().iter().map(|key| i64::from(*key)).collect(),
        DataType::Date32 => keys.as_primitive::<Date32Type>().values().iter().map(|key| i64::from(*key)).collect(),
        DataType::Int64 => keys.as_primitive::<Int64Type>().values().clone(),
        DataType::Time64(TimeUnit::Microsecond) => keys.as_primitive::<Time64MicrosecondType>().values().clone(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            keys.as_primitive::<TimestampMicrosecondType>().values().clone()
        }
        other => return internal_err!("a merge join by {other}"),
    })
}

/// See the module.
pub(super) struct Merge {
    pub(super) terms: Arc<Terms>,
    pub(super) rows: Side,
    pub(super) others: Side,
    /// The rows of the other side with the key that was its last one at hand.
    pub(super) group: Option<(i64, Keyed)>,
    pub(super) window: Option<Window>,
    pub(super) output: Output,
    /// Of the group.
    pub(super) memory: MemoryReservation,
    pub(super) metrics: BaselineMetrics,
}

impl Merge {
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.output.next() {
                return Ok(Some(batch));
            }
            if let Some(window) = &mut self.window {
                let timer = self.metrics.elapsed_compute().timer();
                let joined = window.next(&self.terms)?;
                timer.done();
                match joined {
                    Some(batch) => self.output.push(batch)?,
                    None => self.window = None,
                }
            } else if !self.open_window().await? {
                self.output.flush()?;
                return Ok(self.output.next());
            }
        }
    }

    /// Takes the next rows, with their partners; false at the end.
    async fn open_window(&mut self) -> Result<bool> {
        while self.rows.keys().is_empty() {
            if !self.rows.advance().await? {
                return Ok(false);
            }
        }
        let Some(&key) = self.rows.keys().first() else { return Ok(false) };
        if self.group.as_ref().is_none_or(|(of_group, _)| *of_group != key) {
            self.group = None;
            self.memory.free();
            let has_more = self.others.seek(key).await?;
            if !has_more && matches!(self.terms.kind, Kind::Inner | Kind::Semi) {
                return Ok(false);
            }
            if self.others.keys().last() == Some(&key) && !self.terms.asks_for_keys_alone() {
                let group = self.others.take_group(key, &self.memory).await?;
                self.group = Some((key, group));
            }
        }
        let (rows, others) = match &self.group {
            Some((key, group)) => {
                let count = leading(self.rows.keys(), |at_hand| at_hand == *key);
                (self.rows.take(count), group.clone())
            }
            None => self.rows_before_last(),
        };
        let timer = self.metrics.elapsed_compute().timer();
        self.window = Some(Window::new(rows, others, &self.terms));
        timer.done();
        Ok(true)
    }

    /// The rows whose partners are all at hand, and these.
    fn rows_before_last(&mut self) -> (Keyed, Keyed) {
        let keys_alone = self.terms.asks_for_keys_alone();
        let count = match self.others.keys().last() {
            // One partner tells as much as all of them.
            Some(last) if keys_alone => leading(self.rows.keys(), |key| key <= *last),
            Some(last) => leading(self.rows.keys(), |key| key < *last),
            None => self.rows.keys().len(),
        };
        let others = self.others.batch.slice(self.others.done, self.others.keys().len());
        (self.rows.take(count), others)
    }
}

/// Batches on their way out: small ones wait until they are enough.
pub(super) struct Output {
    schema: SchemaRef,
    small: Vec<RecordBatch>,
    small_rows: usize,
    ready: VecDeque<RecordBatch>,
}

impl Output {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self { schema, small: Vec::new(), small_rows: 0, ready: VecDeque::new() }
    }

    fn next(&mut self) -> Option<RecordBatch> {
        self.ready.pop_front()
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if batch.num_rows() >= ROWS_OF_BATCH_MIN {
            self.flush()?;
            self.ready.push_back(batch);
            return Ok(());
        }
        self.small_rows += batch.num_rows();
        self.small.push(batch);
        if self.small_rows >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let small = std::mem::take(&mut self.small);
        self.small_rows = 0;
        match small.as_slice() {
            [] => {}
            [batch] => self.ready.push_back(batch.clone()),
            several => self.ready.push_back(concat_batches(&self.schema, several)?),
        }
        Ok(())
    }
}
