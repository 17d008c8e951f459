//! The rows of one sort.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::order::KeyReader;
use crate::row::key::Keys;
use crate::threads::in_parallel;

/// Rows with their order.
pub(super) struct SortBuffer {
    source: Source,
    rows: usize,
    keys: Option<Keys>,
    /// The first place of the order whose key is that of the place before.
    first_repeated: Option<usize>,
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
    /// Sorts the rows of `batches` by `reader`'s key columns, ties as they came; by `threads` threads where there is
    /// something to share.
    pub fn new(reader: &KeyReader, batches: Vec<RecordBatch>, threads: usize) -> Result<Self> {
        let mut starts = Vec::with_capacity(batches.len());
        let mut rows = 0;
        for batch in &batches {
            starts.push(rows);
            rows += batch.num_rows();
        }
        let keys = match reader.codec() {
            None => None,
            Some(codec) => {
                let column = |at: &usize| {
                    let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(*at).as_ref()).collect();
                    Ok(concat(&arrays)?)
                };
                let arrays = reader.positions().iter().map(column).collect::<Result<Vec<ArrayRef>>>()?;
                Some(codec.encode_arrays(&arrays)?)
            }
        };
        let sorted = keys.as_ref().map(Keys::sorted);
        let first_repeated = sorted.as_ref().and_then(|sorted| sorted.first_repeated);
        let source = match sorted.filter(|sorted| !sorted.order.is_sorted()) {
            None => Source::Ordered { batches, starts },
            Some(sorted) => Source::Shuffled { columns: whole_columns(batches, threads)?, order: sorted.order },
        };
        Ok(Self { source, rows, keys, first_repeated, threads })
    }

    fn row(&self, position: usize) -> usize {
        match &self.source {
            Source::Ordered { .. } => position,
            Source::Shuffled { order, .. } => order[position] as usize,
        }
    }

    fn key(&self, position: usize) -> &[u8] {
        match &self.keys {
            Some(keys) if position < self.rows => keys.get(self.row(position)),
            _ => &[],
        }
    }

    /// The least key; empty without key columns.
    pub fn first_key(&self) -> &[u8] {
        self.key(0)
    }

    /// The greatest key; empty without key columns.
    pub fn last_key(&self) -> &[u8] {
        self.key(self.rows.saturating_sub(1))
    }

    /// The first key that two rows have.
    pub fn first_duplicate(&self) -> Option<&[u8]> {
        self.first_repeated.map(|at| self.key(at))
    }

    /// The rows at `positions` of the order, column by column.
    pub fn columns(&self, positions: Range<usize>) -> Result<Vec<ArrayRef>> {
        match &self.source {
            Source::Ordered { batches, starts } => {
                let Some(first) = batches.first() else { return Err(Error::internal("a sort without rows")) };
                in_parallel(self.threads, first.num_columns(), |column| slice(batches, starts, column, &positions))
            }
            Source::Shuffled { columns, order } => {
                let rows = UInt32Array::from(order.get(positions).unwrap_or_default().to_vec());
                let of_column = |at: usize| {
                    let column = columns.get(at).ok_or_else(|| Error::internal("a sort that has lost a column"))?;
                    Ok(take(column.as_ref(), &rows, None)?)
                };
                in_parallel(self.threads, columns.len(), of_column)
            }
        }
    }
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
