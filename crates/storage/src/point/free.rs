//! Whether none of many keys is taken: what [`find_hashed`] says of each, for all of them at once.
//!
//! A look-up of a key that is not there costs a few misses of the processor's caches: a slot of each delta's hash, a
//! line of each run's filter. One after the other, each waits for the one before. So each step is taken for all keys
//! before the next step is, in loops that write to no shared memory: their misses overlap.
//!
//! 1. Deltas: the hash alone denies nearly all keys.
//! 2. Runs: the segments that may hold each key, then their filters, as far as they are open.
//! 3. What neither denies is looked up as any key.

use std::sync::Arc;

use mainstem_kernels::filter::BlockedBloom;

use super::{find_hashed, find_in_run};
use crate::error::Result;
use crate::ids::{KeyId, RowRef};
use crate::main_store::{Run, RunSegment};
use crate::row::key::{HashedKey, RowKeys};
use crate::version::TableView;

/// Fewer keys are looked up one by one.
const KEYS_MIN: usize = 4;

/// Whether no row of `view`'s stores that is live at the view's timestamp, and `counts`, has one of `keys` as key `id`.
///
/// # Errors
/// Io or Corrupt when key blocks cannot be read.
pub fn are_free(view: &TableView, id: KeyId, keys: &RowKeys, counts: impl Fn(RowRef) -> bool) -> Result<bool> {
    if keys.rows() < KEYS_MIN {
        for (_, key) in keys.iter() {
            if find_hashed(view, id, key, &counts)?.is_some() {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let wanted = |row: RowRef| !view.own().is_some_and(|own| own.is_deleted(row)) && counts(row);
    for delta in &view.version().deltas {
        let taken = |(_, key): (usize, HashedKey<'_>)| {
            let found = if delta.may_have(id, key.hash()) { delta.lookup_hashed(id, key, view.ts()) } else { None };
            found.is_some_and(|offset| wanted(RowRef::new(delta.id(), offset)))
        };
        if keys.iter().any(taken) {
            return Ok(false);
        }
    }
    for run in &view.version().runs {
        let sought = |key: &HashedKey<'_>| find_in_run(view.schema(), run, id, *key, Some(view.ts()), wanted);
        let by_order = run.index(id).is_none() && view.schema().is_order(view.schema().key_columns(id));
        let rest = if by_order { not_denied(run, keys) } else { keys.iter().map(|(_, key)| key).collect() };
        for key in &rest {
            if sought(key)?.is_some() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Those of `keys` that no bound and no open filter of `run`, which is in their order, denies.
fn not_denied<'k>(run: &Run, keys: &'k RowKeys) -> Vec<HashedKey<'k>> {
    let mut sought: Vec<(&RunSegment, HashedKey<'k>)> = Vec::with_capacity(keys.rows());
    for (_, key) in keys.iter() {
        sought.extend(run.find_segments(key.bytes()).iter().map(|part| (part, key)));
    }
    sought.sort_unstable_by_key(|(part, _)| part.segment.id());
    let of_segment = sought.chunk_by(|a, b| a.0.segment.id() == b.0.segment.id());
    let filters: Vec<(Option<Arc<BlockedBloom>>, _)> =
        of_segment.map(|group| (group.first().and_then(|(part, _)| part.segment.open_key_filter()), group)).collect();
    let mut rest = Vec::new();
    for (filter, group) in &filters {
        let denies = |key: &HashedKey<'_>| filter.as_ref().is_some_and(|filter| !filter.may_contain(key.hash()));
        rest.extend(group.iter().map(|(_, key)| *key).filter(|key| !denies(key)));
    }
    rest
}
