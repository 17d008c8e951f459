//! Single rows of a transaction, by key.

use crate::commit::RowWrite;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, RowRef};
use crate::limits;
use crate::load::duplicate_key;
use crate::point::{self, KeyedTable};
use crate::row::{RowBuffer, Value};
use crate::transaction::Transaction;
use crate::version::TableView;

impl Transaction {
    /// Ends a transaction that has written nothing by writing one row, and commits it: in the place of `deleted`, the row of
    /// `view` that has `key`, by which rows of `table` are found, if one does, comes the row with the values `inserted`, one for each
    /// column, if there are any. It has the same `key`; its other keys are its own. Returns when the commit is durable under the transaction's mode, with all before it.
    ///
    /// # Errors
    /// Constraint for a value the table does not take, or a key that another row has already (23505); Conflict
    /// (40001): run the statement again; Full and Closed as [`Transaction::commit`]. Nothing was written then.
    pub fn write_row(
        self,
        table: &KeyedTable,
        view: &TableView,
        key: &[u8],
        deleted: Option<RowRef>,
        inserted: Option<&[Value]>,
    ) -> Result<CommitTs> {
        self.check_may_write()?;
        if !self.writes.is_empty() {
            return Err(Error::internal("one row written behind others"));
        }
        let mut rows = RowBuffer::new(table.layout().clone());
        if let Some(values) = inserted {
            rows.push_values(values)?;
            if deleted.is_none() && point::find(view, table.key(), key, |_| true)?.is_some() {
                return Err(duplicate_key(table.schema(), table.key(), key));
            }
        }
        let others = if rows.is_empty() { Vec::new() } else { table.other_keys(rows.row(0)) };
        for (id, other) in &others {
            if point::find(view, *id, other, |row| Some(row) != deleted)?.is_some() {
                return Err(duplicate_key(table.schema(), *id, other));
            }
        }
        if rows.bytes() > limits::COMMIT_BYTES_MAX {
            return self.write_large_row(table, deleted, inserted);
        }
        let write = RowWrite { table, key, deleted, inserted: rows, others: &others };
        self.engine.commit_row(&self.snapshot, &write, self.mode.synchronous)
    }

    /// A row that takes too long to log under the lock: as a statement of any size.
    fn write_large_row(
        mut self,
        table: &KeyedTable,
        deleted: Option<RowRef>,
        inserted: Option<&[Value]>,
    ) -> Result<CommitTs> {
        let mut writes = self.statement();
        if let Some(row) = deleted {
            writes.delete(table.schema(), &[row])?;
        }
        if let Some(values) = inserted {
            writes.insert_values(table, values)?;
        }
        self.apply(writes)?;
        self.commit()
    }
}
