//! The check of keys at the end of a statement.

use std::sync::Arc;

use hashbrown::HashSet;

use crate::commit::own_key_conflict;
use crate::error::Result;
use crate::ids::{KeyId, RowRef};
use crate::load::duplicate_key;
use crate::main_store::Run;
use crate::order::first_shared_key;
use crate::point;
use crate::row::RowBuffer;
use crate::row::key::TableKey;
use crate::schema::TableSchema;
use crate::transaction::statement::TableDeletes;
use crate::txn::OwnKeys;
use crate::version::TableView;

/// The end-of-statement key check (contract 2): every new key must be free, the statement's own deletes counted first.
pub(super) struct KeyCheck<'a> {
    pub schema: &'a TableSchema,
    /// The snapshot and the transaction's earlier statements.
    pub view: Arc<TableView>,
    /// The keys of the table.
    pub keys: &'a [TableKey],
    /// The same, of the transaction's own buffered rows; empty when there are none.
    pub own: &'a [OwnKeys],
    pub deleted: &'a TableDeletes,
}

impl KeyCheck<'_> {
    /// Buffered rows against one another, the transaction's own rows, and the stores. As they come, and of each row one key after
    /// the other: the first that is taken is the one to tell.
    pub fn rows(&self, rows: &RowBuffer) -> Result<()> {
        let mut seen: Vec<HashSet<Box<[u8]>>> = self.keys.iter().map(|_| HashSet::with_capacity(rows.len())).collect();
        for row in 0..rows.len() {
            for (table_key, seen) in self.keys.iter().zip(&mut seen) {
                let mut key = Vec::new();
                if !table_key.encode_row(rows.row(row), &mut key) {
                    continue;
                }
                let id = table_key.id();
                if self.in_own_rows(id, &key)
                    || self.in_own_runs(id, &key)?
                    || point::find(&self.view, id, &key, |row| self.counts(row))?.is_some()
                    || seen.contains(key.as_slice())
                {
                    return Err(duplicate_key(self.schema, id, &key));
                }
                seen.insert(key.into());
            }
        }
        Ok(())
    }

    /// Rows written aside against everything else. They are distinct among themselves: the loader saw to that.
    pub fn runs(&self, rows: &RowBuffer, runs: &[Arc<Run>]) -> Result<()> {
        let mut bytes = Vec::new();
        for (run, key) in runs.iter().flat_map(|run| self.keys.iter().map(move |key| (run, key))) {
            let id = key.id();
            for row in 0..rows.len() {
                bytes.clear();
                let taken = key.encode_row(rows.row(row), &mut bytes)
                    && point::find_in_run(self.schema, run, id, &bytes, None, |_| true)?.is_some();
                if taken {
                    return Err(duplicate_key(self.schema, id, &bytes));
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
                && point::find_in_run(self.schema, run, id, &bytes, None, |_| true)?.is_some();
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

    fn in_own_rows(&self, id: KeyId, key: &[u8]) -> bool {
        let (Some(own), Some(keys)) = (self.view.own(), self.own.iter().find(|keys| keys.id() == id)) else {
            return false;
        };
        keys.find(key, own.rows()).is_some_and(|offset| self.counts(RowRef::new(own.rows().id(), offset)))
    }

    fn in_own_runs(&self, id: KeyId, key: &[u8]) -> Result<bool> {
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
