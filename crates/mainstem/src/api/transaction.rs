//! Explicit transactions as guards.

use std::io::{Read, Write};

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::{Appender, Connection, QueryResult, Row, Rows, Statement};
use crate::session::TransactionStatus;
use crate::sql;
use crate::value::Params;

/// An open transaction of a connection. Rolled back when dropped.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)")?;
/// connection.execute("INSERT INTO account VALUES (1, 100), (2, 0)")?;
/// let transfer = connection.transaction()?;
/// transfer.execute_with("UPDATE account SET balance = balance - $1 WHERE id = 1", [30_i64])?;
/// transfer.execute_with("UPDATE account SET balance = balance + $1 WHERE id = 2", [30_i64])?;
/// transfer.commit()?;
/// assert_eq!(connection.query_row("SELECT balance FROM account WHERE id = 2", ())?.get::<i64>(0)?, 30);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction<'a> {
    connection: &'a Connection,
    ended: bool,
}

impl Connection {
    /// Begins a transaction. Statements of the connection belong to it until it is committed or rolled back; dropping
    /// the guard rolls it back.
    ///
    /// # Errors
    /// 25001 when one is open already, Closed.
    pub fn transaction(&self) -> Result<Transaction<'_>> {
        if self.status() != TransactionStatus::Idle {
            return Err(Error::invalid(sqlstate::ACTIVE_TRANSACTION, "there is already a transaction in progress"));
        }
        self.run_parsed(sql::Statement::Begin(sql::Begin::default()))?;
        Ok(Transaction { connection: self, ended: false })
    }

    /// Makes the open transaction's writes true, all at once, whoever has begun it; as [`Transaction::commit`].
    ///
    /// # Errors
    /// As there.
    pub fn commit(&self) -> Result<()> {
        check_open(self.status())?;
        let failure = failure(self);
        self.run_parsed(sql::Statement::Commit)?;
        failure.map_or(Ok(()), Err)
    }
}

impl Connection {
    /// Begins a transaction for `sql` where none is open, unless it begins or ends one itself, or needs none as SET:
    /// for interfaces that have autocommit off, as DB-API and ODBC mean it.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// use mainstem::TransactionStatus;
    ///
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.begin_implicitly("COMMIT")?;
    /// assert_eq!(connection.status(), TransactionStatus::Idle);
    /// connection.begin_implicitly("SELECT 1")?;
    /// assert_eq!(connection.status(), TransactionStatus::Open);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As BEGIN.
    pub fn begin_implicitly(&self, sql: &str) -> Result<()> {
        if self.status() != TransactionStatus::Idle || !sql::begins_transaction(sql) {
            return Ok(());
        }
        self.run_parsed(sql::Statement::Begin(sql::Begin::default()))
    }
}

impl<'a> Transaction<'a> {
    /// As [`Connection::execute`], inside the transaction.
    ///
    /// # Errors
    /// That of the first statement that fails: it is undone, those before it are not. After a conflict (40001) nothing
    /// but rollback is possible.
    pub fn execute(&self, sql: &str) -> Result<u64> {
        self.connection.execute(sql)
    }

    /// As [`Connection::execute_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        self.execute(sql).map(|_| ())
    }

    /// As [`Connection::query_with`].
    ///
    /// # Errors
    /// As there.
    pub fn query_with(&self, sql: &str, params: impl Params) -> Result<Rows> {
        self.connection.query_with(sql, params)
    }

    /// As [`Connection::query`], inside the transaction: sees its own writes.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn query(&self, sql: &str) -> Result<QueryResult> {
        self.connection.query(sql)
    }

    /// As [`Connection::prepare`], inside the transaction. The statement may outlive it.
    ///
    /// # Errors
    /// As [`Connection::prepare`]; 25P02 after a conflict.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'a>> {
        self.connection.prepare(sql)
    }

    /// As [`Connection::execute_with`], inside the transaction.
    ///
    /// # Errors
    /// As [`Connection::execute_with`].
    pub fn execute_with(&self, sql: &str, params: impl Params) -> Result<u64> {
        self.connection.execute_with(sql, params)
    }

    /// As [`Connection::query_row`], inside the transaction.
    ///
    /// # Errors
    /// As [`Connection::query_row`].
    pub fn query_row(&self, sql: &str, params: impl Params) -> Result<Row> {
        self.connection.query_row(sql, params)
    }

    /// As [`Connection::copy_in`], inside the transaction.
    ///
    /// # Errors
    /// As [`Connection::copy_in`].
    pub fn copy_in(&self, sql: &str, input: impl Read) -> Result<u64> {
        self.connection.copy_in(sql, input)
    }

    /// As [`Connection::copy_out`], inside the transaction.
    ///
    /// # Errors
    /// As [`Connection::copy_out`].
    pub fn copy_out(&self, sql: &str, output: impl Write) -> Result<u64> {
        self.connection.copy_out(sql, output)
    }

    /// As [`Connection::appender`], inside the transaction.
    ///
    /// # Errors
    /// 42P01.
    pub fn appender(&self, table: &str) -> Result<Appender<'a>> {
        self.connection.appender(table)
    }

    /// As [`Connection::appender_to_columns`], inside the transaction.
    ///
    /// # Errors
    /// As [`Connection::appender_to_columns`].
    pub fn appender_to_columns(&self, table: &str, columns: &[&str]) -> Result<Appender<'a>> {
        self.connection.appender_to_columns(table, columns)
    }

    /// Makes the transaction's writes true, all at once.
    ///
    /// # Errors
    /// 40001 when another transaction committed first: run this one again. 25P01 when a statement has ended it before,
    /// 25P02 when an internal error of one has. Full or Io.
    pub fn commit(mut self) -> Result<()> {
        self.ended = true;
        self.connection.commit()
    }

    /// Undoes the transaction's writes.
    pub fn rollback(mut self) {
        self.ended = true;
        self.connection.rollback();
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.connection.rollback();
        }
    }
}

/// Why COMMIT will only roll back the open transaction, if so: in SQL it just says ROLLBACK then.
pub(super) fn failure(connection: &Connection) -> Option<Error> {
    if connection.has_conflict() {
        let message = "the transaction had failed because of a conflict and was rolled back; run it again";
        return Some(Error::conflict(message));
    }
    (connection.status() == TransactionStatus::Failed).then(|| {
        let message = "the transaction had failed because of an internal error in a statement, and was rolled back";
        Error::invalid(sqlstate::FAILED_TRANSACTION, message)
    })
}

/// COMMIT of nothing is a warning in SQL; who holds a transaction wants to know that its writes are not there.
pub(super) fn check_open(status: TransactionStatus) -> Result<()> {
    if status == TransactionStatus::Idle {
        let message = "a statement has ended this transaction before";
        return Err(Error::invalid(sqlstate::NO_TRANSACTION, message));
    }
    Ok(())
}
