//! Key to row: over the deltas and the runs of one view.
//!
//! Comes in: a key of the table, encoded (`row::key`). Goes out: the reference of the one live row that has it, if there is one.
//!
//! 1. Deltas, newest first: a hash probe each, then the chain of versions.
//! 2. Runs, newest first: the segments whose key range holds the key (at most two a run), their filter, a binary search. In a run
//!    that is in another order they are segments of its index for the key; the rows that its entries name show whether they have it.
//!
//! [`TableView::fetch`] reads rows that were found. [`are_free`] asks for many keys at once.
//!
//! Costs O(runs), never O(segments) or O(rows) (contract 6). Invariant: at any snapshot at most one live row has a key, so the
//! first one found is the answer. It does not own: the keys of the transaction's own buffered rows (they are in the write
//! set), nor what a found row means to the caller.

mod fetch;
mod free;
mod keys;

mod keyed;
mod read;

pub use keyed::KeyedTable;

use crate::error::Result;
use crate::ids::{CommitTs, KeyId, RowRef};
use crate::main_store::{Run, index_schema};
use crate::row::key::{HashedKey, hash_key};
use crate::schema::TableSchema;
use crate::version::TableView;

pub use free::are_free;
pub use keys::keys_of;

#[cfg(test)]
mod tests;

/// The row of `view`'s stores whose key `id` is `key`, which is live at the view's timestamp, and `counts`.
///
/// # Errors
/// Io or Corrupt when key blocks cannot be read.
pub fn find(view: &TableView, id: KeyId, key: &[u8], counts: impl Fn(RowRef) -> bool) -> Result<Option<RowRef>> {
    find_hashed(view, id, HashedKey::of(key), counts)
}

/// As [`find`].
///
/// # Errors
/// As [`find`].
pub fn find_hashed(
    view: &TableView,
    id: KeyId,
    key: HashedKey<'_>,
    counts: impl Fn(RowRef) -> bool,
) -> Result<Option<RowRef>> {
    let wanted = |row: RowRef| !view.own().is_some_and(|own| own.is_deleted(row)) && counts(row);
    for delta in view.version().deltas.iter().rev() {
        if let Some(offset) = delta.lookup_hashed(id, key, view.ts()) {
            let row = RowRef::new(delta.id(), offset);
            if wanted(row) {
                return Ok(Some(row));
            }
        }
    }
    for run in view.version().runs.iter().rev() {
        if let Some(row) = find_in_run(view.schema(), run, id, key, Some(view.ts()), wanted)? {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// The row of `run` whose key `id` is `key`, which is live at `at` (if given) and `wanted`.
///
/// # Errors
/// Io or Corrupt when key blocks cannot be read; Internal for a key that the table has not.
pub fn find_in_run(
    schema: &TableSchema,
    run: &Run,
    id: KeyId,
    key: HashedKey<'_>,
    at: Option<CommitTs>,
    wanted: impl Fn(RowRef) -> bool,
) -> Result<Option<RowRef>> {
    let (keys, sought) = run.sought(id, key.bytes());
    let index = run.index(id);
    let hash = || if index.is_none() { key.hash() } else { hash_key(&sought) };
    if index.is_none() && !schema.is_order(schema.key_columns(id)) {
        return Err(run.without_index(schema, id));
    }
    let key_schema = if index.is_some() { index_schema() } else { schema };
    for part in keys.find_segments(&sought) {
        for found in part.segment.probe_key(key_schema, &sought, hash)? {
            let held = match index {
                None => Some((part, RowRef::new(part.segment.id(), found))),
                Some(_) => run.indexed_row(&part.segment, found)?,
            };
            let Some((holder, row)) = held else { continue };
            let live = at.is_none_or(|at| !holder.segment.deletes().is_deleted(row.offset(), at));
            if !live || !holder.range.contains(&row.offset()) || !wanted(row) {
                continue;
            }
            // A key index knows but hashes.
            if index.is_none() || holder.segment.key_of(schema, id, row.offset())?.as_deref() == Some(key.bytes()) {
                return Ok(Some(row));
            }
        }
    }
    Ok(None)
}
