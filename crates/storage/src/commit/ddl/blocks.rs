//! The blocks of numbers that are at hand, one for each IDENTITY column that somebody has drawn from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::ids::{ColumnId, TableId};

/// The columns somebody has drawn from since the database was opened.
#[derive(Debug, Default)]
pub(in crate::commit) struct NumberBlocks(RwLock<BTreeMap<(TableId, ColumnId), Arc<Column>>>);

/// One column's block.
#[derive(Debug, Default)]
pub(super) struct Column {
    /// Moves on, under the commit lock, when counting begins anew.
    pub era: AtomicU64,
    pub block: Mutex<Block>,
}

/// Numbers reserved and not given out.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub era: u64,
    pub next: u64,
    pub end: u64,
    /// Numbers reserved last.
    pub size: u64,
}

impl Block {
    /// As much of the block as `n` numbers need.
    pub fn take(&mut self, n: u64) -> (u64, u64) {
        let count = n.min(self.end - self.next);
        let first = self.next;
        self.next += count;
        (first, count)
    }

    /// Numbers that anybody has of those up to `mark`, reserved in `era`: what is left of the last block nobody has.
    pub fn taken_of(&self, mark: u64, era: u64) -> u64 {
        if self.era == era && self.end == mark { self.next } else { mark }
    }
}

impl NumberBlocks {
    /// The block of column `of`.
    pub(super) fn column(&self, of: (TableId, ColumnId)) -> Arc<Column> {
        if let Some(column) = self.0.read().get(&of) {
            return column.clone();
        }
        self.0.write().entry(of).or_default().clone()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<((TableId, ColumnId), Arc<Column>)> {
        self.0.read().iter().map(|(of, column)| (*of, column.clone())).collect()
    }

    /// How many numbers of column `of` anybody has, where `mark` are reserved: exact where nobody is drawing. Under the
    /// commit lock.
    pub(super) fn taken(&self, of: (TableId, ColumnId), mark: u64) -> u64 {
        let column = self.0.read().get(&of).cloned();
        // Whoever draws may wait for the commit lock: nobody who holds it waits for him.
        let block = column.as_ref().and_then(|column| Some((column, column.block.try_lock()?)));
        block.map_or(mark, |(column, block)| block.taken_of(mark, column.era.load(Ordering::Acquire)))
    }

    /// Counting of `table`'s columns begins anew. Under the commit lock.
    pub fn begin_anew(&self, table: TableId) {
        for (_, column) in self.0.read().iter().filter(|((of, _), _)| *of == table) {
            column.era.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Forgets `table`, which is gone.
    pub fn forget(&self, table: TableId) {
        self.0.write().retain(|(of, _), _| *of != table);
    }
}
