//! Replays log records onto the state of a manifest.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::commit::record::{CommitRecord, DdlRecord, InstallRecord, RunRecord, TableRecord};
use crate::deletes::{DeleteFile, DeleteSet, NamedDeletes};
use crate::delta_store::DeltaGeneration;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, CommitTs, ContainerId, KeyId, LogPosition, TableId};
use crate::main_store::{Run, RunIndex, RunSegment};
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
    /// Delete files that records name.
    delete_files: Vec<(CommitTs, Arc<DeleteFile>)>,
    /// Delete files that the manifest names.
    manifest_files: Vec<Arc<DeleteFile>>,
    /// Numbers taken of IDENTITY columns.
    numbers: BTreeMap<(TableId, ColumnId), u64>,
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
    pub delete_files: Vec<(CommitTs, Arc<DeleteFile>)>,
    pub manifest_files: Vec<Arc<DeleteFile>>,
    pub numbers: BTreeMap<(TableId, ColumnId), u64>,
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
            delete_files: Vec::new(),
            manifest_files: Vec::new(),
            numbers: manifest.numbers.iter().map(|(table, column, taken)| ((*table, *column), *taken)).collect(),
            next_container: manifest.next_container,
            next_file: manifest.next_file,
            next_run: manifest.next_run,
            next_table: manifest.next_table,
        };
        for name in &manifest.namespaces {
            replay.catalog = replay.catalog.with_namespace(name).map_err(|e| manifest_damage(&e))?;
        }
        for view in &manifest.views {
            replay.catalog = replay.catalog.with_view(view.clone()).map_err(|e| manifest_damage(&e))?;
        }
        for table in &manifest.tables {
            let id = table.schema.id;
            replay.catalog = replay.catalog.with_table(table.schema.clone()).map_err(|e| manifest_damage(&e))?;
            let delta = |(id, schema): &(_, _)| Arc::new(DeltaGeneration::new(*id, Arc::clone(schema)));
            let deltas = table.deltas.iter().map(delta).collect();
            let runs = table.runs.iter().map(|run| replay.manifest_run(run)).collect::<Result<Vec<_>>>()?;
            let schema = table.schema.clone();
            replay.tables.insert(id, TableVersion { schema, valid_from: manifest.at, moves: 0, deltas, runs });
        }
        replay.manifest_deletes(&manifest.deletes)?;
        Ok(replay)
    }

    /// The manifest's deletes: of segments at once, of deltas when their rows are there.
    fn manifest_deletes(&mut self, deletes: &NamedDeletes) -> Result<()> {
        let segments: BTreeMap<ContainerId, Arc<Segment>> = (self.tables.values().flat_map(|version| &version.runs))
            .flat_map(|run| run.segments())
            .map(|part| (part.segment.id(), part.segment.clone()))
            .collect();
        let (at, disk) = (self.manifest_at, self.disk.clone());
        let (tables, pending) = (&self.tables, &mut self.pending);
        let take = |id: ContainerId, set: DeleteSet| {
            if let Some(segment) = segments.get(&id).filter(|s| set.max().is_none_or(|max| max < s.rows())) {
                segment.deletes().restore(at, &set);
                return Ok(());
            }
            let table = tables.iter().find(|(_, version)| version.deltas.iter().any(|delta| delta.id() == id));
            let (table, _) = table.ok_or_else(|| manifest_damage(format!("it deletes rows {id} does not have")))?;
            pending.push((*table, id, set));
            Ok(())
        };
        self.manifest_files = each_delete(&disk, deletes, take)?;
        // Its own file got its number after the counters were read.
        let files = self.manifest_files.iter().map(|file| file.at().file.0 + 1);
        self.next_file = files.fold(self.next_file, u64::max);
        Ok(())
    }

    fn manifest_run(&self, run: &ManifestRun) -> Result<Arc<Run>> {
        let mut segments = Vec::with_capacity(run.segments.len());
        for (meta, range) in &run.segments {
            let segment = Segment::open(meta.clone(), self.disk.clone(), self.cache.clone());
            segments.push(RunSegment { segment, range: range.clone() });
        }
        let index = |(key, run): &(KeyId, ManifestRun)| Ok(RunIndex { key: *key, entries: self.manifest_run(run)? });
        let indexes = run.indexes.iter().map(index).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(Run::new(run.id, segments)?.with_indexes(indexes)))
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
            let active = version.active_delta();
            if active.is_none_or(|active| active.schema().version != version.schema.version) {
                // An install consumed all generations the log names, or no row has come since an ALTER.
                let fresh = DeltaGeneration::new(ContainerId(self.next_container), version.schema.clone());
                self.next_container += 1;
                version.deltas.push(Arc::new(fresh));
            }
            // One that an ALTER left behind without rows holds nothing.
            let active = version.active_delta().map(|delta| delta.id());
            version.deltas.retain(|delta| delta.rows() > 0 || Some(delta.id()) == active);
            version.frozen_deltas().iter().for_each(|delta| delta.freeze());
        }
        let tables = self.tables.into_iter().map(|(id, version)| (id, Arc::new(version))).collect();
        Ok(Replayed {
            at: self.at,
            root: Root { valid_from: self.at, catalog: Arc::new(self.catalog), tables },
            delta_starts: self.delta_starts,
            delete_files: self.delete_files,
            manifest_files: self.manifest_files,
            numbers: self.numbers,
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
                return Err(manifest_damage(format!("it deletes rows of delta {id} that the log does not hold")));
            }
            delta.deletes().restore(self.manifest_at, &deletes);
        }
        Ok(())
    }

    fn commit(&mut self, record: &LogRecord, commit: &CommitRecord<'_>) -> Result<()> {
        for change in &commit.ddl {
            self.change(record, change)?;
        }
        for table in &commit.tables {
            self.commit_table(record, table)?;
        }
        Ok(())
    }

    /// One schema change, by the same functions as the commit.
    fn change(&mut self, record: &LogRecord, change: &DdlRecord) -> Result<()> {
        let senseless = |e: Error| damaged(record, e);
        let catalog = &self.catalog;
        match change {
            DdlRecord::Create(schema) => {
                self.next_table = self.next_table.max(schema.id.0 + 1);
                self.catalog = catalog.with_table(schema.clone()).map_err(senseless)?;
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
                self.catalog = catalog.without_table(*id).map_err(senseless)?;
                self.tables.remove(id);
                self.numbers.retain(|(table, _), _| table != id);
            }
            DdlRecord::Alter(schema) => {
                self.catalog = catalog.with_version(schema.clone()).map_err(senseless)?;
                let version = self.version(record, schema.id)?;
                if schema.version.0 != version.schema.version.0 + 1 {
                    return Err(damaged(record, "a schema version is missing before it"));
                }
                // The delta for its rows is made when the first one comes.
                *version = TableVersion { schema: schema.clone(), valid_from: record.ts, ..version.clone() };
                let counts = |id| schema.column(id).is_some_and(|column| column.identity.is_some());
                self.numbers.retain(|(table, column), _| *table != schema.id || counts(*column));
            }
            DdlRecord::Truncate { table, restart_identity } => {
                let version = self.version(record, *table)?;
                let moves = version.moves + 1;
                let schema = version.schema.clone();
                *version = TableVersion { schema, valid_from: record.ts, moves, deltas: Vec::new(), runs: Vec::new() };
                if *restart_identity {
                    self.numbers.retain(|(of, _), _| of != table);
                }
            }
            DdlRecord::CreateView(view) => self.catalog = catalog.with_view(view.clone()).map_err(senseless)?,
            DdlRecord::DropView(name) => self.catalog = catalog.without_view(name).map_err(senseless)?,
            DdlRecord::CreateNamespace(name) => self.catalog = catalog.with_namespace(name).map_err(senseless)?,
            DdlRecord::DropNamespace(name) => self.catalog = catalog.without_namespace(name).map_err(senseless)?,
            DdlRecord::TakeNumbers { table, column, taken } => {
                let counts = catalog.table(*table).and_then(|schema| schema.column(*column)?.identity);
                counts.ok_or_else(|| damaged(record, format!("column {column} of table {table} counts nothing")))?;
                self.numbers.insert((*table, *column), *taken);
            }
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
        self.deletes(record, table.table, &table.deletes)
    }

    /// The deletes of a record. A file's, one block at a time.
    fn deletes(&mut self, record: &LogRecord, table: TableId, deletes: &NamedDeletes) -> Result<()> {
        let disk = self.disk.clone();
        let version = self.version(record, table)?;
        let take = |id: ContainerId, set: DeleteSet| {
            let container = version.container(id);
            let container =
                container.ok_or_else(|| damaged(record, format!("it deletes from unknown container {id}")))?;
            container.deletes().record(record.ts, &set);
            Ok(())
        };
        for file in each_delete(&disk, deletes, take)? {
            self.next_file = self.next_file.max(file.at().file.0 + 1);
            self.delete_files.push((record.ts, file));
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
        if delta.schema().version != table.schema_version {
            return Err(damaged(record, "its rows have another schema version than their delta"));
        }
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
        *version = next;
        self.deletes(record, install.table, &install.carried)
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
        let mut indexes = Vec::with_capacity(run.indexes.len());
        for (key, run) in &run.indexes {
            indexes.push(RunIndex { key: *key, entries: self.open_run(table, run)? });
        }
        Ok(Arc::new(Run::new(run.id, segments)?.with_indexes(indexes)))
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

/// Gives `take` each set of `deletes`; returns the files they stand in.
fn each_delete(
    disk: &Arc<dyn Disk>,
    deletes: &NamedDeletes,
    mut take: impl FnMut(ContainerId, DeleteSet) -> Result<()>,
) -> Result<Vec<Arc<DeleteFile>>> {
    for (id, set) in &deletes.inline {
        take(*id, set.clone())?;
    }
    let files: Vec<_> = deletes.files.iter().map(|at| DeleteFile::named(disk.clone(), *at)).collect();
    files.iter().try_for_each(|file| file.read(&mut take))?;
    Ok(files)
}

fn manifest_damage(what: impl std::fmt::Display) -> Error {
    Error::corrupt(crate::manifest::MANIFEST_FILE, 0, what)
}

/// What a record says cannot be.
fn damaged(record: &LogRecord, message: impl std::fmt::Display) -> Error {
    Error::corrupt(WAL_DIR, record.position.0, format!("the record of commit {} makes no sense: {message}", record.ts))
}
