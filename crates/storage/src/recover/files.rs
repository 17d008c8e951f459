//! Which files belong to a database.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use crate::disk::{Disk, parse_aside_name};
use crate::error::{Error, Result, sqlstate};
use crate::ids::{FileId, LogPosition};
use crate::recover::{DATA_DIR, WAL_DIR};
use crate::segment;
use crate::version::Root;
use crate::wal::LogReader;

/// Refuses to make a database among somebody's other files; to be asked before the first file is made, the lock's too.
///
/// # Errors
/// Invalid, naming one of those files; Io.
pub fn refuse_foreign(disk: &dyn Disk) -> Result<()> {
    let names = disk.list("")?;
    if names.iter().any(|name| name == "MANIFEST") {
        return Ok(());
    }
    let ours = |name: &String| name == "LOCK" || name == "MANIFEST.tmp";
    if let Some(name) = names.into_iter().find(|name| !ours(name)) {
        return Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!(
                "this directory is no Mainstem database and is not empty (it holds \"{name}\"): name an empty or a new one"
            ),
        ));
    }
    Ok(())
}

/// Refuses to make a database where one has lost its manifest.
pub(super) fn refuse_remains(disk: &dyn Disk) -> Result<()> {
    // A log without a record is what an interrupted creation leaves.
    let begun = !disk.list(WAL_DIR)?.is_empty();
    let records = begun && LogReader::open(disk, LogPosition(0)).is_ok_and(|mut log| log.next().is_some());
    if records || !disk.list(DATA_DIR)?.is_empty() {
        return Err(Error::corrupt("MANIFEST", 0, "the manifest is missing though data or log files are there"));
    }
    Ok(())
}

/// Removes data files that no version lists and that are not among `asides`: outputs of merges and loads that were never
/// committed, files aside that no record or manifest names, and files whose drop was logged but not carried out.
pub(super) fn remove_orphans(disk: &dyn Disk, root: &Root, asides: &BTreeSet<FileId>) -> Result<()> {
    let listed: BTreeSet<FileId> = root
        .tables
        .values()
        .flat_map(|version| version.runs.iter().flat_map(|run| run.all_segments()))
        .flat_map(|part| part.segment.meta().files())
        .collect();
    let mut removed = false;
    for name in disk.list(DATA_DIR)? {
        let is_segment = segment::parse_segment_name(&name).is_some_and(|id| listed.contains(&id));
        let is_aside = parse_aside_name(&name).is_some_and(|id| asides.contains(&id));
        if !is_segment && !is_aside {
            disk.remove(&format!("{DATA_DIR}/{name}"))?;
            removed = true;
        }
    }
    if disk.exists("MANIFEST.tmp")? {
        disk.remove("MANIFEST.tmp")?;
    }
    if removed { disk.sync_dir(DATA_DIR) } else { Ok(()) }
}

/// A log id no other database has, for all practical purposes.
pub(super) fn new_log_id() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    RandomState::new().hash_one((now, std::process::id()))
}
