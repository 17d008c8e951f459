//! Replays log records onto the state of a manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::commit::record::{CommitRecord, DdlRecord, InstallRecord, TableRecord};
use crate::deletes::{DeleteSet, NamedDeletes, read_deletes};
use crate::delta_store::DeltaGeneration;
use crate::disk::{AsideFile, AsideKind, Disk};
use crate::error::{Error, Result};
use crate::ids::{ColumnId, CommitTs, ContainerId, FileId, LogPosition, TableId};
use crate::main_store::{NamedRuns, Run};
use crate::manifest::Manifest;
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
    /// Files aside that records name.
    asides: Vec<(CommitTs, Arc<AsideFile>)>,
    /// Files aside that the manifest names.
    manifest_files: Vec<Arc<AsideFile>>,
    /// Files that the manifest or a record has named, dropped ones included.
    named_files: BTreeSet<FileId>,
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
    pub asides: Vec<(CommitTs, Arc<AsideFile>)>,
    pub manifest_files: Vec<Arc<AsideFile>>,
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
            asides: Vec::new(),
            manifest_files: Vec::new(),
            named_files: BTreeSet::new(),
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
            let (disk, cache) = (replay.disk.clone(), replay.cache.clone());
            let named_files = &mut replay.named_files;
            let mut open = |meta: &SegmentMeta| {
                named_files.extend(meta.files());
                Segment::open(meta.clone(), disk.clone(), cache.clone())
            };
            let runs = table.runs.iter().map(|run| run.open(&mut open)).collect::<Result<Vec<_>>>()?;
            let schema = table.schema.clone();
            replay.tables.insert(id, TableVersion { schema, valid_from: manifest.at, moves: 0, deltas, runs });
        }
        replay.manifest_deletes(&manifest.deletes)?;
        Ok(replay)
    }

    /// The manifest's deletes: of segments at once, of deltas when their rows are there.
    fn manifest_deletes(&mut self, deletes: &NamedDeletes) -> Result<()> {
        let segments: BTreeMap<_, _> = self.tables.values().flat_map(segments_of).collect();
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
        let files = self.manifest_files.iter().map(|file| file.at().file);
        self.named_files.extend(files.clone());
        self.next_file = files.fold(self.next_file, |next, file| next.max(file.0 + 1));
        Ok(())
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

    /// Files that the manifest or a record has named so far, dropped ones included.
    pub fn named_files(&self) -> &BTreeSet<FileId> {
        &self.named_files
    }

    /// Has ids below these never be given out.
    pub fn take_ids_below(&mut self, next_file: u64, next_container: u64) {
        self.next_file = self.next_file.max(next_file);
        self.next_container = self.next_container.max(next_container);
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
            asides: self.asides,
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
        if record.kind == RecordKind::Install {
            let install = InstallRecord::decode(&record.payload, WAL_DIR, record.position.0)?;
            self.named_files.extend(install.output.files());
            self.named_files.extend(install.carried.files.iter().map(|at| at.file));
            return Ok(());
        }
        let commit = CommitRecord::decode(&record.payload, WAL_DIR, record.position.0)?;
        for table in &commit.tables {
            // Those that the manifest does not list are dropped.
            self.named_files.extend(table.runs.files());
            self.named_files.extend(table.deletes.files.iter().map(|at| at.file));
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
                self.tables.insert(schema.id, TableVersion::new(schema.clone(), record.ts, None));
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
                *version = version.altered(schema.clone(), record.ts, None);
                let counts = |id| schema.column(id).is_some_and(|column| column.identity.is_some());
                self.numbers.retain(|(table, column), _| *table != schema.id || counts(*column));
            }
            DdlRecord::Truncate { table, restart_identity } => {
                let version = self.version(record, *table)?;
                *version = version.emptied(record.ts, None);
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
        let runs = self.open_runs(record, table.table, &table.runs)?;
        let delta = self.delta(record, table)?;
        self.insert(record, table, &delta)?;
        let version = self.version(record, table.table)?;
        if !runs.is_empty() {
            // One with the id of a run that is there extends it.
            let known = |run: &Arc<Run>| version.runs.iter().find(|known| known.id() == run.id());
            let whole = |run: Arc<Run>| match known(&run) {
                Some(known) => known.extended_by(&run).map(Arc::new),
                None => Ok(run),
            };
            let runs = runs.into_iter().map(whole).collect::<Result<Vec<_>>>()?;
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
            self.note_aside(record, file);
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
        let mut output = self.open_runs(record, install.table, &install.output)?;
        if output.len() > 1 {
            return Err(damaged(record, format!("a merge does not make {} runs", output.len())));
        }
        let version = self.version(record, install.table)?;
        let next = version.with_merge(record.ts, &install.deltas, &install.runs, output.pop());
        *version = next;
        self.deletes(record, install.table, &install.carried)
    }

    /// Opens runs that a record lists, those of a file aside included. A segment the table already has stays as it is,
    /// with its deletes.
    fn open_runs(&mut self, record: &LogRecord, table: TableId, runs: &NamedRuns) -> Result<Vec<Arc<Run>>> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.tables.get(&table).map_or(&[][..], |version| &version.runs);
        let mut open = |meta: &SegmentMeta| {
            self.next_container = self.next_container.max(meta.id.0 + 1);
            for file in meta.files() {
                self.next_file = self.next_file.max(file.0 + 1);
                self.named_files.insert(file);
            }
            let known = before.iter().find_map(|run| run.segment(meta.id)).map(|part| part.segment.clone());
            known.unwrap_or_else(|| Segment::open(meta.clone(), self.disk.clone(), self.cache.clone()))
        };
        let file = runs.file(&self.disk);
        let opened = runs.open(file.as_deref(), &mut open)?;
        file.into_iter().for_each(|file| self.note_aside(record, file));
        for run in &opened {
            let ids = run.indexes().iter().map(|index| index.entries().id()).chain([run.id()]);
            self.next_run = ids.fold(self.next_run, |next, id| next.max(id.0 + 1));
        }
        Ok(opened)
    }

    /// `record` names `file`, whose id is taken and which stays until a manifest covers the record.
    fn note_aside(&mut self, record: &LogRecord, file: Arc<AsideFile>) {
        self.next_file = self.next_file.max(file.at().file.0 + 1);
        self.named_files.insert(file.at().file);
        self.asides.push((record.ts, file));
    }

    fn version(&mut self, record: &LogRecord, table: TableId) -> Result<&mut TableVersion> {
        self.tables.get_mut(&table).ok_or_else(|| damaged(record, format!("it changes unknown table {table}")))
    }
}

/// The segments that hold rows of `version`, by id.
fn segments_of(version: &TableVersion) -> impl Iterator<Item = (ContainerId, Arc<Segment>)> {
    let parts = version.runs.iter().flat_map(|run| run.segments());
    parts.map(|part| (part.segment.id(), part.segment.clone()))
}

/// Gives `take` each set of `deletes`; returns the files they stand in.
fn each_delete(
    disk: &Arc<dyn Disk>,
    deletes: &NamedDeletes,
    mut take: impl FnMut(ContainerId, DeleteSet) -> Result<()>,
) -> Result<Vec<Arc<AsideFile>>> {
    for (id, set) in &deletes.inline {
        take(*id, set.clone())?;
    }
    let named = |at: &_| AsideFile::named(disk.clone(), AsideKind::Deletes, *at);
    let files: Vec<_> = deletes.files.iter().map(named).collect();
    files.iter().try_for_each(|file| read_deletes(file, &mut take))?;
    Ok(files)
}

fn manifest_damage(what: impl std::fmt::Display) -> Error {
    Error::corrupt(crate::manifest::MANIFEST_FILE, 0, what)
}

/// What a record says cannot be.
fn damaged(record: &LogRecord, message: impl std::fmt::Display) -> Error {
    Error::corrupt(WAL_DIR, record.position.0, format!("the record of commit {} makes no sense: {message}", record.ts))
}
