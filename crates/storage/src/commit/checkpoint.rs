//! Checkpoint: the manifest of one fsynced timestamp, so that replay need not start at the beginning (contract 4).
//!
//! 1. Under the lock, in memory only: T = applied, the present root, where replay would have to start, the next ids; T is
//!    pinned by a snapshot.
//! 2. Outside: the log is fsynced up to T; the manifest is written aside and takes its name.
//! 3. Log files wholly before the start are removed.

use std::sync::atomic::Ordering;

use crate::commit::Engine;
use crate::error::Result;
use crate::ids::{CommitTs, ContainerId, LogPosition, TableId};
use crate::main_store::Run;
use crate::manifest::{Manifest, ManifestContainer, ManifestRun, ManifestTable};
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
        let _one = self.checkpointing.lock();
        let (snapshot, log_start, ids) = {
            let mut lock = self.lock()?;
            self.check_writable()?;
            let snapshot = self.timeline.snapshot(Base::Applied, false);
            let live = |id: &ContainerId| {
                snapshot.root().tables.values().flat_map(|v| &v.deltas).any(|delta| delta.id() == *id)
            };
            lock.state.delta_starts.retain(|id, _| live(id));
            let next = self.log.position_of_next();
            let start = lock.state.delta_starts.values().min().copied().unwrap_or(next).min(next);
            (snapshot, start, self.id_counters())
        };
        self.log.sync_all()?;
        self.timeline.advance_visible(self.log.visible());
        let (next_container, next_file, next_run, next_table) = ids;
        let manifest = Manifest {
            at: snapshot.ts(),
            log_synced: self.log.fsynced_position(),
            log_start,
            next_container,
            next_file,
            next_run,
            next_table,
            tables: tables(snapshot.root(), snapshot.ts()),
        };
        manifest.write(self.disk.as_ref())?;
        self.log_start.store(log_start.0, Ordering::Release);
        self.log.drop_before(log_start)
    }

    /// Bytes of log that a restart would replay now.
    #[must_use]
    pub fn log_tail_bytes(&self) -> u64 {
        self.log.position_of_next().0.saturating_sub(self.log_start.load(Ordering::Acquire))
    }

    /// The table whose delta holds the oldest rows of the log, if a delta does: what has to be merged so that a checkpoint
    /// can move the start on.
    ///
    /// # Errors
    /// Closed.
    pub fn table_with_oldest_rows(&self) -> Result<Option<(TableId, LogPosition)>> {
        let lock = self.lock()?;
        let (_, root) = self.timeline.present();
        let of_table = |id: &ContainerId| {
            root.tables.iter().find(|(_, v)| v.deltas.iter().any(|delta| delta.id() == *id)).map(|(table, _)| *table)
        };
        let mut starts: Vec<(LogPosition, ContainerId)> =
            lock.state.delta_starts.iter().map(|(id, start)| (*start, *id)).collect();
        starts.sort_unstable();
        Ok(starts.iter().find_map(|(start, id)| of_table(id).map(|table| (table, *start))))
    }
}

fn tables(root: &Root, at: CommitTs) -> Vec<ManifestTable> {
    root.tables.values().map(|version| table(version, at)).collect()
}

fn table(version: &TableVersion, at: CommitTs) -> ManifestTable {
    let deltas = version
        .deltas
        .iter()
        .map(|delta| ManifestContainer { id: delta.id(), deletes: delta.deletes().set_at(at) })
        .collect();
    let runs = version.runs.iter().map(|run| manifest_run(run, at)).collect();
    ManifestTable { schema: version.schema.clone(), deltas, runs }
}

fn manifest_run(run: &Run, at: CommitTs) -> ManifestRun {
    let segments = run
        .segments()
        .iter()
        .map(|part| (part.segment.meta().clone(), part.range.clone(), part.segment.deletes().set_at(at)))
        .collect();
    let index = run.index().map(|index| Box::new(manifest_run(index, at)));
    ManifestRun { id: run.id(), segments, index }
}
