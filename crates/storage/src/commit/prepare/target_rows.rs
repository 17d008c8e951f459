//! Rows that a commit names, to delete them or because they are locked: where they are now, and whether they are live.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::Validation;
use crate::commit::Engine;
use crate::commit::conflict::row_conflict;
use crate::commit::recent::RecentDeletes;
use crate::deletes::{DeleteSet, Lookups};
use crate::error::Result;
use crate::ids::{CommitTs, ContainerId, RowRef};
use crate::schema::TableSchema;
use crate::version::TableVersion;
use crate::write_set::RowSets;

/// Rows by container, as of one timestamp.
pub(super) type NamedSets = BTreeMap<ContainerId, DeleteSet>;

/// `rows` in the form of delete logs.
pub(super) fn sets(rows: RowSets) -> NamedSets {
    rows.into_iter().map(|(id, set)| (id, DeleteSet::from_bitmap(set))).collect()
}

/// Where the rows of `target_rows` live in `version`; those of the transaction's own containers stay where they are.
///
/// # Errors
/// Conflict for one that is nowhere: it was deleted before a merge came by.
pub(super) fn forward(
    engine: &Engine,
    schema: &TableSchema,
    version: &TableVersion,
    named: &RowSets,
    is_own: impl Fn(ContainerId) -> bool,
) -> Result<NamedSets> {
    let mut there: BTreeMap<ContainerId, RoaringBitmap> = BTreeMap::new();
    for (&container, offsets) in named {
        if is_own(container) || version.container(container).is_some() {
            *there.entry(container).or_default() |= offsets;
            continue;
        }
        for offset in offsets {
            let row = RowRef::new(container, offset);
            let stands = |id| version.container(id).is_some();
            let row = engine.forwardings.resolve(row, stands).ok_or_else(|| row_conflict(schema))?;
            there.entry(row.container()).or_default().insert(row.offset());
        }
    }
    Ok(sets(there))
}

/// Refuses `rows` when one of them has been deleted.
///
/// # Errors
/// Conflict.
pub(super) fn check_live(schema: &TableSchema, version: &TableVersion, rows: &NamedSets) -> Result<()> {
    let is_dead = |(id, set): (&ContainerId, &DeleteSet)| {
        version.container(*id).is_some_and(|container| container.deletes().first_deleted(set).is_some())
    };
    if rows.iter().any(is_dead) { Err(row_conflict(schema)) } else { Ok(()) }
}

/// Refuses `rows`, all live at `after`, when one of them has been deleted since.
///
/// # Errors
/// Conflict.
pub(super) fn check_live_since(
    schema: &TableSchema,
    version: &TableVersion,
    rows: &NamedSets,
    after: CommitTs,
) -> Result<()> {
    let is_dead = |(id, set): (&ContainerId, &DeleteSet)| {
        version.container(*id).is_some_and(|container| container.deletes().first_deleted_after(set, after).is_some())
    };
    if rows.iter().any(is_dead) { Err(row_conflict(schema)) } else { Ok(()) }
}

/// What [`check_live_under_lock`] has to go by.
pub(super) struct Since<'a> {
    /// P.
    pub after: CommitTs,
    /// Where rows were deleted since.
    pub recent: &'a RecentDeletes,
}

/// As [`check_live_since`] under the lock, looking at no more than `left` allows: of the containers named, or of those
/// that the last commits deleted from, whichever are fewer.
///
/// # Errors
/// Conflict.
pub(super) fn check_live_under_lock(
    schema: &TableSchema,
    version: &TableVersion,
    rows: &NamedSets,
    since: &Since<'_>,
    left: &mut Lookups,
) -> Result<Validation> {
    let mut is_live = |id: ContainerId, set: &DeleteSet| -> Result<Validation> {
        let Some(container) = version.container(id) else { return Ok(Validation::Free) };
        match container.deletes().find_deleted_after(set, since.after, left) {
            None => Ok(Validation::Again),
            Some(None) => Ok(Validation::Free),
            Some(Some(_)) => Err(row_conflict(schema)),
        }
    };
    match since.recent.after(since.after).filter(|recent| recent.len() < rows.len()) {
        Some(recent) => {
            for id in recent {
                if let Some(set) = rows.get(&id)
                    && let Validation::Again = is_live(id, set)?
                {
                    return Ok(Validation::Again);
                }
            }
        }
        None => {
            for (id, set) in rows {
                if let Validation::Again = is_live(*id, set)? {
                    return Ok(Validation::Again);
                }
            }
        }
    }
    Ok(Validation::Free)
}
