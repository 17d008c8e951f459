//! The loader.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, cast::AsArray};

use crate::error::{Error, Result};
use crate::ids::KeyId;
use crate::limits;
use crate::main_store::Run;
use crate::memory::Charge;
use crate::order::{Cursor, KeyReader, Part, RunWriter, first_repeated_key};
use crate::schema::TableSchema;

use super::LoadTarget;
use super::duplicate::duplicate_key;
use super::sort::SortBuffer;

/// Turns rows into runs.
#[derive(Debug)]
pub struct Loader {
    schema: Arc<TableSchema>,
    target: LoadTarget,
    reader: KeyReader,
    segment_rows: usize,
    /// Rows of a full sort.
    sort_rows: usize,
    sort_bytes: usize,
    buffer: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// What `bytes`, and a sort under way, are counted as.
    charge: Option<Charge>,
    /// The run being written, and its last key.
    current: Option<(RunWriter, Vec<u8>)>,
    runs: Vec<Arc<Run>>,
}

impl Loader {
    /// A load into `schema`'s table that writes segments of `segment_rows` rows to `target`.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>, target: LoadTarget, segment_rows: u32) -> Self {
        let segment_rows = segment_rows.clamp(limits::SEGMENT_ROWS_MIN, limits::SEGMENT_ROWS_MAX) as usize;
        let reader = KeyReader::of_sort_key(&schema);
        let sort_rows = match reader.codec() {
            Some(_) => (limits::LOAD_SORT_ROWS / segment_rows).max(1) * segment_rows,
            None => segment_rows,
        };
        let sort_bytes = limits::LOAD_SORT_BYTES;
        let (buffer, runs) = (Vec::new(), Vec::new());
        Self {
            schema,
            target,
            reader,
            segment_rows,
            sort_rows,
            sort_bytes,
            buffer,
            rows: 0,
            bytes: 0,
            charge: None,
            current: None,
            runs,
        }
    }

    /// The same with at most `rows` rows (rounded up to whole segments) and about `bytes` bytes in a sort.
    #[must_use]
    pub fn with_sort_limits(mut self, rows: usize, bytes: usize) -> Self {
        self.sort_rows = self.sort_rows.min(rows.max(1).next_multiple_of(self.segment_rows));
        self.sort_bytes = self.sort_bytes.min(bytes);
        self
    }

    /// The same, with its memory counted by `charge`: where that is over its share, rows are written in smaller sorts.
    #[must_use]
    pub fn counted(mut self, charge: Charge) -> Self {
        self.charge = Some(charge);
        self
    }

    fn count(&mut self, bytes: usize) {
        if let Some(charge) = &mut self.charge {
            charge.resize(bytes);
        }
    }

    /// Whether others need the memory, and what is collected is worth a sort.
    fn is_crowded(&self) -> bool {
        let worth_it = self.bytes >= self.sort_bytes / 4;
        worth_it && self.charge.as_ref().is_some_and(Charge::is_over)
    }

    /// Takes the rows of `batch`: columns as in the schema, checked by [`crate::row::check_batch`].
    ///
    /// # Errors
    /// Constraint (23505) for a key that the load has twice, as far as it shows yet; Io or Full. The load is then over.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.schema.columns.len() {
            let (got, due) = (batch.num_columns(), self.schema.columns.len());
            return Err(Error::internal(format!("a batch of {got} columns for {due}")));
        }
        let mut batch = batch.clone();
        while batch.num_rows() > 0 {
            let take = batch.num_rows().min(self.sort_rows - self.rows);
            let head = batch.slice(0, take);
            batch = batch.slice(take, batch.num_rows() - take);
            self.rows += take;
            self.bytes += bytes_of(&head);
            self.buffer.push(head);
            self.count(self.bytes);
            if self.rows == self.sort_rows {
                self.write(self.rows)?;
            } else if self.bytes >= self.sort_bytes || self.is_crowded() {
                let whole = self.rows / self.segment_rows * self.segment_rows;
                self.write(if whole == 0 { self.rows } else { whole })?;
            }
        }
        Ok(())
    }

    /// Sorts and writes the first `rows` rows of the buffer.
    fn write(&mut self, rows: usize) -> Result<()> {
        let (head, rest) = split(std::mem::take(&mut self.buffer), rows);
        let collected = self.bytes;
        self.rows -= rows;
        self.bytes = rest.iter().map(bytes_of).sum();
        self.buffer = rest;
        let sorted = SortBuffer::new(&self.reader, head)?;
        self.count(collected + sorted.memory_bytes());
        let ordered = self.schema.ordered_key();
        if let Some(id) = ordered
            && let Some(key) = sorted.first_duplicate()
        {
            return Err(duplicate_key(&self.schema, id, key));
        }
        let (mut writer, last) = match self.current.take() {
            Some((writer, last)) if last.as_slice() <= sorted.first_key() => {
                if let Some(id) = ordered
                    && last.as_slice() == sorted.first_key()
                {
                    return Err(duplicate_key(&self.schema, id, &last));
                }
                (writer, last)
            }
            other => {
                if let Some((writer, _)) = other {
                    self.end_run(writer)?;
                }
                (RunWriter::new(self.schema.clone(), self.target.clone()), Vec::new())
            }
        };
        let mut last = last;
        for start in (0..rows).step_by(self.segment_rows) {
            let end = rows.min(start + self.segment_rows);
            writer.write(&sorted.columns(start..end)?)?;
        }
        last.clear();
        last.extend_from_slice(sorted.last_key());
        self.current = Some((writer, last));
        drop(sorted);
        self.count(self.bytes);
        Ok(())
    }

    fn end_run(&mut self, writer: RunWriter) -> Result<()> {
        self.runs.extend(writer.finish()?.map(|written| written.run));
        Ok(())
    }

    /// Writes what is left and returns the runs, oldest rows first; none without rows.
    ///
    /// # Errors
    /// As [`Loader::push`].
    pub fn finish(mut self) -> Result<Vec<Arc<Run>>> {
        if self.rows > 0 {
            self.write(self.rows)?;
        }
        if let Some((writer, _)) = self.current.take() {
            self.end_run(writer)?;
        }
        if let Some(id) = self.schema.ordered_key()
            && self.runs.len() > 1
        {
            self.check_unique(id)?;
        }
        for id in self.schema.indexed_keys() {
            if let Some(key) = first_repeated_key(&self.schema, id, &self.runs)? {
                return Err(duplicate_key(&self.schema, id, &key));
            }
        }
        Ok(self.runs)
    }

    /// One pass over the keys of all runs; segments that no other run reaches into are not read.
    fn check_unique(&self, id: KeyId) -> Result<()> {
        let whole = |run: &Arc<Run>| -> Vec<Part> {
            let parts = run.segments().iter();
            parts.map(|part| Part::segment(part.segment.clone(), part.range.clone()).keep_whole()).collect()
        };
        let cursor = Cursor::new(self.reader.clone(), self.runs.iter().map(whole).collect())?;
        match cursor.first_duplicate()? {
            Some(key) => Err(duplicate_key(&self.schema, id, &key)),
            None => Ok(()),
        }
    }
}

/// The first `rows` rows of `batches`, and the others.
fn split(batches: Vec<RecordBatch>, rows: usize) -> (Vec<RecordBatch>, Vec<RecordBatch>) {
    let (mut head, mut rest) = (Vec::new(), Vec::new());
    let mut left = rows;
    for batch in batches {
        let take = left.min(batch.num_rows());
        if take > 0 {
            head.push(batch.slice(0, take));
        }
        if take < batch.num_rows() {
            rest.push(batch.slice(take, batch.num_rows() - take));
        }
        left -= take;
    }
    (head, rest)
}

/// Bytes of the values of `batch`, however long the buffers behind them are.
fn bytes_of(batch: &RecordBatch) -> usize {
    let texts = |views: &[u128]| views.iter().map(|view| 16 + (*view as u32) as usize).sum();
    let column = |array: &Arc<dyn Array>| match array.data_type() {
        arrow_schema::DataType::Utf8View => texts(array.as_string_view().views()),
        arrow_schema::DataType::BinaryView => texts(array.as_binary_view().views()),
        other => array.len() * other.primitive_width().unwrap_or(1),
    };
    batch.columns().iter().map(column).sum()
}
