//! Transactions whose calls are awaited.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::connection::Begun;
use super::{AsyncAppender, AsyncConnection, AsyncQueryResult, AsyncRows, AsyncStatement};
use crate::api::Row;
use crate::api::transaction::{check_open, failure};
use crate::session::TransactionStatus;
use crate::value::Params;

/// As [`crate::Transaction`], with calls that are awaited. Rolled back when dropped, before anything else runs on its
/// connection.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let connection = mainstem::Database::in_memory()?.connect_async()?;
/// connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)").await?;
/// let transfer = connection.transaction().await?;
/// transfer.execute_with("INSERT INTO account VALUES ($1, $2)", (1, 100_i64)).await?;
/// transfer.rollback().await?;
/// let row = connection.query_row("SELECT count(*) FROM account", ()).await?;
/// assert_eq!(row.get::<i64>(0)?, 0);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncTransaction {
    connection: AsyncConnection,
    begun: Begun,
    ended: bool,
}

impl AsyncConnection {
    /// As [`crate::Connection::transaction`].
    ///
    /// # Errors
    /// As there.
    pub async fn transaction(&self) -> Result<AsyncTransaction> {
        let begun = Begun::default();
        // Made first: when this future is dropped, what it began is rolled back.
        let transaction = AsyncTransaction::new(self.clone(), begun.clone());
        self.call(move |connection| {
            if connection.status() != TransactionStatus::Idle {
                return Err(Error::invalid(sqlstate::ACTIVE_TRANSACTION, "there is already a transaction in progress"));
            }
            connection.execute("BEGIN")?;
            begun.store(true, Ordering::Release);
            Ok(())
        })
        .await?;
        Ok(transaction)
    }
}

impl AsyncTransaction {
    fn new(connection: AsyncConnection, begun: Begun) -> Self {
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

    /// As [`crate::Transaction::execute_batch`].
    ///
    /// # Errors
    /// As there.
    pub async fn execute_batch(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).await
    }

    /// As [`crate::Transaction::query_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn query_with(&self, sql: &str, params: impl Params) -> Result<AsyncRows> {
        self.connection.query_with(sql, params).await
    }

    /// As [`crate::Transaction::copy_in`].
    ///
    /// # Errors
    /// As there.
    pub async fn copy_in(&self, sql: &str, input: impl Read + Send + 'static) -> Result<u64> {
        self.connection.copy_in(sql, input).await
    }

    /// As [`crate::Transaction::copy_out`]; gives the output back.
    ///
    /// # Errors
    /// As there.
    pub async fn copy_out<W: Write + Send + 'static>(&self, sql: &str, output: W) -> Result<(u64, W)> {
        self.connection.copy_out(sql, output).await
    }

    /// As [`crate::Transaction::appender`].
    ///
    /// # Errors
    /// As there.
    pub async fn appender(&self, table: &str) -> Result<AsyncAppender> {
        self.connection.appender(table).await
    }

    /// As [`crate::Transaction::appender_to_columns`].
    ///
    /// # Errors
    /// As there.
    pub async fn appender_to_columns(&self, table: &str, columns: &[&str]) -> Result<AsyncAppender> {
        self.connection.appender_to_columns(table, columns).await
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
            let failure = failure(connection);
            connection.execute("COMMIT")?;
            failure.map_or(Ok(()), Err)
        });
        let outcome = committed.await;
        self.ended = true;
        outcome
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
