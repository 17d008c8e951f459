//! Who has a key for the next statement: among the rows of the stores and those of the transaction itself.

use crate::error::Result;
use crate::ids::RowRef;
use crate::point;
use crate::transaction::Transaction;
use crate::version::TableView;

impl Transaction {
    /// The row that has primary key `key` in `view`, which is the newest view of this transaction: of the stores, or written by
    /// the transaction itself.
    ///
    /// # Errors
    /// Io or Corrupt when key blocks cannot be read.
    pub fn find_key(&self, view: &TableView, key: &[u8]) -> Result<Option<RowRef>> {
        if let Some(own) = view.own() {
            let keys = self.keys.get(&view.schema().id);
            if let Some(offset) = keys.and_then(|keys| keys.find(key, own.rows())) {
                return Ok(Some(RowRef::new(own.rows().id(), offset)));
            }
            for run in own.runs() {
                let live = |row: RowRef| !own.is_deleted(row);
                if let Some(row) = point::find_in_run(view.schema(), run, key, None, live)? {
                    return Ok(Some(row));
                }
            }
        }
        point::find(view, key, |_| true)
    }
}
