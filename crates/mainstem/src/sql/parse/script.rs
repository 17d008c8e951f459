//! Statements, and scripts of parsed ones.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Query;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use super::describe::Describe;
use super::maintenance::Maintenance;
use super::position;
use super::transfer::Transfer;
use crate::sql::copy::CopyStatement;
use crate::sql::dialect::on_stack;
use crate::sql::settings::SettingStatement;
use crate::sql::transaction::Begin;
use crate::sql::{
    AlterTable, CreateSchema, CreateSequence, CreateTable, CreateTableAs, CreateView, Delete, Drop, Insert, Lock,
    Passed, SetPosition, Truncate, Update,
};

/// Parsed statements. Trees are walked by recursion, their drop included: that happens inside [`Script::with_stack`].
#[derive(Debug)]
pub(crate) struct Script {
    /// What they were parsed from.
    text: Box<str>,
    statements: VecDeque<Statement>,
    /// Statements that were taken out.
    taken: usize,
    /// Whether the last one of them was an EXECUTE.
    executes: bool,
    deep: bool,
}

impl Script {
    pub(super) fn new(text: &str, statements: VecDeque<Statement>, deep: bool) -> Self {
        Self { text: text.into(), statements, taken: 0, executes: false, deep }
    }

    /// Takes the next statement out.
    pub(crate) fn next(&mut self) -> Option<Statement> {
        let statement = self.statements.pop_front()?;
        self.taken += 1;
        self.executes = matches!(statement, Statement::Prepared(PreparedStatement::Execute { .. }));
        Some(statement)
    }

    /// An error of the statement that was taken out last, with its position in the text if that can be told.
    pub(crate) fn with_position(&self, error: Error) -> Error {
        match self.taken.checked_sub(1) {
            // What is wrong with a prepared statement stands in another text.
            Some(last) if !self.executes => position::of_name(error, &self.text, last),
            _ => error,
        }
    }

    /// Whether a statement is left.
    pub(crate) fn has_next(&self) -> bool {
        !self.statements.is_empty()
    }

    /// The only statement, if there is just one.
    pub(crate) fn only(&self) -> Option<&Statement> {
        self.statements.front().filter(|_| self.statements.len() == 1)
    }

    /// Those that were not taken out.
    pub(super) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.statements.iter()
    }

    /// Whether a tree of one of them needs a stack of its own.
    pub(super) fn is_deep(&self) -> bool {
        self.deep
    }

    /// Runs `work` on a stack that is large enough for the statements.
    pub(crate) fn with_stack<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        on_stack(self.deep, || work(self))
    }
}

impl std::ops::Drop for Script {
    fn drop(&mut self) {
        on_stack(self.deep, || self.statements.clear());
    }
}

/// One statement that is kept, to be run any number of times with values for its parameters.
#[derive(Debug)]
pub(crate) struct Template {
    /// Of the one statement.
    script: Script,
    parameters: usize,
    names: Arc<[Box<str>]>,
}

impl Template {
    /// `statement`, which was parsed from `text` and has parameters `$1` to `$parameters`, of these names if the text
    /// has names for them; `deep` says that its tree needs a stack of its own.
    pub(super) fn new(text: &str, statement: Statement, parameters: usize, names: Arc<[Box<str>]>, deep: bool) -> Self {
        Self { script: Script::new(text, VecDeque::from([statement]), deep), parameters, names }
    }

    /// An error of the statement with its position in the text if that can be told.
    pub(crate) fn with_position(&self, error: Error) -> Error {
        let executes = matches!(self.script.only(), Some(Statement::Prepared(PreparedStatement::Execute { .. })));
        if executes { error } else { position::of_name(error, &self.script.text, 0) }
    }

    /// Whether its tree, and plans of it, need a stack of their own.
    pub(crate) fn is_deep(&self) -> bool {
        self.script.deep
    }

    /// Bytes of its text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.script.text.len()
    }

    /// Names of the parameters in their order; none if the text numbers them.
    pub(crate) fn names(&self) -> &Arc<[Box<str>]> {
        &self.names
    }

    /// The highest number of a parameter.
    pub(crate) fn parameters(&self) -> usize {
        self.parameters
    }

    /// Runs `work` with the statement, on a stack that is large enough for its tree and copies of it.
    pub(crate) fn with_statement<T>(&self, work: impl FnOnce(&Statement) -> Result<T>) -> Result<T> {
        let statement = self.script.only().ok_or_else(|| Error::internal("a template without its statement"))?;
        on_stack(self.script.deep, || work(statement))
    }
}

/// One statement.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// SELECT, VALUES, WITH, TABLE.
    Query(Box<Query>),
    /// SELECT ... FOR UPDATE, FOR SHARE.
    Lock(Lock),
    /// EXPLAIN `[ANALYZE]` of a query or of the query that feeds a write.
    Explain { statement: Box<Statement>, analyze: bool, verbose: bool },
    /// DESCRIBE, SUMMARIZE.
    Describe(Describe),
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// CREATE TABLE AS.
    CreateTableAs(CreateTableAs),
    /// CREATE SCHEMA.
    CreateSchema(CreateSchema),
    /// CREATE VIEW.
    CreateView(CreateView),
    /// DROP TABLE, VIEW, SCHEMA.
    Drop(Drop),
    /// ALTER TABLE.
    AlterTable(AlterTable),
    /// TRUNCATE.
    Truncate(Truncate),
    /// INSERT.
    Insert(Insert),
    /// UPDATE.
    Update(Update),
    /// DELETE.
    Delete(Delete),
    /// COPY FROM and COPY TO a file.
    Copy(CopyStatement),
    /// BEGIN, START TRANSACTION.
    Begin(Begin),
    /// COMMIT, END.
    Commit,
    /// ROLLBACK, ABORT.
    Rollback,
    /// SAVEPOINT.
    Savepoint(String),
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo(String),
    /// RELEASE SAVEPOINT.
    Release(String),
    /// SET, SHOW, RESET.
    Setting(SettingStatement),
    /// What a dump says that says nothing here.
    Passed(Passed),
    /// CREATE UNIQUE INDEX, as the UNIQUE constraint that it is.
    UniqueIndex(AlterTable),
    /// CREATE SEQUENCE: until a column counts like it.
    CreateSequence(CreateSequence),
    /// `SELECT setval(...)`.
    SetPosition(SetPosition),
    /// UNLOAD, LOAD, EXPORT, IMPORT.
    Transfer(Transfer),
    /// CHECKPOINT.
    Checkpoint,
    /// VACUUM, ANALYZE.
    Maintenance(Maintenance),
    /// PREPARE, EXECUTE, DEALLOCATE.
    Prepared(PreparedStatement),
}

/// A statement about prepared statements.
#[derive(Clone, Debug)]
pub(crate) enum PreparedStatement {
    /// PREPARE; types of the first parameters, as far as they are declared.
    Prepare { name: String, types: Vec<DataType>, template: Arc<Template> },
    /// EXECUTE; the arguments are a SELECT without FROM, or none.
    Execute { name: String, arguments: Option<Box<Query>> },
    /// DEALLOCATE of one, or of all.
    Deallocate { name: Option<String> },
}
