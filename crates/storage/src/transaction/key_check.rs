//! The check of keys at the end of a statement.

use std::sync::Arc;

use hashbrown::HashSet;

use crate::commit::own_key_conflict;
use crate::error::Result;
use crate::ids::RowRef;
use crate::load::duplicate_key;
use crate::main_store::Run;
use crate::order::first_shared_key;
use crate::point;
use crate::row::RowBuffer;
use crate::row::key::KeyCodec;
use crate::schema::TableSchema;
use crate::transaction::statement::TableDeletes;
use crate::txn::OwnKeys;
use crate::version::TableView;

/// The end-of-statement key check (contract 2): every new key must be free, the statement's own deletes counted first.
pub(super) struct KeyCheck<'a> {
    pub schema: &'a TableSchema,
    /// The snapshot and the transaction's earlier statements.
    pub view: Arc<TableView>,
    /// Keys of the transaction's own buffered rows.
    pub keys: Option<&'a OwnKeys>,
    pub deleted: &'a TableDeletes,
}

impl KeyCheck<'_> {
    /// Buffered rows against one another, the transaction's own rows, and the stores.
    pub fn rows(&self, codec: &KeyCodec, rows: &RowBuffer) -> Result<()> {
        let mut seen: HashSet<Box<[u8]>> = HashSet::with_capacity(rows.len());
        for row in 0..rows.len() {
            let mut key = Vec::new();
            codec.encode_row(rows.row(row), &mut key);
            if self.in_own_rows(&key)
                || self.in_own_runs(&key)?
                || point::find(&self.view, &key, |row| self.counts(row))?.is_some()
                || seen.contains(key.as_slice())
            {
                return Err(duplicate_key(self.schema, &key));
            }
            seen.insert(key.into());
        }
        Ok(())
    }

    /// Rows written aside against everything else. They are distinct among themselves: the loader saw to that.
    pub fn runs(&self, rows: &RowBuffer, codec: &KeyCodec, runs: &[Arc<Run>]) -> Result<()> {
        let mut key = Vec::new();
        for run in runs {
            for row in 0..rows.len() {
                key.clear();
                codec.encode_row(rows.row(row), &mut key);
                if point::find_in_run(self.schema, run, &key, None, |_| true)?.is_some() {
                    return Err(duplicate_key(self.schema, &key));
                }
            }
            if let Some(key) = own_key_conflict(&self.view, run, |row| self.counts(row))? {
                return Err(duplicate_key(self.schema, &key));
            }
            self.run_against_own(codec, run)?;
        }
        Ok(())
    }

    fn run_against_own(&self, codec: &KeyCodec, run: &Run) -> Result<()> {
        let Some(own) = self.view.own() else { return Ok(()) };
        let mut key = Vec::new();
        for (offset, row) in own.live_rows_from(0) {
            key.clear();
            codec.encode_row(row, &mut key);
            let taken = self.counts(RowRef::new(own.rows().id(), offset))
                && point::find_in_run(self.schema, run, &key, None, |_| true)?.is_some();
            if taken {
                return Err(duplicate_key(self.schema, &key));
            }
        }
        for earlier in own.runs() {
            let live = |row: RowRef| self.counts(row) && !own.is_deleted(row);
            if let Some(key) = first_shared_key(self.schema, run, earlier, |_, row| live(row))? {
                return Err(duplicate_key(self.schema, &key));
            }
        }
        Ok(())
    }

    fn in_own_rows(&self, key: &[u8]) -> bool {
        let (Some(own), Some(keys)) = (self.view.own(), self.keys) else { return false };
        keys.find(key, own.rows()).is_some_and(|offset| self.counts(RowRef::new(own.rows().id(), offset)))
    }

    fn in_own_runs(&self, key: &[u8]) -> Result<bool> {
        let Some(own) = self.view.own() else { return Ok(false) };
        for run in own.runs() {
            let live = |row: RowRef| self.counts(row) && !own.is_deleted(row);
            if point::find_in_run(self.schema, run, key, None, live)?.is_some() {
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
