//! One block of a generation: its columns, when each row began, and each row's former version.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use mainstem_kernels::append_buffer::{AppendBuffer, OwnedWriter};

use super::column::{BLOCK_ROWS, CellWriter, ColumnBlock};
use crate::error::{Error, Result};
use crate::ids::CommitTs;
use crate::row::{RowBuffer, RowView};
use crate::schema::TableSchema;

/// `prev` of a row whose key had no row in this generation before.
const NO_FORMER: u32 = u32::MAX;

/// See the module.
pub(super) struct Block {
    /// In schema order.
    pub(super) columns: Box<[ColumnBlock]>,
    begin: Arc<AppendBuffer<u64>>,
    /// For each key of the table: offset of the former version of each row's key.
    prev: Box<[Arc<AppendBuffer<u32>>]>,
    /// The rows of the full block in sort-key order; made by the first that needs it.
    pub(super) order: OnceLock<Box<[u16]>>,
}

/// What the one writer of a block appends by.
pub(super) struct BlockWriter {
    columns: Box<[CellWriter]>,
    begin: OwnedWriter<u64>,
    prev: Box<[OwnedWriter<u32>]>,
}

impl BlockWriter {
    /// Links the next row to the former version of its key number `key`.
    #[inline]
    pub(super) fn link(&mut self, key: usize, former: Option<u32>) -> Result<()> {
        let prev = self.prev.get_mut(key).ok_or_else(|| Error::internal(format!("a delta block without key {key}")))?;
        let link = prev.push(former.unwrap_or(NO_FORMER));
        link.map_err(|full| Error::internal(format!("version chain of a delta block: {full}")))
    }
}

impl Block {
    pub(super) fn new(schema: &TableSchema) -> Self {
        Self {
            columns: schema.columns.iter().map(ColumnBlock::new).collect(),
            begin: Arc::new(AppendBuffer::with_capacity(BLOCK_ROWS)),
            prev: schema.keys().map(|_| Arc::new(AppendBuffer::with_capacity(BLOCK_ROWS))).collect(),
            order: OnceLock::new(),
        }
    }

    /// What its one writer appends by; `None` if somebody else has it.
    pub(super) fn writer(&self) -> Option<BlockWriter> {
        Some(BlockWriter {
            columns: self.columns.iter().map(ColumnBlock::writer).collect::<Option<_>>()?,
            begin: self.begin.owned_writer()?,
            prev: self.prev.iter().map(AppendBuffer::owned_writer).collect::<Option<_>>()?,
        })
    }

    /// Writes columns and `begin` of rows `part` of `rows`, from row `first` of the block on, by its `writer`.
    pub(super) fn append(
        &self,
        writer: &mut BlockWriter,
        rows: &RowBuffer,
        part: Range<u32>,
        first: usize,
        ts: CommitTs,
    ) -> Result<()> {
        if part.len() == 1 {
            return self.append_one(writer, rows.row(part.start as usize), first, ts);
        }
        let nulls = rows.null_columns(part.clone());
        for (position, (column, cells)) in self.columns.iter().zip(&mut writer.columns).enumerate() {
            let may_be_null = nulls.checked_shr(position as u32).is_none_or(|bits| bits & 1 == 1);
            column.append(cells, rows, (position, may_be_null), part.clone(), first)?;
        }
        let mut stamped = Ok(());
        part.for_each(|_| stamped = stamped.and_then(|()| writer.begin.push(ts.0)));
        stamped.map_err(|full| Error::internal(format!("begin of a delta block: {full}")))
    }

    fn append_one(&self, writer: &mut BlockWriter, row: RowView<'_>, first: usize, ts: CommitTs) -> Result<()> {
        for (position, (column, cells)) in self.columns.iter().zip(&mut writer.columns).enumerate() {
            column.append_one(cells, row, (position, row.is_null(position)), first)?;
        }
        let stamped = writer.begin.push(ts.0);
        stamped.map_err(|full| Error::internal(format!("begin of a delta block: {full}")))
    }

    /// When row `row` began.
    #[inline]
    pub(super) fn begin(&self, row: usize) -> Option<CommitTs> {
        self.begin.get(row).map(CommitTs)
    }

    /// Rows among the first `rows` that began at or before `at`.
    pub(super) fn begun(&self, rows: usize, at: CommitTs) -> usize {
        let begins = self.begin.as_slice();
        begins.get(..rows).unwrap_or(begins).partition_point(|&begin| begin <= at.0)
    }

    /// The former version of row `row`'s key number `key`.
    #[inline]
    pub(super) fn former(&self, key: usize, row: usize) -> Option<u32> {
        self.prev.get(key)?.get(row).filter(|&former| former != NO_FORMER)
    }

    /// Bytes of the first `rows` rows.
    pub(super) fn memory_bytes(&self, rows: usize) -> usize {
        let columns = self.columns.iter().map(|c| c.memory_bytes(rows)).sum::<usize>();
        let order = self.order.get().map_or(0, |o| size_of_val(o.as_ref()));
        size_of::<Self>() + columns + rows * (size_of::<u64>() + self.prev.len() * size_of::<u32>()) + order
    }
}
