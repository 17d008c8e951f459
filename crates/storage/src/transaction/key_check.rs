//! The check of keys at the end of a statement.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::commit::own_key_conflict;
use crate::error::Result;
use crate::ids::{KeyId, RowRef};
use crate::load::duplicate_key;
use crate::main_store::Run;
use crate::order::first_shared_key;
use crate::point;
use crate::row::key::{HashedKey, RowKeys, TableKey};
use crate::schema::TableSchema;
use crate::transaction::statement::TableDeletes;
use crate::version::TableView;
use crate::write_set::OwnKeys;

/// The end-of-statement key check (contract 2): every new key must be free, the statement's own deletes counted first.
pub(super) struct KeyCheck<'a> {
    pub schema: &'a TableSchema,
    /// The snapshot and the transaction's earlier statements.
    pub view: TableView,
    /// The keys of the table, with those of the transaction's own buffered rows.
    pub own: &'a [OwnKeys],
    /// The same keys, of the statement's buffered rows.
    pub keys: &'a [RowKeys],
    pub deleted: &'a TableDeletes,
}

/// A row of the statement, and the hash of one of its keys.
struct Seen {
    hash: u64,
    row: usize,
}

impl KeyCheck<'_> {
    /// The statement's `rows` buffered rows against one another, the transaction's own rows, and the stores. As they
    /// come, and of each row one key after the other: the first that is taken is the one to tell.
    pub fn rows(&self, rows: usize) -> Result<()> {
        // One row has none beside it.
        let mut seen: Vec<HashTable<Seen>> = match rows {
            0 | 1 => Vec::new(),
            rows => self.own.iter().map(|_| HashTable::with_capacity(rows)).collect(),
        };
        // Bit on: keys of this number are looked up in the stores one by one. Off for those that are found to be free
        // together, as most are.
        let mut sought = u64::MAX;
        for (number, (own, keys)) in (0..).zip(self.own.iter().zip(self.keys)).filter(|_| rows > 1) {
            if number < u64::BITS && point::are_free(&self.view, own.id(), keys, |row| self.counts(row))? {
                sought &= !(1 << number);
            }
        }
        let is_sought = |number: usize| sought.checked_shr(number as u32).is_none_or(|bits| bits & 1 == 1);
        for row in 0..rows {
            for (number, (own, keys)) in self.own.iter().zip(self.keys).enumerate() {
                let Some(key) = keys.get(row) else { continue };
                let id = own.id();
                if self.in_own_rows(own, key)
                    || self.in_own_runs(id, key)?
                    || is_sought(number) && point::find_hashed(&self.view, id, key, |row| self.counts(row))?.is_some()
                {
                    return Err(duplicate_key(self.schema, id, key.bytes()));
                }
                let Some(seen) = seen.get_mut(number) else { continue };
                let hash = key.hash();
                let same = |before: &Seen| before.hash == hash && keys.get(before.row) == Some(key);
                if seen.find(hash, same).is_some() {
                    return Err(duplicate_key(self.schema, id, key.bytes()));
                }
                seen.insert_unique(hash, Seen { hash, row }, |seen| seen.hash);
            }
        }
        Ok(())
    }

    /// Rows written aside against everything else. They are distinct among themselves: the loader saw to that.
    pub fn runs(&self, runs: &[Arc<Run>]) -> Result<()> {
        let of_table = || self.own.iter().zip(self.keys);
        for (run, (own, keys)) in runs.iter().flat_map(|run| of_table().map(move |keys| (run, keys))) {
            let (id, key) = (own.id(), own.key());
            for (_, key) in keys.iter() {
                if point::find_in_run(self.schema, run, id, key, None, |_| true)?.is_some() {
                    return Err(duplicate_key(self.schema, id, key.bytes()));
                }
            }
            if let Some(taken) = own_key_conflict(&self.view, id, run, |row| self.counts(row))? {
                return Err(duplicate_key(self.schema, id, &taken));
            }
            self.run_against_own(key, run)?;
        }
        Ok(())
    }

    fn run_against_own(&self, key: &TableKey, run: &Run) -> Result<()> {
        let Some(own) = self.view.own() else { return Ok(()) };
        let id = key.id();
        let mut bytes = Vec::new();
        for (offset, row) in own.live_rows_from(0) {
            bytes.clear();
            let taken = self.counts(RowRef::new(own.rows().id(), offset))
                && key.encode_row(row, &mut bytes)
                && point::find_in_run(self.schema, run, id, HashedKey::of(&bytes), None, |_| true)?.is_some();
            if taken {
                return Err(duplicate_key(self.schema, id, &bytes));
            }
        }
        for earlier in own.runs() {
            let live = |row: RowRef| self.counts(row) && !own.is_deleted(row);
            if let Some(taken) = first_shared_key(self.schema, id, run, earlier, |_, row| live(row))? {
                return Err(duplicate_key(self.schema, id, &taken));
            }
        }
        Ok(())
    }

    fn in_own_rows(&self, keys: &OwnKeys, key: HashedKey<'_>) -> bool {
        let Some(own) = self.view.own() else { return false };
        keys.find(key, own.rows()).is_some_and(|offset| self.counts(RowRef::new(own.rows().id(), offset)))
    }

    fn in_own_runs(&self, id: KeyId, key: HashedKey<'_>) -> Result<bool> {
        let Some(own) = self.view.own() else { return Ok(false) };
        for run in own.runs() {
            let live = |row: RowRef| self.counts(row) && !own.is_deleted(row);
            if point::find_in_run(self.schema, run, id, key, None, live)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `row` still counts: this statement does not delete it.
    fn counts(&self, row: RowRef) -> bool {
        !self.deleted.contains(row)
    }
}
