//! Savepoints: the state of a transaction's writes, to come back to.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, TableId};
use crate::transaction::Transaction;
use crate::transaction::identity::ReplacedTables;
use crate::write_set::{OwnKeys, TableWrites, WriteSet};

/// A state of one transaction: its writes, DDL and catalog included. Costs a pointer per table; what it holds is shared
/// with the transaction, and stays in memory as long as it lives.
#[derive(Debug)]
pub struct Savepoint {
    number: u64,
    writes: WriteSet,
    catalog: Arc<Catalog>,
    /// How far it counted by itself.
    numbers: BTreeMap<(TableId, ColumnId), u64>,
    replaced: ReplacedTables,
}

/// The savepoints of a transaction that it can come back to.
#[derive(Debug, Default)]
pub(super) struct Savepoints {
    /// Ascending.
    numbers: Vec<u64>,
    last: u64,
}

impl Transaction {
    /// Marks the present state. When write sets take much memory, buffered rows that are worth a run are written aside
    /// first, for those that a savepoint shows stay in memory; references to them are then void.
    #[must_use]
    pub fn savepoint(&mut self) -> Savepoint {
        self.spill_before_savepoint();
        self.savepoints.last += 1;
        let number = self.savepoints.last;
        self.savepoints.numbers.push(number);
        let numbers = self.numbers.get().map(|numbers| numbers.lock().clone()).unwrap_or_default();
        let (writes, catalog, replaced) = (self.writes.clone(), self.catalog.clone(), self.replaced.clone());
        Savepoint { number, writes, catalog, numbers, replaced }
    }

    /// Undoes everything since `mark`, and forgets the savepoints made since; `mark` stands. Costs as much as what is
    /// undone, as far as that is in memory.
    ///
    /// References to this transaction's own rows, and only those, are then void: rows written later may have the
    /// offsets of those that are undone. Ids of own containers made since do not come back, so references to those are
    /// refused. In SQL no reference outlives its statement, and views that open cursors read stay as they are.
    ///
    /// # Errors
    /// Internal when `mark` was forgotten.
    pub fn rollback_to(&mut self, mark: &Savepoint) -> Result<()> {
        let at = self.place_of(mark)?;
        self.savepoints.numbers.truncate(at + 1);
        self.catalog = mark.catalog.clone();
        self.replaced.clone_from(&mark.replaced);
        if !mark.numbers.is_empty() {
            // Numbers drawn since are lost, but those from before are taken, though a TRUNCATE that is undone began
            // anew.
            let mut numbers = self.numbers.get_or_init(Box::default).lock();
            for (column, taken) in &mark.numbers {
                let now = numbers.entry(*column).or_default();
                *now = (*now).max(*taken);
            }
        }
        let undone = std::mem::replace(&mut self.writes, mark.writes.clone());
        self.keys.retain(|table, _| mark.writes.tables.contains_key(table));
        for (table, then) in &mark.writes.tables {
            let now = undone.tables.get(table).filter(|now| now.rows().id() == then.rows().id());
            if let Some(now) = now
                && let Some(keys) = self.keys.get_mut(table)
            {
                keys.iter_mut().for_each(|keys| roll_back(keys, now, then));
            } else if let Some(mut keys) = self.new_keys(then.schema()) {
                for keys in &mut keys {
                    then.live_rows_from(0).for_each(|(offset, row)| keys.insert(offset, row));
                }
                self.keys.insert(*table, keys);
            }
        }
        Ok(())
    }

    /// Forgets `mark` and the savepoints made since; what was written stays.
    ///
    /// # Errors
    /// Internal when `mark` was forgotten.
    pub fn release(&mut self, mark: Savepoint) -> Result<()> {
        let at = self.place_of(&mark)?;
        self.savepoints.numbers.truncate(at);
        Ok(())
    }

    fn place_of(&self, mark: &Savepoint) -> Result<usize> {
        let found = self.savepoints.numbers.binary_search(&mark.number);
        found.map_err(|_| Error::internal("a savepoint that was rolled back or released"))
    }
}

/// Takes the keys of rows inserted since `then` out of `keys`, which are those of `now`, and puts those of rows deleted
/// since back in. Both have the same buffer, up to the rows of `then`.
fn roll_back(keys: &mut OwnKeys, now: &TableWrites, then: &TableWrites) {
    let inserted = then.rows().len() as u32;
    now.rows().rows_from(inserted).for_each(|(offset, row)| keys.remove(offset, row));
    let id = then.rows().id();
    let before: Vec<_> = then.deletes().sets_of(id).collect();
    for offset in now.deletes().sets_of(id).flat_map(|set| set.range(..inserted)) {
        if !before.iter().any(|set| set.contains(offset))
            && let Some(row) = then.rows().row(offset)
        {
            keys.insert(offset, row);
        }
    }
}
