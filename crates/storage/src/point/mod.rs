//! Key to row: over the deltas and the runs of one view.
//!
//! Comes in: a key of the table, encoded (`row::key`). Goes out: the reference of the one live row that has it, if
//! there is one.
//!
//! 1. Deltas, newest first: a hash probe each, then the chain of versions.
//! 2. Runs, newest first: the segments whose key range holds the key (at most two a run), their filter, a binary
//!    search. In a run that is in another order they are segments of its index for the key.
//!
//! [`TableView::fetch`] reads rows that were found. [`are_free`] asks for many keys at once, [`rows_between`] for
//! ranges of a key.
//!
//! Costs O(runs), never O(segments) or O(rows) (contract 6). Invariant: at any snapshot at most one live row has a key,
//! so the first one found is the answer. It does not own: the keys of the transaction's own buffered rows (they are in
//! the write set), nor what a found row means to the caller.

mod fetch;
mod free;
mod keys;
mod range;
mod read;
mod table;

pub use table::PointTable;

use crate::error::Result;
use crate::ids::{CommitTs, KeyId, RowRef};
use crate::main_store::{Run, RunSegment};
use crate::row::key::HashedKey;
use crate::schema::TableSchema;
use crate::segment::OpenKeyFilter;
use crate::version::TableView;

pub use free::are_free;
pub use keys::keys_of;
pub use range::{RangeRequest, has_all_rows, rows_between};

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
    let runs = view.version().runs.iter().rev();
    if !view.schema().is_order(view.schema().key_columns(id)) {
        for run in runs {
            if let Some(row) = find_in_run(view.schema(), run, id, key, Some(view.ts()), wanted)? {
                return Ok(Some(row));
            }
        }
        return Ok(None);
    }
    let mut runs = runs;
    loop {
        // So many filters are asked at once: each look costs a miss of the processor's caches, and these overlap.
        let mut asked: [Option<Asked<'_>>; 4] = Default::default();
        for (place, run) in asked.iter_mut().zip(&mut runs) {
            *place = Some(Asked::of(run, key));
        }
        let is_last = asked.last().is_none_or(Option::is_none);
        let denied = asked.each_ref().map(|asked| asked.as_ref().is_some_and(|asked| asked.denies(key)));
        for (asked, _) in asked.iter().flatten().zip(denied).filter(|(_, denied)| !denied) {
            if let Some(row) = find_in_order(view.schema(), asked.parts, asked.is_open(), key, Some(view.ts()), wanted)?
            {
                return Ok(Some(row));
            }
        }
        if is_last {
            return Ok(None);
        }
    }
}

/// The segments of a run that may have a key, with the filter of the first: mostly there is no other.
struct Asked<'a> {
    parts: &'a [RunSegment],
    filter: Option<OpenKeyFilter<'a>>,
}

impl<'a> Asked<'a> {
    fn of(run: &'a Run, key: HashedKey<'_>) -> Self {
        let parts = run.find_segments(key.bytes());
        Self { parts, filter: parts.first().map(|part| part.segment.hold_key_filter()) }
    }

    /// Whether there is one segment, and its filter is open.
    fn is_open(&self) -> bool {
        self.parts.len() == 1 && self.filter.as_ref().is_some_and(OpenKeyFilter::is_open)
    }

    fn denies(&self, key: HashedKey<'_>) -> bool {
        self.parts.is_empty() || self.is_open() && self.filter.as_ref().is_some_and(|filter| filter.denies(key.hash()))
    }
}

/// As [`find_in_run`], in `parts`, which are segments of a run in the order of the key, and whose filters may have been
/// asked.
fn find_in_order(
    schema: &TableSchema,
    parts: &[RunSegment],
    is_asked: bool,
    key: HashedKey<'_>,
    at: Option<CommitTs>,
    wanted: impl Fn(RowRef) -> bool,
) -> Result<Option<RowRef>> {
    for part in parts {
        let (segment, bytes) = (&part.segment, key.bytes());
        let found = if is_asked {
            segment.find_key(schema, bytes)?
        } else {
            segment.probe_key(schema, bytes, || key.hash())?
        };
        for offset in found.filter(|offset| part.range.contains(offset)) {
            let row = RowRef::new(segment.id(), offset);
            if at.is_none_or(|at| !segment.deletes().is_deleted(offset, at)) && wanted(row) {
                return Ok(Some(row));
            }
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
    let Some(index) = run.index(id) else {
        if !schema.is_order(schema.key_columns(id)) {
            return Err(run.without_index(schema, id));
        }
        return find_in_order(schema, run.find_segments(key.bytes()), false, key, at, wanted);
    };
    run.find_indexed(schema, index, key, |holder, row| {
        at.is_none_or(|at| !holder.segment.deletes().is_deleted(row.offset(), at)) && wanted(row)
    })
}
