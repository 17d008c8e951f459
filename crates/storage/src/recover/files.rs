//! Where a database may be made.
//!
//! Comes in: the names in a directory. Goes out: leave to make a database there, or an error that names a file.
//! Invariants: where anything may ever have been committed no database is made.

use std::hash::{BuildHasher, RandomState};

use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::manifest::{MANIFEST_ASIDE, MANIFEST_FILE};
use crate::recover::data_files::is_data_name;
use crate::recover::{DATA_DIR, WAL_DIR};
use crate::settings::OpenOptions;
use crate::wal::{self, END_MARK_ASIDE, END_MARK_FILE};

/// What stands in a directory without a manifest.
enum Place {
    /// At most what the interrupted creation of a database leaves: nothing was ever committed.
    Free,
    /// This file of a database.
    Remains(String),
    /// This, which is none of ours.
    Foreign(String),
}

/// Refuses a directory that holds no database and may not become one under `options`; to be asked before the first file
/// is made, the lock's too.
///
/// # Errors
/// Corrupt where a database has lost its manifest; NotFound where none is and none is to be made; Invalid, naming
/// something that is not ours, where one would be made; Io.
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
        _ if options.read_only || !options.create => Err(no_database()),
        Place::Foreign(path) => Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!(
                "this directory is no Mainstem database and is not empty (it holds \"{path}\"): name an empty or a new one"
            ),
        )),
        Place::Free => Ok(()),
    }
}

/// The error for a directory without a database, where none is to be made.
pub(super) fn no_database() -> Error {
    let message = "there is no Mainstem database here, and none was to be made";
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_FILE, message)
}

/// Our own files tell more than others.
fn look_around(disk: &dyn Disk) -> Result<Place> {
    let mut foreign = None;
    for dir in ["", WAL_DIR, DATA_DIR] {
        let path = |name: &str| if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
        for name in disk.list(dir)? {
            let (ours, may_be_left) = match dir {
                // A database is closed, and its log's end marked, only once it is one.
                "" if [END_MARK_FILE, END_MARK_ASIDE].contains(&name.as_str()) => (true, false),
                "" => (name == "LOCK" || name == MANIFEST_ASIDE, true),
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

/// A log id no other database has, for all practical purposes.
pub(super) fn new_log_id() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    RandomState::new().hash_one((now, std::process::id()))
}
