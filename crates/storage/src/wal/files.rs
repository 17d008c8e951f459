//! The log's files: begun, reserved, listed, removed.
//!
//! Invariants: file numbers and first positions grow together, each file begins where the one before ends; a file is removed
//! only when the next one's header is durable, so that the log always has a readable first file.

use std::sync::Arc;

use super::format::{FILE_HEADER_BYTES, FileHeader, RecordKind, WAL_DIR, file_number, file_path};
use super::writer::{Log, LogStart, Mark, Pending, Shared, State};
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitTs, LogPosition};
use crate::limits::{WAL_FILE_BYTES, WAL_RESERVE_BYTES};

/// Name of a file in [`WAL_DIR`] that is being written anew.
const COPY_NAME: &str = "copy.tmp";
/// Bytes copied at a time when the last file is written anew.
const COPY_BYTES: u64 = 1 << 20;

/// A file being written.
#[derive(Debug)]
pub(super) struct LogFile {
    pub number: u64,
    pub first: LogPosition,
    pub file: Arc<dyn DiskFile>,
}

/// The next file, made before it is needed: it has no header yet, so to a replay it is none.
#[derive(Debug)]
pub(super) struct NextFile {
    number: u64,
    file: Arc<dyn DiskFile>,
}

/// A file that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileEntry {
    pub number: u64,
    pub first: LogPosition,
}

/// What was done since the log was begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub commits: u64,
    pub installs: u64,
    pub writes: u64,
    pub syncs: u64,
}

impl Counters {
    pub(super) fn record(&mut self, kind: RecordKind) {
        match kind {
            RecordKind::Commit => self.commits += 1,
            RecordKind::Install => self.installs += 1,
        }
    }
}

/// The log as a system table shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// Seed of the checksums, new at each open for writing.
    pub log_id: u64,
    /// Position behind the last appended record.
    pub position: LogPosition,
    /// Position below which all is handed to the operating system.
    pub written_position: LogPosition,
    /// Position below which all is fsynced.
    pub fsynced_position: LogPosition,
    /// Last record applied in memory.
    pub applied: CommitTs,
    /// Last record durable under its own mode, with all before it.
    pub visible: CommitTs,
    /// Last record fsynced, with all before it.
    pub fsynced: CommitTs,
    /// Files in the log's folder.
    pub files: u64,
    /// Bytes of log in them, and on their way to them.
    pub bytes: u64,
    /// Commits appended since the database was opened.
    pub commits: u64,
    /// Installs appended since the database was opened.
    pub installs: u64,
    /// Writes to the operating system since then.
    pub writes: u64,
    /// Fsyncs since then.
    pub syncs: u64,
    /// Why nothing may be written any more.
    pub poisoned: Option<String>,
}

/// Whether the log makes files of this name in [`WAL_DIR`].
#[must_use]
pub fn is_log_name(name: &str) -> bool {
    file_number(name).is_some() || name == COPY_NAME
}

/// Whether the log file `name` may have been left by the creation of a database that was interrupted before the manifest had its name:
/// it is the first one, and has nothing behind its header. Nothing was ever committed then.
///
/// # Errors
/// Io.
pub fn is_left_by_creation(disk: &dyn Disk, name: &str) -> Result<bool> {
    if file_number(name) != Some(1) {
        return Ok(false);
    }
    match disk.open(&format!("{WAL_DIR}/{name}")) {
        Ok(file) => Ok(file.len()? <= FILE_HEADER_BYTES as u64),
        // Another process that opens the database takes it away.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
    }
}

/// The numbers of the log files in the folder, in order.
pub(super) fn list_files(disk: &dyn Disk) -> Result<Vec<u64>> {
    let mut numbers: Vec<u64> = disk.list(WAL_DIR)?.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The header of a file, or why it has none.
pub(super) fn read_header(file: &dyn DiskFile, number: u64) -> Result<Result<FileHeader, &'static str>> {
    let path = file_path(number);
    let mut bytes = vec![0; FILE_HEADER_BYTES.min(usize::try_from(file.len()?).unwrap_or(FILE_HEADER_BYTES))];
    file.read_at(0, &mut bytes)?;
    let header = FileHeader::decode(&bytes, &path)?;
    Ok(header.and_then(|h| if h.number == number { Ok(h) } else { Err("the file header names another file") }))
}

/// Writes the first `len` bytes of a file anew, in its place. What was replayed may stand in the operating system's memory
/// only: after a failed fsync it forgets that these bytes were never written, and a later fsync succeeds without them.
fn renew(disk: &dyn Disk, path: &str, file: &dyn DiskFile, len: u64) -> Result<()> {
    let aside = format!("{WAL_DIR}/{COPY_NAME}");
    let copied = disk.create(&aside).and_then(|copy| {
        let mut chunk = Vec::new();
        let mut at = 0;
        while at < len {
            chunk.resize(COPY_BYTES.min(len - at) as usize, 0);
            file.read_at(at, &mut chunk)?;
            copy.append(&chunk)?;
            at += chunk.len() as u64;
        }
        copy.sync()
    });
    match copied.and_then(|()| disk.rename(&aside, path)) {
        Ok(()) => disk.sync_dir(WAL_DIR),
        // A full disk must not keep the database closed: rows can only be deleted in an open one.
        Err(e) if e.kind() == ErrorKind::Full => {
            disk.remove(&aside).or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
            disk.truncate(path, len)
        }
        Err(e) => Err(e),
    }
}

/// Clears the way for a new log file: removes those that were never begun, and writes the last one anew without its torn
/// tail. Returns the files that stay.
fn clear_way(disk: &dyn Disk, start: &LogStart) -> Result<Vec<FileEntry>> {
    let (earlier, later): (Vec<u64>, Vec<u64>) =
        list_files(disk)?.into_iter().partition(|&number| number < start.file_number);
    for number in later {
        disk.remove(&file_path(number))?;
    }
    disk.sync_dir(WAL_DIR)?;
    let mut entries = Vec::new();
    let mut first_of_next = start.position;
    for &number in earlier.iter().rev() {
        let path = file_path(number);
        let file = disk.open(&path)?;
        // An old file whose header is gone was not replayed: it goes when the next one does.
        let first = read_header(&*file, number)?.map_or(first_of_next, |header| header.first);
        if entries.is_empty() {
            let len = file.len()?;
            let bytes = start.position.0.checked_sub(first.0).filter(|&bytes| bytes <= len);
            let misplaced =
                || Error::internal(format!("a new log file at {}, not in or behind {path}", start.position));
            renew(disk, &path, &*file, bytes.ok_or_else(misplaced)?)?;
        }
        first_of_next = first;
        entries.push(FileEntry { number, first });
    }
    entries.reverse();
    Ok(entries)
}

impl Log {
    /// Begins a new log file at `start`, durably: for a new database, or where a replay ended
    /// ([`super::TailState::next_start`]). Cuts off what is there behind it. Interrupted anywhere and begun again, it comes to
    /// the same.
    ///
    /// # Errors
    /// Io or Full.
    pub fn create(disk: Arc<dyn Disk>, start: LogStart) -> Result<Self> {
        disk.create_dir(WAL_DIR)?;
        disk.sync_dir("")?;
        let mut files = clear_way(&*disk, &start)?;
        let path = file_path(start.file_number);
        let file = disk.create(&path)?;
        let header = FileHeader { log_id: start.log_id, number: start.file_number, first: start.position };
        file.append(&header.encode())?;
        file.sync()?;
        disk.sync_dir(WAL_DIR)?;
        let file = Arc::new(LogFile { number: start.file_number, first: start.position, file });
        files.push(FileEntry { number: file.number, first: file.first });

        let position = LogPosition(start.position.0 + FILE_HEADER_BYTES as u64);
        let mut state = State::new(Mark { ts: start.ts, position });
        state.target_end = FILE_HEADER_BYTES as u64;
        state.target_reserved = state.target_end;
        state.written_file = Some(Arc::clone(&file));
        state.target = Some(file);
        state.files = files.into();
        state.counters.syncs = 1;
        Ok(Self(Arc::new(Shared::new(Some(disk), start.log_id, state))))
    }

    /// Removes the files that lie wholly below `position`.
    ///
    /// # Errors
    /// Io; files not removed are tried again next time.
    pub fn drop_before(&self, position: LogPosition) -> Result<()> {
        let Some(disk) = &self.0.disk else { return Ok(()) };
        let mut removed = false;
        loop {
            let droppable = {
                let state = self.0.state.lock();
                match (state.files.front(), state.files.get(1)) {
                    (Some(&oldest), Some(next)) if next.first <= position && next.first < state.fsynced.position => {
                        oldest
                    }
                    _ => break,
                }
            };
            match disk.remove(&file_path(droppable.number)) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                _ => removed = true,
            }
            self.0.state.lock().files.retain(|file| file.number != droppable.number);
        }
        if removed { disk.sync_dir(WAL_DIR) } else { Ok(()) }
    }

    /// Makes the next log file when the one that is written to is half full: else a writer would wait until the disk has its name. For a
    /// background thread.
    ///
    /// # Errors
    /// Full or Io: nothing is left of it, and whoever needs the file tries again.
    pub fn prepare_next(&self) -> Result<()> {
        let shared = &*self.0;
        let Some(disk) = &shared.disk else { return Ok(()) };
        // Held all the while: who begins the next file waits for this, or has begun it before.
        let mut next = shared.next.lock();
        let number = {
            let state = shared.state.lock();
            let half_full = state.target_end >= WAL_FILE_BYTES / 2 && state.poisoned.is_none();
            let Some(target) = state.target.as_ref().filter(|_| half_full) else { return Ok(()) };
            target.number + 1
        };
        if next.as_ref().is_none_or(|next| next.number != number) {
            *next = Some(NextFile { number, file: make_file(&**disk, number, WAL_RESERVE_BYTES)? });
        }
        Ok(())
    }

    /// What the system table shows.
    #[must_use]
    pub fn status(&self) -> LogStatus {
        let state = self.0.state.lock();
        let first = state.files.front().map_or(state.appended.position, |file| file.first);
        LogStatus {
            log_id: self.0.log_id,
            position: state.appended.position,
            written_position: state.written.position,
            fsynced_position: state.fsynced.position,
            applied: state.applied,
            visible: state.visible,
            fsynced: state.fsynced.ts,
            files: state.files.len() as u64,
            bytes: state.appended.position.0 - first.0,
            commits: state.counters.commits,
            installs: state.counters.installs,
            writes: state.counters.writes,
            syncs: state.counters.syncs,
            poisoned: state.poisoned.as_ref().map(|e| e.message().to_owned()),
        }
    }
}

impl Shared {
    /// Sets space aside for `bytes` more bytes: in the target file, or in a new one when that is large enough.
    pub(super) fn grow(&self, bytes: u64) -> Result<()> {
        let _one_at_a_time = self.growing.lock();
        let (target, needed) = {
            let state = self.state.lock();
            let Some(target) = state.target.clone() else { return Ok(()) };
            if state.target_end >= WAL_FILE_BYTES {
                let needed = FILE_HEADER_BYTES as u64 + state.outstanding + bytes;
                drop(state);
                return self.begin_file(&target, needed);
            }
            (target, state.target_end + state.outstanding + bytes)
        };
        let reserved = space_for(needed);
        target.file.reserve(reserved)?;
        let mut state = self.state.lock();
        state.target_reserved = state.target_reserved.max(reserved);
        Ok(())
    }

    /// Makes the file after `last` the target, with space for `needed` bytes. Nobody can reserve in the meantime: `last` is
    /// full, so all others wait for their turn to grow.
    fn begin_file(&self, last: &LogFile, needed: u64) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let number = last.number + 1;
        let reserved = space_for(needed);
        let mut next = self.next.lock();
        let file = match next.take().filter(|next| next.number == number) {
            Some(ready) => {
                ready.file.reserve(reserved).map(|()| ready.file).inspect_err(|_| drop_file(&**disk, number))
            }
            None => make_file(&**disk, number, reserved),
        }?;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let first = state.appended.position;
        let file = Arc::new(LogFile { number, first, file });
        let header = FileHeader { log_id: self.log_id, number, first }.encode();
        state.pending_bytes += header.len();
        state.target_end = header.len() as u64;
        state.target_reserved = reserved;
        state.files.push_back(FileEntry { number, first });
        let begins_file_after = Some(state.appended);
        state.pending.push_back(Pending { file: Arc::clone(&file), bytes: header, begins_file_after });
        state.appended.position = LogPosition(first.0 + state.target_end);
        state.target = Some(file);
        Ok(())
    }
}

/// A log file without content, with `reserved` bytes of disk space, whose name is durable.
fn make_file(disk: &dyn Disk, number: u64, reserved: u64) -> Result<Arc<dyn DiskFile>> {
    let make = || -> Result<_> {
        let file = disk.create(&file_path(number))?;
        file.reserve(reserved)?;
        disk.sync_dir(WAL_DIR)?;
        Ok(file)
    };
    make().inspect_err(|_| drop_file(disk, number))
}

/// Without a header it is no log file yet; the next attempt replaces it anyway.
fn drop_file(disk: &dyn Disk, number: u64) {
    let _ = disk.remove(&file_path(number));
}

/// Where space ends that is set aside for a file of `needed` bytes: whole steps, small ones once the file is about to end.
fn space_for(needed: u64) -> u64 {
    let step = if needed < WAL_FILE_BYTES { WAL_RESERVE_BYTES } else { WAL_RESERVE_BYTES / 16 };
    needed.next_multiple_of(step)
}
