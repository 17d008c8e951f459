//! Who has a key for the next statement: among the rows of the stores and those of the transaction itself.

use crate::error::Result;
use crate::ids::{KeyId, RowRef};
use crate::point;
use crate::row::key::HashedKey;
use crate::transaction::Transaction;
use crate::version::TableView;

impl Transaction {
    /// The row whose key `id` is `key` in `view`, which is the newest view of this transaction: of the stores, or
    /// written by the transaction itself.
    ///
    /// # Errors
    /// Io or Corrupt when key blocks cannot be read; Internal for a key that the table has not.
    pub fn find_key(&self, view: &TableView, id: KeyId, key: &[u8]) -> Result<Option<RowRef>> {
        if let Some(own) = view.own() {
            let key = HashedKey::of(key);
            let keys = self.own_keys(view.schema().id).iter().find(|keys| keys.id() == id);
            if let Some(offset) = keys.and_then(|keys| keys.find(key, own.rows())) {
                return Ok(Some(RowRef::new(own.rows().id(), offset)));
            }
            for run in own.runs() {
                let live = |row: RowRef| !own.is_deleted(row);
                if let Some(row) = point::find_in_run(view.schema(), run, id, key, None, live)? {
                    return Ok(Some(row));
                }
            }
        }
        point::find(view, id, key, |_| true)
    }
}
