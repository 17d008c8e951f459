//! Which files belong to a database, and where one may be made.
//!
//! Comes in: the names in a directory. Goes out: leave to make a database there, or an error that names a file. Invariants: where
//! anything may ever have been committed no database is made; a file whose name is none of ours is never touched.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use crate::disk::{Disk, parse_aside_name};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::FileId;
use crate::manifest::MANIFEST_FILE;
use crate::recover::{DATA_DIR, WAL_DIR};
use crate::segment;
use crate::settings::OpenOptions;
use crate::version::Root;
use crate::wal;

/// What stands in a directory without a manifest.
enum Place {
    /// At most what the interrupted creation of a database leaves: nothing was ever committed.
    Free,
    /// This file of a database.
    Remains(String),
    /// This, which is none of ours.
    Foreign(String),
}

/// Refuses a directory that holds no database and may not become one under `options`; to be asked before the first file is made, the lock's
/// too.
///
/// # Errors
/// Corrupt where a database has lost its manifest; NotFound where none is and none is to be made; Invalid, naming something that
/// is not ours, where one would be made; Io.
pub fn check_place(disk: &dyn Disk, options: &OpenOptions) -> Result<()> {
    if disk.exists(MANIFEST_FILE)? {
        return Ok(());
    }
    let place = look_around(disk)?;
    // Another process may have made it meanwhile.
    if disk.exists(MANIFEST_FILE)? {
        return Ok(());
    }
    match place {
        Place::Remains(path) => Err(Error::corrupt(
            MANIFEST_FILE,
            0,
            format_args!(
                "the manifest is missing though {path} is there: bring it back from a copy of this directory, or name another one"
            ),
        )),
        _ if options.read_only || !options.create => Err(Error::new(
            ErrorKind::NotFound,
            sqlstate::UNDEFINED_FILE,
            "there is no Mainstem database here, and none was to be made",
        )),
        Place::Foreign(path) => Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!(
                "this directory is no Mainstem database and is not empty (it holds \"{path}\"): name an empty or a new one"
            ),
        )),
        Place::Free => Ok(()),
    }
}

/// Our own files tell more than others.
fn look_around(disk: &dyn Disk) -> Result<Place> {
    let mut foreign = None;
    for dir in ["", WAL_DIR, DATA_DIR] {
        let path = |name: &str| if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
        for name in disk.list(dir)? {
            let (ours, may_be_left) = match dir {
                "" => (name == "LOCK" || name == "MANIFEST.tmp", true),
                WAL_DIR => (wal::is_log_name(&name), wal::is_left_by_creation(disk, &name)?),
                _ => (is_data_name(&name), false),
            };
            if ours && !may_be_left {
                return Ok(Place::Remains(path(&name)));
            }
            if !ours {
                foreign.get_or_insert(path(&name));
            }
        }
        for name in disk.list_others(dir)? {
            if !(dir.is_empty() && [WAL_DIR, DATA_DIR].contains(&name.as_str())) {
                foreign.get_or_insert(path(&name));
            }
        }
    }
    Ok(foreign.map_or(Place::Free, Place::Foreign))
}

/// Whether a file in [`DATA_DIR`] with this name is one that a database makes, unfinished ones included.
fn is_data_name(name: &str) -> bool {
    let finished = name.strip_suffix(".tmp").unwrap_or(name);
    segment::parse_segment_name(finished).is_some() || parse_aside_name(name).is_some()
}

/// Removes data files that no version lists and that are not among `asides`: outputs of merges and loads that were never
/// committed, files aside that no record or manifest names, and files whose drop was logged but not carried out. What has no name
/// of ours was put there by somebody else, and stays.
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
        if is_data_name(&name) && !is_segment && !is_aside {
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
