//! Explicit transactions as guards.

use mainstem_storage::Result;

use super::{Appender, Connection, QueryResult};

/// An open transaction of a connection. Rolled back when dropped.
#[derive(Debug)]
pub struct Transaction<'a> {
    connection: &'a Connection,
    ended: bool,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, ended: false }
    }

    /// As [`Connection::execute`], inside the transaction.
    ///
    /// # Errors
    /// That of the first statement that fails: it is undone, those before it are not. After a conflict (40001) nothing but
    /// rollback is possible.
    pub fn execute(&self, sql: &str) -> Result<u64> {
        self.connection.execute(sql)
    }

    /// As [`Connection::query`], inside the transaction: sees its own writes.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn query(&self, sql: &str) -> Result<QueryResult> {
        self.connection.query(sql)
    }

    /// As [`Connection::appender`], inside the transaction.
    ///
    /// # Errors
    /// 42P01.
    pub fn appender(&self, table: &str) -> Result<Appender<'a>> {
        self.connection.appender(table)
    }

    /// Makes the transaction's writes true, all at once.
    ///
    /// # Errors
    /// 40001 when another transaction committed first: run this one again. 25P02 when it had failed before. Full or Io.
    pub fn commit(mut self) -> Result<()> {
        self.ended = true;
        let failed = self.connection.status() == crate::TransactionStatus::Failed;
        self.connection.execute("COMMIT")?;
        if failed {
            return Err(mainstem_storage::Error::conflict(
                "the transaction had failed because of a conflict and was rolled back; run it again",
            ));
        }
        Ok(())
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
