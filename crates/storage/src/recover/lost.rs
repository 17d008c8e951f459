//! Lost files: data files that nothing lists, set aside because the tail of the log that was cut may have named them.
//!
//! Comes in: names. Goes out: files with other names in the same folder, which nothing reads; what is known of them.
//! Such a name has the old one, the number of the log file that was cut, and, of a segment whose header can be read,
//! its container: `data/0000000017.seg.lost-0000000004-0000000033`.
//!
//! In the same folder: a rename there needs no space for a folder, and one sync makes it durable.
//!
//! Invariants:
//! - Their numbers, and those of their containers, are never given out again while they are there (`data_files`).
//! - Those of the last cut stay until somebody removes them. Of earlier ones as many as `limits::LOST_FILES_BYTES_MAX`
//!   allows ([`bound`]), so that crash after crash does not fill the disk.
//!
//! It does not own: which files are set aside (`data_files`).

use std::collections::BTreeMap;

use crate::disk::{DATA_DIR, Disk, parse_aside_name};
use crate::error::{ErrorKind, Result};
use crate::ids::{ContainerId, FileId};
use crate::segment::{container_of, parse_segment_name};

/// What stands between the old name of a file and the numbers.
const MARK: &str = ".lost-";

/// A data file that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostFile {
    /// The name it had.
    pub name: String,
    /// Its number.
    pub file: FileId,
    /// Number of the log file whose tail was cut when it was set aside.
    pub log_file: u64,
    /// The container in it, if it is a segment with a sound header.
    pub container: Option<ContainerId>,
}

/// The file that a finished one with this name is.
pub(super) fn parse_finished_name(name: &str) -> Option<FileId> {
    parse_segment_name(name).or_else(|| parse_aside_name(name))
}

impl LostFile {
    /// The lost file that a name in [`DATA_DIR`] stands for; `None` for anything else.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (old, numbers) = name.split_once(MARK)?;
        let (log_file, container) = match numbers.split_once('-') {
            Some((log_file, container)) => (log_file, Some(ContainerId(container.parse().ok()?))),
            None => (numbers, None),
        };
        let file = parse_finished_name(old)?;
        let parsed = Self { name: old.to_owned(), file, log_file: log_file.parse().ok()?, container };
        (parsed.path().strip_prefix(DATA_DIR)?.strip_prefix('/')? == name).then_some(parsed)
    }

    /// What the file `name` in [`DATA_DIR`] is to be when the tail of log file `log_file` is cut; `None` if it is no
    /// finished one.
    pub(super) fn of(disk: &dyn Disk, name: &str, log_file: u64) -> Option<Self> {
        let file = parse_finished_name(name)?;
        let container = parse_segment_name(name).and_then(|file| container_of(disk, file));
        Some(Self { name: name.to_owned(), file, log_file, container })
    }

    /// Where it stood.
    #[must_use]
    pub fn old_path(&self) -> String {
        format!("{DATA_DIR}/{}", self.name)
    }

    /// Where it stands.
    #[must_use]
    pub fn path(&self) -> String {
        let Self { name, log_file, .. } = self;
        let container = self.container.map_or(String::new(), |id| format!("-{:010}", id.0));
        format!("{DATA_DIR}/{name}{MARK}{log_file:010}{container}")
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// NotFound when somebody has removed it; Io.
    pub fn bytes(&self, disk: &dyn Disk) -> Result<u64> {
        disk.open(&self.path())?.len()
    }
}

/// The lost files on `disk`.
///
/// # Errors
/// Io.
pub fn lost_files(disk: &dyn Disk) -> Result<Vec<LostFile>> {
    Ok(disk.list(DATA_DIR)?.iter().filter_map(|name| LostFile::parse(name)).collect())
}

/// Removes the files of earlier cuts than the last one, which has the highest number, oldest first, as far as all
/// together have more than `bytes_max` bytes. Returns what to tell the user.
pub(super) fn bound(disk: &dyn Disk, lost: &[LostFile], bytes_max: u64) -> Result<Option<String>> {
    let mut cuts: BTreeMap<u64, Vec<&LostFile>> = BTreeMap::new();
    lost.iter().for_each(|file| cuts.entry(file.log_file).or_default().push(file));
    if cuts.len() < 2 {
        return Ok(None);
    }
    let (mut bytes, mut removed) = (0, Vec::new());
    for (at, files) in cuts.values().rev().enumerate() {
        for file in files {
            bytes += match file.bytes(disk) {
                Err(e) if e.kind() == ErrorKind::NotFound => 0,
                other => other?,
            };
        }
        if at > 0 && bytes > bytes_max {
            for file in files {
                match disk.remove(&file.path()) {
                    Ok(()) => removed.push(file.path()),
                    // Somebody has removed it meanwhile.
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => return Err(e),
                }
            }
        }
    }
    if removed.is_empty() {
        return Ok(None);
    }
    disk.sync_dir(DATA_DIR)?;
    let message = format!(
        "files that earlier openings had set aside were removed, for all together had more than {bytes_max} bytes: {}",
        removed.join(", ")
    );
    Ok(Some(message))
}
