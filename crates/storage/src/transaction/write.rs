//! A finished statement joins the write set; a write set that outgrows its memory goes aside.
//!
//! Rows are buffered until write sets, of this transaction or of all together, take half of their share of memory; then this
//! transaction's live rows of the table become runs of segments, as those of a large statement do, and their keys are found in
//! the runs. The other half is for statements under way and for what cannot go aside: deletes, and rows that a savepoint holds.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::MemoryKind;
use crate::transaction::Transaction;
use crate::transaction::statement::{Finished, no_room};
use crate::txn::TableWrites;

impl Transaction {
    /// Refuses references to own rows that are no more.
    pub(super) fn check_own_references(&self, writes: &Finished) -> Result<()> {
        let own = self.writes.tables.get(&writes.schema.id);
        let valid = writes.deleted.by_container.iter().filter(|(id, _)| id.is_own_rows()).all(|(id, set)| {
            own.is_some_and(|own| {
                own.rows().id() == *id && set.max().is_none_or(|max| (max as usize) < own.rows().len())
            })
        });
        if valid { Ok(()) } else { Err(Error::internal("a statement names own rows that a later one has moved")) }
    }

    /// Refuses a finished statement when, with its bytes that are not counted yet, write sets take more than their share of memory.
    pub(super) fn check_room(&self, uncounted: u64) -> Result<()> {
        let memory = &self.engine.memory;
        let used = memory.used(MemoryKind::WriteSets) + uncounted;
        if used > memory.share(MemoryKind::WriteSets) { Err(no_room()) } else { Ok(()) }
    }

    /// Whether the table's buffered rows have to go aside with those of `writes`.
    pub(super) fn must_spill(&self, writes: &Finished) -> bool {
        let memory = &self.engine.memory;
        let share = memory.share(MemoryKind::WriteSets);
        let (rows, bytes) = self
            .writes
            .tables
            .get(&writes.schema.id)
            .map_or((true, 0), |own| (own.rows().has_room(writes.rows.len()), own.rows().bytes()));
        let worth_it = (bytes + writes.rows.bytes()) as u64 >= limits::SPILL_BYTES_MIN.min(share / 8);
        !rows || (worth_it && memory.used(MemoryKind::WriteSets) > share / 2)
    }

    /// Takes `writes` over.
    pub(super) fn take_over(&mut self, writes: Finished) {
        let Finished { schema, rows, keys: new, runs, deleted, charge: _counted } = writes;
        self.enter_keys(&schema);
        let memory = &self.engine.memory;
        let own =
            self.writes.tables.entry(schema.id).or_insert_with(|| Arc::new(TableWrites::new(schema.clone(), memory)));
        let own = Arc::make_mut(own);
        let first = own.rows().len() as u32;
        let keys = self.keys.get_mut(&schema.id);
        for (keys, new) in keys.into_iter().flatten().zip(&new) {
            for offset in deleted.by_container.get(&own.rows().id()).into_iter().flatten() {
                if let Some(row) = own.rows().row(offset) {
                    keys.remove(offset, row);
                }
            }
            new.iter().for_each(|(row, key)| keys.insert_hash(first + row as u32, key.hash()));
        }
        if !deleted.by_container.is_empty() {
            own.delete(deleted.by_container);
        }
        own.insert(rows, runs);
    }

    /// Takes `writes` over and puts the table's buffered rows aside. After an error nothing has changed.
    pub(super) fn take_over_aside(&mut self, writes: Finished) -> Result<()> {
        let Finished { schema, rows, keys: _, runs, deleted, charge: _counted } = writes;
        let mut own = match self.writes.tables.get(&schema.id) {
            Some(own) => TableWrites::clone(own),
            None => TableWrites::new(schema.clone(), &self.engine.memory),
        };
        own.delete(deleted.by_container);
        own.insert(rows, runs);
        let aside = self.engine.write_aside(&own)?;
        own.spilled(aside);
        self.writes.tables.insert(schema.id, Arc::new(own));
        self.keys.remove(&schema.id);
        Ok(())
    }
}
