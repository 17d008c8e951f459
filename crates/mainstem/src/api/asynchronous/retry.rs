//! The calls of `api::retry` as futures.

use mainstem_storage::{Error, ErrorKind, Result};

use super::{AsyncConnection, AsyncTransaction};
use crate::api::RetryOptions;
use crate::api::retry::Retries;

impl AsyncConnection {
    /// As [`crate::Connection::run_transaction`]. When its future is dropped, the run that is under way is rolled back.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let connection = mainstem::Database::in_memory()?.connect_async()?;
    /// connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n BIGINT)").await?;
    /// connection.execute("INSERT INTO counter VALUES (1, 0)").await?;
    /// let written = connection
    ///     .run_transaction(async |transaction: &mainstem::AsyncTransaction| {
    ///         transaction.execute("UPDATE counter SET n = n + 1 WHERE id = 1").await
    ///     })
    ///     .await?;
    /// assert_eq!(written, 1);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn run_transaction<T, E: From<Error>>(
        &self,
        work: impl AsyncFnMut(&AsyncTransaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_transaction_with(RetryOptions::default(), work).await
    }

    /// As [`crate::Connection::run_transaction_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn run_transaction_with<T, E: From<Error>>(
        &self,
        options: RetryOptions,
        mut work: impl AsyncFnMut(&AsyncTransaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut retries = Retries::new(options);
        loop {
            let transaction = self.transaction().await?;
            let error = match work(&transaction).await {
                Ok(value) => match transaction.commit().await {
                    Ok(()) => return Ok(value),
                    Err(error) if error.kind() == ErrorKind::Conflict => E::from(error),
                    Err(error) => return Err(E::from(error)),
                },
                Err(error) => {
                    // Whatever fails here, it is the closure's error that counts.
                    let is_conflict = self.call(|connection| Ok(connection.has_conflict())).await.unwrap_or(false);
                    let _ = transaction.rollback().await;
                    if !is_conflict {
                        return Err(error);
                    }
                    error
                }
            };
            let Some(delay) = retries.next_delay() else { return Err(error) };
            self.call(move |connection| connection.wait(delay)).await?;
        }
    }
}
