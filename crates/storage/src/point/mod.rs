//! Key to row: over the deltas and the runs of one view.
//!
//! Comes in: an encoded primary key (`row::key`). Goes out: the reference of the one live row that has it, if there is one.
//!
//! 1. Deltas, newest first: a hash probe each, then the chain of versions.
//! 2. Runs, newest first: the segments whose key range holds the key (at most two a run), their filter, a binary search. In a run
//!    that is in another order they are segments of its key index; the rows that its entries name show whether they have the key.
//!
//! [`TableView::fetch`] reads rows that were found.
//!
//! Costs O(runs), never O(segments) or O(rows) (contract 6). Invariant: at any snapshot at most one live row has a key, so the
//! first one found is the answer. It does not own: the keys of the transaction's own buffered rows (they are in the write
//! set), nor what a found row means to the caller.

mod fetch;
mod keys;

mod keyed;
mod read;

pub use keyed::KeyedTable;

use crate::error::Result;
use crate::ids::{CommitTs, RowRef};
use crate::main_store::{Run, RunSegment, index_schema};
use crate::row::key::hash_key;
use crate::schema::TableSchema;
use crate::version::TableView;

pub use keys::keys_of;

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
    let (keys, sought) = run.sought(key);
    let key_schema = if run.index().is_some() { index_schema() } else { schema };
    let mut hash = None;
    for part in keys.find_segments(&sought) {
        let hash = *hash.get_or_insert_with(|| hash_key(&sought));
        if !part.segment.may_contain_key(hash)? {
            continue;
        }
        for found in part.segment.find_key(key_schema, &sought)? {
            let Some((holder, row)) = row_at(run, part, found)? else { continue };
            let live = at.is_none_or(|at| !holder.segment.deletes().is_deleted(row.offset(), at));
            if live && holder.range.contains(&row.offset()) && wanted(row) && has_key(schema, run, holder, row, key)? {
                return Ok(Some(row));
            }
        }
    }
    Ok(None)
}

/// The row that row `at` of `part`, a segment of `run` or of its key index, stands for.
fn row_at<'a>(run: &'a Run, part: &'a RunSegment, at: u32) -> Result<Option<(&'a RunSegment, RowRef)>> {
    match run.index() {
        None => Ok(Some((part, RowRef::new(part.segment.id(), at)))),
        Some(_) => run.indexed_row(&part.segment, at),
    }
}

/// Whether `row`, which was found by `key`, has it: a key index knows but its hash.
fn has_key(schema: &TableSchema, run: &Run, holder: &RunSegment, row: RowRef, key: &[u8]) -> Result<bool> {
    Ok(run.index().is_none() || holder.segment.primary_key(schema, row.offset())? == key)
}
