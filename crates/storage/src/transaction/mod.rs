//! A transaction: one snapshot, private writes, one commit.
//!
//! Comes in: batches to insert and row references to delete, statement by statement. Goes out: views to scan and probe,
//! and a write set to commit.
//!
//! 1. [`Transaction::view`] gives a statement the snapshot plus the writes of *earlier* statements.
//! 2. [`Transaction::statement`] collects what the running statement writes, aside. Rows that somebody else changed
//!    since the snapshot end the statement early (contract 2).
//! 3. [`Transaction::apply`] ends the statement: keys are checked on its net effect; then it joins the write set. A
//!    statement that fails is dropped and leaves nothing (implicit savepoint).
//! 4. What outgrows its share of memory is written aside as runs, a few at any time (`write`);
//!    [`Transaction::savepoint`] marks a state to come back to.
//! 5. Schema changes ([`ddl`]) make a catalog of the transaction's own; numbers of IDENTITY columns ([`identity`]) come
//!    from blocks that all transactions share.
//! 6. [`Transaction::lock_rows`] keeps rows that are read FOR UPDATE or FOR SHARE: the commit looks whether they are
//!    unchanged.
//! 7. [`Transaction::unload_all`] writes what the snapshot sees to files, [`Transaction::reload_all`] takes it back.
//! 8. [`Transaction::commit`] hands the write set to `commit`.
//!
//! Invariants: nothing uncommitted is in any store; dropping a transaction undoes all of it. It does not own: SQL,
//! re-runs.

mod ddl;
mod identity;
mod key_check;
mod lock;
mod point;
mod probe;
mod savepoint;
mod statement;
mod unload;
mod write;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::catalog::Catalog;
use crate::commit::{Engine, altered};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{CommitTs, TableId};
use crate::row::key::{RowKeys, TableKey};
use crate::schema::TableSchema;
use crate::settings::Synchronous;
use crate::version::{Base, Snapshot, TableVersion, TableView};
use crate::write_set::{OwnContainers, OwnKeys, Standing, WriteSet};

pub use crate::load::Waiting;
use identity::{DrawnNumbers, OwnNumbers, ReplacedTables};
use key_check::KeyCheck;
pub use savepoint::Savepoint;
use savepoint::Savepoints;
pub use statement::StatementWrites;

#[cfg(test)]
mod tests;

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransactionMode {
    /// Refuse writes (25006).
    pub read_only: bool,
    /// When its commit returns.
    pub synchronous: Synchronous,
    /// Which mark it starts at.
    pub base: Base,
}

impl Default for TransactionMode {
    fn default() -> Self {
        Self { read_only: false, synchronous: Synchronous::Full, base: Base::Visible }
    }
}

/// One transaction.
#[derive(Debug)]
pub struct Transaction {
    engine: Arc<Engine>,
    mode: TransactionMode,
    snapshot: Arc<Snapshot>,
    /// The snapshot's catalog, or one of this transaction's own after DDL.
    catalog: Arc<Catalog>,
    writes: WriteSet,
    /// Keys of the buffered rows, per table that has keys and per key.
    keys: BTreeMap<TableId, Box<[OwnKeys]>>,
    savepoints: Savepoints,
    own_containers: OwnContainers,
    /// Whether it may have seen rows.
    looked: AtomicBool,
    /// Numbers taken of IDENTITY columns that nobody else draws from: of tables that it has made, or whose numbers it
    /// has begun anew.
    numbers: OnceLock<Box<OwnNumbers>>,
    /// Tables in the place of others, whose numbers go on.
    replaced: ReplacedTables,
    /// Tables of whose columns it has drawn numbers that all share.
    drawn: OnceLock<Box<DrawnNumbers>>,
    /// How its statements wait for memory.
    waiting: Waiting,
}

impl Transaction {
    pub(crate) fn begin(engine: Arc<Engine>, mode: TransactionMode) -> Result<Self> {
        engine.check_open()?;
        let snapshot = engine.timeline.snapshot(mode.base, !mode.read_only);
        let catalog = snapshot.root().catalog.clone();
        Ok(Self {
            engine,
            mode,
            snapshot,
            catalog,
            writes: WriteSet::default(),
            keys: BTreeMap::new(),
            savepoints: Savepoints::default(),
            own_containers: OwnContainers::default(),
            looked: AtomicBool::new(false),
            numbers: OnceLock::new(),
            replaced: ReplacedTables::new(),
            drawn: OnceLock::new(),
            waiting: Waiting::default(),
        })
    }

    /// Commits at or before it are seen.
    #[must_use]
    pub fn read_ts(&self) -> CommitTs {
        self.snapshot.ts()
    }

    /// The tables this transaction sees, its own DDL included.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.clone()
    }

    /// Whether it has written anything.
    #[must_use]
    pub fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// What the next statement sees of `table`: the snapshot and this transaction's finished statements. Pins the
    /// snapshot.
    ///
    /// # Errors
    /// NotFound (42P01).
    pub fn view(&self, table: TableId) -> Result<Arc<TableView>> {
        self.present_view(table).map(Arc::new)
    }

    /// As [`Transaction::view`], not shared.
    fn present_view(&self, table: TableId) -> Result<TableView> {
        let own = self.writes.tables.get(&table).cloned();
        self.looked.store(true, Ordering::Relaxed);
        if self.writes.ddl.is_empty() && Arc::ptr_eq(&self.catalog, &self.snapshot.root().catalog) {
            return TableView::at(&self.snapshot, table).map(|view| view.with_own(own)).ok_or_else(no_table);
        }
        let schema = self.catalog.table(table).ok_or_else(no_table)?.clone();
        let stands = matches!(Standing::of(&self.writes.ddl, &schema), Standing::Kept(_));
        let version = match self.snapshot.root().tables.get(&table).filter(|_| stands) {
            Some(version) => version.clone(),
            // Made or emptied by this transaction: nothing in the stores.
            None => Arc::new(TableVersion {
                schema: schema.clone(),
                valid_from: self.snapshot.ts(),
                moves: 0,
                deltas: Vec::new(),
                runs: Vec::new(),
            }),
        };
        Ok(TableView::new(schema, version, own, self.snapshot.ts(), Some(self.snapshot.clone())))
    }

    /// Waits while another statement's last run has the table's write gate closed (contract 2). Called at the start of
    /// each writing statement by whoever holds no gate, whatever the transaction has written before: nobody waits for
    /// it (`commit::gate`).
    ///
    /// # Errors
    /// What `go_on` returns, asked now and then while this waits; Closed.
    pub fn pass_gate(&self, table: TableId, mut go_on: impl FnMut() -> Result<()>) -> Result<()> {
        self.engine.gates.pass(table, || self.engine.check_open().and_then(|()| go_on()))
    }

    /// Empty writes for the next statement.
    #[must_use]
    pub fn statement(&self) -> StatementWrites {
        let snapshot = (!self.mode.read_only).then(|| self.snapshot.clone());
        StatementWrites::new(self.engine.clone(), snapshot, self.waiting.clone())
    }

    /// How the statements that begin from now on wait for memory, and whether they go on with what takes long: asks the
    /// caller, or never waits, for whoever holds a write gate.
    pub fn wait_as(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Ends a statement: checks keys on its net effect, then takes its writes over. After an error nothing of it is
    /// left. When buffered rows outgrow their share of memory they are written aside here, and what was written aside
    /// is merged when it is in many runs: references to this transaction's own rows, and only those, are then void,
    /// while older views stay as they are.
    ///
    /// # Errors
    /// Conflict (40001) when a later commit changed a row it deletes; Constraint (23505) for a key that is taken, at
    /// the snapshot or by this transaction; Invalid (25006) in a read-only one; Full (53200, 53100).
    pub fn apply(&mut self, statement: StatementWrites) -> Result<()> {
        if statement.is_untouched() {
            return Ok(());
        }
        self.check_may_write()?;
        statement.check_unchanged()?;
        let Some(mut writes) = statement.finish()? else { return Ok(()) };
        self.check_version(&writes.schema)?;
        self.check_own_references(&writes)?;
        if writes.schema.has_keys() {
            self.enter_keys(&writes.schema);
            let (view, own) = (self.present_view(writes.schema.id)?, self.own_keys(writes.schema.id));
            writes.keys = own.iter().map(|own| RowKeys::of(own.key(), &writes.rows)).collect();
            let check = KeyCheck { schema: &writes.schema, view, own, keys: &writes.keys, deleted: &writes.deleted };
            check.rows(writes.rows.len())?;
            check.runs(&writes.runs)?;
        }
        let table = writes.schema.id;
        if self.must_spill(&writes) {
            self.take_over_aside(writes)?;
        } else {
            self.check_room(if writes.charge.is_none() { writes.rows.bytes() as u64 } else { 0 })?;
            self.take_over(writes);
        }
        self.merge_own_runs(table);
        Ok(())
    }

    /// Makes the transaction's writes true, and returns when they are durable under its mode, with all before them. One
    /// that wrote nothing returns its snapshot's timestamp, if the rows that it has locked are unchanged.
    ///
    /// # Errors
    /// Conflict (40001), Full: nothing was written. 08007: outcome known after reopening.
    pub fn commit(mut self) -> Result<CommitTs> {
        self.engine.check_open()?;
        self.finish_ddl()?;
        self.finish_numbers();
        self.engine.commit(&self.snapshot, &self.writes, self.mode.synchronous)
    }

    /// As [`Transaction::commit`], but returns when the writes are applied: the caller has to wait for the timestamp to
    /// be visible ([`Database::wait_visible`](crate::database::Database::wait_visible)) before it tells anybody. For
    /// whoever holds what others wait for meanwhile, such as a write gate.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_applied(mut self) -> Result<CommitTs> {
        self.engine.check_open()?;
        self.finish_ddl()?;
        self.finish_numbers();
        self.engine.commit_applied(&self.snapshot, &self.writes, self.mode.synchronous)
    }

    /// Forgets the transaction's writes; so does dropping it.
    pub fn rollback(self) {}

    /// Makes a place for the keys of buffered rows of `schema`'s table.
    fn enter_keys(&mut self, schema: &TableSchema) {
        if !self.keys.contains_key(&schema.id)
            && let Some(keys) = self.new_keys(schema)
        {
            self.keys.insert(schema.id, keys);
        }
    }

    /// Keys of the buffered rows of `table`, one for each of its keys if there are any.
    fn own_keys(&self, table: TableId) -> &[OwnKeys] {
        self.keys.get(&table).map_or(&[], |keys| keys)
    }

    /// No rows yet, for each key of a table that has any.
    fn new_keys(&self, schema: &TableSchema) -> Option<Box<[OwnKeys]>> {
        let new = |key| OwnKeys::new(key, &self.engine.memory);
        schema.has_keys().then(|| TableKey::all(schema).into_iter().map(new).collect())
    }

    /// Refuses writes under another version of a table's definition than the present one.
    fn check_version(&self, schema: &TableSchema) -> Result<()> {
        match self.catalog.table(schema.id) {
            Some(present) if present.version == schema.version => Ok(()),
            Some(_) => Err(altered(schema)),
            None => Err(no_table()),
        }
    }

    fn check_may_write(&self) -> Result<()> {
        if self.mode.read_only {
            return Err(Error::invalid(sqlstate::READ_ONLY, "cannot write in a read-only transaction"));
        }
        self.engine.check_writable()
    }
}

fn no_table() -> Error {
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, "the table does not exist")
}
