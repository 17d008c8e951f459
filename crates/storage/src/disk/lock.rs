//! The lock file of a database directory: one writing process, or any number of read-only ones (contract 4).
//!
//! The operating system's lock on the file is the lock, so a killed process leaves none behind. The text in the file
//! only says who the writer is. Readers write nothing; the system is asked who they are.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind as Io, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::DiskLock;
use crate::error::{Error, ErrorKind, Result, sqlstate};

/// Name of the lock file in the database directory.
pub(super) const LOCK_FILE: &str = "LOCK";

/// A lock file that is locked. Closing it would not always release it: a process that this one is just starting has a
/// copy of the descriptor until it runs its program.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Where it cannot be unlocked, closing it has to do.
        let _ = self.0.unlock();
    }
}

/// Takes directory `dir`, alone or shared with other readers.
pub(super) fn lock_directory(dir: &Path, exclusive: bool) -> Result<DiskLock> {
    let path = dir.join(LOCK_FILE);
    let fail = |e| refused(&path, exclusive, e);
    let opened = if exclusive {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)
    } else {
        File::open(&path)
    };
    let mut file = match opened {
        Ok(file) => file,
        // Read-only, and no process ever wrote here.
        Err(e) if !exclusive && e.kind() == Io::NotFound => return Ok(DiskLock::new(())),
        Err(e) => return Err(fail(e)),
    };
    match if exclusive { file.try_lock() } else { file.try_lock_shared() } {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken(dir, &mut file)),
        Err(TryLockError::Error(e)) => return Err(fail(e)),
    }
    if exclusive {
        let name = std::env::current_exe().ok();
        let name = name.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let line = format!("{} {name}\n", std::process::id());
        // Only for messages: a full disk must not keep a database from being opened.
        let _ = file.set_len(0).and_then(|()| file.write_all(line.as_bytes()));
    }
    Ok(DiskLock::new(Locked(file)))
}

/// The error for a lock that the system refuses: a database that cannot be written can still be read.
fn refused(path: &Path, exclusive: bool, e: std::io::Error) -> Error {
    if exclusive && matches!(e.kind(), Io::ReadOnlyFilesystem | Io::PermissionDenied) {
        let message = format!("could not lock {}: {e}; open it read-only (--read-only)", path.display());
        return Error::new(ErrorKind::Io, sqlstate::IO, message);
    }
    Error::io("lock", path.display(), e)
}

/// The error that says who holds the directory.
fn taken(dir: &Path, file: &mut File) -> Error {
    // A lock that can be shared now is held by readers only.
    let writer = file.try_lock_shared().is_err();
    let holders = if writer { written_holder(file) } else { reading_holders(file) };
    let who = holders.unwrap_or_else(|| "another process".to_owned());
    let how = if writer { "is open in" } else { "is open read-only in" };
    let message = format!("database {} {how} {who}; close it there first", dir.display());
    Error::new(ErrorKind::Closed, sqlstate::LOCKED, message)
}

/// The writer, from the text of the lock file.
fn written_holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(4_096).read_to_string(&mut text).ok()?;
    let (pid, name) = text.trim_end().split_once(' ')?;
    let here = if pid.parse() == Ok(std::process::id()) { ", this process" } else { "" };
    Some(format!("process {pid} ({name}{here})"))
}

/// The readers, from the system's table of locks; it has lines like `1: FLOCK ADVISORY READ 4242 08:01:1234 0 EOF`.
fn reading_holders(file: &File) -> Option<String> {
    let inode = file.metadata().ok()?.ino().to_string();
    let own = std::process::id().to_string();
    let table = fs::read_to_string("/proc/locks").ok()?;
    let mut holders: Vec<String> = Vec::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "READ", pid, place, ..] = words.as_slice() else { continue };
        if *pid == own || place.rsplit(':').next() != Some(&inode) {
            continue;
        }
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        holders.push(format!("process {pid} ({})", name.trim_end()));
    }
    if holders.is_empty() { None } else { Some(holders.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the child of a process that is starting has one, for a moment.
    #[test]
    fn a_copied_descriptor_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        drop(lock_directory(dir.path(), true).unwrap());
        for exclusive in [true, false] {
            let file = File::open(dir.path().join(LOCK_FILE)).unwrap();
            if exclusive {
                file.try_lock().unwrap()
            } else {
                file.try_lock_shared().unwrap()
            }
            let copy = file.try_clone().unwrap();
            let locked = Locked(file);
            assert_eq!(lock_directory(dir.path(), true).unwrap_err().sqlstate(), sqlstate::LOCKED);
            drop(locked);
            drop(lock_directory(dir.path(), true).unwrap());
            drop(copy);
        }
    }

    #[test]
    fn where_nothing_can_be_written_the_error_says_how_to_read() {
        for kind in [Io::ReadOnlyFilesystem, Io::PermissionDenied] {
            let error = refused(Path::new("db/LOCK"), true, kind.into());
            assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Io, sqlstate::IO));
            assert!(error.message().contains("db/LOCK") && error.message().contains("--read-only"), "{error}");
            assert!(!refused(Path::new("db/LOCK"), false, kind.into()).message().contains("--read-only"));
        }
        assert!(!refused(Path::new("db/LOCK"), true, Io::Other.into()).message().contains("--read-only"));
    }
}
