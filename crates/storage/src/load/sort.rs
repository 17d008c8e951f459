//! The rows of one sort.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::order::KeyReader;
use crate::row::bytes_of_array;
use crate::row::key::Keys;
use crate::threads::in_parallel;

/// Rows are in no order if 1 / this of those with the upper half of the keys came in the first half: of rows that come
/// in any order half of them do, of rows that come nearly in the order of their keys hardly any.
const SHUFFLED_SHARE: usize = 8;

/// The order of some rows.
pub(super) struct SortOrder {
    rows: usize,
    /// `None` without key columns.
    keys: Option<Keys>,
    /// Row numbers in key order; `None` if they came so.
    order: Option<Vec<u32>>,
    /// The first place of the order whose key is that of the place before.
    first_repeated: Option<usize>,
}

impl SortOrder {
    /// That of the rows of `batches` by `reader`'s key columns, ties as they came.
    ///
    /// # Errors
    /// Internal.
    pub fn of(reader: &KeyReader, batches: &[RecordBatch]) -> Result<Self> {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let mut keys: Option<Keys> = None;
        for batch in batches {
            let of_batch = reader.keys_of(batch)?;
            match (&mut keys, of_batch) {
                (Some(keys), Some(more)) => keys.append(&more),
                (none, of_batch) => *none = of_batch,
            }
        }
        let sorted = keys.as_ref().map(Keys::sorted);
        let first_repeated = sorted.as_ref().and_then(|sorted| sorted.first_repeated);
        let order = sorted.map(|sorted| sorted.order).filter(|order| !order.is_sorted());
        Ok(Self { rows, keys, order, first_repeated })
    }

    /// Whether the rows came in no order at all: later ones will be among them.
    pub fn is_shuffled(&self) -> bool {
        let Some(order) = &self.order else { return false };
        let half = self.rows / 2;
        let (_, upper) = order.split_at(half);
        upper.iter().filter(|row| (**row as usize) < half).count() > upper.len() / SHUFFLED_SHARE
    }

    /// The first key that two rows have.
    pub fn first_duplicate(&self) -> Option<&[u8]> {
        self.first_repeated.map(|at| self.key(at))
    }

    /// The key at `position` of the order; empty without key columns.
    fn key(&self, position: usize) -> &[u8] {
        let row = self.order.as_ref().map_or(position, |order| order[position] as usize);
        self.keys.as_ref().map_or(&[], |keys| keys.get(row))
    }
}

/// Rows with their order.
pub(super) struct SortBuffer {
    source: Source,
    rows: usize,
    /// The least and the greatest key; empty without key columns.
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// What it may use.
    threads: usize,
}

enum Source {
    /// They came in order.
    Ordered {
        batches: Vec<RecordBatch>,
        /// Row number at which each batch begins.
        starts: Vec<usize>,
    },
    /// Whole columns: a row is then found by its number alone. To gather from batches (`interleave`) takes longer than
    /// to join them first.
    Shuffled {
        columns: Vec<ArrayRef>,
        /// Row numbers in key order.
        order: Vec<u32>,
    },
}

impl SortBuffer {
    /// The rows of `batches`, whose order is `order`; by `threads` threads where there is something to share.
    pub fn new(order: SortOrder, batches: Vec<RecordBatch>, threads: usize) -> Result<Self> {
        let (starts, rows) = starts_of(&batches);
        let key = |position: Option<usize>| position.map(|at| order.key(at).to_vec()).unwrap_or_default();
        let (first_key, last_key) = (key((rows > 0).then_some(0)), key(rows.checked_sub(1)));
        let source = match order.order {
            None => Source::Ordered { batches, starts },
            Some(order) => Source::Shuffled { columns: whole_columns(batches, threads)?, order },
        };
        Ok(Self { source, rows, first_key, last_key, threads })
    }

    /// The rows of `batches`, which are in order, with no key twice if keys are to be unique.
    pub fn of_ordered(reader: &KeyReader, batches: Vec<RecordBatch>, threads: usize) -> Result<Self> {
        let (starts, rows) = starts_of(&batches);
        let key = |row: Option<RecordBatch>| -> Result<Vec<u8>> {
            let keys = row.map(|row| reader.keys_of(&row)).transpose()?.flatten();
            Ok(keys.map(|keys| keys.get(0).to_vec()).unwrap_or_default())
        };
        let first_key = key(batches.first().map(|batch| batch.slice(0, 1)))?;
        let last_key = key(batches.last().map(|batch| batch.slice(batch.num_rows() - 1, 1)))?;
        let source = Source::Ordered { batches, starts };
        Ok(Self { source, rows, first_key, last_key, threads })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of their values.
    pub fn bytes(&self) -> usize {
        match &self.source {
            Source::Ordered { batches, .. } => batches.iter().flat_map(RecordBatch::columns).map(bytes_of_array).sum(),
            Source::Shuffled { columns, .. } => columns.iter().map(bytes_of_array).sum(),
        }
    }

    /// The least key; empty without key columns.
    pub fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    /// The greatest key; empty without key columns.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The rows at `positions` of the order, column by column.
    pub fn columns(&self, positions: Range<usize>) -> Result<Vec<ArrayRef>> {
        let rows = self.rows_at(&positions);
        in_parallel(self.threads, self.column_count(), |at| self.column(at, &positions, &rows))
    }

    /// The same, by the calling thread alone: others may do others.
    pub fn columns_alone(&self, positions: Range<usize>) -> Result<Vec<ArrayRef>> {
        let rows = self.rows_at(&positions);
        (0..self.column_count()).map(|at| self.column(at, &positions, &rows)).collect()
    }

    fn column_count(&self) -> usize {
        match &self.source {
            Source::Ordered { batches, .. } => batches.first().map_or(0, RecordBatch::num_columns),
            Source::Shuffled { columns, .. } => columns.len(),
        }
    }

    /// The rows to be gathered, if they are.
    fn rows_at(&self, positions: &Range<usize>) -> UInt32Array {
        match &self.source {
            Source::Ordered { .. } => UInt32Array::from(Vec::<u32>::new()),
            Source::Shuffled { order, .. } => {
                UInt32Array::from(order.get(positions.clone()).unwrap_or_default().to_vec())
            }
        }
    }

    /// Column `at` of the rows at `positions`, which are `rows`.
    fn column(&self, at: usize, positions: &Range<usize>, rows: &UInt32Array) -> Result<ArrayRef> {
        match &self.source {
            Source::Ordered { batches, starts } => slice(batches, starts, at, positions),
            Source::Shuffled { columns, .. } => {
                let column = columns.get(at).ok_or_else(|| Error::internal("a sort that has lost a column"))?;
                Ok(take(column.as_ref(), rows, None)?)
            }
        }
    }
}

/// Row number at which each of `batches` begins, and how many rows there are.
fn starts_of(batches: &[RecordBatch]) -> (Vec<usize>, usize) {
    let mut rows = 0;
    let starts = batches.iter().map(|batch| {
        rows += batch.num_rows();
        rows - batch.num_rows()
    });
    let starts = starts.collect();
    (starts, rows)
}

/// The columns of all `batches`, each in one piece. Pieces go as soon as they are copied: all of it is there but once,
/// and a column for each thread.
fn whole_columns(batches: Vec<RecordBatch>, threads: usize) -> Result<Vec<ArrayRef>> {
    let columns = batches.first().map_or(0, RecordBatch::num_columns);
    let mut pieces: Vec<Vec<ArrayRef>> = (0..columns).map(|_| Vec::with_capacity(batches.len())).collect();
    for batch in batches {
        let (_, arrays, _) = batch.into_parts();
        pieces.iter_mut().zip(arrays).for_each(|(pieces, array)| pieces.push(array));
    }
    let pieces: Vec<_> = pieces.into_iter().map(Mutex::new).collect();
    in_parallel(threads, columns, |at| {
        let pieces = pieces.get(at).map(|pieces| std::mem::take(&mut *pieces.lock())).unwrap_or_default();
        Ok(concat(&pieces.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?)
    })
}

/// Rows `rows` of a column of `batches`, which begin at `starts`.
fn slice(batches: &[RecordBatch], starts: &[usize], column: usize, rows: &Range<usize>) -> Result<ArrayRef> {
    let mut pieces = Vec::new();
    for (batch, start) in batches.iter().zip(starts) {
        let from = rows.start.max(*start);
        let to = rows.end.min(start + batch.num_rows());
        if from < to {
            pieces.push(batch.column(column).slice(from - start, to - from));
        }
    }
    match pieces.as_slice() {
        [one] => Ok(one.clone()),
        _ => Ok(concat(&pieces.iter().map(|piece| piece.as_ref()).collect::<Vec<_>>())?),
    }
}
