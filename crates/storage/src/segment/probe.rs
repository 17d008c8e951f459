//! Finding rows by key: filter first, then a binary search over the key columns.
//!
//! A probe costs one cached filter block, and then O(columns * log rows) looks at codes; nothing is decoded.

use std::ops::Range;
use std::sync::Arc;

use mainstem_kernels::filter::BlockedBloom;

use super::block::ColumnBlock;
use super::cache::OpenBlock;
use super::encoding::Damage;
use super::format::BlockRef;
use super::reader::Segment;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, KeyId};
use crate::row::Value;
use crate::row::key::KeyCodec;
use crate::schema::TableSchema;

impl Segment {
    /// False if no row, deleted or not, has the sort key, a key of the table, with hash `hash` ([`crate::row::key::hash_key`]). True without a filter.
    ///
    /// # Errors
    /// Corrupt or Io.
    pub fn may_contain_key(&self, hash: u64) -> Result<bool> {
        Ok(self.key_filter()?.is_none_or(|filter| filter.may_contain(hash)))
    }

    /// The filter over the hashes of all keys, to be held by whoever may not wait for a read; `None` without one.
    ///
    /// # Errors
    /// Corrupt or Io.
    pub fn key_filter(&self) -> Result<Option<Arc<BlockedBloom>>> {
        let Some(at) = &self.meta().key_filter else { return Ok(None) };
        let load = || self.load_filter(at).map(|filter| OpenBlock::Filter(Arc::new(filter)));
        match self.cache().get(at.file, at.offset, load)? {
            OpenBlock::Filter(filter) => Ok(Some(filter)),
            OpenBlock::Column(_) | OpenBlock::Columns(_) => {
                Err(self.corrupt(at, Damage::new(0, "a column stands where the key filter should")))
            }
        }
    }

    /// Reads the filter at `at`, past the cache.
    pub(super) fn load_filter(&self, at: &BlockRef) -> Result<BlockedBloom> {
        let body = self.file(at)?.read_block(at)?;
        match BlockedBloom::from_le_bytes(&body) {
            Some(filter) if !body.is_empty() => Ok(filter),
            _ => Err(self.corrupt(at, Damage::new(0, "a key filter of no whole blocks"))),
        }
    }

    /// The rows whose encoded sort key is `key`, deleted ones included. For tables whose sort key is a key. O(log rows).
    ///
    /// # Errors
    /// Corrupt or Io; Internal for another table, or a key that is none.
    pub fn find_key(&self, schema: &TableSchema, key: &[u8]) -> Result<Range<u32>> {
        if self.meta().key_bounds.as_ref().is_some_and(|bounds| key < &*bounds.min || key > &*bounds.max) {
            return Ok(0..0);
        }
        let values = KeyCodec::new(schema, &schema.sort_key).decode(key)?;
        self.find_key_values(schema, &values)
    }

    /// The encoded sort key of row `offset`; empty for a table without one.
    ///
    /// # Errors
    /// Corrupt or Io; Internal for another table or a row that is not there.
    pub fn sort_key(&self, schema: &TableSchema, offset: u32) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        let values = self.values_of(schema, &schema.sort_key, offset)?;
        KeyCodec::new(schema, &schema.sort_key).encode_values(&values, &mut key)?;
        Ok(key)
    }

    /// Key `id` of row `offset`, encoded; `None` if the row is without it. Errors as [`Segment::sort_key`].
    pub fn key_of(&self, schema: &TableSchema, id: KeyId, offset: u32) -> Result<Option<Vec<u8>>> {
        let columns = schema.key_columns(id);
        let values = self.values_of(schema, columns, offset)?;
        if values.iter().any(Value::is_null) {
            return Ok(None);
        }
        let mut key = Vec::new();
        KeyCodec::of_values(schema, columns).encode_values(&values, &mut key)?;
        Ok(Some(key))
    }

    fn values_of(&self, schema: &TableSchema, columns: &[ColumnId], offset: u32) -> Result<Vec<Value>> {
        let value = |id| {
            let column = schema.column(id);
            let missing = || Error::internal(format!("table {} has no key column {id}", schema.name));
            self.value(column.ok_or_else(missing)?, offset)
        };
        columns.iter().map(|id| value(*id)).collect()
    }

    /// As [`Segment::find_key`], for a key that is not encoded: one value per column of the sort key, none NULL.
    ///
    /// # Errors
    /// As [`Segment::find_key`].
    pub fn find_key_values(&self, schema: &TableSchema, key: &[Value]) -> Result<Range<u32>> {
        if schema.ordered_key().is_none() || key.len() != schema.sort_key.len() {
            return Err(Error::internal(format!("table {} cannot be searched by this key", schema.name)));
        }
        self.equal_rows(schema, key, |at| match self.meta().columns.get(at) {
            Some(column) => self.block(column),
            None => Err(Error::internal(format!("segment {} lacks a key column", self.id()))),
        })
    }

    /// The rows whose sort key is `key`; `block` opens the column at a position of the metadata.
    pub(super) fn equal_rows<B: AsRef<ColumnBlock>>(
        &self,
        schema: &TableSchema,
        key: &[Value],
        block: impl Fn(usize) -> Result<B>,
    ) -> Result<Range<u32>> {
        let mut rows = 0..self.rows() as usize;
        for (id, value) in schema.sort_key.iter().zip(key) {
            let at = self.meta().columns.iter().position(|column| column.id == *id);
            let at = at.ok_or_else(|| Error::internal(format!("segment {} lacks key column {id}", self.id())))?;
            rows = block(at)?.as_ref().equal_range(value, rows)?;
            if rows.is_empty() {
                return Ok(0..0);
            }
        }
        // Rows of a segment fit 24 bits.
        Ok(rows.start as u32..rows.end as u32)
    }
}
