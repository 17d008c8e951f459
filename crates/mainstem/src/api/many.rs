//! One statement that is run with many rows of values, all of them or none.
//!
//! Comes in: a prepared statement, and a row of values for each of its runs. Goes out: how many rows were written.
//!
//! 1. An INSERT that stores each parameter into a column ([`InsertRows`]) becomes columns, which go into the table as
//!    an appender's do: values are converted, checked and refused as the statement would.
//! 2. Any other statement runs once for each row.
//!
//! Invariants: what a row is refused for leaves nothing of the others; an open transaction is as it was before then,
//! and goes on. Without one, the rows are a transaction. It does not own: what parameters are (`plan`), how rows are
//! kept ([`KeptRows`]).

use mainstem_storage::{Error, Result};

use super::appender::KeptRows;
use super::{Connection, Statement};
use crate::session::{TransactionStatus, check_parameter_count};
use crate::sql;
use crate::value::{Params, ValueRef};

/// The savepoint for rows that are written in an open transaction. A name of a user that begins with a blank is
/// hidden by it meanwhile, not lost.
const SAVEPOINT: &str = " rows";

impl Statement<'_> {
    /// Runs it once for each row of values, as one: when one run fails, none has happened. Returns how many rows were
    /// written. An INSERT of nothing but parameters is many times faster so than run by run.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)")?;
    /// let insert = connection.prepare("INSERT INTO t (v, k) VALUES ($1, $2)")?;
    /// assert_eq!(insert.execute_many((0..1_000).map(|k| (format!("row {k}"), k)))?, 1_000);
    /// let twice = insert.execute_many([("new", 1_000), ("again", 7)]).unwrap_err();
    /// assert_eq!(twice.sqlstate(), "23505");
    /// assert_eq!(connection.query_row("SELECT count(*) FROM t", ())?.get::<i64>(0)?, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Statement::execute`], of the first row that is refused, whose number from 1 the message has where it is
    /// known.
    pub fn execute_many<P: Params>(&self, rows: impl IntoIterator<Item = P>) -> Result<u64> {
        if let Some(mut inserted) = self.insert_rows()? {
            for row in rows {
                inserted.push(&row)?;
                if inserted.is_full() {
                    inserted.flush()?;
                }
            }
            return inserted.finish();
        }
        let scope = Scope::begin(self.connection())?;
        let mut written = 0;
        for (at, row) in rows.into_iter().enumerate() {
            written += self.execute(row).map_err(|e| in_row(&e, at as u64))?;
        }
        scope.end()?;
        Ok(written)
    }

    /// Rows for this statement, if it is an INSERT that stores each of its parameters into a column and does nothing
    /// else: see [`InsertRows`].
    ///
    /// # Errors
    /// As [`Statement::parameter_types`].
    pub fn insert_rows(&self) -> Result<Option<InsertRows<'_>>> {
        let Some(insert) = self.insert_of_parameters()? else { return Ok(None) };
        let columns: Vec<&str> = insert.columns.iter().map(String::as_str).collect();
        let kept = KeptRows::of_columns(&insert.table, &columns)?.bound_as(insert.types);
        Ok(Some(InsertRows {
            statement: self,
            kept,
            parameters: insert.parameters,
            seen: 0,
            inserted: 0,
            is_refused: false,
            scope: None,
        }))
    }
}

/// Rows of values for an INSERT of nothing but parameters, which are inserted as columns: one statement, however many
/// rows there are. What was not finished when it is dropped is undone.
#[derive(Debug)]
pub struct InsertRows<'s> {
    statement: &'s Statement<'s>,
    kept: KeptRows,
    /// Which parameter each column takes.
    parameters: Vec<usize>,
    /// Rows that were pushed.
    seen: u64,
    inserted: u64,
    /// Whether a row was refused.
    is_refused: bool,
    /// What is undone together, once a part of the rows is written.
    scope: Option<Scope<'s>>,
}

impl InsertRows<'_> {
    /// Keeps a row: values as [`Statement::execute`] takes them. Nothing is written yet.
    ///
    /// # Errors
    /// As there of values. None of the rows can be written then.
    pub fn push(&mut self, row: impl Params) -> Result<()> {
        let at = self.seen;
        self.seen += 1;
        let Self { statement, kept, parameters, .. } = self;
        let count = statement.parameter_count();
        let pushed = statement.with_values(&row, |values: &[ValueRef<'_>]| {
            check_parameter_count(count, values.len())?;
            kept.append(parameters.iter().map(|at| values.get(*at).copied().unwrap_or(ValueRef::Null)))
        });
        self.is_refused |= pushed.is_err();
        pushed.map_err(|e| in_row(&e, at))
    }

    /// Whether the rows kept should be written by [`InsertRows::flush`] before others are pushed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kept.is_full()
    }

    /// Writes the rows that are kept. Others do not see them before all are finished.
    ///
    /// # Errors
    /// As [`Statement::execute`].
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        if self.scope.is_none() {
            self.scope = Some(Scope::begin(self.statement.connection())?);
        }
        self.inserted += self.kept.take()?.insert(self.statement.connection())?;
        Ok(())
    }

    /// Writes what is left, and makes all of it true; returns how many rows there were.
    ///
    /// # Errors
    /// As [`Statement::execute`].
    pub fn finish(mut self) -> Result<u64> {
        self.check()?;
        // What is written at once is all or nothing by itself.
        self.inserted += self.kept.take()?.insert(self.statement.connection())?;
        if let Some(scope) = self.scope.take() {
            scope.end()?;
        }
        Ok(self.inserted)
    }

    /// A row that was refused takes the others with it.
    fn check(&self) -> Result<()> {
        if self.is_refused {
            return Err(Error::invalid("55000", "a row was refused: none of them can be written"));
        }
        Ok(())
    }
}

impl Connection {
    /// Begins a part of the connection's work that is all or none: a transaction, or a savepoint in the open one. It
    /// is undone when the guard is dropped before its [`Scope::end`].
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE t (k BIGINT); BEGIN; INSERT INTO t VALUES (1)")?;
    /// let scope = connection.scope()?;
    /// connection.execute("INSERT INTO t VALUES (2)")?;
    /// drop(scope);
    /// connection.execute("COMMIT")?;
    /// assert_eq!(connection.query_row("SELECT sum(k) FROM t", ())?.get::<i64>(0)?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 25P02 in a transaction that has failed, Closed.
    pub fn scope(&self) -> Result<Scope<'_>> {
        Scope::begin(self)
    }
}

/// A transaction, or a part of the open one, that is undone when it is dropped before its end.
#[derive(Debug)]
#[must_use]
pub struct Scope<'c> {
    connection: &'c Connection,
    is_open: bool,
    ended: bool,
}

impl<'c> Scope<'c> {
    fn begin(connection: &'c Connection) -> Result<Self> {
        let is_open = connection.status() != TransactionStatus::Idle;
        connection.run_parsed(if is_open {
            sql::Statement::Savepoint(SAVEPOINT.into())
        } else {
            sql::Statement::Begin(sql::Begin::default())
        })?;
        Ok(Self { connection, is_open, ended: false })
    }

    /// Ends it: commits the transaction, or leaves the part to the open one.
    ///
    /// # Errors
    /// As COMMIT and RELEASE SAVEPOINT.
    pub fn end(mut self) -> Result<()> {
        self.ended = true;
        let end = if self.is_open { sql::Statement::Release(SAVEPOINT.into()) } else { sql::Statement::Commit };
        self.connection.run_parsed(end)
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if !self.is_open {
            self.connection.rollback();
            return;
        }
        // A transaction that a conflict has ended has no savepoints any more.
        let back = self.connection.run_parsed(sql::Statement::RollbackTo(SAVEPOINT.into()));
        if back.is_ok() {
            let _ = self.connection.run_parsed(sql::Statement::Release(SAVEPOINT.into()));
        }
    }
}

fn in_row(error: &Error, at: u64) -> Error {
    error.context(format_args!("row {}", at + 1))
}
