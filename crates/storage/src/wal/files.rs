//! The log's files: begun, reserved, listed, removed.
//!
//! To open the log is to end its last file: `close_last` writes it anew up to where its records end, which cuts a torn
//! tail off, and a new file is begun.
//!
//! Invariants: file numbers and first positions grow together, each file begins where the one before ends; a file says
//! that the next one follows only when the name of that is durable, which stays from then on; a file is removed only
//! when the next one's header is durable, so that the log always has a readable first file.

use std::sync::Arc;

use super::format::{
    FILE_HEADER_BYTES, FRAGMENT_HEADER_BYTES, FileHeader, Part, ROOM_BEHIND_BYTES, WAL_DIR, file_number, file_path,
    frame_end, parse_fragment,
};
use super::state::{Ahead, FileEntry, Log, LogFile, LogStart, Mark, NextFile, Pending, Shared, State};
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitTs, LogPosition};
use crate::limits::{WAL_FILE_BYTES, WAL_OFF_WRITE_MS, WAL_RESERVE_BYTES};

/// Name of a file in [`WAL_DIR`] that is being written anew.
const COPY_NAME: &str = "copy.tmp";
const COPY_PATH: &str = "wal/copy.tmp";
/// Calls that make the next file ahead of its time, in a second.
const REST_CALLS_MAX: u64 = 1_000 / WAL_OFF_WRITE_MS;
/// Bytes copied at a time when the last file is written anew.
const COPY_BYTES: u64 = 1 << 20;

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

/// Whether the log file `name` may have been left by the creation of a database that was interrupted before the
/// manifest had its name: it is the first one, or about to take its place, and has nothing behind its header. Nothing
/// was ever committed then.
///
/// # Errors
/// Io.
pub fn is_left_by_creation(disk: &dyn Disk, name: &str) -> Result<bool> {
    if file_number(name) != Some(1) && name != COPY_NAME {
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

/// Writes the first `len` bytes of a file anew, in its place, and `end` behind them; returns how long it is then. What
/// was replayed may stand in the operating system's memory only: after a failed fsync it forgets that these bytes were
/// never written, and a later fsync succeeds without them.
fn renew(disk: &dyn Disk, path: &str, file: &dyn DiskFile, len: u64, end: &[u8]) -> Result<u64> {
    let copied = disk.create(COPY_PATH).and_then(|copy| {
        let mut chunk = Vec::new();
        let mut at = 0;
        while at < len {
            chunk.resize(COPY_BYTES.min(len - at) as usize, 0);
            file.read_at(at, &mut chunk)?;
            copy.append(&chunk)?;
            at += chunk.len() as u64;
        }
        copy.append(end)?;
        copy.sync()
    });
    match copied.and_then(|()| disk.rename(COPY_PATH, path)) {
        Ok(()) => disk.sync_dir(WAL_DIR).map(|()| len + end.len() as u64),
        // A full disk must not keep the database closed: rows can only be deleted in an open one. What was set aside
        // behind the file comes back when it is cut, and is enough to end it. If an fsync failed before, this one may
        // claim too much: only a copy could bring back what the system has forgotten.
        Err(e) if e.kind() == ErrorKind::Full => {
            remove_copy(disk)?;
            disk.truncate(path, len)?;
            if !end.is_empty() {
                write_durably(disk, path, end)?;
            }
            Ok(len + end.len() as u64)
        }
        Err(e) => Err(e),
    }
}

/// Appends `bytes` to file `path` and fsyncs it.
fn write_durably(disk: &dyn Disk, path: &str, bytes: &[u8]) -> Result<Arc<dyn DiskFile>> {
    let file = disk.open_to_append(path)?;
    file.append(bytes)?;
    file.sync()?;
    Ok(file)
}

/// Removes what may be left of a copy.
fn remove_copy(disk: &dyn Disk) -> Result<()> {
    disk.remove(COPY_PATH).or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// The files before the one that is begun at `start`, in order.
fn earlier_files(disk: &dyn Disk, numbers: &[u64], start: &LogStart) -> Result<Vec<FileEntry>> {
    let mut entries = Vec::new();
    let mut first_of_next = start.position;
    for &number in numbers.iter().rev().filter(|&&number| number < start.file_number) {
        let file = disk.open(&file_path(number))?;
        // An old file whose header is gone was not replayed: it goes when the next one does.
        let first = read_header(&*file, number)?.map_or(first_of_next, |header| header.first);
        first_of_next = first;
        entries.push(FileEntry { number, first });
    }
    entries.reverse();
    Ok(entries)
}

/// Writes the last file anew up to `position`, without its torn tail, and says in it that the next one, whose name is
/// durable, follows. Returns where it ends.
fn close_last(disk: &dyn Disk, last: FileEntry, position: LogPosition) -> Result<LogPosition> {
    let path = file_path(last.number);
    let file = disk.open(&path)?;
    let len = file.len()?;
    let bytes = position.0.checked_sub(last.first.0).filter(|&bytes| bytes <= len);
    let bytes =
        bytes.ok_or_else(|| Error::internal(format!("a new log file at {position}, not in or behind {path}")))?;
    let mut end = Vec::new();
    if let Ok(header) = read_header(&*file, last.number)?
        && !has_end(&*file, &header, bytes)?
    {
        frame_end(&mut end, &header, bytes);
    }
    Ok(LogPosition(last.first.0 + renew(disk, &path, &*file, bytes, &end)?))
}

/// Whether the first `bytes` bytes of `file` end with the end of a file.
fn has_end(file: &dyn DiskFile, header: &FileHeader, bytes: u64) -> Result<bool> {
    let Some(at) = bytes.checked_sub(FRAGMENT_HEADER_BYTES as u64).filter(|&at| at >= FILE_HEADER_BYTES as u64) else {
        return Ok(false);
    };
    let mut fragment = [0; FRAGMENT_HEADER_BYTES];
    file.read_at(at, &mut fragment)?;
    Ok(parse_fragment(header, &fragment, at, 0).is_ok_and(|fragment| fragment.part == Part::FileEnd))
}

/// Puts a file with nothing but `header` in the place of log file `path`, in one step; its name is to be made durable.
fn replace(disk: &dyn Disk, path: &str, header: &[u8]) -> Result<()> {
    let file = disk.create(COPY_PATH)?;
    file.append(header)?;
    file.sync()?;
    disk.rename(COPY_PATH, path)
}

/// Begins the log file that `header` is for anew, in the place of what stands at `path`: no record, and the header
/// `there` if it was begun before. Returns it with the log id in its header.
///
/// On a full disk it is cut in its place, which gives back what was set aside for it. One that was begun keeps its
/// header all the while, for what is known of it may be known to the manifest; where there is no room for another one
/// still, it is gone on with.
fn begin_anew(
    disk: &dyn Disk,
    path: &str,
    header: &FileHeader,
    there: Option<FileHeader>,
) -> Result<(Arc<dyn DiskFile>, u64)> {
    let bytes = header.encode();
    let mut log_id = header.log_id;
    match (replace(disk, path, &bytes), there) {
        (Err(e), None) if e.kind() == ErrorKind::Full => {
            remove_copy(disk)?;
            disk.truncate(path, 0)?;
            return Ok((write_durably(disk, path, &bytes)?, log_id));
        }
        (Err(e), Some(there)) if e.kind() == ErrorKind::Full => {
            remove_copy(disk)?;
            disk.truncate(path, FILE_HEADER_BYTES as u64)?;
            match replace(disk, path, &bytes) {
                // Its checksums have the seed of before; no bytes that had it are left behind the header.
                Err(e) if e.kind() == ErrorKind::Full => {
                    remove_copy(disk)?;
                    log_id = there.log_id;
                }
                replaced => replaced?,
            }
        }
        (replaced, _) => replaced?,
    }
    disk.sync_dir(WAL_DIR)?;
    Ok((disk.open_to_append(path)?, log_id))
}

impl Log {
    /// Begins a log file at `start`, durably: for a new database, or where a replay ended
    /// ([`super::TailState::next_start`]). Cuts off what is there behind it. Interrupted anywhere and begun again, it
    /// comes to the same.
    ///
    /// 1. Files behind it, which were never begun, are removed. Its own name is made durable, if it has none yet.
    /// 2. Unless it was begun before, and so all before it is durable: the file before it is written anew without its
    ///    torn tail, and says that this one follows.
    /// 3. Its header is written; what stood in it, no record, is replaced in one step.
    ///
    /// On a full disk 2 and 3 do with what the two files have set aside (`limits::WAL_ROOM_KEPT_BYTES`), in their
    /// places; no copy is made.
    ///
    /// # Errors
    /// Io; Full when that is gone.
    pub fn create(disk: Arc<dyn Disk>, start: LogStart) -> Result<Self> {
        disk.create_dir(WAL_DIR)?;
        disk.sync_dir("")?;
        let path = file_path(start.file_number);
        let numbers = list_files(&*disk)?;
        for &number in numbers.iter().filter(|&&number| number > start.file_number) {
            disk.remove(&file_path(number))?;
        }
        if disk.exists(COPY_PATH)? {
            disk.remove(COPY_PATH)?;
        }
        let there = numbers.contains(&start.file_number);
        let begun = match there {
            true => read_header(&*disk.open(&path)?, start.file_number)?.ok(),
            false => None,
        };
        let begun = begun.filter(|header| header.first == start.position);
        let new = if there { None } else { Some(disk.create(&path)?) };
        disk.sync_dir(WAL_DIR)?;
        let mut files = earlier_files(&*disk, &numbers, &start)?;
        let first = match files.last() {
            Some(&last) if begun.is_none() => close_last(&*disk, last, start.position)?,
            _ => start.position,
        };
        let header = FileHeader { log_id: start.log_id, number: start.file_number, first };
        let (file, log_id) = match new {
            Some(file) => {
                file.append(&header.encode())?;
                file.sync()?;
                (file, start.log_id)
            }
            None => begin_anew(&*disk, &path, &header, begun)?,
        };
        let file = Arc::new(LogFile { number: start.file_number, first, file });
        files.push(FileEntry { number: file.number, first: file.first });

        let position = LogPosition(first.0 + FILE_HEADER_BYTES as u64);
        let mut state = State::new(Mark { ts: start.ts, position });
        state.target_end = FILE_HEADER_BYTES as u64;
        state.target_reserved = state.target_end;
        state.written_file = Some(Arc::clone(&file));
        state.target = Some(file);
        state.files = files.into();
        state.counters.syncs = 1;
        Ok(Self(Arc::new(Shared::new(Some(disk), log_id, state))))
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

    /// Makes the next log file when the one that is written to is half full: else a writer would wait until the disk
    /// has its name. For a background thread, which calls it each [`WAL_OFF_WRITE_MS`]: after a failure, a full disk
    /// above all, it lets twice as many calls pass as before, up to a second's, until it tries again.
    ///
    /// # Errors
    /// Full or Io: nothing is left of it, and whoever needs the file tries at once.
    pub fn prepare_next(&self) -> Result<()> {
        let shared = &*self.0;
        let Some(disk) = &shared.disk else { return Ok(()) };
        // Held all the while: who begins the next file waits for this, or has begun it before.
        let mut next = shared.next.lock();
        if let Some(left) = next.left.checked_sub(1) {
            next.left = left;
            return Ok(());
        }
        let number = {
            let state = shared.state.lock();
            let half_full = state.target_end >= WAL_FILE_BYTES / 2 && state.poisoned.is_none();
            let Some(target) = state.target.as_ref().filter(|_| half_full) else { return Ok(()) };
            target.number + 1
        };
        if next.made.as_ref().is_some_and(|made| made.number == number) {
            return Ok(());
        }
        let file = make_file(&**disk, number, WAL_RESERVE_BYTES).inspect_err(|_| {
            next.rest = (2 * next.rest).clamp(1, REST_CALLS_MAX);
            next.left = next.rest;
        })?;
        *next = Ahead { made: Some(NextFile { number, file }), ..Ahead::default() };
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
                let needed = FILE_HEADER_BYTES as u64 + state.outstanding + bytes + ROOM_BEHIND_BYTES;
                drop(state);
                return self.begin_file(&target, needed);
            }
            (target, state.target_end + state.outstanding + bytes + ROOM_BEHIND_BYTES)
        };
        let reserved = space_for(needed);
        target.file.reserve(reserved)?;
        let mut state = self.state.lock();
        state.target_reserved = state.target_reserved.max(reserved);
        Ok(())
    }

    /// Makes the file after `last` the target, with space for `needed` bytes, and ends `last`. Nobody can reserve in
    /// the meantime: `last` is full, so all others wait for their turn to grow.
    fn begin_file(&self, last: &Arc<LogFile>, needed: u64) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let number = last.number + 1;
        let reserved = space_for(needed);
        let mut next = self.next.lock();
        let file = match next.made.take().filter(|made| made.number == number) {
            Some(ready) => {
                ready.file.reserve(reserved).map(|()| ready.file).inspect_err(|_| drop_file(&**disk, number))
            }
            None => make_file(&**disk, number, reserved),
        }?;
        // There is room.
        *next = Ahead::default();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let ended = FileHeader { log_id: self.log_id, number: last.number, first: last.first };
        let offset = state.target_end;
        let end = frame_end(state.pending_for(last), &ended, offset);
        state.pending_bytes += end as usize;
        state.appended.position = LogPosition(last.first.0 + offset + end);
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

/// Where space ends that is set aside for a file of `needed` bytes: whole steps, small ones once the file is about to
/// end.
fn space_for(needed: u64) -> u64 {
    let step = if needed < WAL_FILE_BYTES { WAL_RESERVE_BYTES } else { WAL_RESERVE_BYTES / 16 };
    needed.next_multiple_of(step)
}
