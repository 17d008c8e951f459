//! From files to a running engine.
//!
//! Comes in: a disk with a manifest and log files, or an empty one. Goes out: an [`Engine`]
//! whose present is the last durable commit.
//!
//! 1. The manifest gives tables, containers and deletes as of its timestamp T.
//! 2. The log is replayed from where the manifest says. Of records up to T only inserts into the deltas it lists count,
//!    for those were written nowhere else; then the deltas' deletes as of T are restored; of later records everything,
//!    in order. Files aside that the manifest or later records name are read: deletes one block at a time.
//! 3. A torn tail ends the replay cleanly; damage below what was known fsynced is a named corruption error (contract
//!    4). After a clean close that is the whole log: its end mark says so.
//! 4. Before the first write: data files that a torn tail may have named, and nothing else names, are set aside
//!    (`data_files`, `lost`); the torn tail is cut off, what was replayed is fsynced, a new log file is begun (all by
//!    [`Log::create`]); then orphan files are removed, so that no old bytes or ids return. A read-only open skips this
//!    step and writes nothing.
//!
//! Invariants: replay is idempotent: crashing during it changes nothing; it applies records through the same operations
//! a commit uses. It does not own: formats, the merge of long tails (`background` bounds them).

mod data_files;
mod files;
mod lost;
mod replay;

use std::sync::Arc;

use crate::commit::{Engine, EngineParts};
use crate::deletes::NamedDeletes;
use crate::disk::Disk;
use crate::error::Result;
use crate::ids::{CommitTs, LogPosition};
use crate::limits;
use crate::manifest::{MANIFEST_ASIDE, MANIFEST_FILE, Manifest};
use crate::memory::{MemoryKind, share_of};
use crate::segment::BlockCache;
use crate::settings::OpenOptions;
use crate::version::{Root, Timeline};
use crate::wal::{END_MARK_ASIDE, END_MARK_FILE, EndMark, Log, LogReader, LogStart, TailState};

use data_files::DataFiles;
use replay::{Replay, Replayed};

#[cfg(test)]
mod tests;

pub use crate::disk::DATA_DIR;
pub use crate::wal::WAL_DIR;
pub use files::check_place;
pub use lost::{LostFile, lost_files};

/// Opens the database on `disk`, or makes one there.
///
/// # Errors
/// NotFound when there is none and none is to be made; Invalid when other files stand there; Corrupt, also where one
/// has lost its manifest; Io.
pub fn open(disk: Arc<dyn Disk>, options: OpenOptions) -> Result<Arc<Engine>> {
    let manifest = match Manifest::read(disk.as_ref())? {
        Some(manifest) => manifest,
        None => create(&disk, &options)?,
    };
    let cache = BlockCache::new(share_of(options.memory_limit, MemoryKind::BlockCache));
    let mut replay = Replay::new(&manifest, disk.clone(), cache.clone())?;
    let mark = EndMark::read(disk.as_ref())?.map_or(LogPosition(0), |mark| mark.position);
    let reader = LogReader::open(disk.as_ref(), manifest.log_start)?;
    let mut reader = reader.known_fsynced(manifest.log_synced, MANIFEST_FILE).known_fsynced(mark, END_MARK_FILE);
    let mut records_end = manifest.log_start;
    for record in reader.by_ref() {
        let record = record?;
        replay.record(&record)?;
        records_end = record.end_position;
    }
    let tail = reader.finish()?;
    let mut notices = Notices::default();
    let (log, replayed) = if options.read_only {
        notices.add(torn_tail_notice(&tail, "is left out"));
        if tail.is_torn {
            notices.add(DataFiles::look(disk.as_ref(), replay.named_files(), &tail)?.notice_of_unknown(&tail));
        }
        (Log::disabled(), replay.finish()?)
    } else {
        notices.add(torn_tail_notice(&tail, "is cut off"));
        begin_writing(&disk, &tail, replay, &mut notices)?
    };
    let mut log_end_known = manifest.log_synced.max(mark);
    if records_end <= log_end_known {
        // What stands behind is the beginning of a file: nothing to mark.
        log_end_known = log_end_known.max(log.fsynced_position());
    }
    Ok(Engine::new(EngineParts {
        disk,
        cache,
        log: Arc::new(log),
        timeline: Timeline::new(Arc::new(replayed.root), replayed.at),
        options,
        log_start: manifest.log_start,
        log_end_known,
        delta_starts: replayed.delta_starts,
        asides: replayed.asides,
        manifest_files: replayed.manifest_files,
        numbers: replayed.numbers,
        next_container: replayed.next_container,
        next_file: replayed.next_file,
        next_run: replayed.next_run,
        next_table: replayed.next_table,
        notices: notices.0,
    }))
}

/// What the opening tells the user. As it comes up it goes to the log of the program too, for the opening may fail
/// later.
#[derive(Debug, Default)]
struct Notices(Vec<String>);

impl Notices {
    fn add(&mut self, notice: Option<String>) {
        self.0.extend(notice.inspect(|notice| tracing::warn!("{notice}")));
    }
}

/// What the user is told of bytes at the end of the log that hold no record.
fn torn_tail_notice(tail: &TailState, done: &str) -> Option<String> {
    let (file, end) = tail.end_place();
    (tail.torn_bytes > 0).then(|| {
        format!(
            "the log ends at byte {end} of {file}: what stands behind it, {} bytes, is no whole record and {done}. A crash leaves such a \
             tail of records that were not yet durable; without one the file was damaged",
            tail.torn_bytes
        )
    })
}

/// Prepares a directory whose log was replayed up to `tail` for writing, and begins its log anew.
fn begin_writing(
    disk: &Arc<dyn Disk>,
    tail: &TailState,
    mut replay: Replay,
    notices: &mut Notices,
) -> Result<(Log, Replayed)> {
    let mut files = DataFiles::look(disk.as_ref(), replay.named_files(), tail)?;
    let (next_file, next_container) = files.next_ids(tail);
    replay.take_ids_below(next_file, next_container);
    let replayed = replay.finish()?;
    notices.add(files.set_unknown_aside(disk.as_ref(), tail, &replayed)?);
    notices.add(lost::bound(disk.as_ref(), files.lost(), limits::LOST_FILES_BYTES_MAX)?);
    // In this order: beginning the log fsyncs what was replayed, and the names in the database's folder. Before that a
    // power cut may take back a record, or the manifest's name, that a killed process left to the operating system, and
    // with it the reason why a file is an orphan.
    let log = Log::create(disk.clone(), tail.next_start(files::new_log_id(), replayed.at))?;
    files.remove_unneeded(disk.as_ref(), &replayed)?;
    for unfinished in [MANIFEST_ASIDE, END_MARK_ASIDE] {
        if disk.exists(unfinished)? {
            disk.remove(unfinished)?;
        }
    }
    Ok((log, replayed))
}

/// An engine that lives in memory: no log, and `disk` (in memory too) only for segments.
#[must_use]
pub fn in_memory(disk: Arc<dyn Disk>, options: OpenOptions) -> Arc<Engine> {
    let cache = BlockCache::new(share_of(options.memory_limit, MemoryKind::BlockCache));
    Engine::new(EngineParts {
        disk,
        cache,
        log: Arc::new(Log::disabled()),
        timeline: Timeline::new(Arc::new(Root::default()), CommitTs::ZERO),
        options,
        log_start: LogPosition(0),
        log_end_known: LogPosition(0),
        delta_starts: std::collections::BTreeMap::new(),
        asides: Vec::new(),
        manifest_files: Vec::new(),
        numbers: std::collections::BTreeMap::new(),
        next_container: 1,
        next_file: 1,
        next_run: 1,
        next_table: 1,
        notices: Vec::new(),
    })
}

/// Makes an empty database: folders, then the manifest, whose rename makes it one.
fn create(disk: &Arc<dyn Disk>, options: &OpenOptions) -> Result<Manifest> {
    check_place(disk.as_ref(), options)?;
    // It was there a moment ago.
    if options.read_only || !options.create {
        return Err(files::no_database());
    }
    disk.create_dir(DATA_DIR)?;
    disk.sync_dir("")?;
    // Its first file only says where the log begins; opening adds the one that is written.
    let begin = LogStart { log_id: files::new_log_id(), file_number: 1, position: LogPosition(0), ts: CommitTs::ZERO };
    drop(Log::create(disk.clone(), begin)?);
    let manifest = Manifest {
        at: CommitTs::ZERO,
        log_synced: LogPosition(0),
        log_start: LogPosition(0),
        next_container: 1,
        next_file: 1,
        next_run: 1,
        next_table: 1,
        namespaces: Vec::new(),
        tables: Vec::new(),
        views: Vec::new(),
        numbers: Vec::new(),
        deletes: NamedDeletes::default(),
    };
    manifest.write(disk.as_ref())?;
    Ok(manifest)
}
