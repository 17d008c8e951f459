//! Entries of a key index in memory, as they come, and in the order of their keys.

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::error::{Error, Result};
use crate::row::key::KeyCodec;
use crate::row::{bytes_of_array, compact};
use crate::schema::TableSchema;

/// Bytes that sorting takes for an entry beside its columns: its key as a number, with its place.
const SORT_BYTES: usize = 16;

/// Columns of the key and row references, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Entries {
    batches: Vec<Vec<ArrayRef>>,
    rows: usize,
    bytes: usize,
}

/// Entries and their order.
pub(super) struct SortedEntries {
    columns: Vec<ArrayRef>,
    /// Numbers of entries in key order.
    order: UInt32Array,
}

impl Entries {
    /// How many there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// What they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What they take while they are sorted.
    pub(super) fn sort_bytes(&self) -> usize {
        self.bytes + self.rows * SORT_BYTES
    }

    /// Takes the entries that `columns` have, and tells how many bytes they take. Texts are copied: they may share
    /// their memory with much else.
    pub(super) fn push(&mut self, columns: Vec<ArrayRef>) -> usize {
        let columns: Vec<ArrayRef> = columns.into_iter().map(compact).collect();
        let bytes = columns.iter().map(bytes_of_array).sum();
        self.rows += columns.first().map_or(0, |column| column.len());
        self.bytes += bytes;
        self.batches.push(columns);
        bytes
    }

    /// The same in the order of `schema`, an index's.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn sorted(self, schema: &TableSchema) -> Result<SortedEntries> {
        let Self { mut batches, .. } = self;
        let mut columns = Vec::with_capacity(schema.columns.len());
        // From the last to the first, so that what was joined need not stay in its pieces.
        while batches.first().is_some_and(|batch| !batch.is_empty()) {
            let pieces: Vec<ArrayRef> = batches.iter_mut().filter_map(Vec::pop).collect();
            let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| piece.as_ref()).collect();
            columns.push(concat(&pieces)?);
        }
        columns.reverse();
        let keys = columns.get(..schema.sort_key.len());
        let keys = keys.ok_or_else(|| Error::internal("entries of a key index without its columns"))?;
        let keys = KeyCodec::new(schema, &schema.sort_key).encode_arrays(keys)?;
        Ok(SortedEntries { columns, order: keys.sorted_permutation().into() })
    }
}

impl SortedEntries {
    /// All columns of `rows` entries at a time.
    pub(super) fn chunks(&self, rows: usize) -> impl Iterator<Item = Result<Vec<ArrayRef>>> {
        let chunk = move |first| {
            let numbers = self.order.slice(first, rows.min(self.order.len() - first));
            self.columns.iter().map(|column| Ok(take(column.as_ref(), &numbers, None)?)).collect()
        };
        (0..self.order.len()).step_by(rows.max(1)).map(chunk)
    }
}
