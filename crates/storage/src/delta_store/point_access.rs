//! Single rows: by key, by offset.
//!
//! The hash leads to the newest row of a key, `prev` from each row to the former one of its key. Of a chain, a snapshot
//! sees at most the first row that had begun: rows below it were deleted at or before that row's begin.

use std::ops::Range;

use arrow_array::ArrayRef;

use super::block::{Block, BlockWriter};
use super::column::BLOCK_ROWS;
use super::directory::Directory;
use super::generation::DeltaGeneration;
use super::key_hash::KeyHash;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, KeyId};
use crate::row::key::{HashedKey, KeyCodec, KeyHashes, Keys, RowKeys, RowsWithKey, TableKey};
use crate::row::{RowBuffer, RowView, Value};
use crate::schema::{Column, TableSchema};

/// One key of a generation.
pub(super) struct KeyIndex {
    key: TableKey,
    /// Which key of the table, in the order of [`TableSchema::keys`].
    number: usize,
    /// Positions of the key columns in the schema, in key order.
    positions: Vec<usize>,
    hash: KeyHash,
}

fn split(offset: u32) -> (usize, usize) {
    (offset as usize / BLOCK_ROWS, offset as usize % BLOCK_ROWS)
}

impl KeyIndex {
    /// One for each key of `schema`'s table, in the order of [`TableSchema::keys`].
    pub(super) fn all(schema: &TableSchema) -> Box<[Self]> {
        let keys = TableKey::all(schema).into_iter().enumerate();
        keys.map(|(number, key)| {
            let positions = key.columns().iter().filter_map(|&id| schema.position(id)).collect();
            Self { key, number, positions, hash: KeyHash::new() }
        })
        .collect()
    }

    /// Chains and indexes rows `part` of `rows`, which stand at `start` on in the block of `writer`, one of `blocks`:
    /// those that have the key, as `hashes` says. For the one writer.
    pub(super) fn link(
        &self,
        blocks: &Directory<Block>,
        writer: &mut BlockWriter,
        rows: &RowBuffer,
        part: Range<u32>,
        start: u32,
        hashes: KeyHashes<'_>,
    ) -> Result<()> {
        for (at, offset) in part.zip(start..) {
            let Some(hash) = hashes.get(at as usize) else {
                writer.link(self.number, None)?;
                continue;
            };
            let is_key = |other| self.same_key(blocks, other, rows.row(at as usize));
            // The link first: whoever finds the row in the hash may follow it.
            self.hash.supersede(hash, offset, is_key, |former| writer.link(self.number, former))?;
        }
        Ok(())
    }

    /// The keys of `rows`.
    pub(super) fn keys_of(&self, rows: &RowBuffer) -> RowKeys {
        RowKeys::of(&self.key, rows)
    }

    /// Which key of the table.
    pub(super) fn id(&self) -> KeyId {
        self.key.id()
    }

    fn same_key(&self, blocks: &Directory<Block>, offset: u32, row: RowView<'_>) -> bool {
        let (number, at) = split(offset);
        let Some(block) = blocks.get(number) else { return false };
        self.positions.iter().all(|&p| block.columns.get(p).is_some_and(|c| c.equals_field(at, row, p)))
    }

    /// Whether the first columns of the key have the values `key` in row `offset`; all of them, if it is a whole key.
    pub(super) fn has_key(&self, blocks: &Directory<Block>, offset: u32, key: &[Value]) -> bool {
        let (number, at) = split(offset);
        let Some(block) = blocks.get(number) else { return false };
        self.positions.iter().zip(key).all(|(&p, value)| block.columns.get(p).is_some_and(|c| c.equals(at, value)))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.hash.memory_bytes()
    }

    /// Which key of the table, in the order of [`TableSchema::keys`].
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The keys of rows whose columns of the key are `arrays`, and which of the rows have one.
    pub(super) fn keys_of_arrays(&self, arrays: &[ArrayRef]) -> Result<(Keys, RowsWithKey)> {
        self.key.encode_arrays(arrays)
    }

    /// How it is encoded.
    pub(super) fn codec(&self) -> &KeyCodec {
        self.key.codec()
    }

    /// Positions of its columns in the schema, in key order.
    pub(super) fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Whether row `offset`, which is published, is the first that `blocks` got of its key.
    pub(super) fn is_first(&self, blocks: &Directory<Block>, offset: u32) -> bool {
        let (number, row) = split(offset);
        blocks.get(number).is_some_and(|block| block.former(self.number, row).is_none())
    }
}

impl DeltaGeneration {
    pub(super) fn index(&self, id: KeyId) -> Option<&KeyIndex> {
        self.keys.iter().find(|index| index.key.id() == id)
    }

    /// Whether a row whose key `id` has hash `hash` may be there. One that is not published yet counts, too.
    #[inline]
    #[must_use]
    pub fn may_have(&self, id: KeyId, hash: u64) -> bool {
        self.index(id).is_some_and(|index| index.hash.newest(hash, |_| true).is_some())
    }

    /// The published rows whose key `id` is `key`, newest first.
    #[inline]
    fn chain<'a>(&'a self, id: KeyId, key: HashedKey<'_>) -> impl Iterator<Item = u32> + use<'a> {
        let index = self.index(id);
        // Bytes that are no key are no row's key.
        let newest = index.and_then(|index| {
            let mut values = None;
            index.hash.newest(key.hash(), |offset| {
                let values = values.get_or_insert_with(|| index.key.codec().decode(key.bytes()).ok());
                values.as_ref().is_some_and(|values| index.has_key(&self.blocks, offset, values))
            })
        });
        let key_number = index.map_or(0, |index| index.number);
        let former = move |&offset: &u32| {
            let (number, row) = split(offset);
            self.blocks.get(number)?.former(key_number, row)
        };
        let rows = self.rows();
        // A row may be found before its commit has published it.
        std::iter::successors(newest, former).filter(move |&offset| offset < rows)
    }

    /// The row whose key `id` is `key` (encoded by [`TableKey`]) that a snapshot at `at` sees.
    #[must_use]
    pub fn lookup(&self, id: KeyId, key: &[u8], at: CommitTs) -> Option<u32> {
        self.lookup_hashed(id, HashedKey::of(key), at)
    }

    /// As [`DeltaGeneration::lookup`].
    #[inline]
    #[must_use]
    pub fn lookup_hashed(&self, id: KeyId, key: HashedKey<'_>, at: CommitTs) -> Option<u32> {
        let begun = |&offset: &u32| self.begin_of(offset).is_some_and(|begin| begin <= at);
        self.chain(id, key).find(begun).filter(|&offset| !self.deletes().is_deleted(offset, at))
    }

    /// Of the rows with the key `id` of row `offset`, the first that the generation got of it, the one that a snapshot
    /// at `at` sees. Errors: Internal for a key or a row that is not there.
    pub fn version_at(&self, id: KeyId, offset: u32, at: CommitTs) -> Result<Option<u32>> {
        if self.begin_of(offset).is_none_or(|begin| begin > at) {
            return Ok(None);
        }
        if !self.deletes().is_deleted(offset, at) {
            return Ok(Some(offset));
        }
        let mut key = Vec::with_capacity(16);
        let has_key = self.key_of(id, offset, &mut key)?;
        Ok(has_key.then(|| self.lookup(id, &key, at)).flatten())
    }

    /// The row whose key `id` is `key` that is live as of the last commit applied. For validation under the commit
    /// lock; elsewhere the answer may be out of date at once.
    #[must_use]
    pub fn lookup_live(&self, id: KeyId, key: &[u8]) -> Option<u32> {
        self.chain(id, HashedKey::of(key)).find(|&offset| !self.deletes().is_deleted_now(offset))
    }

    /// Appends key `id` of row `offset` to `out`; false, and nothing is appended, if the row is without it. Errors:
    /// Internal for a key or a row that is not there.
    pub fn key_of(&self, id: KeyId, offset: u32, out: &mut Vec<u8>) -> Result<bool> {
        let index = self.index(id).ok_or_else(|| Error::internal(format!("{self:?} has no key {id}")))?;
        let values = index.positions.iter().map(|&position| self.value_at(position, offset));
        let values = values.collect::<Result<Vec<_>>>()?;
        if values.iter().any(Value::is_null) {
            return Ok(false);
        }
        index.key.codec().encode_values(&values, out).map(|()| true)
    }

    /// The value of `column` in the published row `offset`; its missing value if the generation lacks the column.
    /// Errors: Internal if the row is not published.
    pub fn value(&self, column: &Column, offset: u32) -> Result<Value> {
        match self.schema().position(column.id) {
            Some(position) => self.value_at(position, offset),
            None => Ok(column.missing_value.clone()),
        }
    }

    /// Appends the values of `columns`, each with the position where it probably stands, in the published row `offset`
    /// to `out`. Errors: as [`DeltaGeneration::value`].
    pub fn read_row<'c>(
        &self,
        columns: impl Iterator<Item = (usize, &'c Column)>,
        offset: u32,
        out: &mut Vec<Value>,
    ) -> Result<()> {
        let (number, row) = split(offset);
        let block = self.blocks.get(number).filter(|_| offset < self.rows());
        let no_row = || Error::internal(format!("{self:?} has no row {offset}"));
        let block = block.ok_or_else(no_row)?;
        for (near, column) in columns {
            let here = self.schema().columns.get(near).is_some_and(|c| c.id == column.id);
            let Some(position) = (if here { Some(near) } else { self.schema().position(column.id) }) else {
                out.push(column.missing_value.clone());
                continue;
            };
            let cells = block.columns.get(position).ok_or_else(no_row)?;
            out.push(match cells.whole(row) {
                Some(value) => Value::Int(value),
                None => cells.value(row).ok_or_else(no_row)?,
            });
        }
        Ok(())
    }

    fn value_at(&self, position: usize, offset: u32) -> Result<Value> {
        let (number, row) = split(offset);
        let published = Some(()).filter(|()| offset < self.rows());
        let column = published.and_then(|()| self.blocks.get(number)).and_then(|block| block.columns.get(position));
        let value = column.and_then(|column| column.value(row));
        value.ok_or_else(|| Error::internal(format!("{self:?} has no row {offset}")))
    }
}
