//! A transaction: one snapshot, private writes, one commit.
//!
//! Comes in: batches to insert and row references to delete, statement by statement. Goes out: views to scan and probe, and a
//! write set to commit.
//!
//! 1. [`Transaction::view`] gives a statement the snapshot plus the writes of *earlier* statements.
//! 2. [`Transaction::statement`] collects what the running statement writes, aside.
//! 3. [`Transaction::apply`] ends the statement: keys are checked on its net effect; then it joins the write set. A statement
//!    that fails is dropped and leaves nothing (implicit savepoint).
//! 4. [`Transaction::commit`] hands the write set to `commit`.
//!
//! Invariants: nothing uncommitted is in any store; dropping a transaction undoes all of it. It does not own: SQL, re-runs.

use std::sync::Arc;

use arrow_array::RecordBatch;
use hashbrown::HashSet;
use roaring::RoaringBitmap;

use crate::catalog::{Catalog, TableDefinition};
use crate::commit::{Engine, own_key_conflict};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{CommitTs, ContainerId, RowRef, TableId};
use crate::limits;
use crate::load::{Loader, duplicate_key};
use crate::main_store::Run;
use crate::order::first_shared_key;
use crate::point;
use crate::row::key::KeyCodec;
use crate::row::{RowBuffer, RowLayout, check_batch};
use crate::schema::TableSchema;
use crate::settings::Synchronous;
use crate::txn::{DdlChange, TableWrites, WriteSet};
use crate::version::{Base, Snapshot, TableVersion, TableView};

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
    gates_passed: bool,
}

/// What the running statement writes: to one table, aside until the statement ends.
#[derive(Debug)]
pub struct StatementWrites {
    engine: Arc<Engine>,
    table: Option<Arc<TableSchema>>,
    rows: Option<RowBuffer>,
    loader: Option<Loader>,
    inserted: u64,
    deleted: TableDeletes,
}

/// Rows a statement deletes, each once.
#[derive(Debug, Default)]
struct TableDeletes {
    by_container: std::collections::BTreeMap<ContainerId, RoaringBitmap>,
    rows: u64,
}

impl TableDeletes {
    fn contains(&self, row: RowRef) -> bool {
        self.by_container.get(&row.container()).is_some_and(|set| set.contains(row.offset()))
    }
}

impl StatementWrites {
    /// Inserts `batch`: the columns of `table` in their order. Types, NOT NULL, lengths and ranges are checked here; keys at
    /// the end of the statement. A large insert goes to segments aside, in bounded memory.
    ///
    /// # Errors
    /// Constraint or Invalid for a value the table does not take; Full or Io when written aside.
    pub fn insert(&mut self, table: &Arc<TableSchema>, batch: &RecordBatch) -> Result<()> {
        self.enter(table)?;
        let batch = check_batch(table, batch)?;
        self.inserted += batch.num_rows() as u64;
        if let Some(loader) = &mut self.loader {
            return loader.push(&batch);
        }
        let rows = self.rows.get_or_insert_with(|| RowBuffer::new(RowLayout::new(table)));
        if rows.len() + batch.num_rows() <= limits::COMMIT_ROWS_MAX && rows.bytes() <= limits::COMMIT_BYTES_MAX {
            return rows.push_batch(&batch);
        }
        let mut loader = Loader::new(table.clone(), self.engine.load_target(), table.options.segment_rows);
        if !rows.is_empty() {
            let arrays = rows.to_arrays(&table.column_ids(), 0..rows.len())?;
            loader.push(&RecordBatch::try_new(table.arrow(), arrays)?)?;
        }
        loader.push(&batch)?;
        self.rows = None;
        self.loader = Some(loader);
        Ok(())
    }

    /// Deletes `rows`, which a scan or probe of this transaction's view of `table` named. A row named twice counts once.
    ///
    /// # Errors
    /// Invalid when the statement writes to two tables.
    pub fn delete(&mut self, table: &Arc<TableSchema>, rows: &[RowRef]) -> Result<()> {
        self.enter(table)?;
        for row in rows {
            if self.deleted.by_container.entry(row.container()).or_default().insert(row.offset()) {
                self.deleted.rows += 1;
            }
        }
        Ok(())
    }

    /// Whether this statement has deleted `row` already.
    #[must_use]
    pub fn has_deleted(&self, row: RowRef) -> bool {
        self.deleted.contains(row)
    }

    /// Rows inserted so far.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Rows deleted so far.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        self.deleted.rows
    }

    fn enter(&mut self, table: &Arc<TableSchema>) -> Result<()> {
        match &self.table {
            Some(entered) if entered.id != table.id => Err(Error::unsupported("a statement that writes to two tables")),
            Some(_) => Ok(()),
            None => {
                self.table = Some(table.clone());
                Ok(())
            }
        }
    }
}

impl Transaction {
    pub(crate) fn begin(engine: Arc<Engine>, mode: TransactionMode) -> Result<Self> {
        engine.check_open()?;
        let snapshot = engine.timeline.snapshot(mode.base, !mode.read_only);
        let catalog = snapshot.root().catalog.clone();
        Ok(Self { engine, mode, snapshot, catalog, writes: WriteSet::default(), gates_passed: false })
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

    /// What the next statement sees of `table`: the snapshot and this transaction's finished statements. Pins the snapshot.
    ///
    /// # Errors
    /// NotFound (42P01).
    pub fn view(&self, table: TableId) -> Result<Arc<TableView>> {
        let schema = self.catalog.table(table).ok_or_else(no_table)?.clone();
        let own = self.writes.tables.get(&table).cloned();
        let version = match self.snapshot.root().tables.get(&table) {
            Some(version) => version.clone(),
            // Made by this transaction: nothing in the stores.
            None => Arc::new(TableVersion {
                schema: schema.clone(),
                valid_from: self.snapshot.ts(),
                moves: 0,
                deltas: Vec::new(),
                runs: Vec::new(),
            }),
        };
        Ok(Arc::new(TableView::new(schema, version, own, self.snapshot.ts(), Some(self.snapshot.clone()))))
    }

    /// Waits while another statement's last run has the table's write gate closed (contract 2). Called at the start of a
    /// writing statement by whoever does not hold the gate.
    pub fn pass_gate(&mut self, table: TableId) {
        // A transaction that has written already holds others up if it waits: only its first write does.
        if !self.gates_passed && self.writes.is_empty() {
            self.engine.gates.pass(table);
        }
        self.gates_passed = true;
    }

    /// Empty writes for the next statement.
    #[must_use]
    pub fn statement(&self) -> StatementWrites {
        StatementWrites {
            engine: self.engine.clone(),
            table: None,
            rows: None,
            loader: None,
            inserted: 0,
            deleted: TableDeletes::default(),
        }
    }

    /// Ends a statement: checks keys on its net effect, then takes its writes over. After an error nothing of it is left.
    ///
    /// # Errors
    /// Constraint (23505) for a key that is taken, at the snapshot or by this transaction; Invalid (25006) in a read-only one.
    pub fn apply(&mut self, statement: StatementWrites) -> Result<()> {
        let Some(schema) = statement.table.clone() else { return Ok(()) };
        self.check_may_write()?;
        let rows = statement.rows.unwrap_or_else(|| RowBuffer::new(RowLayout::new(&schema)));
        let runs = statement.loader.map(Loader::finish).transpose()?.unwrap_or_default();
        if rows.is_empty() && runs.is_empty() && statement.deleted.rows == 0 {
            return Ok(());
        }
        self.check_room(schema.id, &rows)?;
        let codec = schema.has_key().then(|| KeyCodec::new(&schema, &schema.primary_key));
        if let Some(codec) = &codec {
            let check = KeyCheck { schema: &schema, view: self.view(schema.id)?, deleted: &statement.deleted };
            check.rows(codec, &rows)?;
            check.runs(&rows, codec, &runs)?;
        }
        let writes = self.writes.tables.entry(schema.id).or_insert_with(|| Arc::new(TableWrites::new(schema.clone())));
        let writes = Arc::make_mut(writes);
        let mut key = Vec::new();
        for (&container, offsets) in &statement.deleted.by_container {
            if container != ContainerId::OWN_ROWS {
                *writes.deletes.entry(container).or_default() |= offsets;
                continue;
            }
            for offset in offsets {
                let row = RowRef::new(container, offset);
                let newly = writes.delete(row);
                if newly && let Some(codec) = &codec {
                    key.clear();
                    codec.encode_row(writes.rows.row(offset as usize), &mut key);
                    writes.keys.remove(key.as_slice());
                }
            }
        }
        let first = writes.rows.len();
        for row in 0..rows.len() {
            writes.rows.push_row(rows.row(row));
        }
        if let Some(codec) = &codec {
            writes.index_rows(codec, first)?;
        }
        writes.runs.extend(runs);
        Ok(())
    }

    /// Makes a table, seen by this transaction at once and by others when it commits.
    ///
    /// # Errors
    /// Invalid: a bad definition, or a name that is taken (42P07).
    pub fn create_table(&mut self, definition: TableDefinition) -> Result<TableId> {
        self.check_may_write()?;
        let schema = Arc::new(definition.into_schema(self.engine.next_table())?);
        self.catalog = Arc::new(self.catalog.with_table(schema.clone())?);
        self.writes.ddl.push(DdlChange::Create(schema.clone()));
        Ok(schema.id)
    }

    /// Drops a table.
    ///
    /// # Errors
    /// NotFound (42P01).
    pub fn drop_table(&mut self, table: TableId) -> Result<()> {
        self.check_may_write()?;
        let schema = self.catalog.table(table).ok_or_else(no_table)?.clone();
        self.catalog = Arc::new(self.catalog.without_table(table)?);
        self.writes.tables.remove(&table);
        let made_here = |change: &DdlChange| matches!(change, DdlChange::Create(s) if s.id == table);
        if self.writes.ddl.iter().any(made_here) {
            self.writes.ddl.retain(|change| !made_here(change));
        } else {
            self.writes.ddl.push(DdlChange::Drop(schema));
        }
        Ok(())
    }

    /// Makes the transaction's writes true, and returns when they are durable under its mode, with all before them. One that
    /// wrote nothing returns its snapshot's timestamp.
    ///
    /// # Errors
    /// Conflict (40001), Full: nothing was written. 08007: outcome known after reopening.
    pub fn commit(self) -> Result<CommitTs> {
        self.engine.check_open()?;
        self.engine.commit(&self.snapshot, &self.writes, self.mode.synchronous)
    }

    /// Forgets the transaction's writes; so does dropping it.
    pub fn rollback(self) {}

    /// Refuses more buffered rows than memory, or the offsets of own rows, allow.
    fn check_room(&self, table: TableId, rows: &RowBuffer) -> Result<()> {
        let buffered: usize = self.writes.tables.values().map(|writes| writes.buffered_bytes()).sum();
        let bytes_max = self.engine.options.memory_limit / limits::WRITE_SET_SHARE;
        let here = self.writes.tables.get(&table).map_or(0, |writes| writes.rows.len());
        if (buffered + rows.bytes()) as u64 <= bytes_max && here + rows.len() < RowRef::OFFSETS as usize {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Full,
            sqlstate::OUT_OF_MEMORY,
            format!(
                "the transaction has inserted {here} rows in small statements, which take their share of memory_limit: commit in parts, or insert more rows with each statement"
            ),
        ))
    }

    fn check_may_write(&self) -> Result<()> {
        if self.mode.read_only {
            return Err(Error::invalid(sqlstate::READ_ONLY, "cannot write in a read-only transaction"));
        }
        self.engine.check_writable()
    }
}

/// The end-of-statement key check (contract 2): every new key must be free, the statement's own deletes counted first.
struct KeyCheck<'a> {
    schema: &'a TableSchema,
    view: Arc<TableView>,
    deleted: &'a TableDeletes,
}

impl KeyCheck<'_> {
    /// Buffered rows against one another, the transaction's own rows, and the stores.
    fn rows(&self, codec: &KeyCodec, rows: &RowBuffer) -> Result<()> {
        let mut seen: HashSet<Box<[u8]>> = HashSet::with_capacity(rows.len());
        for row in 0..rows.len() {
            let mut key = Vec::new();
            codec.encode_row(rows.row(row), &mut key);
            let in_own_rows = self.view.own().and_then(|own| own.keys.get(key.as_slice()));
            let own_taken = in_own_rows.is_some_and(|&o| self.counts(RowRef::new(ContainerId::OWN_ROWS, o)));
            if own_taken
                || self.in_own_runs(&key)?
                || point::find(&self.view, &key, |row| self.counts(row))?.is_some()
                || seen.contains(key.as_slice())
            {
                return Err(duplicate_key(self.schema, &key));
            }
            seen.insert(key.into());
        }
        Ok(())
    }

    /// Rows written aside against everything else. They are distinct among themselves: the loader saw to that.
    fn runs(&self, rows: &RowBuffer, codec: &KeyCodec, runs: &[Arc<Run>]) -> Result<()> {
        let mut key = Vec::new();
        for run in runs {
            for row in 0..rows.len() {
                key.clear();
                codec.encode_row(rows.row(row), &mut key);
                if point::find_in_run(self.schema, run, &key, None, |_| true)?.is_some() {
                    return Err(duplicate_key(self.schema, &key));
                }
            }
            if let Some(key) = own_key_conflict(&self.view, run, |row| self.counts(row))? {
                return Err(duplicate_key(self.schema, &key));
            }
            self.run_against_own(run)?;
        }
        Ok(())
    }

    fn run_against_own(&self, run: &Run) -> Result<()> {
        let Some(own) = self.view.own() else { return Ok(()) };
        for (key, &row) in &own.keys {
            let taken = self.counts(RowRef::new(ContainerId::OWN_ROWS, row))
                && point::find_in_run(self.schema, run, key, None, |_| true)?.is_some();
            if taken {
                return Err(duplicate_key(self.schema, key));
            }
        }
        for earlier in &own.runs {
            let live = |row: RowRef| self.counts(row) && !own.is_deleted(row);
            if let Some(key) = first_shared_key(self.schema, run, earlier, |_, row| live(row))? {
                return Err(duplicate_key(self.schema, &key));
            }
        }
        Ok(())
    }

    fn in_own_runs(&self, key: &[u8]) -> Result<bool> {
        let Some(own) = self.view.own() else { return Ok(false) };
        for run in &own.runs {
            let live = |row: RowRef| self.counts(row) && !own.is_deleted(row);
            if point::find_in_run(self.schema, run, key, None, live)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `row` still counts: this statement does not delete it.
    fn counts(&self, row: RowRef) -> bool {
        !self.deleted.contains(row)
    }
}

fn no_table() -> Error {
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, "the table does not exist")
}
