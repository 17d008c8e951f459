//! What all of the log share: its files, marks, and bytes on their way to the disk.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use super::format::RecordKind;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::ids::{CommitTs, LogPosition};
use crate::settings::Synchronous;

/// The log of an open database. Clones share it; every method may be called from any thread.
#[derive(Clone, Debug)]
pub struct Log(pub(super) Arc<Shared>);

/// Where a log begins to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// Random, and new whenever the database is opened for writing: it seeds the checksums.
    pub log_id: u64,
    /// Number of the first file written: the last one that was begun if it has no record, else above all that were
    /// begun.
    pub file_number: u64,
    /// Where the valid log ended before, that file left out.
    pub position: LogPosition,
    /// The last record before it.
    pub ts: CommitTs,
}

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
    pub number: u64,
    pub file: Arc<dyn DiskFile>,
}

/// What is done for the next file ahead of its time.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub made: Option<NextFile>,
    /// Calls to be passed over after the last failure, and those that are left of them.
    pub rest: u64,
    pub left: u64,
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

/// A record and the position behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub ts: CommitTs,
    pub position: LogPosition,
}

/// Records with one durability mode that follow one another.
#[derive(Debug)]
pub(super) struct LevelRun {
    pub first: CommitTs,
    pub last: CommitTs,
    pub level: Synchronous,
}

/// Bytes on their way to a file.
#[derive(Debug)]
pub(super) struct Pending {
    pub file: Arc<LogFile>,
    pub bytes: Vec<u8>,
    /// Set for the first bytes of a file: the last record before it.
    pub begins_file_after: Option<Mark>,
}

#[derive(Debug)]
pub(super) struct State {
    /// The file that records are appended to, the offset behind the last one, and up to where space is set aside.
    pub target: Option<Arc<LogFile>>,
    pub target_end: u64,
    pub target_reserved: u64,
    /// Bytes reserved and not yet appended.
    pub outstanding: u64,
    pub pending: VecDeque<Pending>,
    pub pending_bytes: usize,
    /// An empty buffer kept for the next appends.
    pub spare: Vec<u8>,
    /// The file last written to.
    pub written_file: Option<Arc<LogFile>>,
    pub appended: Mark,
    pub written: Mark,
    pub fsynced: Mark,
    pub applied: CommitTs,
    pub visible: CommitTs,
    /// Modes of the records above `visible`.
    pub runs: VecDeque<LevelRun>,
    /// A thread writes, or fsyncs, right now.
    pub writing: bool,
    pub syncing: bool,
    /// Why nothing may be written any more.
    pub poisoned: Option<Error>,
    pub files: VecDeque<FileEntry>,
    pub counters: Counters,
}

pub(super) type Observer = Box<dyn Fn(CommitTs) + Send + Sync>;

pub(super) struct Shared {
    /// None: an in-memory database, whose records go nowhere.
    pub disk: Option<Arc<dyn Disk>>,
    pub log_id: u64,
    pub state: Mutex<State>,
    /// Something changed that a waiting thread may wait for.
    pub progress: Condvar,
    /// One thread at a time sets space aside.
    pub growing: Mutex<()>,
    /// The file after the target, if it is there already. Held while it is made or becomes the target; taken after
    /// `growing`.
    pub next: Mutex<Ahead>,
    /// One fsync at a time: the system reports a failure once, so the next one must not start before it is known.
    pub sync_turn: Mutex<()>,
    pub visible: AtomicU64,
    pub applied: AtomicU64,
    pub fsynced: AtomicU64,
    /// Whether [`State::poisoned`] says why.
    pub failed: AtomicBool,
    /// What the observer was told last; held while it runs.
    pub announcing: Mutex<()>,
    pub announced: AtomicU64,
    pub observer: OnceLock<Observer>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("log_id", &self.log_id).finish_non_exhaustive()
    }
}

impl State {
    pub(super) fn new(start: Mark) -> Self {
        Self {
            target: None,
            target_end: 0,
            target_reserved: 0,
            outstanding: 0,
            pending: VecDeque::new(),
            pending_bytes: 0,
            spare: Vec::new(),
            written_file: None,
            appended: start,
            written: start,
            fsynced: start,
            applied: start.ts,
            visible: start.ts,
            runs: VecDeque::new(),
            writing: false,
            syncing: false,
            poisoned: None,
            files: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Moves `visible` over the records that are applied and durable under their own mode, up to the first that is not.
    pub(super) fn advance_visible(&mut self) {
        while let Some(run) = self.runs.front() {
            let durable = match run.level {
                Synchronous::Off => CommitTs::INFINITY,
                Synchronous::Normal => self.written.ts,
                Synchronous::Full => self.fsynced.ts,
            };
            let reached = durable.min(self.applied);
            self.visible = self.visible.max(reached.min(run.last));
            if reached < run.last {
                break;
            }
            self.runs.pop_front();
        }
    }

    pub(super) fn push_run(&mut self, ts: CommitTs, level: Synchronous) {
        match self.runs.back_mut() {
            Some(run) if run.level == level => run.last = ts,
            _ => self.runs.push_back(LevelRun { first: ts, last: ts, level }),
        }
    }

    /// The buffer that bytes for the target file go to.
    pub(super) fn pending_for(&mut self, file: &Arc<LogFile>) -> &mut Vec<u8> {
        if self.pending.back().is_none_or(|pending| !Arc::ptr_eq(&pending.file, file)) {
            let bytes = std::mem::take(&mut self.spare);
            self.pending.push_back(Pending { file: Arc::clone(file), bytes, begins_file_after: None });
        }
        #[expect(clippy::expect_used, reason = "one was pushed just above when there was none")]
        &mut self.pending.back_mut().expect("a pending buffer").bytes
    }

    /// The error that new work meets once the log is poisoned.
    pub(super) fn refuse_if_poisoned(&self) -> Result<()> {
        match &self.poisoned {
            None => Ok(()),
            Some(cause) => Err(Error::closed(format!(
                "writing has ended until the database is reopened, reads go on: {}",
                cause.message()
            ))),
        }
    }
}

impl Shared {
    pub(super) fn new(disk: Option<Arc<dyn Disk>>, log_id: u64, state: State) -> Self {
        let (visible, applied, fsynced) = (state.visible.0, state.applied.0, state.fsynced.ts.0);
        Self {
            disk,
            log_id,
            state: Mutex::new(state),
            progress: Condvar::new(),
            growing: Mutex::new(()),
            next: Mutex::default(),
            sync_turn: Mutex::new(()),
            visible: AtomicU64::new(visible),
            applied: AtomicU64::new(applied),
            fsynced: AtomicU64::new(fsynced),
            failed: AtomicBool::new(false),
            announcing: Mutex::new(()),
            announced: AtomicU64::new(visible),
            observer: OnceLock::new(),
        }
    }

    /// Shows the marks to those who read them without the lock.
    pub(super) fn publish(&self, state: &mut State) {
        state.advance_visible();
        self.fsynced.store(state.fsynced.ts.0, Ordering::Release);
        self.visible.store(state.visible.0, Ordering::Release);
        self.progress.notify_all();
    }
}
