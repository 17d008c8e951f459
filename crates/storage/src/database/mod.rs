//! The storage engine's door: open, begin, look inside, close.
//!
//! Comes in: a directory or a disk. Goes out: transactions, and what is where. It does not own: SQL, sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::background::{Background, MergeStatus};
use crate::catalog::Catalog;
use crate::commit::{Engine, QueryMemory, WriteGate};
use crate::disk::{Disk, DiskLock, GuardedDisk, MemDisk, RealDisk};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{CommitTs, ContainerId, TableId};
use crate::limits;
use crate::memory::{MemoryBudget, MemoryKind};
use crate::recover::{self, LostFile};
use crate::row::Value;
use crate::segment::CacheStats;
use crate::settings::OpenOptions;
use crate::transaction::{Transaction, TransactionMode};
use crate::version::{Activity, Base, Snapshot};
use crate::wal::LogStatus;

mod check;
#[cfg(test)]
pub(crate) mod testing;

pub use check::CheckReport;

/// An open database. Clones are the same database; the last one closes it.
#[derive(Clone, Debug)]
pub struct Database(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Arc<Engine>,
    background: Background,
    /// Closed with the database; `None` in memory.
    disk: Option<Arc<GuardedDisk>>,
    lock: parking_lot::Mutex<Option<DiskLock>>,
    /// Of the database; `None` where it is in memory, or may not be written to.
    temporary_folder: Option<PathBuf>,
}

/// A container, for `mainstem.containers`.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerStatus {
    /// Its table's name.
    pub table: String,
    /// The namespace that the table stands in.
    pub namespace: String,
    /// Its id.
    pub id: ContainerId,
    /// `delta`, `frozen delta`, `segment` or `key index`: a segment of the key index of its run.
    pub kind: &'static str,
    /// The run a segment belongs to.
    pub run: Option<u64>,
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Of them, deleted.
    pub deleted: u64,
    /// Bytes in memory (delta) or on disk (segment).
    pub bytes: u64,
    /// Smallest value of the first sort-key column, where known.
    pub min_key: Option<Value>,
    /// Largest value of it.
    pub max_key: Option<Value>,
}

/// One purpose of memory, for `mainstem.memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStatus {
    /// What it is for.
    pub kind: MemoryKind,
    /// Bytes taken.
    pub bytes: u64,
    /// Bytes that may be taken.
    pub limit: u64,
}

impl Database {
    /// Opens the database in directory `path`, making it if the options say so.
    ///
    /// # Errors
    /// NotFound, Invalid (no database there, newer format), Closed (55006: another process has it), Corrupt, Io.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self> {
        let disk = RealDisk::open(path, options.create && !options.read_only)?;
        Self::open_on(Arc::new(disk), options)
    }

    /// Opens the database on `disk`.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: OpenOptions) -> Result<Self> {
        recover::check_place(disk.as_ref(), &options)?;
        let lock = disk.lock(!options.read_only)?;
        let disk = GuardedDisk::new(disk);
        let engine = recover::open(disk.clone(), options)?;
        // What cannot be removed there takes room, and is in nobody's way.
        let temporary_folder = if engine.options.read_only { Ok(None) } else { disk.temporary_folder() };
        let temporary_folder = temporary_folder.unwrap_or_else(|e| {
            tracing::warn!("queries put aside what they have no memory for in the system's folder: {e}");
            None
        });
        let database = Self::start(engine, Some((disk, lock)), temporary_folder);
        database.drop_small_log_files();
        Ok(database)
    }

    /// Makes a checkpoint when openings that wrote a little have left many log files. A program that is soon done
    /// leaves the background no time for it.
    fn drop_small_log_files(&self) {
        let options = self.options();
        if options.read_only || !options.background || self.log_status().files < limits::WAL_FILES_MAX {
            return;
        }
        if let Err(e) = self.checkpoint() {
            tracing::warn!("the log has many files, and no checkpoint could be made: {e}");
        }
    }

    /// A database that lives as long as it is open.
    ///
    /// # Errors
    /// Full, when there is no memory for it.
    pub fn in_memory(options: OpenOptions) -> Result<Self> {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        disk.create_dir(recover::DATA_DIR)?;
        Ok(Self::start(recover::in_memory(disk, options), None, None))
    }

    fn start(
        engine: Arc<Engine>,
        directory: Option<(Arc<GuardedDisk>, DiskLock)>,
        temporary_folder: Option<PathBuf>,
    ) -> Self {
        let background = Background::start(&engine);
        let (disk, lock) = directory.unzip();
        Self(Arc::new(Inner { engine, background, disk, lock: parking_lot::Mutex::new(lock), temporary_folder }))
    }

    /// Where queries put aside what they have no memory for; it need not be there yet. `None` in memory and where
    /// nothing may be written: then the system's folder for temporary files serves.
    #[must_use]
    pub fn temporary_folder(&self) -> Option<&Path> {
        self.0.temporary_folder.as_deref()
    }

    /// Where work for users is noted, which background merges yield to.
    #[must_use]
    pub fn activity(&self) -> Arc<Activity> {
        self.0.engine.timeline.activity().clone()
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// Closed.
    pub fn begin(&self, mode: TransactionMode) -> Result<Transaction> {
        Transaction::begin(self.0.engine.clone(), mode)
    }

    /// A snapshot at *visible*, for reads that need no transaction: threads that take one at once share nothing that is
    /// written to.
    ///
    /// # Errors
    /// Closed.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>> {
        self.0.engine.check_open()?;
        Ok(self.0.engine.timeline.snapshot(Base::Visible, false))
    }

    /// Waits until *visible* has reached `ts`: holds the answer of a statement that ran at *applied* (contract 2).
    ///
    /// # Errors
    /// Closed (08007) when the log failed.
    pub fn wait_visible(&self, ts: CommitTs) -> Result<()> {
        self.0.engine.wait_visible(ts)
    }

    /// Closes `table`'s write gate, after whoever has it closed: later writing statements wait at their start until the
    /// guard drops. To be called outside a transaction, and without a gate but of tables of lesser id (`commit::gate`).
    ///
    /// # Errors
    /// What `go_on` returns, asked now and then while this waits; Closed.
    pub fn close_write_gate(&self, table: TableId, mut go_on: impl FnMut() -> Result<()>) -> Result<WriteGate> {
        let engine = &self.0.engine;
        engine.gates.close(table, || engine.check_open().and_then(|()| go_on()))
    }

    /// Begins a transaction whose first statement writes to the tables that `tables` finds in the catalog: behind their
    /// write gates (contract 2). A snapshot taken before the wait would only meet the commit that was waited for.
    ///
    /// # Errors
    /// What `go_on` returns, asked now and then while this waits; Closed.
    pub fn begin_behind_gate<T: IntoIterator<Item = TableId>>(
        &self,
        mode: TransactionMode,
        tables: impl Fn(&Transaction) -> T,
        mut go_on: impl FnMut() -> Result<()>,
    ) -> Result<Transaction> {
        let transaction = self.begin(mode)?;
        let engine = &self.0.engine;
        let mut closed = tables(&transaction).into_iter().filter(|id| engine.gates.is_closed(*id)).peekable();
        if closed.peek().is_none() {
            return Ok(transaction);
        }
        // What its snapshot pins should not outlast the wait.
        drop(transaction);
        for id in closed {
            engine.gates.pass(id, || engine.check_open().and_then(|()| go_on()))?;
        }
        self.begin(mode)
    }

    /// Freezes the active delta of `table`.
    ///
    /// # Errors
    /// Closed.
    pub fn freeze(&self, table: TableId) -> Result<()> {
        self.0.engine.check_writable()?;
        self.0.engine.freeze(table).map(|_| ())
    }

    /// Freezes the delta of `table` and merges all frozen deltas into a run.
    ///
    /// # Errors
    /// Closed, Io, Full, Corrupt.
    pub fn flush(&self, table: TableId) -> Result<()> {
        self.0.engine.check_writable()?;
        self.0.background.flush(&self.0.engine, table)
    }

    /// Freezes the delta of `table` and merges everything into one run.
    ///
    /// # Errors
    /// Closed, Io, Full, Corrupt.
    pub fn merge(&self, table: TableId) -> Result<()> {
        self.0.engine.check_writable()?;
        self.0.background.merge_all(&self.0.engine, table)
    }

    /// Makes a checkpoint: merges the deltas, so that a restart replays nothing, and writes the manifest.
    ///
    /// # Errors
    /// Closed, Io, Full, Corrupt.
    pub fn checkpoint(&self) -> Result<()> {
        self.0.engine.check_writable()?;
        for table in self.table_ids() {
            self.flush(table)?;
        }
        self.0.engine.checkpoint()
    }

    /// Ends all use: background work stops, the log is fsynced and its end marked, the directory is free for others.
    /// Transactions still open fail with Closed.
    ///
    /// # Errors
    /// Closed, when the log cannot be written; Io or Full, when its end cannot be marked: nothing is lost then, and
    /// closing can be tried again until the last handle is dropped, which frees the directory. No more use is possible
    /// whatever is returned.
    pub fn close(&self) -> Result<()> {
        self.0.close()
    }

    /// How the database was opened.
    #[must_use]
    pub fn options(&self) -> &OpenOptions {
        &self.0.engine.options
    }

    /// What the opening has to tell the user: of a torn tail of the log, and of files that were set aside. The same
    /// went to the log of the program as warnings.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.0.engine.notices
    }

    /// Files that this opening, or earlier ones, have set aside because the log's torn tail may have named them, with
    /// their bytes.
    ///
    /// # Errors
    /// Io; Closed.
    pub fn lost_files(&self) -> Result<Vec<(LostFile, u64)>> {
        let disk = self.0.engine.disk.as_ref();
        let mut found = Vec::new();
        for file in recover::lost_files(disk)? {
            match file.bytes(disk) {
                Ok(bytes) => found.push((file, bytes)),
                // Somebody is just removing them.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(found)
    }

    /// `memory_limit` now: what the options say, or what it was set to since.
    #[must_use]
    pub fn memory_limit(&self) -> u64 {
        self.0.engine.memory.bytes_max()
    }

    /// Sets `memory_limit`, for all sessions and at once; None means what the options say. What is in use beyond the
    /// new limit is given back in the manner of each purpose (contract 8): the block cache evicts before this returns,
    /// deltas are frozen and merged, write sets and queries spill or fail when they next ask for memory.
    ///
    /// # Errors
    /// Invalid (22023) for less than [`limits::MEMORY_LIMIT_MIN`]; Closed.
    pub fn set_memory_limit(&self, bytes: Option<u64>) -> Result<()> {
        let engine = &self.0.engine;
        engine.check_open()?;
        if let Some(bytes) = bytes.filter(|bytes| *bytes < limits::MEMORY_LIMIT_MIN) {
            let (least, mb) = (limits::MEMORY_LIMIT_MIN, limits::MEMORY_LIMIT_MIN >> 20);
            let message = format!("memory_limit is at least {mb}MB ({least} bytes); {bytes} bytes are too few");
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
        }
        engine.set_memory_limit(bytes.unwrap_or(engine.options.memory_limit));
        Ok(())
    }

    /// The state of the log.
    #[must_use]
    pub fn log_status(&self) -> LogStatus {
        self.0.engine.log.status()
    }

    /// Bytes of log that a restart would replay now.
    #[must_use]
    pub fn log_tail_bytes(&self) -> u64 {
        self.0.engine.log_tail_bytes()
    }

    /// Whether background merges yield to users (contract 8), as they do unless told otherwise: for measurements of
    /// what that does.
    pub fn set_paced(&self, paced: bool) {
        self.0.background.set_paced(paced);
    }

    /// Merges, running and past, newest last.
    #[must_use]
    pub fn merges(&self) -> Vec<MergeStatus> {
        self.0.background.merges()
    }

    /// Where the rows of all tables are now.
    #[must_use]
    pub fn containers(&self) -> Vec<ContainerStatus> {
        let snapshot = self.0.engine.timeline.snapshot(Base::Applied, false);
        let mut all = Vec::new();
        for version in snapshot.root().tables.values() {
            let name = &version.schema.name;
            let active = version.active_delta().map(|delta| delta.id());
            for delta in &version.deltas {
                all.push(ContainerStatus {
                    table: name.clone(),
                    namespace: version.schema.namespace.clone(),
                    id: delta.id(),
                    kind: if Some(delta.id()) == active { "delta" } else { "frozen delta" },
                    run: None,
                    rows: u64::from(delta.rows()),
                    deleted: delta.deletes().count_now(),
                    bytes: delta.memory_bytes() as u64,
                    min_key: None,
                    max_key: None,
                });
            }
            let sort_key = version.schema.sort_key.first();
            for run in &version.runs {
                for (at, part) in run.all_segments().enumerate() {
                    let in_index = at >= run.segments().len();
                    let key = sort_key.filter(|_| !in_index);
                    let range = key.and_then(|key| part.segment.zone_map(*key));
                    let (min_key, max_key) = range.map_or((None, None), |r| (Some(r.min), Some(r.max)));
                    all.push(ContainerStatus {
                        table: name.clone(),
                        namespace: version.schema.namespace.clone(),
                        id: part.segment.id(),
                        kind: if in_index { "key index" } else { "segment" },
                        run: Some(run.id().0),
                        rows: u64::from(part.segment.rows()),
                        deleted: part.segment.deletes().count_now(),
                        bytes: part.segment.meta().bytes(),
                        min_key,
                        max_key,
                    });
                }
            }
        }
        all
    }

    /// How often something was made durable since the database was opened, where the operating system was asked for it.
    pub fn syncs(&self) -> u64 {
        self.0.engine.disk.syncs()
    }

    /// The longest time the commit lock was held since the last call.
    pub fn take_commit_lock_held_max(&self) -> Duration {
        self.0.engine.take_lock_held_max()
    }

    /// The most often that a commit was validated since the last call, once included.
    pub fn take_commit_rounds_max(&self) -> u32 {
        self.0.engine.take_commit_rounds_max()
    }

    /// Waits for the commit that is being applied, if there is one. Who has met its deletes before its timestamp is
    /// *applied* would meet them at once again.
    ///
    /// # Errors
    /// Closed, when a defect has interrupted a commit.
    pub fn wait_for_commit_under_way(&self) -> Result<()> {
        self.0.engine.lock().map(drop)
    }

    /// A statement that is a transaction of its own has ended, after so many runs.
    pub fn note_statement_runs(&self, runs: u32) {
        self.0.engine.gates.note_runs(runs);
    }

    /// The most often that such a statement was run since the last call: what gates bound.
    pub fn take_statement_runs_max(&self) -> u32 {
        self.0.engine.gates.take_runs_max()
    }

    /// How many files aside a restart would read, of deletes and of runs, and their bytes.
    ///
    /// # Errors
    /// Closed.
    pub fn files_aside(&self) -> Result<(usize, u64)> {
        let files = self.0.engine.asides()?;
        Ok((files.len(), files.iter().map(|file| file.at().bytes).sum()))
    }

    /// What the block cache did since the database was opened.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.0.engine.cache.stats()
    }

    /// Where whoever runs queries counts their memory.
    #[must_use]
    pub fn query_memory(&self) -> QueryMemory {
        self.0.engine.query_memory()
    }

    /// Where whoever keeps something beside the engine counts its memory.
    #[must_use]
    pub fn memory_budget(&self) -> &Arc<MemoryBudget> {
        &self.0.engine.memory
    }

    /// What the memory goes to: everything that counts towards `memory_limit`, measured now. Queries are counted by
    /// whoever runs them.
    #[must_use]
    pub fn memory(&self) -> Vec<MemoryStatus> {
        let engine = &self.0.engine;
        engine.measure_memory();
        let status = |kind| {
            // With what is lent to it.
            let lent = (kind == MemoryKind::BlockCache).then(|| engine.cache.bytes_max());
            let limit = lent.unwrap_or_else(|| engine.memory.share(kind));
            MemoryStatus { kind, bytes: engine.memory.used(kind), limit }
        };
        MemoryKind::ALL.into_iter().map(status).collect()
    }

    /// The tables as of *visible*.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.engine.timeline.snapshot(Base::Visible, false).root().catalog.clone()
    }

    fn table_ids(&self) -> Vec<TableId> {
        self.0.engine.timeline.present().1.tables.keys().copied().collect()
    }
}

impl Inner {
    fn close(&self) -> Result<()> {
        self.background.stop();
        let mut lock = self.lock.lock();
        if lock.is_none() {
            self.engine.close();
            return Ok(());
        }
        // Nobody may write any more who could: what is left of numbers reserved is a gap then.
        if let Err(e) = self.engine.return_numbers() {
            tracing::debug!("numbers of IDENTITY columns were not given back: {e}");
        }
        // Nothing is appended to the log from here on.
        self.engine.close();
        let ended = if self.engine.options.read_only { Ok(()) } else { self.engine.end_log() };
        if let Err(e) = &ended
            && [ErrorKind::Io, ErrorKind::Full].contains(&e.kind())
        {
            // The caller may make room, and try again.
            return ended;
        }
        self.release();
        *lock = None;
        ended
    }

    /// Nothing changes the directory from here on.
    fn release(&self) {
        if let Some(disk) = &self.disk {
            disk.close();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What `synchronous` promised was kept when each commit returned.
        if let Err(e) = self.close() {
            tracing::warn!("a database was dropped and could not be closed cleanly: {e}");
            self.release();
        }
    }
}
