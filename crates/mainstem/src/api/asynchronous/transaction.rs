//! Transactions whose calls are awaited.

use mainstem_storage::{Error, Result};

use super::connection::Begun;
use super::{AsyncConnection, AsyncQueryResult, AsyncStatement};
use crate::api::Row;
use crate::api::transaction::check_open;
use crate::session::TransactionStatus;
use crate::value::Params;

/// As [`crate::Transaction`], with calls that are awaited. Rolled back when dropped, before anything else runs on its
/// connection.
#[derive(Debug)]
pub struct AsyncTransaction {
    connection: AsyncConnection,
    begun: Begun,
    ended: bool,
}

impl AsyncTransaction {
    pub(super) fn new(connection: AsyncConnection, begun: Begun) -> Self {
        Self { connection, begun, ended: false }
    }

    /// As [`crate::Transaction::execute`].
    ///
    /// # Errors
    /// As there.
    pub async fn execute(&self, sql: &str) -> Result<u64> {
        self.connection.execute(sql).await
    }

    /// As [`crate::Transaction::execute_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn execute_with(&self, sql: &str, params: impl Params) -> Result<u64> {
        self.connection.execute_with(sql, params).await
    }

    /// As [`crate::Transaction::query`].
    ///
    /// # Errors
    /// As there.
    pub async fn query(&self, sql: &str) -> Result<AsyncQueryResult> {
        self.connection.query(sql).await
    }

    /// As [`crate::Transaction::query_row`].
    ///
    /// # Errors
    /// As there.
    pub async fn query_row(&self, sql: &str, params: impl Params) -> Result<Row> {
        self.connection.query_row(sql, params).await
    }

    /// As [`crate::Transaction::prepare`].
    ///
    /// # Errors
    /// As there.
    pub async fn prepare(&self, sql: &str) -> Result<AsyncStatement> {
        self.connection.prepare(sql).await
    }

    /// As [`crate::Transaction::commit`].
    ///
    /// # Errors
    /// As there.
    pub async fn commit(mut self) -> Result<()> {
        let committed = self.connection.call(|connection| {
            check_open(connection.status())?;
            let failed = connection.status() == TransactionStatus::Failed;
            connection.execute("COMMIT")?;
            Ok(failed)
        });
        let outcome = committed.await;
        self.ended = true;
        if outcome? {
            return Err(Error::conflict(
                "the transaction had failed because of a conflict and was rolled back; run it again",
            ));
        }
        Ok(())
    }

    /// Undoes the transaction's writes.
    ///
    /// # Errors
    /// Closed.
    pub async fn rollback(mut self) -> Result<()> {
        let done = self.connection.call(|connection| {
            connection.rollback();
            Ok(())
        });
        let outcome = done.await;
        self.ended = true;
        outcome
    }
}

impl Drop for AsyncTransaction {
    fn drop(&mut self) {
        if !self.ended {
            self.connection.roll_back_soon(self.begun.clone());
        }
    }
}
