//! One block of a generation: its columns, when each row began, and each row's former version.

use std::sync::OnceLock;

use mainstem_kernels::append_buffer::AppendBuffer;

use super::column::{BLOCK_ROWS, ColumnBlock};
use crate::error::{Error, Result};
use crate::ids::CommitTs;
use crate::row::RowBuffer;
use crate::schema::TableSchema;

/// `prev` of a row whose key had no row in this generation before.
const NO_FORMER: u32 = u32::MAX;

/// See the module.
pub(super) struct Block {
    /// In schema order.
    pub(super) columns: Box<[ColumnBlock]>,
    begin: AppendBuffer<u64>,
    /// For each key of the table: offset of the former version of each row's key.
    prev: Box<[AppendBuffer<u32>]>,
    /// The rows of the full block in sort-key order; made by the first that needs it.
    pub(super) order: OnceLock<Box<[u16]>>,
}

impl Block {
    pub(super) fn new(schema: &TableSchema) -> Self {
        Self {
            columns: schema.columns.iter().map(ColumnBlock::new).collect(),
            begin: AppendBuffer::with_capacity(BLOCK_ROWS),
            prev: schema.keys().map(|_| AppendBuffer::with_capacity(BLOCK_ROWS)).collect(),
            order: OnceLock::new(),
        }
    }

    /// Writes columns and `begin` of the rows that `picks` names, from row `first` of the block on.
    pub(super) fn append(&self, rows: &RowBuffer, picks: &[u32], first: usize, ts: CommitTs) -> Result<()> {
        for (position, column) in self.columns.iter().enumerate() {
            column.append(rows, position, picks, first)?;
        }
        let stamped = match picks {
            [_] => self.begin.push(ts.0),
            many => self.begin.extend_from_slice(&vec![ts.0; many.len()]),
        };
        stamped.map_err(|full| Error::internal(format!("begin of a delta block: {full}")))
    }

    /// Links the next row to the former version of its key number `key`.
    pub(super) fn link(&self, key: usize, former: Option<u32>) -> Result<()> {
        let prev = self.prev.get(key).ok_or_else(|| Error::internal(format!("a delta block without key {key}")))?;
        let link = prev.push(former.unwrap_or(NO_FORMER));
        link.map_err(|full| Error::internal(format!("version chain of a delta block: {full}")))
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
