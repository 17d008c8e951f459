//! Single rows of a transaction, by key, and some that keep their keys.

use std::collections::BTreeMap;

use crate::commit::{RowWrite, RowsWrite};
use crate::deletes::DeleteSet;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, ContainerId, RowRef};
use crate::limits;
use crate::load::duplicate_key;
use crate::point::{self, PointTable};
use crate::row::RowBuffer;
use crate::transaction::Transaction;
use crate::version::TableView;

impl Transaction {
    /// Refuses `key` for a new row if a row of `view`, one of this transaction's before it has written, has it.
    ///
    /// # Errors
    /// Constraint (23505); Io or Corrupt when key blocks cannot be read.
    pub fn check_free(&self, table: &PointTable, view: &TableView, key: &[u8]) -> Result<()> {
        let id = table.found_by()?;
        match point::find(view, id, key, |_| true)? {
            Some(_) => Err(duplicate_key(table.schema(), id, key)),
            None => Ok(()),
        }
    }

    /// Ends a transaction that has written nothing by writing one row, and commits it: in the place of `deleted`, the
    /// row that `view` has under `key`, by which rows of `table` are found, or of nothing, where it has no such row,
    /// comes the row of `inserted`, if it has one. It has the same `key`; its other keys are its own, and checked here.
    /// Returns when the commit is durable under the transaction's mode, with all before it.
    ///
    /// # Errors
    /// Constraint (23505) for another key that a row has already; Conflict (40001): run the statement again; Full and
    /// Closed as [`Transaction::commit`]. Nothing was written then.
    pub fn write_row(
        self,
        table: &PointTable,
        view: &TableView,
        key: &[u8],
        deleted: Option<RowRef>,
        inserted: RowBuffer,
    ) -> Result<CommitTs> {
        self.check_may_write()?;
        if !self.writes.is_empty() || inserted.len() > 1 {
            return Err(Error::internal("one row written behind or beside others"));
        }
        let others = if inserted.is_empty() { Vec::new() } else { table.other_keys(inserted.row(0)) };
        for (id, other) in &others {
            if point::find(view, *id, other, |row| Some(row) != deleted)?.is_some() {
                return Err(duplicate_key(table.schema(), *id, other));
            }
        }
        if inserted.bytes() > limits::COMMIT_BYTES_MAX {
            return self.write_large(table, deleted.as_slice(), inserted);
        }
        let write = RowWrite { table, key, deleted, inserted, others: &others };
        self.engine.commit_row(&self.snapshot, &write, self.mode.synchronous)
    }

    /// Ends a transaction that has written nothing by writing some rows, and commits it: in the place of `deleted`,
    /// rows that its snapshot has in `table`, come those of `inserted`, as many with the same keys, or none. Returns as
    /// [`Transaction::write_row`].
    ///
    /// # Errors
    /// Conflict (40001): run the statement again; Full and Closed as [`Transaction::commit`]. Nothing was written then.
    pub fn update_rows(self, table: &PointTable, deleted: &[RowRef], inserted: RowBuffer) -> Result<CommitTs> {
        self.check_may_write()?;
        if !self.writes.is_empty() || !(inserted.is_empty() || inserted.len() == deleted.len()) {
            return Err(Error::internal("rows updated behind or beside others"));
        }
        let mut by_container: BTreeMap<ContainerId, Vec<u32>> = BTreeMap::new();
        for row in deleted {
            by_container.entry(row.container()).or_default().push(row.offset());
        }
        let rows_max = rows_max(table).min(limits::SHORT_UPDATE_ROWS_MAX);
        let is_large = inserted.bytes() > limits::COMMIT_BYTES_MAX
            || deleted.len() > rows_max
            || by_container.len() > limits::COMMIT_DELETE_CONTAINERS_MAX;
        if is_large {
            return self.write_large(table, deleted, inserted);
        }
        let set = |(id, mut offsets): (ContainerId, Vec<u32>)| {
            offsets.sort_unstable();
            (id, DeleteSet::from_sorted(&offsets))
        };
        let (deleted, keys) = (by_container.into_iter().map(set).collect(), table.row_keys(&inserted));
        let write = RowsWrite { table, deleted, inserted, keys: &keys };
        self.engine.commit_rows(&self.snapshot, &write, self.mode.synchronous)
    }

    /// Ends a transaction that has written nothing by inserting `rows`, a few, into what `view` shows of `table`, and
    /// commits it. Returns as [`Transaction::write_row`].
    ///
    /// # Errors
    /// Constraint (23505) for a key that another row has; others as [`Transaction::update_rows`].
    pub fn insert_rows(self, table: &PointTable, view: &TableView, rows: RowBuffer) -> Result<CommitTs> {
        self.check_may_write()?;
        if !self.writes.is_empty() {
            return Err(Error::internal("rows inserted behind others"));
        }
        let rows_max = rows_max(table).min(limits::SHORT_INSERT_ROWS_MAX);
        if rows.bytes() > limits::COMMIT_BYTES_MAX || rows.len() > rows_max {
            return self.write_large(table, &[], rows);
        }
        let keys = table.row_keys(&rows);
        // As they come, and of each row one key after the other: the first that is taken is the one to tell.
        for row in 0..rows.len() {
            for keys in &keys {
                let Some(key) = keys.get(row) else { continue };
                let is_taken = (0..row).any(|before| keys.get(before) == Some(key))
                    || point::find_hashed(view, keys.id(), key, |_| true)?.is_some();
                if is_taken {
                    return Err(duplicate_key(table.schema(), keys.id(), key.bytes()));
                }
            }
        }
        let write = RowsWrite { table, deleted: BTreeMap::new(), inserted: rows, keys: &keys };
        self.engine.commit_rows(&self.snapshot, &write, self.mode.synchronous)
    }

    /// Rows that take too long under the lock: as a statement of any size.
    fn write_large(mut self, table: &PointTable, deleted: &[RowRef], inserted: RowBuffer) -> Result<CommitTs> {
        let mut writes = self.statement();
        writes.delete(table.schema(), deleted)?;
        writes.insert_rows(table, inserted)?;
        self.apply(writes)?;
        self.commit()
    }
}

/// Rows of `table` that may be written under the commit lock.
fn rows_max(table: &PointTable) -> usize {
    let schema = table.schema();
    limits::commit_rows_max(schema.keys().count(), schema.columns.len())
}
