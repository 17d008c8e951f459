//! Checkpoint: the manifest of one fsynced timestamp, so that replay need not start at the beginning (contract 4).
//!
//! 1. Under the lock, in memory only: T = applied, the present root, where replay would have to start, the next ids; T
//!    is pinned by a snapshot.
//! 2. Outside: the log is fsynced up to T, and what was dropped is removed; the deletes as of T are collected, in a
//!    delete file when they are many; the manifest is written aside and takes its name.
//! 3. What only records up to T, or the manifest before, have named is removed: files aside, and log files wholly
//!    before the start.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::commit::Engine;
use crate::deletes::{DeleteCollector, NamedDeletes};
use crate::disk::AsideFile;
use crate::error::Result;
use crate::ids::{CommitTs, LogPosition, TableId};
use crate::main_store::NamedRun;
use crate::manifest::{Manifest, ManifestTable};
use crate::version::{Base, Root, TableVersion};

impl Engine {
    /// Makes a checkpoint of the present. Deltas stay in the log; the tail begins at the oldest one's first rows.
    ///
    /// # Errors
    /// Io, Full: the former checkpoint stays. Closed.
    pub fn checkpoint(&self) -> Result<()> {
        self.check_writable()?;
        if self.log.is_disabled() {
            return Ok(());
        }
        let mut named = self.checkpointing.lock();
        let (snapshot, log_start, ids, numbers, aside_bytes) = {
            let lock = self.lock()?;
            self.check_writable()?;
            let snapshot = self.timeline.snapshot(Base::Applied, false);
            let next = self.log.position_of_next();
            let oldest = lock.state.delta_starts.oldest();
            let start = oldest.map_or(next, |(start, _)| start.min(next));
            let numbers = lock.state.numbers.iter().map(|((table, column), taken)| (*table, *column, *taken)).collect();
            (snapshot, start, self.id_counters(), numbers, self.aside_bytes.load(Ordering::Relaxed))
        };
        self.log.sync_all()?;
        self.timeline.advance_visible(self.log.visible());
        // A restart from the manifest may find no record that tells of what was dropped before it.
        self.release_unneeded()?;
        let (deletes, file) = self.collect_deletes(snapshot.root(), snapshot.ts())?;
        let (next_container, next_file, next_run, next_table) = ids;
        let catalog = &snapshot.root().catalog;
        let manifest = Manifest {
            at: snapshot.ts(),
            log_synced: self.log.fsynced_position(),
            log_start,
            next_container,
            next_file,
            next_run,
            next_table,
            namespaces: catalog.namespaces().map(str::to_owned).collect(),
            tables: snapshot.root().tables.values().map(|version| table(version)).collect(),
            views: catalog.views().cloned().collect(),
            numbers,
            deletes,
        };
        manifest.write_aside(self.disk.as_ref())?;
        // Even when that fails: nobody knows then which manifest a restart finds, so the files of both stay.
        let before = named.len();
        named.extend(file.inspect(|file| file.keep()));
        Manifest::take_name(self.disk.as_ref())?;
        let superseded = named.drain(..before).collect::<Vec<_>>();
        self.release_asides(snapshot.ts(), superseded)?;
        self.aside_bytes_covered.store(aside_bytes, Ordering::Relaxed);
        self.log_start.store(log_start.0, Ordering::Release);
        self.log_end_known.fetch_max(manifest.log_synced.0, Ordering::AcqRel);
        self.log.drop_before(log_start)
    }

    /// Fsyncs the log, to which nothing is appended any more, and marks its end, unless the manifest or the mark there
    /// is says it already: what a restart finds damaged below is no torn tail then.
    ///
    /// # Errors
    /// Closed when the log failed: nothing is marked. Io or Full for the mark: the log is whole.
    pub fn end_log(&self) -> Result<()> {
        self.log.sync_all()?;
        let known = LogPosition(self.log_end_known.load(Ordering::Acquire));
        self.log.mark_end(known).map_err(|e| {
            e.context("every commit is durable, but the end of the log could not be marked, so that later damage to its last records may go unnoticed")
        })
    }

    /// The deletes as of `at`, in the manifest or in a durable file of their own.
    fn collect_deletes(&self, root: &Root, at: CommitTs) -> Result<(NamedDeletes, Option<Arc<AsideFile>>)> {
        let next_file = || self.next_file();
        let mut collector = DeleteCollector::new(&self.disk, &next_file, self.options.inline_delete_bytes);
        for version in root.tables.values() {
            for delta in &version.deltas {
                collector.push(delta.id(), &delta.deletes().set_at(at))?;
            }
            for part in version.runs.iter().flat_map(|run| run.segments()) {
                collector.push(part.segment.id(), &part.segment.deletes().set_at(at))?;
            }
        }
        let (inline, file) = collector.finish()?;
        Ok((NamedDeletes { inline, files: file.iter().map(|file| file.at()).collect() }, file))
    }

    /// The manifest of `at` is durable: no restart reads what `superseded` and the records up to `at` name.
    fn release_asides(&self, at: CommitTs, mut superseded: Vec<Arc<AsideFile>>) -> Result<()> {
        let covered = {
            let mut lock = self.lock()?;
            let files = std::mem::take(&mut lock.state.asides);
            let (covered, later): (Vec<_>, Vec<_>) = files.into_iter().partition(|(ts, _)| *ts <= at);
            lock.state.asides = later;
            covered
        };
        superseded.extend(covered.into_iter().map(|(_, file)| file));
        superseded.iter().for_each(|file| file.release());
        Ok(())
    }

    /// Bytes that a restart would replay now: of log, and of files aside that its records name.
    #[must_use]
    pub fn log_tail_bytes(&self) -> u64 {
        let covered = self.aside_bytes_covered.load(Ordering::Relaxed);
        self.replay_bytes().saturating_sub(self.log_start.load(Ordering::Acquire)).saturating_sub(covered)
    }

    /// Bytes of log, and of files aside that its records name, up to now; only their growth means anything.
    #[must_use]
    pub fn replay_bytes(&self) -> u64 {
        self.log.position_of_next().0 + self.aside_bytes.load(Ordering::Relaxed)
    }

    /// The table whose delta holds the oldest rows of the log, if a delta does: what has to be merged so that a
    /// checkpoint can move the start on.
    ///
    /// # Errors
    /// Closed.
    pub fn table_with_oldest_rows(&self) -> Result<Option<(TableId, LogPosition)>> {
        Ok(self.lock()?.state.delta_starts.oldest().map(|(start, table)| (table, start)))
    }
}

fn table(version: &TableVersion) -> ManifestTable {
    let deltas = version.deltas.iter().map(|delta| (delta.id(), delta.schema().clone())).collect();
    let runs = version.runs.iter().map(|run| NamedRun::of(run)).collect();
    ManifestTable { schema: version.schema.clone(), deltas, runs }
}
