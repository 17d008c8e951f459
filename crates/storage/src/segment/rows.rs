//! Single rows of a segment: all columns of one row, without a look into the cache for each.
//!
//! Comes in: columns and a row. Goes out: values. The open blocks of a segment are kept together, as one entry of the cache that
//! weighs as much as all of them, and are not put there a second time; a column is opened when it is first asked for. Between the
//! columns of a row there is then nothing but loads, so that the misses of one do not wait for those of another.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use mainstem_kernels::filter::BlockedBloom;

use super::block::ColumnBlock;
use super::cache::OpenBlock;
use super::format::{ColumnMeta, SegmentMeta};
use super::reader::Segment;
use crate::error::{Error, Result};
use crate::row::Value;
use crate::row::key::KeyCodec;
use crate::schema::{Column, TableSchema};

/// Set in the offset under which the cache has the open columns of a segment: no block stands there.
const NO_BLOCK: u64 = 1 << 63;

/// The open columns of one segment, in the order of its metadata, and its key filter.
#[derive(Debug)]
pub(crate) struct OpenColumns {
    slots: Box<[OnceLock<Arc<ColumnBlock>>]>,
    filter: OnceLock<Arc<BlockedBloom>>,
    bytes: usize,
}

impl OpenColumns {
    fn of(meta: &SegmentMeta) -> Self {
        // Blocks are about as large in memory as on disk.
        let bytes: u64 = meta.blocks().map(|block| block.len).sum();
        Self {
            slots: meta.columns.iter().map(|_| OnceLock::new()).collect(),
            filter: OnceLock::new(),
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        }
    }

    /// Bytes that it may keep in memory.
    pub(super) fn memory(&self) -> usize {
        self.bytes.saturating_add(self.slots.len() * size_of::<OnceLock<Arc<ColumnBlock>>>())
    }
}

impl Segment {
    /// Appends the values of `columns` in row `offset` to `out`.
    ///
    /// # Errors
    /// Corrupt, Io; Internal for a row that is not there or a column of another type.
    pub fn read_row<'c>(
        &self,
        columns: impl Iterator<Item = &'c Column>,
        offset: u32,
        out: &mut Vec<Value>,
    ) -> Result<()> {
        let Some(open) = self.open_columns()? else {
            for column in columns {
                out.push(self.value(column, offset)?);
            }
            return Ok(());
        };
        let of_segment = &self.meta().columns;
        for (at, column) in columns.enumerate() {
            // Mostly the columns of the table in their order.
            let here = of_segment.get(at).is_some_and(|c| c.id == column.id);
            let place = if here { Some(at) } else { of_segment.iter().position(|c| c.id == column.id) };
            let Some((slot, meta)) = place.and_then(|at| Some((open.slots.get(at)?, of_segment.get(at)?))) else {
                out.push(column.missing_value.clone());
                continue;
            };
            if meta.data_type == column.data_type || meta.data_type.arrow() == column.data_type.arrow() {
                out.push(self.opened(slot, meta)?.value(offset as usize)?);
            } else {
                return Err(Error::internal(format!(
                    "column {} of segment {} has another type",
                    column.name,
                    self.id()
                )));
            }
        }
        Ok(())
    }

    /// The rows whose encoded key, that of the table's order, is `key`, deleted ones included; `hash` gives its hash. As
    /// [`Segment::find_key`] behind [`Segment::may_contain_key`], with one look into the cache for both.
    ///
    /// # Errors
    /// As [`Segment::find_key`].
    pub fn probe_key(&self, schema: &TableSchema, key: &[u8], hash: impl FnOnce() -> u64) -> Result<Range<u32>> {
        let meta = self.meta();
        if meta.key_bounds.as_ref().is_some_and(|bounds| key < &*bounds.min || key > &*bounds.max) {
            return Ok(0..0);
        }
        let Some(open) = self.open_columns()? else { return self.find_key(schema, key) };
        if meta.key_filter.is_some() {
            let filter = match open.filter.get() {
                Some(filter) => Some(filter),
                None => self.key_filter()?.map(|filter| open.filter.get_or_init(|| filter)),
            };
            if filter.is_some_and(|filter| !filter.may_contain(hash())) {
                return Ok(0..0);
            }
        }
        let values = KeyCodec::new(schema, &schema.sort_key).decode(key)?;
        self.equal_rows(schema, &values, |at| match (open.slots.get(at), meta.columns.get(at)) {
            (Some(slot), Some(column)) => self.opened(slot, column),
            _ => Err(Error::internal(format!("segment {} lacks a key column", self.id()))),
        })
    }

    /// The block of `column`, which `slot` keeps.
    fn opened<'o>(&self, slot: &'o OnceLock<Arc<ColumnBlock>>, column: &ColumnMeta) -> Result<&'o Arc<ColumnBlock>> {
        if let Some(block) = slot.get() {
            return Ok(block);
        }
        let block = self.block_aside(column)?;
        Ok(slot.get_or_init(|| block))
    }

    /// The open columns from the cache; `None` for a segment without a block.
    fn open_columns(&self) -> Result<Option<Arc<OpenColumns>>> {
        let Some((file, _)) = self.files().first() else { return Ok(None) };
        let make = || Ok(OpenBlock::Columns(Arc::new(OpenColumns::of(self.meta()))));
        match self.cache().get(*file, NO_BLOCK | self.id().0, make)? {
            OpenBlock::Columns(open) if open.slots.len() == self.meta().columns.len() => Ok(Some(open)),
            _ => Err(Error::internal(format!("another block stands for the columns of segment {}", self.id()))),
        }
    }
}
