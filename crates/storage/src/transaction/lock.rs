//! Rows that are read FOR UPDATE or FOR SHARE.
//!
//! Comes in: references that a view of the transaction gave. Goes out: nothing at once; who changes one of them after
//! the snapshot, and commits first, is a conflict for the commit of this transaction, as if it had deleted the row
//! (contract 2). Nothing is written, nobody waits, and who only locks them too is in nobody's way.
//!
//! Rows of the transaction's own need no lock: nobody else sees them.

use std::sync::Arc;

use super::Transaction;
use crate::error::Result;
use crate::ids::RowRef;
use crate::schema::TableSchema;
use crate::write_set::{LockedRows, RowSets};

impl Transaction {
    /// Has the commit look whether `rows`, which a view of this transaction showed of `table`, are as they were read.
    /// Undone by [`Transaction::rollback_to`] a savepoint from before.
    ///
    /// # Errors
    /// Conflict (40001) when a later commit has changed one of them or the table; Full (53200) when write sets take
    /// their whole share of memory; Invalid (25006) in a read-only transaction; NotFound (42P01). Nothing is locked
    /// then.
    pub fn lock_rows(&mut self, table: &Arc<TableSchema>, rows: &[RowRef]) -> Result<()> {
        self.check_may_write()?;
        self.check_version(table)?;
        self.engine.check_unchanged(table, &self.snapshot, rows.iter().copied())?;
        let own = self.writes.tables.get(&table.id);
        let mut sets = RowSets::new();
        for part in rows.chunk_by(|a, b| a.container() == b.container()) {
            let Some(container) = part.first().map(|row| row.container()) else { continue };
            if own.is_none_or(|own| !own.is_own(container) && !own.has_moved(container)) {
                sets.entry(container).or_default().extend(part.iter().map(|row| row.offset()));
            }
        }
        if sets.is_empty() {
            return Ok(());
        }
        let before = self.writes.locked.get(&table.id).cloned();
        let mut locked = before.unwrap_or_else(|| LockedRows::new(table.clone(), &self.engine.memory));
        locked.add(sets);
        self.check_room(0)?;
        self.writes.locked.insert(table.id, locked);
        Ok(())
    }
}
