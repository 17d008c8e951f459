//! Does one operation after the other on the engine and on the history, and compares what they answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mainstem_storage::Error;
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::TableId;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::{Savepoint, Transaction, TransactionMode};
use mainstem_storage::version::Base;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::history::{Cause, History, Outcome, Pending};
use super::op::{Op, Write};

/// The engine and the history disagree, or the engine fails though nothing gave it cause.
#[derive(Clone, Debug)]
pub struct Mismatch(pub String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a driver opens and judges the engine.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Background work at the first opening.
    pub background: bool,
    /// The disk may fail: errors that say so are no mismatch.
    pub faults: bool,
    /// Log bytes after which the background makes a checkpoint.
    pub checkpoint_bytes: u64,
    /// Encoded bytes of deletes that a record or the manifest holds itself: with few, most deletes go to files of their
    /// own.
    pub inline_delete_bytes: usize,
    /// Encoded bytes of runs that a record holds itself: with few, most loads and merges are named by files of their
    /// own.
    pub inline_run_bytes: usize,
    /// Compare every open snapshot as operations go by; without it only what statements read, and the state after an
    /// end.
    pub thorough: bool,
}

/// Room for the deletes of one container, or a few rows of two: records with and without files follow one another.
const SOME_INLINE_BYTES: usize = 40;
/// Room for a segment or two of a few columns: as above.
const SOME_RUN_BYTES: usize = 600;

impl Default for Settings {
    fn default() -> Self {
        Self {
            background: false,
            faults: false,
            checkpoint_bytes: 64 << 10,
            inline_delete_bytes: SOME_INLINE_BYTES,
            inline_run_bytes: SOME_RUN_BYTES,
            thorough: true,
        }
    }
}

/// What must have survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// After a power cut: commits that were fsynced.
    Synced,
    /// After a kill: those handed to the operating system too.
    Written,
    /// After a clean end: all.
    Everything,
}

/// How often what was answered, as the model demands it: a list of operations that never meets a case shows nothing
/// about it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Commits that did what they were asked.
    pub commits: u64,
    /// 40001, by what it was about.
    pub conflicts: BTreeMap<Cause, u64>,
    /// 23505 in tables whose key is the sort key.
    pub duplicates: u64,
    /// 23505 in others.
    pub indexed_duplicates: u64,
    /// Rows that upserts found by their keys.
    pub upserted: u64,
    /// Keys looked up and found in the store where a key index tells of them (deltas included).
    pub indexed_rows: u64,
    /// Schema changes that were the whole of a transaction, and committed though others had written to the table.
    pub beside_writers: u64,
    /// Times a transaction went back to a savepoint.
    pub rollbacks: u64,
    /// Files that recoveries have set aside, each as often as it was met.
    pub lost_files: u64,
}

impl Seen {
    /// Adds what another list of operations met.
    pub fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.duplicates += other.duplicates;
        self.indexed_duplicates += other.indexed_duplicates;
        self.upserted += other.upserted;
        self.indexed_rows += other.indexed_rows;
        self.beside_writers += other.beside_writers;
        self.rollbacks += other.rollbacks;
        self.lost_files += other.lost_files;
        for (cause, count) in &other.conflicts {
            *self.conflicts.entry(*cause).or_default() += count;
        }
    }
}

/// An open transaction on both sides.
pub(super) struct Session {
    pub txn: Transaction,
    pub pending: Pending,
    pub read_only: bool,
    pub synchronous: Synchronous,
    /// Each with what was written by then.
    pub savepoints: Vec<(Savepoint, Pending)>,
}

/// The engine on a disk, the history, and sessions on both.
pub struct Driver {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) settings: Settings,
    pub(super) db: Option<Database>,
    pub(super) history: History,
    pub(super) sessions: Vec<Option<Session>>,
    /// The last acknowledged commit of each mode: full, normal, off.
    pub(super) acknowledged: [u64; 3],
    /// A commit whose outcome the engine could not tell.
    pub(super) unknown: Option<Pending>,
    /// Operations the engine refused because of the disk.
    pub(super) refusals: u64,
    pub(super) seen: Seen,
    pub(super) steps: u64,
}

const SESSIONS: usize = 8;

impl Driver {
    /// Opens, or makes, a database on `disk`.
    ///
    /// # Errors
    /// When that fails on a sound disk.
    pub fn new(disk: Arc<dyn Disk>, settings: Settings) -> Result<Self, Mismatch> {
        let mut driver = Self {
            disk,
            settings,
            db: None,
            history: History::default(),
            sessions: (0..SESSIONS).map(|_| None).collect(),
            acknowledged: [0; 3],
            unknown: None,
            refusals: 0,
            seen: Seen::default(),
            steps: 0,
        };
        driver.open(settings.background)?;
        Ok(driver)
    }

    /// How the model opens a database.
    #[must_use]
    pub(super) fn options(&self, background: bool) -> OpenOptions {
        let Settings { checkpoint_bytes, inline_delete_bytes, inline_run_bytes, .. } = self.settings;
        OpenOptions::new()
            .background(background)
            .checkpoint_bytes(checkpoint_bytes)
            .inline_delete_bytes(inline_delete_bytes)
            .inline_run_bytes(inline_run_bytes)
    }

    pub(super) fn open(&mut self, background: bool) -> Result<(), Mismatch> {
        match Database::open_on(self.disk.clone(), self.options(background)) {
            Ok(db) => self.db = Some(db),
            Err(e) => self.refused("open", &e)?,
        }
        Ok(())
    }

    /// Whether the database is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// The engine.
    #[must_use]
    pub fn database(&self) -> Option<&Database> {
        self.db.as_ref()
    }

    /// What was answered so far.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Operations the engine refused because the disk failed it.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// An error: no mismatch if the disk may fail and it says so.
    pub(super) fn refused(&mut self, what: &str, e: &Error) -> Result<(), Mismatch> {
        let of_disk = [sqlstate::DISK_FULL, sqlstate::IO, sqlstate::OUTCOME_UNKNOWN, sqlstate::CLOSED];
        if self.settings.faults && of_disk.contains(&e.sqlstate()) {
            self.refusals += 1;
            return Ok(());
        }
        Err(Mismatch(format!("{what}: unexpected error {e:?}")))
    }

    /// Does `op`, if it applies.
    ///
    /// # Errors
    /// What differs.
    pub fn step(&mut self, op: &Op) -> Result<(), Mismatch> {
        let Some(db) = self.db.clone() else { return Ok(()) };
        self.steps += 1;
        match *op {
            Op::Begin { slot, synchronous, read_only, applied } => {
                self.begin(&db, slot, synchronous, read_only, applied)?;
            }
            Op::Insert { slot, table, rows, flaw, seed } => {
                self.write(&db, slot, table, seed, Write::Insert(rows, flaw))?;
            }
            Op::Upsert { slot, table, rows, seed } => self.write(&db, slot, table, seed, Write::Upsert(rows))?,
            Op::Update { slot, table, seed } => self.write(&db, slot, table, seed, Write::Update)?,
            Op::Permute { slot, table, seed } => self.write(&db, slot, table, seed, Write::Permute)?,
            Op::Delete { slot, table, seed } => self.write(&db, slot, table, seed, Write::Delete)?,
            Op::Lock { slot, table, seed } => self.write(&db, slot, table, seed, Write::Lock)?,
            Op::Create { .. } | Op::Drop { .. } | Op::Alter { .. } | Op::Truncate { .. } => self.ddl(&db, op)?,
            Op::Savepoint { slot } => self.savepoint(slot),
            Op::RollbackTo { slot, mark } => self.rollback_to(slot, mark)?,
            Op::Release { slot, mark } => self.release(slot, mark)?,
            Op::Commit { slot } => self.commit(slot)?,
            Op::Rollback { slot } => drop(self.sessions[usize::from(slot)].take()),
            Op::Freeze { table } => self.structural(&db, table, "freeze", Database::freeze)?,
            Op::Flush { table } => self.structural(&db, table, "flush", Database::flush)?,
            Op::Merge { table } => self.structural(&db, table, "merge", Database::merge)?,
            Op::Checkpoint => {
                if let Err(e) = db.checkpoint() {
                    self.refused("checkpoint", &e)?;
                }
                if self.settings.thorough {
                    self.check_all()?;
                }
            }
            Op::Reopen { background } => {
                drop(db);
                self.reopen(background)?;
            }
        }
        let slot = (self.steps % SESSIONS as u64) as usize;
        if self.settings.thorough { self.check_session(slot, self.steps) } else { Ok(()) }
    }

    fn begin(
        &mut self,
        db: &Database,
        slot: u8,
        synchronous: Synchronous,
        read_only: bool,
        applied: bool,
    ) -> Result<(), Mismatch> {
        let base = if applied && !self.settings.faults { Base::Applied } else { Base::Visible };
        match db.begin(TransactionMode { read_only, synchronous, base }) {
            Ok(txn) => {
                let pending = Pending::new(txn.read_ts().0);
                let last = self.acknowledged.iter().copied().max().unwrap_or(0);
                if pending.ts < last {
                    return Err(Mismatch(format!("a snapshot at {} after commit {last} was told", pending.ts)));
                }
                let savepoints = Vec::new();
                self.sessions[usize::from(slot)] = Some(Session { txn, pending, read_only, synchronous, savepoints });
                Ok(())
            }
            Err(e) => self.refused("begin", &e),
        }
    }

    /// Begins a transaction in `slot` unless there is one. False when that was refused.
    pub(super) fn ensure_session(&mut self, db: &Database, slot: u8) -> Result<bool, Mismatch> {
        if self.sessions[usize::from(slot)].is_none() {
            self.begin(db, slot, Synchronous::Full, false, false)?;
        }
        Ok(self.sessions[usize::from(slot)].is_some())
    }

    fn ddl(&mut self, db: &Database, op: &Op) -> Result<(), Mismatch> {
        let (Op::Create { slot, .. } | Op::Drop { slot, .. } | Op::Alter { slot, .. } | Op::Truncate { slot, .. }) =
            *op
        else {
            return Ok(());
        };
        if !self.ensure_session(db, slot)? {
            return Ok(());
        }
        let Some(mut session) = self.sessions[usize::from(slot)].take() else { return Ok(()) };
        let tables = self.history.tables(&session.pending);
        let (answer, expected) = match *op {
            Op::Create { name, shape, segment_rows, delta_rows, .. } => {
                let name = format!("t{name}");
                let expected = if session.read_only {
                    sqlstate::READ_ONLY
                } else if tables.iter().any(|(_, taken, _)| *taken == name) {
                    sqlstate::DUPLICATE_TABLE
                } else {
                    "ok"
                };
                let made = session.txn.create_table(shape.definition(&name, segment_rows, delta_rows));
                if let Ok(id) = &made {
                    session.pending.create(id.0, &name, shape);
                }
                (made.map(|_| ()), expected)
            }
            Op::Drop { table, .. } if !tables.is_empty() => {
                let (id, _, _) = tables[usize::from(table) % tables.len()];
                let dropped = session.txn.drop_table(TableId(id));
                if dropped.is_ok() {
                    session.pending.drop_table(id);
                }
                (dropped, if session.read_only { sqlstate::READ_ONLY } else { "ok" })
            }
            Op::Alter { table, seed, .. } if !tables.is_empty() => {
                let (id, _, _) = tables[usize::from(table) % tables.len()];
                let columns = self.history.columns(&session.pending, id);
                let (columns, changes) = columns.random_changes(&mut StdRng::seed_from_u64(seed));
                let altered = session.txn.alter_table(TableId(id), &changes).map(drop);
                if altered.is_ok() {
                    session.pending.alter(id, columns);
                }
                (altered, if session.read_only { sqlstate::READ_ONLY } else { "ok" })
            }
            Op::Truncate { table, .. } if !tables.is_empty() => {
                let (id, _, _) = tables[usize::from(table) % tables.len()];
                let truncated = session.txn.truncate(TableId(id), false);
                if truncated.is_ok() {
                    session.pending.truncate(id);
                }
                (truncated, if session.read_only { sqlstate::READ_ONLY } else { "ok" })
            }
            _ => (Ok(()), "ok"),
        };
        self.sessions[usize::from(slot)] = Some(session);
        self.compare(&format!("{op:?}"), answer, expected).map(drop)
    }

    fn savepoint(&mut self, slot: u8) {
        let Some(session) = &mut self.sessions[usize::from(slot)] else { return };
        session.savepoints.push((session.txn.savepoint(), session.pending.clone()));
    }

    fn rollback_to(&mut self, slot: u8, mark: u8) -> Result<(), Mismatch> {
        let Some(session) = self.sessions[usize::from(slot)].as_mut().filter(|s| !s.savepoints.is_empty()) else {
            return Ok(());
        };
        session.savepoints.truncate(usize::from(mark) % session.savepoints.len() + 1);
        let Some((savepoint, then)) = session.savepoints.last() else { return Ok(()) };
        let answer = session.txn.rollback_to(savepoint);
        // What was seen stays seen.
        let looked = session.pending.looked;
        session.pending = then.clone();
        session.pending.looked = looked;
        self.seen.rollbacks += 1;
        self.compare("ROLLBACK TO", answer, "ok").map(drop)
    }

    fn release(&mut self, slot: u8, mark: u8) -> Result<(), Mismatch> {
        let Some(session) = self.sessions[usize::from(slot)].as_mut().filter(|s| !s.savepoints.is_empty()) else {
            return Ok(());
        };
        let from = usize::from(mark) % session.savepoints.len();
        let Some((savepoint, _)) = session.savepoints.drain(from..).next() else { return Ok(()) };
        let answer = session.txn.release(savepoint);
        self.compare("RELEASE", answer, "ok").map(drop)
    }

    /// Compares an answer with what it must be. True when it was Ok.
    pub(super) fn compare(
        &mut self,
        what: &str,
        answer: mainstem_storage::Result<()>,
        expected: &str,
    ) -> Result<bool, Mismatch> {
        match answer {
            Ok(()) if expected == "ok" => Ok(true),
            Ok(()) => Err(Mismatch(format!("{what}: succeeded, expected {expected}"))),
            Err(e) if e.sqlstate() == expected => Ok(false),
            Err(e) => self.refused(&format!("{what} (expected {expected})"), &e).map(|()| false),
        }
    }

    fn commit(&mut self, slot: u8) -> Result<(), Mismatch> {
        let Some(session) = self.sessions[usize::from(slot)].take() else { return Ok(()) };
        let outcome = self.history.outcome(&session.pending);
        match (session.txn.commit(), &outcome) {
            (Ok(ts), Outcome::Empty) if ts.0 == session.pending.ts => {}
            (Ok(ts), Outcome::Commits) => {
                self.seen.beside_writers += u64::from(self.history.is_beside_writers(&session.pending));
                self.history.commit(&session.pending, ts.0);
                self.seen.commits += 1;
                self.acknowledged[2 - session.synchronous as usize] = ts.0;
            }
            (Err(e), Outcome::Conflict(cause, _)) if e.sqlstate() == sqlstate::CONFLICT => {
                *self.seen.conflicts.entry(*cause).or_default() += 1;
            }
            (Err(e), Outcome::Commits) if self.settings.faults && e.sqlstate() == sqlstate::OUTCOME_UNKNOWN => {
                if self.unknown.replace(session.pending).is_some() {
                    return Err(Mismatch("two commits of unknown outcome".into()));
                }
                self.refusals += 1;
            }
            // A commit of unknown outcome may have changed the rows that this one has locked: nobody knows, and it is
            // told to run again.
            (Err(e), Outcome::Empty) if e.sqlstate() == sqlstate::CONFLICT && self.unknown.is_some() => {}
            (Err(e), _) if e.sqlstate() != sqlstate::CONFLICT && e.sqlstate() != sqlstate::OUTCOME_UNKNOWN => {
                self.refused("commit", &e)?;
            }
            (answer, expected) => {
                return Err(Mismatch(format!("commit answered {answer:?}, expected {expected:?}")));
            }
        }
        if self.settings.thorough { self.check_fresh() } else { Ok(()) }
    }

    fn structural(
        &mut self,
        db: &Database,
        table: u8,
        what: &str,
        work: impl FnOnce(&Database, TableId) -> mainstem_storage::Result<()>,
    ) -> Result<(), Mismatch> {
        let present = self.history.tables(&Pending::new(u64::MAX - 1));
        if present.is_empty() {
            return Ok(());
        }
        let (id, _, _) = present[usize::from(table) % present.len()];
        if let Err(e) = work(db, TableId(id)) {
            self.refused(what, &e)?;
        }
        if self.settings.thorough { self.check_all() } else { Ok(()) }
    }

    fn reopen(&mut self, background: bool) -> Result<(), Mismatch> {
        let Some(db) = self.db.take() else { return Ok(()) };
        let closed = db.close();
        for slot in 0..SESSIONS {
            let Some(session) = self.sessions[slot].take() else { continue };
            let answer = session.txn.commit().map(drop);
            self.compare("commit after close", answer, sqlstate::CLOSED)?;
        }
        drop(db);
        match closed {
            Ok(()) => self.recover(self.disk.clone(), Durable::Everything, background),
            Err(e) => {
                self.refused("close", &e)?;
                self.recover(self.disk.clone(), Durable::Written, background)
            }
        }
    }
}
