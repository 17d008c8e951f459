//! Replays log records onto the state of a manifest.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::commit::record::{CommitRecord, DdlRecord, InstallRecord, RunRecord, TableRecord};
use crate::deletes::DeleteSet;
use crate::delta_store::DeltaGeneration;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, ContainerId, LogPosition, TableId};
use crate::main_store::{Run, RunSegment};
use crate::manifest::{Manifest, ManifestRun};
use crate::segment::{BlockCache, Segment, SegmentMeta};
use crate::version::{Root, TableVersion};
use crate::wal::{LogRecord, RecordKind, WAL_DIR};

/// The state being rebuilt.
pub(super) struct Replay {
    disk: Arc<dyn Disk>,
    cache: Arc<BlockCache>,
    /// T.
    manifest_at: CommitTs,
    /// Deletes of the manifest's deltas, until their rows are there.
    pending: Vec<(TableId, ContainerId, DeleteSet)>,
    at: CommitTs,
    catalog: Catalog,
    tables: BTreeMap<TableId, TableVersion>,
    delta_starts: BTreeMap<ContainerId, LogPosition>,
    next_container: u64,
    next_file: u64,
    next_run: u64,
    next_table: u64,
}

/// What a replay makes.
pub(super) struct Replayed {
    pub at: CommitTs,
    pub root: Root,
    pub delta_starts: BTreeMap<ContainerId, LogPosition>,
    pub next_container: u64,
    pub next_file: u64,
    pub next_run: u64,
    pub next_table: u64,
}

impl Replay {
    /// The manifest's state, its deltas still empty.
    pub fn new(manifest: &Manifest, disk: Arc<dyn Disk>, cache: Arc<BlockCache>) -> Result<Self> {
        let mut replay = Self {
            disk,
            cache,
            manifest_at: manifest.at,
            pending: Vec::new(),
            at: manifest.at,
            catalog: Catalog::default(),
            tables: BTreeMap::new(),
            delta_starts: BTreeMap::new(),
            next_container: manifest.next_container,
            next_file: manifest.next_file,
            next_run: manifest.next_run,
            next_table: manifest.next_table,
        };
        for table in &manifest.tables {
            let id = table.schema.id;
            replay.catalog = replay.catalog.with_table(table.schema.clone())?;
            let mut deltas = Vec::with_capacity(table.deltas.len());
            for delta in &table.deltas {
                deltas.push(Arc::new(DeltaGeneration::new(delta.id, table.schema.clone())));
                if !delta.deletes.is_empty() {
                    replay.pending.push((id, delta.id, delta.deletes.clone()));
                }
            }
            let runs = table.runs.iter().map(|run| replay.manifest_run(run)).collect::<Result<Vec<_>>>()?;
            let schema = table.schema.clone();
            replay.tables.insert(id, TableVersion { schema, valid_from: manifest.at, moves: 0, deltas, runs });
        }
        Ok(replay)
    }

    fn manifest_run(&self, run: &ManifestRun) -> Result<Arc<Run>> {
        let mut segments = Vec::with_capacity(run.segments.len());
        for (meta, range, deletes) in &run.segments {
            let segment = Segment::open(meta.clone(), self.disk.clone(), self.cache.clone());
            if !deletes.is_empty() {
                segment.deletes().restore(self.manifest_at, deletes);
            }
            segments.push(RunSegment { segment, range: range.clone() });
        }
        let index = run.index.as_deref().map(|index| self.manifest_run(index)).transpose()?;
        Ok(Arc::new(Run::new(run.id, segments)?.with_index(index)))
    }

    /// Applies one record.
    pub fn record(&mut self, record: &LogRecord) -> Result<()> {
        if record.ts <= self.manifest_at {
            return self.before_manifest(record);
        }
        self.restore_pending()?;
        if record.ts != self.at.next() {
            return Err(damaged(record, format!("commit {} follows commit {}", record.ts, self.at)));
        }
        match record.kind {
            RecordKind::Commit => {
                let commit = CommitRecord::decode(&record.payload, WAL_DIR, record.position.0)?;
                self.commit(record, &commit)?;
            }
            RecordKind::Install => {
                let install = InstallRecord::decode(&record.payload, WAL_DIR, record.position.0)?;
                self.install(record, &install)?;
            }
        }
        self.at = record.ts;
        Ok(())
    }

    /// The state after the last record.
    pub fn finish(mut self) -> Result<Replayed> {
        self.restore_pending()?;
        for version in self.tables.values_mut() {
            if version.deltas.is_empty() {
                // An install consumed all generations the log names.
                let fresh = DeltaGeneration::new(ContainerId(self.next_container), version.schema.clone());
                self.next_container += 1;
                version.deltas.push(Arc::new(fresh));
            }
            version.frozen_deltas().iter().for_each(|delta| delta.freeze());
        }
        let tables = self.tables.into_iter().map(|(id, version)| (id, Arc::new(version))).collect();
        Ok(Replayed {
            at: self.at,
            root: Root { valid_from: self.at, catalog: Arc::new(self.catalog), tables },
            delta_starts: self.delta_starts,
            next_container: self.next_container,
            next_file: self.next_file,
            next_run: self.next_run,
            next_table: self.next_table,
        })
    }

    /// A record the manifest covers: only rows of deltas it lists are missing.
    fn before_manifest(&mut self, record: &LogRecord) -> Result<()> {
        if record.kind != RecordKind::Commit {
            return Ok(());
        }
        let commit = CommitRecord::decode(&record.payload, WAL_DIR, record.position.0)?;
        for table in &commit.tables {
            let Some(version) = self.tables.get(&table.table) else { continue };
            let listed = version.deltas.iter().find(|delta| delta.id() == table.delta).cloned();
            if let Some(delta) = listed {
                self.insert(record, table, &delta)?;
            }
        }
        Ok(())
    }

    /// The manifest's deletes of delta rows, once those rows are there.
    fn restore_pending(&mut self) -> Result<()> {
        for (table, id, deletes) in std::mem::take(&mut self.pending) {
            let delta = self.tables.get(&table).and_then(|v| v.deltas.iter().find(|d| d.id() == id));
            let delta = delta.ok_or_else(|| Error::internal("a manifest delta vanished during replay"))?;
            if deletes.max().is_some_and(|max| max >= delta.rows()) {
                return Err(Error::corrupt(
                    crate::manifest::MANIFEST_FILE,
                    0,
                    format!("it deletes rows of delta {id} that the log does not hold"),
                ));
            }
            delta.deletes().restore(self.manifest_at, &deletes);
        }
        Ok(())
    }

    fn commit(&mut self, record: &LogRecord, commit: &CommitRecord<'_>) -> Result<()> {
        for change in &commit.ddl {
            match change {
                DdlRecord::Create(schema) => {
                    self.next_table = self.next_table.max(schema.id.0 + 1);
                    self.catalog = self.catalog.with_table(schema.clone())?;
                    let version = TableVersion {
                        schema: schema.clone(),
                        valid_from: record.ts,
                        moves: 0,
                        deltas: Vec::new(),
                        runs: Vec::new(),
                    };
                    self.tables.insert(schema.id, version);
                }
                DdlRecord::Drop(id) => {
                    self.catalog = self.catalog.without_table(*id)?;
                    self.tables.remove(id);
                }
            }
        }
        for table in &commit.tables {
            self.commit_table(record, table)?;
        }
        Ok(())
    }

    fn commit_table(&mut self, record: &LogRecord, table: &TableRecord<'_>) -> Result<()> {
        let runs = table.runs.iter().map(|run| self.open_run(table.table, run)).collect::<Result<Vec<_>>>()?;
        let delta = self.delta(record, table)?;
        self.insert(record, table, &delta)?;
        let version = self.version(record, table.table)?;
        if !runs.is_empty() {
            *version = version.with_load(record.ts, &runs);
        }
        for (id, set) in &table.deletes {
            let container = version
                .container(*id)
                .ok_or_else(|| damaged(record, format!("it deletes from unknown container {id}")))?;
            container.deletes().record(record.ts, set);
        }
        Ok(())
    }

    /// The generation the record's rows go to: known, or the first rows of one that a freeze made.
    fn delta(&mut self, record: &LogRecord, table: &TableRecord<'_>) -> Result<Arc<DeltaGeneration>> {
        self.next_container = self.next_container.max(table.delta.0 + 1);
        let version = self.version(record, table.table)?;
        if version.schema.version != table.schema_version {
            return Err(damaged(record, "its rows have another schema version than their table"));
        }
        if let Some(delta) = version.deltas.iter().find(|delta| delta.id() == table.delta) {
            return Ok(delta.clone());
        }
        let fresh = Arc::new(DeltaGeneration::new(table.delta, version.schema.clone()));
        *version = version.with_freeze(fresh.clone());
        Ok(fresh)
    }

    fn insert(&mut self, record: &LogRecord, table: &TableRecord<'_>, delta: &DeltaGeneration) -> Result<()> {
        let rows = table.decode_rows(delta.schema())?;
        if rows.is_empty() {
            return Ok(());
        }
        if delta.rows() != table.first_offset {
            return Err(damaged(
                record,
                format!(
                    "its rows start at offset {} of delta {}, which has {} rows",
                    table.first_offset,
                    delta.id(),
                    delta.rows()
                ),
            ));
        }
        self.delta_starts.entry(delta.id()).or_insert(record.position);
        delta.append(&rows, record.ts)?;
        Ok(())
    }

    fn install(&mut self, record: &LogRecord, install: &InstallRecord) -> Result<()> {
        let output = install.output.as_ref().map(|run| self.open_run(install.table, run)).transpose()?;
        let version = self.version(record, install.table)?;
        let next = version.with_merge(record.ts, &install.deltas, &install.runs, output);
        for (id, set) in &install.carried {
            let container = next
                .container(*id)
                .ok_or_else(|| damaged(record, format!("it deletes from unknown container {id}")))?;
            container.deletes().record(record.ts, set);
        }
        *version = next;
        Ok(())
    }

    /// Opens a run's segments; one the table already has stays as it is, with its deletes.
    fn open_run(&mut self, table: TableId, run: &RunRecord) -> Result<Arc<Run>> {
        self.next_run = self.next_run.max(run.id.0 + 1);
        let mut segments = Vec::with_capacity(run.segments.len());
        for (meta, range) in &run.segments {
            self.next_container = self.next_container.max(meta.id.0 + 1);
            for file in meta.files() {
                self.next_file = self.next_file.max(file.0 + 1);
            }
            let segment = self
                .known_segment(table, meta)
                .unwrap_or_else(|| Segment::open(meta.clone(), self.disk.clone(), self.cache.clone()));
            segments.push(RunSegment { segment, range: range.clone() });
        }
        let index = run.index.as_deref().map(|index| self.open_run(table, index)).transpose()?;
        Ok(Arc::new(Run::new(run.id, segments)?.with_index(index)))
    }

    fn known_segment(&self, table: TableId, meta: &SegmentMeta) -> Option<Arc<Segment>> {
        let version = self.tables.get(&table)?;
        let parts = version.runs.iter().flat_map(|run: &Arc<Run>| run.segments());
        parts.map(|part| &part.segment).find(|segment| segment.id() == meta.id).cloned()
    }

    fn version(&mut self, record: &LogRecord, table: TableId) -> Result<&mut TableVersion> {
        self.tables.get_mut(&table).ok_or_else(|| damaged(record, format!("it changes unknown table {table}")))
    }
}

/// What a record says cannot be.
fn damaged(record: &LogRecord, message: impl std::fmt::Display) -> Error {
    Error::corrupt(WAL_DIR, record.position.0, format!("the record of commit {} makes no sense: {message}", record.ts))
}
