//! Phases (b) and (c) of a commit: under the lock, then the wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::commit::Engine;
use crate::commit::conflict::table_conflict;
use crate::commit::engine::CommitLock;
use crate::commit::gate::Overtaken;
use crate::commit::prepare::{Intents, Prepared, Validation};
use crate::commit::record::CommitEncoder;
use crate::deletes::DeleteSet;
use crate::delta_store::DeltaGeneration;
use crate::disk::AsideFile;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{CommitTs, ContainerId, KeyId, LogPosition, TableId};
use crate::limits;
use crate::main_store::Run;
use crate::row::RowBuffer;
use crate::row::key::KeyHashes;
use crate::settings::Synchronous;
use crate::version::{Root, Snapshot, TableVersion};
use crate::wal::{NewRecord, RecordKind, Reservation};
use crate::write_set::{DdlChange, WriteSet};

impl Engine {
    /// Commits `writes`, made at `snapshot`, and returns when *visible* has reached the commit.
    ///
    /// # Errors
    /// Conflict (40001): somebody committed first, nothing was written. Full: no log space, nothing was written. Closed
    /// with 08007: the log failed, the outcome is known after reopening.
    pub fn commit(&self, snapshot: &Arc<Snapshot>, writes: &WriteSet, synchronous: Synchronous) -> Result<CommitTs> {
        let ts = self.commit_applied(snapshot, writes, synchronous)?;
        self.wait_visible(ts)?;
        Ok(ts)
    }

    /// As [`Engine::commit`], up to *applied*: the caller waits until the timestamp is visible before telling anybody.
    ///
    /// # Errors
    /// As [`Engine::commit`], the last aside.
    pub fn commit_applied(
        &self,
        snapshot: &Arc<Snapshot>,
        writes: &WriteSet,
        synchronous: Synchronous,
    ) -> Result<CommitTs> {
        if writes.is_empty() {
            // Who has only locked rows comes before all who have changed them after P.
            if !writes.locked.is_empty() {
                Prepared::new(self, snapshot, writes)?;
            }
            return Ok(snapshot.ts());
        }
        self.check_writable()?;
        self.wait_for_room()?;
        let changed = writes.ddl.iter().filter_map(DdlChange::table);
        let named = writes.tables.keys().chain(writes.locked.keys());
        let tables: BTreeSet<TableId> = named.copied().chain(changed).collect();
        let tables = Vec::from_iter(tables);
        self.turns.pass(&tables);
        let mut prepared = Prepared::new(self, snapshot, writes)?;
        let ts = self.apply_in_turn(&tables, &mut prepared, snapshot, synchronous)?;
        prepared.ddl.iter().for_each(|change| self.forget_rest(change));
        Ok(ts)
    }

    /// Gets `prepared` applied, validating again whenever others have overtaken it (`gate::turn`).
    fn apply_in_turn(
        &self,
        tables: &[TableId],
        prepared: &mut Prepared,
        snapshot: &Snapshot,
        synchronous: Synchronous,
    ) -> Result<CommitTs> {
        let mut place: Option<Overtaken<'_>> = None;
        let mut kept = KeptRuns::of(prepared);
        let mut rounds = 1;
        loop {
            let mut record = self.encode(prepared)?;
            let in_turn = rounds > limits::COMMIT_ROUNDS_OPEN;
            // In its turn it waits for nothing, so there is room for deletes that a later validation finds elsewhere.
            let bytes = record.bytes() + if in_turn { self.options.inline_delete_bytes } else { 0 };
            // An install that waits for this commit may be what makes the tail shorter.
            let mut space = Some(self.reserve_log(bytes, || place = None)?);
            if in_turn {
                place.get_or_insert_with(|| self.turns.enter(tables.to_vec())).take_turn();
                prepared.advance(self)?;
                record = self.encode(prepared)?;
            }
            while record.bytes() <= bytes {
                prepared.place_intents()?;
                if let Some(ts) = self.try_apply(prepared, &mut record, &mut space, &mut kept, snapshot, synchronous)? {
                    self.commit_rounds_max.fetch_max(rounds, Ordering::Relaxed);
                    return Ok(ts);
                }
                rounds += 1;
                prepared.withdraw_intents();
                if !in_turn {
                    break;
                }
                prepared.advance(self)?;
                record = self.encode(prepared)?;
            }
            if in_turn {
                // Its record has outgrown its space: waiting for more, it must not have others wait.
                place = None;
            } else {
                place.get_or_insert_with(|| self.turns.enter(tables.to_vec()));
                self.turns.pass(tables);
                prepared.advance(self)?;
            }
        }
    }

    fn encode(&self, prepared: &Prepared) -> Result<CommitEncoder> {
        if self.log.is_disabled() {
            Ok(CommitEncoder::unread())
        } else {
            CommitEncoder::new(&prepared.ddl, &prepared.tables)
        }
    }

    /// Under the lock: `None` when too much was committed since P.
    fn try_apply(
        &self,
        prepared: &Prepared,
        record: &mut CommitEncoder,
        space: &mut Option<Reservation>,
        kept: &mut KeptRuns,
        snapshot: &Snapshot,
        synchronous: Synchronous,
    ) -> Result<Option<CommitTs>> {
        #[cfg(test)]
        super::tests::before_lock();
        let mut lock = self.lock()?;
        self.check_writable()?;
        let (applied, present) = self.timeline.present();
        if let Validation::Again =
            prepared.validate_under_lock(&present, applied, &lock.state, |run| self.is_merging(run))?
        {
            return Ok(None);
        }
        #[cfg(test)]
        super::tests::under_lock();
        let ts = applied.next();
        let mut root = NextRoot { present: &present, edited: None, ts };
        if !prepared.ddl.is_empty() {
            self.edit_root(root.edit(), &lock, prepared, snapshot, ts)?;
        }
        let mut targets = Vec::with_capacity(prepared.tables.len());
        for table in &prepared.tables {
            let Some(version) = root.get().tables.get(&table.schema.id).cloned() else {
                return Err(table_conflict(&table.schema));
            };
            let (version, edited) = self.make_room(version, table.new_runs(), table.rows.len(), table.rows.bytes(), ts);
            let delta = version.active_delta().cloned().ok_or_else(|| Error::internal("a table without a delta"))?;
            targets.push((delta, version.clone()));
            if edited {
                root.edit().tables.insert(table.schema.id, version);
            }
        }
        record.place(targets.iter().map(|(delta, _)| (delta.id(), delta.rows())));
        let new = NewRecord {
            ts,
            kind: RecordKind::Commit,
            schema_version: prepared.schema_version(),
            level: synchronous,
            payload: record.payload(),
        };
        let space = space.take().ok_or_else(|| Error::internal("a commit without log space"))?;
        // Before the record is there: a panic from here on must not take along files that it names.
        keep_asides(prepared);
        let position = self.log.append(space, new).inspect_err(|_| release_asides(prepared))?;
        kept.logged = true;
        // From here on nothing may fail: the record is in the log.
        #[cfg(test)]
        super::tests::panic_if_wanted();
        for version in root.edited_tables(prepared) {
            self.seal(version);
        }
        let mut defect = None;
        for (table, (delta, version)) in prepared.tables.iter().zip(&targets) {
            self.note_aside(&mut lock, ts, table.runs_aside.as_ref());
            self.note_aside(&mut lock, ts, table.deletes_aside.as_ref());
            let hashes = |id| table.keys.iter().find(|keys| keys.id() == id).map(KeyHashes::Of);
            let deletes = match &table.intents {
                Some(intents) => Deletes::Intended(intents, &table.deletes),
                None => Deletes::Each(&table.deletes),
            };
            let change = TableChange { version, delta, rows: &table.rows, hashes: &hashes, deletes };
            defect = defect.or(self.change_table(&mut lock, &change, (ts, position)).err());
        }
        for change in &prepared.ddl {
            self.note_ddl(&mut lock, &present, change, ts);
        }
        self.publish(ts, defect, root.edited.map(Arc::new))?;
        Ok(Some(ts))
    }

    /// Puts what a commit, whose record of timestamp `at.0` begins at position `at.1`, does to one table in the stores,
    /// and what must be known of it in the commit state.
    pub(super) fn change_table(
        &self,
        lock: &mut CommitLock<'_>,
        change: &TableChange<'_>,
        at: (CommitTs, LogPosition),
    ) -> Result<()> {
        let (ts, position) = at;
        let table = change.version.schema.id;
        lock.state.note_write(table, ts);
        let record = |id, set| -> Result<()> {
            let container = change.version.container(id);
            let container = container.ok_or_else(|| Error::internal(format!("no container {id} to delete from")))?;
            container.deletes().record(ts, set);
            Ok(())
        };
        match &change.deletes {
            Deletes::None => {}
            Deletes::One(id, set) => {
                lock.state.recent_deletes.note(ts, std::iter::once(*id));
                record(*id, set)?;
            }
            Deletes::Each(sets) => {
                lock.state.recent_deletes.note(ts, sets.keys().copied());
                sets.iter().try_for_each(|(id, set)| record(*id, set))?;
            }
            Deletes::Intended(intents, sets) => {
                lock.state.recent_deletes.note(ts, sets.keys().copied());
                intents.decide(ts);
            }
        }
        if !change.rows.is_empty() {
            lock.state.delta_starts.note(table, change.delta.id(), position);
            change.delta.append_hashed(change.rows, change.hashes, ts)?;
        }
        Ok(())
    }

    /// The last step under the lock: the commit of `ts`, whose record is in the log, is in the stores, unless a
    /// `defect` kept it from there; *applied* moves.
    pub(super) fn publish(&self, ts: CommitTs, defect: Option<Error>, root: Option<Arc<Root>>) -> Result<()> {
        if let Some(defect) = defect {
            // Half of it is in the stores, above *applied*, where nobody reads: reopening applies it whole or not at
            // all.
            self.log.poison(defect.clone());
            return Err(outcome_unknown(&defect));
        }
        self.timeline.apply(ts, root);
        self.log.mark_applied(ts);
        // Where nothing has to be waited for, the committer need not tell: others would be in its way.
        if self.log.visible() >= ts {
            self.timeline.advance_visible_within_root(ts);
        }
        Ok(())
    }

    /// The version this commit writes to: with its runs, and with a fresh delta where the active one is full.
    pub(super) fn make_room(
        &self,
        version: Arc<TableVersion>,
        runs: &[Arc<Run>],
        rows: usize,
        bytes: usize,
        ts: CommitTs,
    ) -> (Arc<TableVersion>, bool) {
        let mut version = version;
        let mut edited = false;
        if !runs.is_empty() {
            version = Arc::new(version.with_load(ts, runs));
            edited = true;
        }
        let full = version
            .active_delta()
            .is_some_and(|delta| delta.rows() > 0 && (delta.is_due() || !delta.has_room(rows, bytes)));
        if full {
            let mut frozen = self.with_fresh_delta(&version);
            frozen.valid_from = ts;
            version = Arc::new(frozen);
            edited = true;
        }
        (version, edited)
    }
}

/// The segments that a commit's record names stay, unless it comes to none. From before the lock on: they may be many;
/// and a panic under it must not take along what a record names.
struct KeptRuns {
    runs: Vec<Arc<Run>>,
    /// The record is in the log.
    logged: bool,
}

impl KeptRuns {
    fn of(prepared: &Prepared) -> Self {
        let runs: Vec<_> = prepared.tables.iter().flat_map(|table| &table.runs).cloned().collect();
        runs.iter().flat_map(|run| run.all_segments()).for_each(|part| part.segment.keep());
        Self { runs, logged: false }
    }
}

impl Drop for KeptRuns {
    fn drop(&mut self) {
        if !self.logged && !std::thread::panicking() {
            let parts = self.runs.iter().flat_map(|run| run.all_segments());
            parts.for_each(|part| part.segment.drop_when_unreferenced());
        }
    }
}

/// The files aside that the record of `prepared` names, one or two a table, stay from here on.
fn keep_asides(prepared: &Prepared) {
    asides(prepared).for_each(|file| file.keep());
}

/// Takes [`keep_asides`] back: there is no record.
fn release_asides(prepared: &Prepared) {
    asides(prepared).for_each(|file| file.release());
}

fn asides(prepared: &Prepared) -> impl Iterator<Item = &Arc<AsideFile>> {
    prepared.tables.iter().flat_map(|table| table.runs_aside.iter().chain(&table.deletes_aside))
}

/// What a commit does to one table.
pub(super) struct TableChange<'a> {
    /// The version after it.
    pub version: &'a TableVersion,
    /// The delta of that version for `rows`.
    pub delta: &'a DeltaGeneration,
    /// The rows it inserts through the delta.
    pub rows: &'a RowBuffer,
    /// Those of each key of the table, of `rows`.
    pub hashes: &'a dyn Fn(KeyId) -> Option<KeyHashes<'a>>,
    /// The rows it deletes.
    pub deletes: Deletes<'a>,
}

/// The deletes of a commit in one table.
pub(super) enum Deletes<'a> {
    None,
    /// In one container.
    One(ContainerId, DeleteSet),
    /// Few, to be made one by one.
    Each(&'a BTreeMap<ContainerId, DeleteSet>),
    /// Any number, to be made at once: validation has proved all of them live.
    Intended(&'a Intents, &'a BTreeMap<ContainerId, DeleteSet>),
}

/// The root after a commit: the present one, unless something of it changes. A new one costs all stripes of the time
/// line.
struct NextRoot<'a> {
    present: &'a Root,
    edited: Option<Root>,
    ts: CommitTs,
}

impl NextRoot<'_> {
    /// What `prepared` has made of the tables it changes, if it has edited any.
    fn edited_tables<'a>(&'a self, prepared: &'a Prepared) -> impl Iterator<Item = &'a Arc<TableVersion>> {
        let altered = prepared.ddl.iter().filter_map(|change| match change {
            DdlChange::Alter { after, .. } => Some(after.id),
            _ => None,
        });
        let tables = altered.chain(prepared.tables.iter().map(|table| table.schema.id));
        tables.filter_map(|id| self.edited.as_ref()?.tables.get(&id))
    }

    fn get(&self) -> &Root {
        self.edited.as_ref().unwrap_or(self.present)
    }

    fn edit(&mut self) -> &mut Root {
        self.edited.get_or_insert_with(|| self.present.from(self.ts))
    }
}

fn outcome_unknown(defect: &Error) -> Error {
    let message = format!(
        "it is unknown whether the transaction was committed, because of a defect ({}); reopen the database and look",
        defect.message()
    );
    Error::new(ErrorKind::Closed, sqlstate::OUTCOME_UNKNOWN, message)
}
