//! Phase (a) of a commit: everything that may take time, outside the lock.

mod aside;
mod intents;
mod locked;
mod target_rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstem_kernels::filter::BlockedBloom;
use roaring::RoaringBitmap;

use crate::catalog::Catalog;
use crate::commit::Engine;
use crate::commit::conflict::{key_conflict, table_conflict};
use crate::commit::engine::CommitState;
use crate::deletes::{DeleteCollector, DeleteSet, Lookups, named_bytes};
use crate::delta_store::DeltaGeneration;
use crate::disk::AsideFile;
use crate::error::Result;
use crate::ids::{ColumnId, CommitTs, ContainerId, KeyId, RowRef, RunId, SchemaVersion, TableId};
use crate::limits;
use crate::main_store::{Run, RunSegment, write_runs_aside};
use crate::order::first_shared_key;
use crate::point;
use crate::row::RowBuffer;
use crate::row::key::{HashedKey, RowKeys, TableKey, hash_key};
use crate::schema::TableSchema;
use crate::version::{Root, Snapshot, TableVersion, TableView};
use crate::write_set::{DdlChange, Standing, TableWrites, WriteSet};

pub(super) use intents::Intents;
use locked::LockedTable;
use target_rows::{NamedSets, Since, check_live, check_live_since, check_live_under_lock, forward};

/// A commit that is ready for the lock, as of [`Prepared::at`].
pub(super) struct Prepared {
    /// P: everything committed at or before it has been validated against.
    pub at: Arc<Snapshot>,
    pub tables: Vec<PreparedTable>,
    /// Rows that must be unchanged, though nothing is written for them.
    locked: Vec<LockedTable>,
    pub ddl: Vec<DdlChange>,
    /// For each of `ddl` the empty delta that it needs, if it needs one.
    pub fresh: Vec<Option<Arc<DeltaGeneration>>>,
    /// See [`WriteSet::catalog`].
    pub catalog: Option<Arc<Catalog>>,
    /// See [`WriteSet::alone`].
    pub alone: bool,
    /// See [`WriteSet::numbers_seen`].
    pub numbers_seen: BTreeMap<(TableId, ColumnId), Option<u64>>,
    /// So much is deleted that the lock has no time for each row, or each container: see [`Intents`].
    intends: bool,
}

/// One table's part of a commit.
pub(super) struct PreparedTable {
    pub schema: Arc<TableSchema>,
    /// Live rows for the delta; few enough for the lock.
    pub rows: RowBuffer,
    /// The keys of the table, each with those that `rows` take.
    pub keys: Box<[RowKeys]>,
    /// Large inserts, written aside.
    pub runs: Vec<Arc<Run>>,
    /// The last run of `version` with `runs` behind it, if they extend it: then `runs` has the id of that run.
    pub extended: Option<Arc<Run>>,
    /// The id that the first of `runs` has otherwise.
    loaded: Option<RunId>,
    /// The file that names `runs`, durable, when they are too many for the record.
    pub runs_aside: Option<Arc<AsideFile>>,
    /// Deletes by container, as of P, after forwarding; those of `runs` among them.
    pub deletes: BTreeMap<ContainerId, DeleteSet>,
    /// The file with `deletes`, durable, when they are too large for the record.
    pub deletes_aside: Option<Arc<AsideFile>>,
    /// Those of `deletes`, when they are too many to be made one by one under the lock.
    pub intents: Option<Intents>,
    /// The version validated against at P; `None` for a table this transaction makes or empties.
    pub version: Option<Arc<TableVersion>>,
    /// For a table this transaction makes: its first delta.
    pub first_delta: Option<Arc<DeltaGeneration>>,
    /// When the first of the numbers in inserted rows was drawn, or before.
    drawn: Option<CommitTs>,
    /// What the transaction's schema changes make of the rows that stand there.
    standing: Standing,
    /// Where the rows named by the snapshot were: what forwarding starts from again.
    named: BTreeMap<ContainerId, RoaringBitmap>,
    /// Key filters of the segments of `runs` and of their key indexes, in memory for the check under the lock.
    filters: BTreeMap<ContainerId, Arc<BlockedBloom>>,
}

/// What a commit may still put into deltas under the lock, and into its record, over all its tables.
struct Room {
    /// Rows, each as often as its table has keys.
    rows: usize,
    /// Values of them.
    cells: usize,
    bytes: usize,
    run_bytes: usize,
}

/// What looking at later commits may still cost under the lock, over all tables of a commit.
struct Budget {
    deletes: Lookups,
    /// Looks for one key in one container.
    keys: usize,
}

impl Budget {
    const UNDER_LOCK: Self = Self { deletes: Lookups(limits::VALIDATE_LOOKUPS_MAX), keys: limits::VALIDATE_KEYS_MAX };

    /// Takes `looks` off; false when there are not so many left.
    fn spend_keys(&mut self, looks: usize) -> bool {
        let left = self.keys.checked_sub(looks);
        self.keys = left.unwrap_or(0);
        left.is_some()
    }
}

/// What a commit has to do with a table.
enum Part<'a> {
    Written(&'a PreparedTable),
    Locked(&'a LockedTable),
}

/// What looking at later commits found.
pub(super) enum Validation {
    /// Nothing in the way.
    Free,
    /// Too much, or not decidable here: prepare again at a later P.
    Again,
}

impl PreparedTable {
    fn new(engine: &Engine, writes: &TableWrites, all: &WriteSet, room: &mut Room) -> Result<Self> {
        let ddl = &all.ddl;
        let schema = writes.schema().clone();
        let created = ddl.iter().any(|change| matches!(change, DdlChange::Create(made) if made.id == schema.id));
        let mut runs = writes.runs().to_vec();
        let rows = match live_rows(writes, room) {
            Some(rows) => rows,
            None => {
                runs.extend(engine.write_aside(writes)?);
                RowBuffer::new(writes.rows().layout().clone())
            }
        };
        let loaded = runs.first().map(|run| run.id());
        // Most likely it stays so: then what names the runs is written once.
        let (_, present) = engine.timeline.present();
        let version = present.tables.get(&schema.id).filter(|_| ddl.is_empty());
        if let Some(last) = version.and_then(|version| extended_run(engine, version, &runs)) {
            runs = runs.iter().map(|run| Arc::new(run.with_id(last.id()))).collect();
        }
        engine.name_files(runs.iter().flat_map(|run| run.all_segments()).map(|part| &part.segment))?;
        // A log in memory is never read again.
        let runs_aside = if engine.log.is_disabled() {
            None
        } else {
            write_runs_aside(&engine.disk, || engine.next_file(), &runs, &mut room.run_bytes)?
        };
        let mut table = Self {
            keys: RowKeys::all(&TableKey::all(&schema), &rows),
            rows,
            extended: None,
            loaded,
            runs,
            runs_aside,
            deletes: BTreeMap::new(),
            deletes_aside: None,
            intents: None,
            version: None,
            first_delta: created.then(|| DeltaGeneration::new(engine.next_container(), schema.clone()).into()),
            drawn: all.drawn.get(&schema.id).copied(),
            standing: Standing::of(ddl, &schema),
            named: writes.stored_deletes(),
            filters: BTreeMap::new(),
            schema,
        };
        room.rows -= table.rows.len() * table.keys.len().max(1);
        room.cells -= table.rows.len() * table.schema.columns.len();
        room.bytes -= table.rows.bytes().min(room.bytes);
        for part in table.runs.iter().flat_map(|run| run.all_segments()) {
            if let Some(filter) = part.segment.key_filter()? {
                table.filters.insert(part.segment.id(), filter);
            }
        }
        Ok(table)
    }

    /// The runs that the table has by this commit: new ones, or one that is longer.
    pub fn new_runs(&self) -> &[Arc<Run>] {
        self.extended.as_ref().map_or(&self.runs, std::slice::from_ref)
    }

    /// Decides whether the rows written aside extend the last run of the version that was validated against.
    fn place_runs(&mut self, engine: &Engine, may_extend: bool) -> Result<()> {
        let version = self.version.as_deref().filter(|_| may_extend);
        let last = version.and_then(|version| extended_run(engine, version, &self.runs));
        let ([run], Some(loaded)) = (self.runs.as_slice(), self.loaded) else { return Ok(()) };
        let id = last.map_or(loaded, |last| last.id());
        self.extended = last.map(|last| last.extended_by(run).map(Arc::new)).transpose()?;
        if run.id() != id {
            self.runs = vec![Arc::new(run.with_id(id))];
            if self.runs_aside.is_some() {
                self.runs_aside = write_runs_aside(&engine.disk, || engine.next_file(), &self.runs, &mut 0)?;
            }
        }
        Ok(())
    }

    /// Whether this commit deletes `row`.
    pub fn deletes_row(&self, row: RowRef) -> bool {
        self.deletes.get(&row.container()).is_some_and(|set| set.contains(row.offset()))
    }

    fn is_own_segment(&self, id: ContainerId) -> bool {
        self.runs.iter().any(|run| run.segment(id).is_some())
    }

    /// Forwards every named row to where it lives in `version`, and checks that it is live.
    fn resolve_deletes(&mut self, engine: &Engine, version: &TableVersion) -> Result<()> {
        let resolved = forward(engine, &self.schema, version, &self.named, |id| self.is_own_segment(id))?;
        self.set_deletes(resolved);
        check_live(&self.schema, version, &self.deletes)
    }

    /// What to delete, by container. A file that says something else is of no use any more: records name rows as of the
    /// commit.
    fn set_deletes(&mut self, deletes: NamedSets) {
        if self.deletes != deletes {
            self.deletes = deletes;
            self.deletes_aside = None;
        }
    }

    /// When numbers of rows to be inserted were drawn that others may draw again. Where the transaction has emptied the
    /// table itself, whatever others have committed to it is a conflict.
    fn numbers_drawn(&self) -> Option<CommitTs> {
        let inserts = !self.rows.is_empty() || !self.runs.is_empty();
        self.drawn.filter(|_| inserts && matches!(self.standing, Standing::Kept(_)))
    }

    /// Writes the deletes to a file unless they fit into `room` bytes of the record, and takes those off.
    fn write_deletes_aside(&mut self, engine: &Engine, room: &mut usize) -> Result<()> {
        if self.deletes_aside.is_some() {
            return Ok(());
        }
        let bytes = self.deletes.values().map(named_bytes).sum();
        if let Some(left) = room.checked_sub(bytes) {
            *room = left;
            return Ok(());
        }
        let next_file = || engine.next_file();
        let mut collector = DeleteCollector::new(&engine.disk, &next_file, 0);
        for (&id, set) in &self.deletes {
            collector.push(id, set)?;
        }
        self.deletes_aside = collector.finish()?.1;
        Ok(())
    }

    /// Checks that every new key is free at `view`'s timestamp, this commit's own deletes counted first.
    fn check_keys(&self, view: &TableView) -> Result<()> {
        for new in &self.keys {
            if !point::are_free(view, new.id(), new, |row| !self.deletes_row(row))? {
                return Err(key_conflict(&self.schema));
            }
            for run in &self.runs {
                let taken = own_key_conflict(view, new.id(), run, |row| !self.deletes_row(row))?;
                if taken.is_some() {
                    return Err(key_conflict(&self.schema));
                }
            }
        }
        Ok(())
    }

    /// Validates against the commits in (`after`, now] as `version` shows them.
    fn validate_since(&self, version: &TableVersion, after: CommitTs) -> Result<()> {
        check_live_since(&self.schema, version, &self.deletes, after)?;
        self.validate_keys(version, after, None)?;
        Ok(())
    }

    /// As [`PreparedTable::validate_since`], looking only at memory, and at no more than `left` allows.
    fn validate_under_lock(&self, now: &TableVersion, since: &Since<'_>, left: &mut Budget) -> Result<Validation> {
        if let Validation::Again = check_live_under_lock(&self.schema, now, &self.deletes, since, &mut left.deletes)? {
            return Ok(Validation::Again);
        }
        self.validate_keys(now, since.after, Some(left))
    }

    /// Whether each new key is free of the commits in (`after`, now] as `version` shows them. Without `left` it may
    /// read blocks; with it only memory is looked at, and no more than it allows.
    fn validate_keys(
        &self,
        version: &TableVersion,
        after: CommitTs,
        mut left: Option<&mut Budget>,
    ) -> Result<Validation> {
        if self.keys.is_empty() || (self.rows.is_empty() && self.runs.is_empty()) {
            return Ok(Validation::Free);
        }
        let new_keys: usize = self.keys.iter().map(RowKeys::rows).sum();
        for delta in &version.deltas {
            let (from, upto) = (delta.rows_at(after), delta.rows());
            if from == upto {
                continue;
            }
            let looks = new_keys + (upto - from) as usize * self.keys.len() * self.runs.len();
            if left.as_mut().is_some_and(|left| !left.spend_keys(looks)) {
                return Ok(Validation::Again);
            }
            for (id, key) in self.keys.iter().flat_map(|new| new.iter().map(|(_, key)| (new.id(), key))) {
                let taken = delta.lookup_hashed(id, key, CommitTs::INFINITY);
                if taken.is_some_and(|offset| !self.deletes_row(RowRef::new(delta.id(), offset))) {
                    return Err(key_conflict(&self.schema));
                }
            }
            if self.runs.is_empty() {
                continue;
            }
            if let Validation::Again = self.rows_against_runs(delta, from..upto, left.is_none())? {
                return Ok(Validation::Again);
            }
        }
        Ok(Validation::Free)
    }

    /// Looks up the keys of a delta's new rows among this commit's own runs.
    fn rows_against_runs(
        &self,
        delta: &DeltaGeneration,
        rows: std::ops::Range<u32>,
        exact: bool,
    ) -> Result<Validation> {
        let mut key = Vec::new();
        for offset in rows {
            if delta.deletes().is_deleted_now(offset) || self.deletes_row(RowRef::new(delta.id(), offset)) {
                continue;
            }
            for new in &self.keys {
                key.clear();
                if !delta.key_of(new.id(), offset, &mut key)? {
                    continue;
                }
                for run in &self.runs {
                    if exact {
                        let counts = |row| !self.deletes_row(row);
                        let key = HashedKey::of(&key);
                        if point::find_in_run(&self.schema, run, new.id(), key, None, counts)?.is_some() {
                            return Err(key_conflict(&self.schema));
                        }
                    } else if self.may_have(run, new.id(), &key) {
                        return Ok(Validation::Again);
                    }
                }
            }
        }
        Ok(Validation::Free)
    }

    /// Whether `run`, one of this commit's own, may have `key` as key `id`; looks at nothing but memory.
    fn may_have(&self, run: &Run, id: KeyId, key: &[u8]) -> bool {
        let (keys, sought) = run.sought(id, key);
        let hash = hash_key(&sought);
        let denies =
            |part: &RunSegment| self.filters.get(&part.segment.id()).is_some_and(|filter| !filter.may_contain(hash));
        !keys.find_segments(&sought).iter().all(denies)
    }
}

impl Prepared {
    /// Writes large parts aside and validates at P = applied, everything from the transaction's `snapshot` on.
    pub fn new(engine: &Engine, snapshot: &Snapshot, writes: &WriteSet) -> Result<Self> {
        let mut tables = Vec::with_capacity(writes.tables.len());
        let mut room = Room {
            rows: limits::COMMIT_ROWS_MAX,
            cells: limits::COMMIT_CELLS_MAX,
            bytes: limits::COMMIT_BYTES_MAX,
            run_bytes: engine.options.inline_run_bytes,
        };
        for table in writes.tables.values() {
            if !table.is_empty() {
                tables.push(PreparedTable::new(engine, table, writes, &mut room)?);
            }
        }
        let at = engine.timeline.snapshot(crate::version::Base::Applied, true);
        let locked = writes.locked.values().filter_map(|rows| LockedTable::new(rows, &writes.ddl)).collect();
        let fresh = writes.ddl.iter().map(|change| engine.fresh_delta(change, &tables)).collect();
        let mut prepared = Self {
            at,
            tables,
            fresh,
            locked,
            ddl: writes.ddl.clone(),
            catalog: writes.catalog.clone(),
            alone: writes.alone,
            numbers_seen: writes.numbers_seen.clone(),
            intends: false,
        };
        let changed = prepared.at.ts() != snapshot.ts();
        prepared.validate_whole(engine, changed)?;
        Ok(prepared)
    }

    /// What the record says of schema versions: the newest of the tables written to, nothing (0) for schema changes
    /// alone.
    pub fn schema_version(&self) -> SchemaVersion {
        self.tables.iter().map(|table| table.schema.version).max().unwrap_or(SchemaVersion(0))
    }

    /// Writes aside what deletes the record has no room for. Again after each validation: rows may have moved.
    fn write_deletes_aside(&mut self, engine: &Engine) -> Result<()> {
        let rows: usize = self.tables.iter().flat_map(|table| table.deletes.values()).map(DeleteSet::len).sum();
        let containers: usize = self.tables.iter().map(|table| table.deletes.len()).sum();
        self.intends = rows > limits::COMMIT_DELETES_MAX || containers > limits::COMMIT_DELETE_CONTAINERS_MAX;
        // A log in memory is never read again.
        if engine.log.is_disabled() {
            return Ok(());
        }
        let mut room = engine.options.inline_delete_bytes;
        self.tables.iter_mut().try_for_each(|table| table.write_deletes_aside(engine, &mut room))
    }

    /// The last step before the lock: deletes that there is no time for under it are intended.
    ///
    /// # Errors
    /// Internal.
    pub fn place_intents(&mut self) -> Result<()> {
        for table in self.tables.iter_mut().filter(|table| self.intends && table.intents.is_none()) {
            table.intents = Some(Intents::place(table)?);
        }
        Ok(())
    }

    /// Takes back what was placed: the commit was overtaken. The rows may have moved, and while it waits for its turn
    /// or for log space no reader of their containers is to look at intents.
    pub fn withdraw_intents(&mut self) {
        self.tables.iter_mut().for_each(|table| table.intents = None);
    }

    /// Validates at a later P against what came since the last one. Where rows moved, those named are forwarded anew; a
    /// key that was free then is taken now by a row behind the last P in a delta, or by one in a run that was not
    /// there.
    pub fn advance(&mut self, engine: &Engine) -> Result<()> {
        let before = std::mem::replace(&mut self.at, engine.timeline.snapshot(crate::version::Base::Applied, true));
        if !self.ddl.is_empty() {
            return self.validate_whole(engine, true);
        }
        for table in &mut self.tables {
            let Some(then) = table.version.clone() else { continue };
            let version = self.at.root().tables.get(&table.schema.id).cloned();
            let version = version.filter(|version| table.standing == Standing::Kept(version.schema.version));
            let version = version.ok_or_else(|| table_conflict(&table.schema))?;
            if !version.has_rows_placed_as(&then) {
                table.resolve_deletes(engine, &version)?;
                let view = TableView::new(
                    table.schema.clone(),
                    Arc::new(version.with_runs_after(&then)),
                    None,
                    self.at.ts(),
                    Some(self.at.clone()),
                );
                table.check_keys(&view)?;
            }
            table.validate_since(&version, before.ts())?;
            table.version = Some(version);
            table.place_runs(engine, true)?;
        }
        for table in &mut self.locked {
            table.validate_since(engine, self.at.root(), before.ts())?;
        }
        self.write_deletes_aside(engine)
    }

    fn validate_whole(&mut self, engine: &Engine, changed: bool) -> Result<()> {
        for table in &mut self.tables {
            let Standing::Kept(expected) = table.standing else {
                table.set_deletes(target_rows::sets(table.named.clone()));
                continue;
            };
            let version = self.at.root().tables.get(&table.schema.id).cloned();
            let version = version.ok_or_else(|| table_conflict(&table.schema))?;
            if version.schema.version != expected {
                return Err(table_conflict(&table.schema));
            }
            table.resolve_deletes(engine, &version)?;
            if changed {
                let view =
                    TableView::new(table.schema.clone(), version.clone(), None, self.at.ts(), Some(self.at.clone()));
                table.check_keys(&view)?;
            }
            table.version = Some(version);
            table.place_runs(engine, self.ddl.is_empty())?;
        }
        for table in &mut self.locked {
            table.validate(engine, self.at.root())?;
        }
        self.write_deletes_aside(engine)
    }

    /// Under the lock: validates against what was committed after P. `root` is the present, `state` says who wrote to
    /// it. A run that `is_merging` is not extended after all.
    pub fn validate_under_lock(
        &self,
        root: &Root,
        applied: CommitTs,
        state: &CommitState,
        is_merging: impl Fn(RunId) -> bool,
    ) -> Result<Validation> {
        let after = self.at.ts();
        if self.tables.iter().filter_map(|table| table.extended.as_ref()).any(|run| is_merging(run.id())) {
            return Ok(Validation::Again);
        }
        let mut left = Budget::UNDER_LOCK;
        // Counting may have begun anew before P.
        for table in &self.tables {
            state.check_numbers(&table.schema, table.numbers_drawn())?;
        }
        if applied == after {
            return Ok(Validation::Free);
        }
        let written_to = self.tables.iter().filter_map(|table| Some((Part::Written(table), table.version.as_ref()?)));
        let locked = self.locked.iter().filter_map(|table| Some((Part::Locked(table), table.version()?)));
        for (part, then) in written_to.chain(locked) {
            let table = then.schema.id;
            let Some(now) = root.tables.get(&table) else { return Ok(Validation::Again) };
            if !now.has_rows_placed_as(then) {
                return Ok(Validation::Again);
            }
            // Whatever was committed to other tables.
            if state.stamps.get(&table).is_none_or(|stamp| stamp.last_write <= after) {
                continue;
            }
            if applied.0 - after.0 > limits::VALIDATE_COMMITS_MAX {
                return Ok(Validation::Again);
            }
            let since = Since { after, recent: &state.recent_deletes };
            let validation = match part {
                Part::Written(table) => table.validate_under_lock(now, &since, &mut left)?,
                Part::Locked(table) => table.validate_under_lock(now, &since, &mut left.deletes)?,
            };
            if let Validation::Again = validation {
                return Ok(Validation::Again);
            }
        }
        Ok(Validation::Free)
    }
}

/// The last run of `version`, if `runs` are one that extends it. A run that a merge reads is left alone: the merge
/// would have been for nothing.
fn extended_run<'v>(engine: &Engine, version: &'v TableVersion, runs: &[Arc<Run>]) -> Option<&'v Arc<Run>> {
    let ([run], Some(last)) = (runs, version.runs.last()) else { return None };
    (last.may_take(run, version.schema.options.segment_rows) && !engine.is_merging(last.id())).then_some(last)
}

/// The first key `id` of `run` that a live row of `view`'s stores has, among rows that `counts`.
///
/// # Errors
/// Io or Corrupt when key blocks cannot be read.
pub fn own_key_conflict(
    view: &TableView,
    id: KeyId,
    run: &Run,
    counts: impl Fn(RowRef) -> bool,
) -> Result<Option<Vec<u8>>> {
    let schema = view.schema();
    let own_live = |row: RowRef| counts(row);
    let live = |row: RowRef| view.is_live(row) && counts(row);
    for other in &view.version().runs {
        if let Some(key) = first_shared_key(schema, id, run, other, |a, b| own_live(a) && live(b))? {
            return Ok(Some(key));
        }
    }
    let mut key = Vec::new();
    for delta in &view.version().deltas {
        for offset in 0..view.delta_rows(delta) {
            let row = RowRef::new(delta.id(), offset);
            let own_deleted = view.own().is_some_and(|own| own.is_deleted(row));
            if own_deleted || delta.deletes().is_deleted(offset, view.ts()) || !counts(row) {
                continue;
            }
            key.clear();
            if delta.key_of(id, offset, &mut key)?
                && point::find_in_run(schema, run, id, HashedKey::of(&key), None, own_live)?.is_some()
            {
                return Ok(Some(key));
            }
        }
    }
    Ok(None)
}

/// The rows that are still to be inserted through a delta; `None` if they are more than there is `room` for.
fn live_rows(writes: &TableWrites, room: &Room) -> Option<RowBuffer> {
    let (keys, columns) = (writes.schema().keys().count().max(1) as u64, writes.schema().columns.len() as u64);
    if writes.live_rows() * keys > room.rows as u64 || writes.live_rows() * columns > room.cells as u64 {
        return None;
    }
    let mut rows = RowBuffer::new(writes.rows().layout().clone());
    if writes.live_rows() == writes.rows().len() as u64 && writes.rows().bytes() <= room.bytes {
        writes.rows().chunks().for_each(|chunk| rows.push_rows(chunk.rows()));
        return Some(rows);
    }
    for (_, row) in writes.live_rows_from(0) {
        rows.push_row(row);
        if rows.bytes() > room.bytes {
            return None;
        }
    }
    Some(rows)
}
