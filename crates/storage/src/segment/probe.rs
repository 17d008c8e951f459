//! Finding rows by key: filter first, then a search over the key columns.
//!
//! A probe costs one look into the filter, and then O(columns * log rows) looks at codes; nothing is decoded. Where
//! filter or columns are not open it reads a page of the one, and the pages of the others that the search comes to: it
//! begins where the value would be if values were evenly spread, which for most keys is the page that has it.

use std::ops::{Bound, Range};
use std::sync::Arc;

use mainstem_kernels::filter::BlockedBloom;

use super::cache::{Held, OpenBlock, Place};
use super::encoding::{Damage, Source, wide_value};
use super::format::{BlockRef, ColumnMeta};
use super::pages::PagedBlock;
use super::reader::Segment;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, KeyId};
use crate::predicate::compare_values;
use crate::row::Value;
use crate::row::key::{KeyCodec, KeyRange};
use crate::schema::TableSchema;

/// The filter of a segment over the hashes of its keys, if it is open.
pub struct OpenKeyFilter<'a>(Held<'a>);

impl OpenKeyFilter<'_> {
    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.filter().is_some()
    }

    /// Whether it is open, and says that no row has the key with this hash.
    #[inline]
    #[must_use]
    pub fn denies(&self, hash: u64) -> bool {
        self.0.filter().is_some_and(|filter| !filter.may_contain(hash))
    }
}

impl Segment {
    /// Its filter, as it is now.
    #[inline]
    #[must_use]
    pub fn hold_key_filter(&self) -> OpenKeyFilter<'_> {
        OpenKeyFilter(self.open_blocks().hold())
    }

    /// False if no row, deleted or not, has the sort key, a key of the table, with hash `hash`
    /// ([`crate::row::key::hash_key`]). True without a filter.
    ///
    /// # Errors
    /// Corrupt or Io.
    pub fn may_contain_key(&self, hash: u64) -> Result<bool> {
        let Some(at) = &self.meta().key_filter else { return Ok(true) };
        if let Some(filter) = self.open_blocks().hold().filter() {
            return Ok(filter.may_contain(hash));
        }
        if self.is_worth_opening(Place::Filter, at) {
            return Ok(self.key_filter()?.is_none_or(|filter| filter.may_contain(hash)));
        }
        let mut pages = Vec::new();
        let mut filter = PagedBlock::new(self, Place::Filter, at, &mut pages);
        let part = BlockedBloom::part_of(filter.len(), hash);
        let part = part.ok_or_else(|| self.corrupt(at, no_filter()))?;
        // One block of it is a filter too.
        let part = BlockedBloom::from_le_bytes(filter.bytes(part)?);
        Ok(part.is_none_or(|filter| filter.may_contain(hash)))
    }

    /// The rows whose encoded key, that of the table's order, is `key`, deleted ones included; `hash` gives its hash.
    /// As [`Segment::find_key`] behind [`Segment::may_contain_key`].
    ///
    /// # Errors
    /// As [`Segment::find_key`].
    pub fn probe_key(&self, schema: &TableSchema, key: &[u8], hash: impl FnOnce() -> u64) -> Result<Range<u32>> {
        let meta = self.meta();
        if meta.key_bounds.as_ref().is_some_and(|bounds| key < &*bounds.min || key > &*bounds.max) {
            return Ok(0..0);
        }
        if meta.key_filter.is_some() && !self.may_contain_key(hash())? {
            return Ok(0..0);
        }
        self.find_key(schema, key)
    }

    /// The filter over the hashes of all keys, if it is open.
    #[must_use]
    pub fn open_key_filter(&self) -> Option<Arc<BlockedBloom>> {
        self.open_blocks().filter()
    }

    /// The filter over the hashes of all keys, to be held by whoever may not wait for a read; `None` without one.
    ///
    /// # Errors
    /// Corrupt or Io.
    pub fn key_filter(&self) -> Result<Option<Arc<BlockedBloom>>> {
        let Some(at) = &self.meta().key_filter else { return Ok(None) };
        if let Some(filter) = self.open_blocks().filter() {
            return Ok(Some(filter));
        }
        self.cache().count_block(at.len);
        let filter = Arc::new(self.load_filter(at)?);
        self.cache().put(self.open_blocks(), Place::Filter, OpenBlock::Filter(filter.clone()));
        Ok(Some(filter))
    }

    /// Reads the filter at `at`, past the cache.
    pub(super) fn load_filter(&self, at: &BlockRef) -> Result<BlockedBloom> {
        self.open_filter(at, &self.file(at)?.read_block(at)?)
    }

    /// The filter with the bytes `body`, those of the block at `at`.
    pub(super) fn open_filter(&self, at: &BlockRef, body: &[u8]) -> Result<BlockedBloom> {
        match BlockedBloom::from_le_bytes(body) {
            Some(filter) if !body.is_empty() => Ok(filter),
            _ => Err(self.corrupt(at, no_filter())),
        }
    }

    /// The rows whose encoded sort key is `key`, deleted ones included. For tables whose sort key is a key. O(log
    /// rows).
    ///
    /// # Errors
    /// Corrupt or Io; Internal for another table, or a key that is none.
    pub fn find_key(&self, schema: &TableSchema, key: &[u8]) -> Result<Range<u32>> {
        if self.meta().key_bounds.as_ref().is_some_and(|bounds| key < &*bounds.min || key > &*bounds.max) {
            return Ok(0..0);
        }
        if let Some(value) = KeyCodec::plain_bigint(schema, &schema.sort_key, key) {
            return self.find_key_values(schema, std::slice::from_ref(&value));
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
        let mut rows = 0..self.rows() as usize;
        for (id, value) in schema.sort_key.iter().zip(key) {
            rows = self.equal_range(self.key_position(*id)?, value, rows)?;
            if rows.is_empty() {
                return Ok(0..0);
            }
        }
        // Rows of a segment fit 24 bits.
        Ok(rows.start as u32..rows.end as u32)
    }

    /// The rows whose sort key is in `range`, deleted ones included: they stand side by side. For tables whose sort key
    /// is a key. O(columns * log rows).
    ///
    /// # Errors
    /// As [`Segment::find_key`].
    pub fn find_key_range(&self, schema: &TableSchema, range: &KeyRange) -> Result<Range<u32>> {
        let mut rows = 0..self.rows() as usize;
        let mut columns = schema.sort_key.iter();
        for (value, id) in range.equal().iter().zip(&mut columns) {
            rows = self.equal_range(self.key_position(*id)?, value, rows)?;
            if rows.is_empty() {
                return Ok(0..0);
            }
        }
        if let Some(id) = columns.next() {
            let at = self.key_position(*id)?;
            let equal = |value: &Value, rows: &Range<usize>| self.equal_range(at, value, rows.clone());
            match range.low() {
                Bound::Unbounded => {}
                Bound::Included(value) => rows.start = equal(value, &rows)?.start,
                Bound::Excluded(value) => rows.start = equal(value, &rows)?.end,
            }
            match range.high() {
                Bound::Unbounded => {}
                Bound::Included(value) => rows.end = equal(value, &rows)?.end,
                Bound::Excluded(value) => rows.end = equal(value, &rows)?.start,
            }
        }
        Ok(rows.start as u32..rows.end.max(rows.start) as u32)
    }

    /// Where among its columns key column `id` is.
    fn key_position(&self, id: ColumnId) -> Result<usize> {
        let at = self.meta().columns.iter().position(|column| column.id == id);
        at.ok_or_else(|| Error::internal(format!("segment {} lacks key column {id}", self.id())))
    }

    /// Of the ascending rows `rows` of the column at position `at`: where those equal to `value` begin and end.
    fn equal_range(&self, at: usize, value: &Value, rows: Range<usize>) -> Result<Range<usize>> {
        if let Some(block) = self.open_blocks().hold().column(at) {
            return block.equal_range(value, rows);
        }
        let column = self.column_meta(at)?;
        match &column.block {
            Some(block) if column.null_count == 0 && !self.is_worth_opening(Place::Column(at), block) => {
                let mut pages = Vec::new();
                let mut source = PagedBlock::new(self, Place::Column(at), block, &mut pages);
                let single = self.single_rows(column);
                let mut order = |row| single.value(&mut source, row).map(|found| compare_values(&found, value));
                let near = self.near(column, value, &rows);
                let first = partition_near(rows.clone(), near, |row| Ok(order(row)?.is_lt()))?;
                let end = partition_near(first..rows.end, first, |row| Ok(order(row)?.is_eq()))?;
                Ok(first..end)
            }
            _ => self.block(at)?.equal_range(value, rows),
        }
    }

    /// Where in `rows` a row with `value` would be if the values of `column` were evenly spread over the segment.
    fn near(&self, column: &ColumnMeta, value: &Value, rows: &Range<usize>) -> usize {
        let wide = |value| wide_value(value).map(|v| v as f64);
        let middle = rows.start + rows.len() / 2;
        match (wide(value), wide(&column.zone.min), wide(&column.zone.max)) {
            (Some(sought), Some(least), Some(greatest)) if greatest > least => {
                let share = ((sought - least) / (greatest - least)).clamp(0.0, 1.0);
                (share * f64::from(self.rows().saturating_sub(1))) as usize
            }
            _ => middle,
        }
    }
}

/// A filter block of the wrong length.
fn no_filter() -> Damage {
    Damage::new(0, "a key filter of no whole blocks")
}

/// The first row of `rows` that is not `before`, which is true for a prefix; looked for in steps that double from
/// `near`.
fn partition_near(rows: Range<usize>, near: usize, mut before: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    /// Rows that are mostly in one page.
    const STEP: usize = 64;
    let (mut low, mut high) = (rows.start, rows.end);
    let Some(last) = rows.end.checked_sub(1).filter(|last| *last >= low) else { return Ok(low) };
    let (near, mut step) = (near.clamp(low, last), STEP);
    if before(near)? {
        low = near + 1;
        while low < high {
            let probe = low.saturating_add(step).min(high) - 1;
            if !before(probe)? {
                high = probe;
                break;
            }
            low = probe + 1;
            step *= 2;
        }
    } else {
        high = near;
        while low < high {
            let probe = high.saturating_sub(step).max(low);
            if before(probe)? {
                low = probe + 1;
                break;
            }
            high = probe;
            step *= 2;
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
