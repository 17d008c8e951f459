//! The rows of one sort.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;

use crate::error::{Error, Result};
use crate::order::KeyReader;
use crate::row::key::Keys;

/// Batches with the order of their rows.
pub(super) struct SortBuffer {
    batches: Vec<RecordBatch>,
    /// Row number at which each batch begins.
    starts: Vec<usize>,
    rows: usize,
    keys: Option<Keys>,
    /// Row numbers in key order; `None` if the rows came in order.
    order: Option<Vec<u32>>,
}

impl SortBuffer {
    /// Sorts the rows of `batches` by `reader`'s key columns, ties as they came.
    pub fn new(reader: &KeyReader, batches: Vec<RecordBatch>) -> Result<Self> {
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
        let order = keys.as_ref().filter(|keys| !keys.is_sorted()).map(Keys::sorted_permutation);
        Ok(Self { batches, starts, rows, keys, order })
    }

    /// Bytes held beside the batches.
    pub fn memory_bytes(&self) -> usize {
        let order = self.order.as_ref().map_or(0, |order| size_of_val(order.as_slice()));
        self.keys.as_ref().map_or(0, Keys::memory_bytes) + order
    }

    fn row(&self, position: usize) -> usize {
        self.order.as_ref().map_or(position, |order| order[position] as usize)
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
        (1..self.rows).map(|at| (self.key(at - 1), self.key(at))).find(|(a, b)| a == b).map(|(a, _)| a)
    }

    /// The rows at `positions` of the order, column by column.
    pub fn columns(&self, positions: Range<usize>) -> Result<Vec<ArrayRef>> {
        let Some(first) = self.batches.first() else {
            return Err(Error::internal("a sort without rows"));
        };
        match &self.order {
            None => (0..first.num_columns()).map(|column| self.slice(column, &positions)).collect(),
            Some(_) => {
                let place = |position| {
                    let row = self.row(position);
                    let batch = self.starts.partition_point(|start| *start <= row) - 1;
                    (batch, row - self.starts[batch])
                };
                let places: Vec<(usize, usize)> = positions.map(place).collect();
                let column = |column| {
                    let arrays: Vec<&dyn Array> = self.batches.iter().map(|b| b.column(column).as_ref()).collect();
                    Ok(interleave(&arrays, &places)?)
                };
                (0..first.num_columns()).map(column).collect()
            }
        }
    }

    /// Rows that stand in order already.
    fn slice(&self, column: usize, rows: &Range<usize>) -> Result<ArrayRef> {
        let mut pieces = Vec::new();
        for (batch, start) in self.batches.iter().zip(&self.starts) {
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
}
