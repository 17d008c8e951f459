//! One connection's state, and how its statements run.
//!
//! Comes in: parsed statements. Goes out: their outcomes. Steps: a failed transaction refuses all but its end; a query
//! runs at the open transaction's snapshot or at one of its own; a write runs in the open transaction, or in one of its
//! own that [`attempts`] runs again until no other committer is in its way (contract 2); a panic becomes an error, and
//! the session goes on. Invariants: a statement that fails leaves nothing behind; after a conflict only ROLLBACK helps.
//! It does not own: what statements mean (`plan`), how queries run (`exec`).

mod attempts;
mod copy;
mod explain;
mod files;
mod kept_plans;
mod prepared;
mod savepoints;
mod short;
mod statement_cache;
mod temporary;
mod transfer;
mod utility;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::{Transaction, TransactionMode, Waiting};
use mainstem_storage::version::Base;
use mainstem_storage::{Error, ErrorKind, Result};

use crate::error::from_panic;
use crate::exec::{Cancel, Environment, Interrupts, Notice, Parameters, Planner, Rows, Settings, Shared};
use crate::plan::{self, Created, Written};
use crate::provider::{ExternalTables, Progress};
use crate::sql::{Begin, Dropped, Lock, Statement, TableName};
use attempts::{Targets, Write, in_own_transaction};
use copy::Stream;
use savepoints::Savepoints;
use statement_cache::StatementCache;
use temporary::Temporary;

pub(crate) use prepared::{InsertOfParameters, Prepared, check_parameter_count};
pub(crate) use short::{Runs, ShortOutcome};
pub(crate) use statement_cache::{Kept, KeptSeveral};
pub(crate) use temporary::forget_temporary;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Every statement is a transaction of its own.
    Idle,
    /// Between BEGIN and COMMIT.
    Open,
    /// A conflict ended the transaction; only ROLLBACK helps.
    Failed,
}

#[derive(Debug)]
enum Current {
    None,
    Open { transaction: Box<Transaction>, read_only: bool, savepoints: Savepoints },
    Failed,
}

/// What became of a statement.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) tag: String,
    pub(crate) affected: Option<u64>,
    pub(crate) rows: Option<Rows>,
    pub(crate) notices: Vec<Notice>,
}

impl Outcome {
    fn done(tag: &str) -> Self {
        Self { tag: tag.into(), affected: None, rows: None, notices: Vec::new() }
    }

    fn wrote(tag: &str, rows: u64) -> Self {
        Self { tag: format!("{tag} {rows}"), affected: Some(rows), rows: None, notices: Vec::new() }
    }

    fn written(tag: &str, written: Written) -> Self {
        Self { rows: written.returned, ..Self::wrote(tag, written.rows) }
    }

    fn with_rows(tag: &str, rows: Rows) -> Self {
        Self { tag: tag.into(), affected: None, rows: Some(rows), notices: Vec::new() }
    }

    fn with_notices(mut self, notices: Vec<Notice>) -> Self {
        self.notices = notices;
        self
    }
}

/// One connection's state.
#[derive(Debug)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    planner: Planner,
    settings: Settings,
    current: Current,
    /// Whether it is a conflict that ended the open transaction, or the last one.
    had_conflict: bool,
    interrupts: Interrupts,
    /// Of the running statement.
    parameters: Parameters,
    /// What PREPARE keeps.
    prepared: prepared::ByName,
    /// What is kept of texts.
    texts: StatementCache,
    temporary: Temporary,
    /// Statements that ran without a plan.
    short_statements: u64,
    /// Queries, of writes too, that ran by a kept plan.
    kept_runs: u64,
    progress: Progress,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, interrupts: Interrupts) -> Self {
        let planner = Planner::new(&shared.template);
        let settings = Settings::new(&shared.storage, shared.next_temporary());
        let texts = StatementCache::new(shared.storage.memory_budget());
        Self {
            shared,
            planner,
            settings,
            current: Current::None,
            had_conflict: false,
            interrupts,
            parameters: Parameters::default(),
            prepared: prepared::ByName::default(),
            texts,
            temporary: Temporary::default(),
            short_statements: 0,
            kept_runs: 0,
            progress: Progress::default(),
        }
    }

    /// How far its statements come with their files.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(crate) fn status(&self) -> TransactionStatus {
        match self.current {
            Current::None => TransactionStatus::Idle,
            Current::Open { .. } => TransactionStatus::Open,
            Current::Failed => TransactionStatus::Failed,
        }
    }

    /// Whether a conflict has ended the open transaction.
    pub(crate) fn has_conflict(&self) -> bool {
        self.had_conflict && matches!(self.current, Current::Failed)
    }

    /// What cancels a wait that begins now: interrupts.
    pub(crate) fn cancel_of_wait(&self) -> Cancel {
        self.interrupts.watch(None)
    }

    /// Which interrupts cancel the statements that run from now on: see [`Interrupts::count_from`].
    pub(crate) fn count_interrupts_from(&mut self, since: Option<u64>) {
        self.interrupts.count_from(since);
    }

    /// Runs one statement.
    pub(crate) fn run(&mut self, statement: Statement) -> Result<Outcome> {
        self.guarded(|session| session.dispatch(statement))
    }

    /// Inserts `batches` into the columns of `table` that `named` names, or all, as one statement.
    pub(crate) fn append(&mut self, table: &TableName, named: &[String], batches: &[RecordBatch]) -> Result<u64> {
        self.guarded(|session| {
            if matches!(session.current, Current::Failed) {
                return Err(failed());
            }
            session.write(Targets::one(table), &mut |env, transaction| {
                plan::append(env, transaction, table, named, batches)
            })
        })
    }

    /// The tables of the program.
    pub(crate) fn externals(&mut self) -> &mut ExternalTables {
        self.planner.externals()
    }

    /// The definition of `table` as the next statement would see it.
    pub(crate) fn table(&self, table: &TableName) -> Result<Arc<TableSchema>> {
        let names = self.settings.names();
        match &self.current {
            Current::Open { transaction, .. } => plan::table_of(names, transaction, table),
            Current::Failed => Err(failed()),
            Current::None => plan::table_of(names, &self.read_transaction()?, table),
        }
    }

    /// Turns panics into errors and conflicts into a failed transaction.
    fn guarded<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.progress.begin();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(self)));
        self.parameters = Parameters::default();
        self.planner.forget();
        match outcome {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => {
                if error.kind() == ErrorKind::Conflict && matches!(self.current, Current::Open { .. }) {
                    self.current = Current::Failed;
                    self.had_conflict = true;
                }
                Err(error)
            }
            Err(panic) => {
                // What the panic left of an open transaction is not to be trusted.
                if matches!(self.current, Current::Open { .. }) {
                    self.current = Current::Failed;
                }
                Err(from_panic(panic.as_ref()))
            }
        }
    }

    fn dispatch(&mut self, statement: Statement) -> Result<Outcome> {
        if matches!(self.current, Current::Failed) && !matches!(statement, Statement::Commit | Statement::Rollback) {
            return Err(failed());
        }
        if let Some(outcome) = self.run_short_once(&statement)? {
            return Ok(outcome);
        }
        match statement {
            Statement::Query(query) => self.query("SELECT", Ast::Query(query)),
            Statement::Lock(lock) => self.lock(&lock),
            Statement::Describe(describe) => self.describe_rows(&describe),
            Statement::Explain { statement, analyze, verbose } => self.explain(&statement, analyze, verbose),
            definition @ (Statement::CreateTable(_)
            | Statement::CreateTableAs(_)
            | Statement::CreateSchema(_)
            | Statement::CreateView(_)
            | Statement::Drop(_)
            | Statement::AlterTable(_)
            | Statement::Truncate(_)) => self.define(definition),
            Statement::Insert(insert) => {
                let table = Targets::one(&insert.target.table);
                let written =
                    self.write(table, &mut |env, transaction| plan::insert(env, transaction, &insert, None))?;
                Ok(Outcome::written("INSERT 0", written))
            }
            Statement::Update(update) => {
                let table = Targets::one(&update.target.table);
                let written =
                    self.write(table, &mut |env, transaction| plan::update(env, transaction, &update, None))?;
                Ok(Outcome::written("UPDATE", written))
            }
            Statement::Delete(delete) => {
                let table = Targets::one(&delete.target.table);
                let written =
                    self.write(table, &mut |env, transaction| plan::delete(env, transaction, &delete, None))?;
                Ok(Outcome::written("DELETE", written))
            }
            Statement::Copy(copy) => self.copy(copy, &mut Stream::None),
            Statement::Begin(begin) => self.begin(begin),
            Statement::Commit => self.commit(),
            Statement::Rollback => self.rollback(),
            Statement::Savepoint(name) => self.set_savepoint(name),
            Statement::RollbackTo(name) => {
                let (transaction, savepoints) = self.open_transaction()?;
                let settings = savepoints.rollback_to(transaction, &name)?;
                self.settings.back_to(settings);
                Ok(Outcome::done("ROLLBACK"))
            }
            Statement::Release(name) => {
                let (transaction, savepoints) = self.open_transaction()?;
                savepoints.release(transaction, &name).map(|()| Outcome::done("RELEASE"))
            }
            Statement::Setting(setting) => self.setting(setting),
            Statement::Prepared(statement) => self.prepared_statement(statement),
            Statement::Maintenance(maintenance) => self.maintenance(&maintenance),
            Statement::Passed(passed) => self.pass_over(passed),
            Statement::UniqueIndex(alter) => {
                self.check_restores("CREATE UNIQUE INDEX")?;
                self.define(Statement::AlterTable(alter))
            }
            Statement::CreateSequence(create) => self.create_sequence(create),
            Statement::SetPosition(set) => self.set_position(&set),
            Statement::Transfer(transfer) => self.transfer(&transfer),
            Statement::Checkpoint => {
                self.shared.storage.checkpoint()?;
                Ok(Outcome::done("CHECKPOINT"))
            }
        }
    }

    /// Runs a statement that changes schemas.
    fn define(&mut self, statement: Statement) -> Result<Outcome> {
        match statement {
            Statement::CreateTable(create) => {
                let created =
                    self.write(Targets::None, &mut |env, transaction| plan::create_table(env, transaction, &create))?;
                Ok(match created {
                    Created::Made { table, .. } => {
                        self.note_temporary(table, create.on_commit)?;
                        Outcome::done("CREATE TABLE")
                    }
                    Created::There(notice) => Outcome::done("CREATE TABLE").with_notices(vec![notice]),
                })
            }
            Statement::CreateTableAs(create) => {
                let created = self
                    .write(Targets::None, &mut |env, transaction| plan::create_table_as(env, transaction, &create))?;
                Ok(match created {
                    Created::Made { table, rows } => {
                        self.note_temporary(table, create.table.on_commit)?;
                        Outcome::wrote("SELECT", rows).with_notices(self.file_notices())
                    }
                    Created::There(notice) => Outcome::done("CREATE TABLE AS").with_notices(vec![notice]),
                })
            }
            Statement::CreateSchema(create) => {
                let notices =
                    self.write(Targets::None, &mut |_, transaction| plan::create_schema(transaction, &create))?;
                Ok(Outcome::done("CREATE SCHEMA").with_notices(notices))
            }
            Statement::CreateView(create) => {
                self.write(Targets::None, &mut |env, transaction| plan::create_view(env, transaction, &create))?;
                Ok(Outcome::done("CREATE VIEW"))
            }
            Statement::Drop(drop) => {
                let targets = match &drop.what {
                    Dropped::Tables(tables) => Targets::Tables(tables),
                    Dropped::Views(_) => Targets::None,
                    Dropped::Schemas(schemas) => Targets::Schemas(schemas),
                };
                let notices =
                    self.write(targets, &mut |env, transaction| plan::drop_objects(env, transaction, &drop))?;
                Ok(Outcome::done(match drop.what {
                    Dropped::Tables(_) => "DROP TABLE",
                    Dropped::Views(_) => "DROP VIEW",
                    Dropped::Schemas(_) => "DROP SCHEMA",
                })
                .with_notices(notices))
            }
            Statement::AlterTable(alter) => {
                let table = Targets::one(&alter.name);
                let notices = self.write(table, &mut |env, transaction| plan::alter_table(env, transaction, &alter))?;
                Ok(Outcome::done("ALTER TABLE").with_notices(notices))
            }
            Statement::Truncate(truncate) => {
                let targets = Targets::Tables(&truncate.names);
                self.write(targets, &mut |env, transaction| plan::truncate(env, transaction, &truncate))?;
                Ok(Outcome::done("TRUNCATE TABLE"))
            }
            _ => Err(Error::internal("a definition of nothing")),
        }
    }

    fn set_savepoint(&mut self, name: String) -> Result<Outcome> {
        let waiting = self.interrupts.watch(self.settings.statement_timeout()).waiting();
        let settings = self.settings.state();
        let (transaction, savepoints) = self.open_transaction()?;
        transaction.wait_as(waiting);
        savepoints.set(transaction, name, settings);
        transaction.wait_as(Waiting::default());
        Ok(Outcome::done("SAVEPOINT"))
    }

    fn read_transaction(&self) -> Result<Transaction> {
        self.shared.storage.begin(TransactionMode {
            read_only: true,
            synchronous: self.settings.synchronous(),
            base: Base::Visible,
        })
    }

    /// Runs `read` in the open transaction, or in a read-only one of its own.
    fn read<T>(&mut self, read: impl FnOnce(&mut Environment<'_>, &Transaction) -> Result<T>) -> Result<T> {
        let own = match &self.current {
            Current::None => Some(self.read_transaction()?),
            _ => None,
        };
        let Self { shared, planner, settings, current, interrupts, parameters, progress, .. } = self;
        let transaction = match (current, &own) {
            (Current::Open { transaction, .. }, _) => &**transaction,
            (_, Some(own)) => own,
            _ => return Err(failed()),
        };
        let mut env = Environment {
            shared,
            planner,
            settings,
            parameters,
            cancel: interrupts.watch(settings.statement_timeout()),
            progress,
        };
        read(&mut env, transaction)
    }

    /// Runs `write`, a statement that writes to `targets` or changes schemas.
    fn write<T>(&mut self, targets: Targets<'_>, write: Write<'_, T>) -> Result<T> {
        let Self { shared, planner, settings, current, interrupts, parameters, temporary, progress, .. } = self;
        let mut env = Environment {
            shared,
            planner,
            settings,
            parameters,
            cancel: interrupts.watch(settings.statement_timeout()),
            progress,
        };
        let write: Write<'_, T> = &mut |env, transaction| files::with_types(env, transaction, write);
        match current {
            Current::Failed => Err(failed()),
            _ if env.shared.storage.options().read_only => Err(read_only()),
            Current::None if temporary.is_idle() => in_own_transaction(&mut env, targets, write),
            Current::None => in_own_transaction(&mut env, targets, &mut |env, transaction| {
                let written = write(env, transaction)?;
                temporary.end(transaction).map(|()| written)
            }),
            Current::Open { read_only: true, .. } => {
                Err(Error::invalid(sqlstate::READ_ONLY, "cannot write in a read-only transaction"))
            }
            Current::Open { transaction, read_only: false, .. } => {
                for table in targets.ids(settings.names(), transaction) {
                    transaction.pass_gate(table, || env.cancel.check())?;
                }
                transaction.wait_as(env.cancel.waiting());
                transaction.make_room();
                let written = write(&mut env, transaction);
                transaction.wait_as(Waiting::default());
                written
            }
        }
    }

    fn query(&mut self, tag: &str, statement: Ast) -> Result<Outcome> {
        let running = self.start_query(statement)?;
        Ok(Outcome::with_rows(tag, Rows::Running(running)))
    }

    fn lock(&mut self, lock: &Lock) -> Result<Outcome> {
        if matches!(self.current, Current::None) {
            if self.shared.storage.options().read_only {
                return Err(read_only());
            }
            // What it keeps others from ends with the statement.
            let running = self.read(|env, transaction| {
                env.need_certain_files();
                let plan = plan::unlocked(env, transaction, lock)?;
                env.start(&plan::shown(plan)?)
            })?;
            return Ok(Outcome::with_rows("SELECT", Rows::Running(running)));
        }
        let rows = self.write(Targets::one(&lock.table), &mut |env, transaction| plan::lock(env, transaction, lock))?;
        Ok(Outcome::with_rows("SELECT", rows))
    }

    fn begin(&mut self, begin: Begin) -> Result<Outcome> {
        if matches!(self.current, Current::Open { .. }) {
            return Err(Error::invalid(sqlstate::ACTIVE_TRANSACTION, "there is already a transaction in progress"));
        }
        let transaction = self.shared.storage.begin(TransactionMode {
            read_only: begin.read_only,
            synchronous: self.settings.synchronous(),
            base: Base::Visible,
        })?;
        let (transaction, savepoints) = (Box::new(transaction), Savepoints::default());
        self.current = Current::Open { transaction, read_only: begin.read_only, savepoints };
        self.had_conflict = false;
        self.settings.begin();
        Ok(Outcome::done("BEGIN"))
    }

    fn open_transaction(&mut self) -> Result<(&mut Transaction, &mut Savepoints)> {
        match &mut self.current {
            Current::Open { transaction, savepoints, .. } => Ok((transaction, savepoints)),
            Current::Failed => Err(failed()),
            Current::None => Err(no_transaction()),
        }
    }

    fn commit(&mut self) -> Result<Outcome> {
        let outcome = match std::mem::replace(&mut self.current, Current::None) {
            Current::Open { mut transaction, read_only, .. } => {
                let ended = if read_only { Ok(()) } else { self.temporary.end(&mut transaction) };
                ended.and_then(|()| transaction.commit()).map(|_| Outcome::done("COMMIT"))
            }
            Current::Failed => Ok(Outcome::done("ROLLBACK")),
            Current::None => Ok(Outcome::done("COMMIT").with_notices(vec![not_in_transaction()])),
        };
        self.settings.end(outcome.as_ref().is_ok_and(|outcome| outcome.tag == "COMMIT"));
        outcome
    }

    /// Ends the transaction without its writes.
    pub(crate) fn rollback(&mut self) -> Result<Outcome> {
        self.settings.end(false);
        match std::mem::replace(&mut self.current, Current::None) {
            Current::Open { transaction, .. } => {
                transaction.rollback();
                Ok(Outcome::done("ROLLBACK"))
            }
            Current::Failed => Ok(Outcome::done("ROLLBACK")),
            Current::None => Ok(Outcome::done("ROLLBACK").with_notices(vec![not_in_transaction()])),
        }
    }
}

fn failed() -> Error {
    Error::invalid(
        sqlstate::FAILED_TRANSACTION,
        "the transaction has failed, in a conflict or an internal error; nothing runs until ROLLBACK",
    )
}

fn read_only() -> Error {
    Error::invalid(sqlstate::READ_ONLY, "the database was opened to read only")
}

/// What COMMIT and ROLLBACK say where there is nothing to end.
fn not_in_transaction() -> Notice {
    Notice::new(sqlstate::NO_TRANSACTION, "there is no transaction in progress")
}

fn no_transaction() -> Error {
    Error::invalid(sqlstate::NO_TRANSACTION, "there is no transaction in progress")
}

/// An outcome with columns of text that are there already.
fn ready(tag: &str, columns: &[(&str, Vec<String>)]) -> Result<Outcome> {
    let fields: Vec<Field> = columns.iter().map(|(name, _)| Field::new(*name, DataType::Utf8View, false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays =
        columns.iter().map(|(_, values)| Arc::new(StringViewArray::from_iter_values(values)) as ArrayRef).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays)?;
    Ok(Outcome::with_rows(tag, Rows::Ready { schema, batches: vec![batch], memory: None }))
}
