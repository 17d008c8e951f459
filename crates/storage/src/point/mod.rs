//! Key to row: over the deltas and the runs of one view.
//!
//! Comes in: an encoded primary key (`row::key`). Goes out: the reference of the one live row that has it, if there is one.
//!
//! 1. Deltas, newest first: a hash probe each, then the chain of versions.
//! 2. Runs, newest first: the segments whose key range holds the key (at most two a run), their filter, a binary search.
//!
//! Costs O(runs), never O(segments) or O(rows) (contract 6). Invariant: at any snapshot at most one live row has a key, so the
//! first one found is the answer. It does not own: the transaction's own buffered rows (their keys are in the write set), nor
//! what a found row means to the caller.

use crate::error::Result;
use crate::ids::{CommitTs, RowRef};
use crate::main_store::Run;
use crate::row::key::hash_key;
use crate::schema::TableSchema;
use crate::version::TableView;

#[cfg(test)]
mod tests;

/// The row of `view`'s stores that has primary key `key`, is live at the view's timestamp, and `counts`.
///
/// # Errors
/// Io or Corrupt when key blocks cannot be read.
pub fn find(view: &TableView, key: &[u8], counts: impl Fn(RowRef) -> bool) -> Result<Option<RowRef>> {
    let wanted = |row: RowRef| !view.own().is_some_and(|own| own.is_deleted(row)) && counts(row);
    for delta in view.version().deltas.iter().rev() {
        if let Some(offset) = delta.lookup(key, view.ts()) {
            let row = RowRef::new(delta.id(), offset);
            if wanted(row) {
                return Ok(Some(row));
            }
        }
    }
    for run in view.version().runs.iter().rev() {
        if let Some(row) = find_in_run(view.schema(), run, key, Some(view.ts()), wanted)? {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// The row of `run` that has primary key `key`, is live at `at` (if given) and is `wanted`.
///
/// # Errors
/// Io or Corrupt when key blocks cannot be read.
pub fn find_in_run(
    schema: &TableSchema,
    run: &Run,
    key: &[u8],
    at: Option<CommitTs>,
    wanted: impl Fn(RowRef) -> bool,
) -> Result<Option<RowRef>> {
    let mut hash = None;
    for part in run.find_segments(key) {
        let hash = *hash.get_or_insert_with(|| hash_key(key));
        if !part.segment.may_contain_key(hash)? {
            continue;
        }
        for offset in part.segment.find_key(schema, key)? {
            let row = RowRef::new(part.segment.id(), offset);
            let live = at.is_none_or(|at| !part.segment.deletes().is_deleted(offset, at));
            if live && part.range.contains(&offset) && wanted(row) {
                return Ok(Some(row));
            }
        }
    }
    Ok(None)
}
