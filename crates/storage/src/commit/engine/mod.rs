//! What the stages of one open database share: the engine, the commit lock, and what only its holder touches (`state`).

mod state;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::commit::Gates;
use crate::commit::ddl::blocks::NumberBlocks;
use crate::commit::delta_starts::DeltaStarts;
use crate::commit::gate::Turns;
use crate::commit::pressure::{FlushGauge, TailGauge};
use crate::commit::recent::RecentDeletes;
use crate::disk::{AsideFile, DATA_DIR, Disk};
use crate::error::{Error, Result};
use crate::ids::{ColumnId, CommitTs, ContainerId, FileId, LogPosition, RunId, TableId};
use crate::limits;
use crate::load::{IdSource, LoadMemory, LoadTarget};
use crate::memory::{MemoryBudget, MemoryKind};
use crate::segment::{BlockCache, Segment};
use crate::settings::OpenOptions;
use crate::threads::cores;
use crate::version::{Forwardings, Timeline};
use crate::wal::Log;

pub(super) use state::Dropped;
pub use state::{CommitState, TableStamp};

/// The parts of an [`Engine`] that opening a database makes.
pub struct EngineParts {
    /// Where files go.
    pub disk: Arc<dyn Disk>,
    /// Segment blocks in memory.
    pub cache: Arc<BlockCache>,
    /// The log.
    pub log: Arc<Log>,
    /// Roots, marks, snapshots.
    pub timeline: Arc<Timeline>,
    /// How the database was opened.
    pub options: OpenOptions,
    /// Next unused ids.
    pub next_container: u64,
    /// See `next_container`.
    pub next_file: u64,
    /// See `next_container`.
    pub next_run: u64,
    /// See `next_container`.
    pub next_table: u64,
    /// Where the newest manifest lets replay start.
    pub log_start: LogPosition,
    /// Up to where a close need not mark that the log was fsynced: the newest manifest or the end mark says it, or no
    /// record stands there.
    pub log_end_known: LogPosition,
    /// Per delta, the position of the record that holds its first rows.
    pub delta_starts: BTreeMap<ContainerId, LogPosition>,
    /// Files aside that the replayed records name.
    pub asides: Vec<(CommitTs, Arc<AsideFile>)>,
    /// Files aside that the newest manifest names.
    pub manifest_files: Vec<Arc<AsideFile>>,
    /// Numbers taken of each IDENTITY column.
    pub numbers: BTreeMap<(TableId, ColumnId), u64>,
    /// What the opening has to tell the user.
    pub notices: Vec<String>,
}

/// The shared state of one open database.
#[derive(Debug)]
pub struct Engine {
    /// Where files go.
    pub disk: Arc<dyn Disk>,
    /// Segment blocks in memory.
    pub cache: Arc<BlockCache>,
    /// The log.
    pub log: Arc<Log>,
    /// Roots, marks, snapshots.
    pub timeline: Arc<Timeline>,
    /// Where rows went that a merge moved.
    pub forwardings: Forwardings,
    /// Closed write gates.
    pub gates: Arc<Gates>,
    /// Commits that others have overtaken.
    pub(super) turns: Turns,
    /// Most validations that a commit took.
    pub(super) commit_rounds_max: AtomicU32,
    /// How the database was opened.
    pub options: OpenOptions,
    /// What the opening has to tell the user.
    pub notices: Vec<String>,
    /// What its memory goes to.
    pub memory: Arc<MemoryBudget>,
    /// What loads share of it.
    pub(super) loads: Arc<LoadMemory>,
    /// Threads of a load: somebody waits for it.
    pub(super) load_threads: usize,
    ids: Arc<Ids>,
    /// Held by the transaction that merges runs of its own (`transaction::write`).
    pub own_merges: Mutex<()>,
    /// Runs that merges under way read.
    merging: Mutex<Vec<RunId>>,
    /// Numbers of IDENTITY columns, reserved and not given out.
    pub(super) numbers: NumberBlocks,
    /// Where the newest manifest lets replay start.
    pub(super) log_start: AtomicU64,
    /// Up to where a close need not mark that the log was fsynced: the newest manifest or the end mark says it, or no
    /// record stands there.
    pub(super) log_end_known: AtomicU64,
    /// Who waits for a shorter tail.
    pub(super) tail: TailGauge,
    /// What came of flushes.
    pub(super) flushes: FlushGauge,
    /// One checkpoint at a time. Holds the files aside that the manifest on disk may name.
    pub(super) checkpointing: Mutex<Vec<Arc<AsideFile>>>,
    /// Bytes of all files aside that records have named since the database was opened, and of those that a replay would
    /// not read any more.
    pub(super) aside_bytes: AtomicU64,
    pub(super) aside_bytes_covered: AtomicU64,
    lock: Mutex<CommitState>,
    /// The longest time the commit lock was held, in nanoseconds.
    lock_held_max: AtomicU64,
    /// Set while the commit lock is held: still set after a panic there.
    broken: AtomicBool,
    closed: AtomicBool,
}

/// The id counters.
#[derive(Debug)]
struct Ids {
    container: AtomicU64,
    file: AtomicU64,
    run: AtomicU64,
    table: AtomicU64,
}

impl IdSource for Ids {
    fn next_container(&self) -> ContainerId {
        ContainerId(self.container.fetch_add(1, Ordering::Relaxed))
    }

    fn next_file(&self) -> FileId {
        FileId(self.file.fetch_add(1, Ordering::Relaxed))
    }

    fn next_run(&self) -> RunId {
        RunId(self.run.fetch_add(1, Ordering::Relaxed))
    }
}

/// The commit lock. While one lives, nobody else commits, installs or freezes. If it is dropped in a panic, writing
/// ends until the database is reopened: a record may stand in the log's buffer in part, or be applied in part.
pub struct CommitLock<'a> {
    pub(super) state: MutexGuard<'a, CommitState>,
    engine: &'a Engine,
    since: Instant,
    /// By a destructor that runs while its thread unwinds: then a panic says nothing about this lock.
    taken_while_panicking: bool,
}

impl Drop for CommitLock<'_> {
    fn drop(&mut self) {
        let held = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.engine.lock_held_max.fetch_max(held, Ordering::Relaxed);
        if std::thread::panicking() && !self.taken_while_panicking {
            self.engine.log.poison(Error::internal("a defect interrupted a change of the stores"));
        } else {
            self.engine.broken.store(false, Ordering::Release);
        }
    }
}

impl Engine {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: EngineParts) -> Arc<Self> {
        let aside_bytes = parts.asides.iter().map(|(_, file)| file.at().bytes).sum();
        let (_, present) = parts.timeline.present();
        let memory = MemoryBudget::new(parts.options.memory_limit);
        let activity = parts.timeline.activity().clone();
        let engine = Arc::new(Self {
            disk: parts.disk,
            cache: parts.cache,
            log: parts.log,
            timeline: parts.timeline,
            forwardings: Forwardings::default(),
            gates: Arc::default(),
            turns: Turns::default(),
            commit_rounds_max: AtomicU32::new(0),
            loads: LoadMemory::new(memory.clone(), activity),
            load_threads: cores().min(limits::LOAD_THREADS_MAX),
            memory,
            options: parts.options,
            notices: parts.notices,
            ids: Arc::new(Ids {
                container: AtomicU64::new(parts.next_container),
                file: AtomicU64::new(parts.next_file),
                run: AtomicU64::new(parts.next_run),
                table: AtomicU64::new(parts.next_table),
            }),
            lock: Mutex::new(CommitState {
                stamps: BTreeMap::new(),
                dropped: Vec::new(),
                recent_deletes: RecentDeletes::default(),
                delta_starts: DeltaStarts::of(&present, &parts.delta_starts),
                asides: parts.asides,
                numbers: parts.numbers,
                ended_numbers: BTreeMap::new(),
                view_made: CommitTs::ZERO,
                relation_changed: CommitTs::ZERO,
            }),
            own_merges: Mutex::default(),
            merging: Mutex::default(),
            numbers: NumberBlocks::default(),
            log_start: AtomicU64::new(parts.log_start.0),
            log_end_known: AtomicU64::new(parts.log_end_known.0),
            checkpointing: Mutex::new(parts.manifest_files),
            aside_bytes: AtomicU64::new(aside_bytes),
            aside_bytes_covered: AtomicU64::new(0),
            lock_held_max: AtomicU64::new(0),
            tail: TailGauge::default(),
            flushes: FlushGauge::default(),
            broken: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        for delta in present.tables.values().flat_map(|version| version.frozen_deltas()) {
            delta.count_as(&engine.memory, MemoryKind::FrozenDeltas);
        }
        let timeline = engine.timeline.clone();
        if let Err(e) = engine.log.on_visible(Box::new(move |ts| timeline.advance_visible(ts))) {
            // Only a second engine on the same log could be refused; every waiting commit moves the mark itself.
            tracing::warn!("{e}");
        }
        engine
    }

    /// Refuses work on a database that is closed.
    ///
    /// # Errors
    /// Closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed("the database is closed"));
        }
        Ok(())
    }

    /// Refuses writes on a database that takes none.
    ///
    /// # Errors
    /// Closed after a failed log write or a defect, or when closed; Invalid (25006) when opened read-only.
    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.options.read_only {
            return Err(Error::invalid(
                crate::error::sqlstate::READ_ONLY,
                "cannot write: the database was opened read-only",
            ));
        }
        self.log.check_sound()
    }

    /// Ends all use: a commit or install that holds the lock is let through, later ones are refused.
    pub fn close(&self) {
        let _lock = self.lock.lock();
        self.closed.store(true, Ordering::Release);
    }

    /// Takes the commit lock.
    ///
    /// # Errors
    /// Closed, when a panic under the lock left the stores in doubt.
    pub(crate) fn lock(&self) -> Result<CommitLock<'_>> {
        let state = self.lock.lock();
        if self.broken.swap(true, Ordering::AcqRel) {
            return Err(Error::closed(
                "a defect interrupted a commit: writes are refused until the database is reopened",
            ));
        }
        Ok(CommitLock { state, engine: self, since: Instant::now(), taken_while_panicking: std::thread::panicking() })
    }

    /// The longest time the commit lock was held since the last call: what contract 2b bounds.
    pub fn take_lock_held_max(&self) -> Duration {
        Duration::from_nanos(self.lock_held_max.swap(0, Ordering::Relaxed))
    }

    /// The most often that a commit was validated since the last call, once included: what `gate::turn` bounds.
    pub fn take_commit_rounds_max(&self) -> u32 {
        self.commit_rounds_max.swap(0, Ordering::Relaxed)
    }

    /// Where a bulk load writes.
    #[must_use]
    pub fn load_target(&self) -> LoadTarget {
        let sort_entries = self.memory.share(MemoryKind::Reserve) / 4 / limits::KEY_INDEX_ENTRY_BYTES;
        LoadTarget {
            disk: self.disk.clone(),
            cache: self.cache.clone(),
            encodings: self.options.encodings,
            ids: self.ids.clone(),
            sort_entries: usize::try_from(sort_entries).unwrap_or(usize::MAX),
            memory: self.memory.clone(),
        }
    }

    /// Threads that a load uses.
    #[must_use]
    pub fn load_threads(&self) -> usize {
        self.load_threads
    }

    /// A merge that reads `runs` begins. From here on no load makes them longer: one that was under the commit lock,
    /// and has not seen the claim, is in the present by now.
    ///
    /// # Errors
    /// As [`Engine::lock`]; the claim stands then.
    pub fn begin_merging(&self, runs: &[RunId]) -> Result<()> {
        self.merging.lock().extend(runs);
        drop(self.lock()?);
        Ok(())
    }

    /// It has ended.
    pub fn end_merging(&self, runs: &[RunId]) {
        self.merging.lock().retain(|run| !runs.contains(run));
    }

    /// Whether a merge under way reads `run`. One may begin at any time: who acts on it asks again under the lock.
    pub fn is_merging(&self, run: RunId) -> bool {
        self.merging.lock().contains(&run)
    }

    /// A new file id.
    #[must_use]
    pub fn next_file(&self) -> FileId {
        self.ids.next_file()
    }

    /// Gives the files of `segments` their final names, durably: a record is about to name them. Restarts take files
    /// without one for unfinished, and remove them.
    ///
    /// # Errors
    /// Io or Full: no record may name them.
    pub(super) fn name_files<'s>(&self, segments: impl Iterator<Item = &'s Arc<Segment>>) -> Result<()> {
        // A log in memory is never read again.
        if self.log.is_disabled() {
            return Ok(());
        }
        let mut some = false;
        for segment in segments {
            some |= segment.take_names()?;
        }
        if some { self.disk.sync_dir(DATA_DIR) } else { Ok(()) }
    }

    /// A record names `file`: it stays until a manifest covers the record. Under the lock.
    pub(super) fn note_aside(&self, lock: &mut CommitLock<'_>, ts: CommitTs, file: Option<&Arc<AsideFile>>) {
        let Some(file) = file else { return };
        file.keep();
        self.aside_bytes.fetch_add(file.at().bytes, Ordering::Relaxed);
        lock.state.asides.push((ts, file.clone()));
    }

    /// The files aside that a restart would read. They stay while the handles live.
    ///
    /// # Errors
    /// As [`Engine::lock`].
    pub fn asides(&self) -> Result<Vec<Arc<AsideFile>>> {
        let mut files = self.checkpointing.lock().clone();
        files.extend(self.lock()?.state.asides.iter().map(|(_, file)| file.clone()));
        Ok(files)
    }

    /// A new container id.
    #[must_use]
    pub fn next_container(&self) -> ContainerId {
        self.ids.next_container()
    }

    /// A new table id.
    #[must_use]
    pub fn next_table(&self) -> TableId {
        TableId(self.ids.table.fetch_add(1, Ordering::Relaxed))
    }

    /// The next unused ids, for a checkpoint: (container, file, run, table).
    #[must_use]
    pub fn id_counters(&self) -> (u64, u64, u64, u64) {
        let ids = &self.ids;
        let get = |id: &AtomicU64| id.load(Ordering::Relaxed);
        (get(&ids.container), get(&ids.file), get(&ids.run), get(&ids.table))
    }

    /// Waits until *visible* has reached `ts`, writing and fsyncing the log as the commits up to it ask.
    ///
    /// # Errors
    /// Closed with 08007 when the log failed: the outcome is then known only after reopening.
    pub fn wait_visible(&self, ts: CommitTs) -> Result<()> {
        if self.timeline.visible() < ts {
            self.log.wait_visible(ts)?;
            self.timeline.advance_visible(self.log.visible());
        }
        Ok(())
    }

    /// Lets go of what no reader can reach any more: files of dropped segments whose drop is fsynced, forwarding no
    /// writer needs. Of files that readers hold still, their names. Cheap when there is nothing.
    ///
    /// # Errors
    /// As [`Engine::lock`].
    pub fn release_unneeded(&self) -> Result<()> {
        self.forwardings.prune(Some(self.timeline.oldest_writer()));
        let fsynced = self.log.fsynced();
        let mut ready = Vec::new();
        {
            let mut lock = self.lock()?;
            let dropped = &mut lock.state.dropped;
            let mut kept = Vec::with_capacity(dropped.len());
            for (ts, gone) in dropped.drain(..) {
                if ts <= fsynced {
                    ready.push(gone);
                } else {
                    kept.push((ts, gone));
                }
            }
            *dropped = kept;
            self.forget_ended_numbers(&mut lock.state);
        }
        let mut files = Vec::new();
        let mut let_go = |segment: &Segment| {
            segment.drop_when_unreferenced();
            files.extend(segment.weak_files());
        };
        for gone in &ready {
            match gone {
                Dropped::Segments(segments) => segments.iter().for_each(|segment| let_go(segment)),
                Dropped::Runs(runs) => {
                    runs.iter().flat_map(|run| run.all_segments()).for_each(|part| let_go(&part.segment));
                }
            }
        }
        drop(ready);
        // Those that readers hold.
        files.iter().filter_map(Weak::upgrade).for_each(|file| file.give_name_up());
        Ok(())
    }
}
