//! As `api::retry`, awaited.

use mainstem_storage::Result;

use super::{AsyncConnection, AsyncTransaction};
use crate::api::RetryOptions;
use crate::api::retry::{Attempts, WAIT};

impl AsyncConnection {
    /// As [`crate::Connection::run_transaction`]. Dropping the future rolls the transaction back.
    ///
    /// # Errors
    /// As there.
    pub async fn run_transaction<T>(&self, work: impl AsyncFnMut(&AsyncTransaction) -> Result<T>) -> Result<T> {
        self.run_transaction_with(&RetryOptions::default(), work).await
    }

    /// As [`crate::Connection::run_transaction_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn run_transaction_with<T>(
        &self,
        options: &RetryOptions,
        mut work: impl AsyncFnMut(&AsyncTransaction) -> Result<T>,
    ) -> Result<T> {
        let mut attempts = Attempts::new(options);
        loop {
            let transaction = self.transaction().await?;
            let outcome = match work(&transaction).await {
                Ok(value) => transaction.commit().await.map(|()| value),
                Err(error) => {
                    transaction.rollback().await?;
                    Err(error)
                }
            };
            match attempts.wait_after(&outcome) {
                Some(seconds) => drop(self.query_row(WAIT, [seconds]).await?),
                None => return outcome,
            }
        }
    }
}
