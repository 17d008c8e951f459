//! Bulk insertion whose insertions are awaited.

use arrow::array::RecordBatch;
use mainstem_storage::Result;
use mainstem_storage::row::Value;

use super::AsyncConnection;
use crate::api::appender::KeptRows;
use crate::value::Params;

/// As [`crate::Appender`], on an async connection: rows are kept by the task that adds them, and inserted on a thread
/// of the database.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let connection = mainstem::Database::in_memory()?.connect_async()?;
/// connection.execute("CREATE TABLE reading (sensor INTEGER, at BIGINT, PRIMARY KEY (sensor, at))").await?;
/// let mut appender = connection.appender("reading").await?;
/// for at in 0..1_000_i64 {
///     appender.append_row((7, at)).await?;
/// }
/// assert_eq!(appender.finish().await?, 1_000);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncAppender {
    connection: AsyncConnection,
    kept: KeptRows,
    /// Rows inserted since the last call that said how many.
    inserted: u64,
}

impl AsyncConnection {
    /// As [`crate::Connection::appender`].
    ///
    /// # Errors
    /// As there.
    pub async fn appender(&self, table: &str) -> Result<AsyncAppender> {
        Ok(AsyncAppender::new(self.clone(), KeptRows::new(self.table(table).await?)))
    }

    /// As [`crate::Connection::appender_to_columns`].
    ///
    /// # Errors
    /// As there.
    pub async fn appender_to_columns(&self, table: &str, columns: &[&str]) -> Result<AsyncAppender> {
        let kept = KeptRows::of_columns(self.table(table).await?.as_ref(), columns)?;
        Ok(AsyncAppender::new(self.clone(), kept))
    }
}

impl AsyncAppender {
    fn new(connection: AsyncConnection, kept: KeptRows) -> Self {
        Self { connection, kept, inserted: 0 }
    }

    /// As [`crate::Appender::append_row`].
    ///
    /// # Errors
    /// As there.
    pub async fn append_row(&mut self, row: impl Params) -> Result<()> {
        self.kept.append_row(row)?;
        self.insert_if_full().await
    }

    /// As [`crate::Appender::append_values`].
    ///
    /// # Errors
    /// As there.
    pub async fn append_values(&mut self, row: &[Value]) -> Result<()> {
        self.kept.append_values(row)?;
        self.insert_if_full().await
    }

    /// As [`crate::Appender::append_batch`].
    ///
    /// # Errors
    /// As there.
    pub async fn append_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.kept.append_batch(batch)?;
        self.insert_if_full().await
    }

    /// As [`crate::Appender::pending_rows`].
    #[must_use]
    pub fn pending_rows(&self) -> usize {
        self.kept.rows()
    }

    async fn insert_if_full(&mut self) -> Result<()> {
        if self.kept.is_full() { self.insert().await } else { Ok(()) }
    }

    async fn insert(&mut self) -> Result<()> {
        let rows = self.kept.take()?;
        self.inserted += self.connection.call(move |connection| rows.insert(connection)).await?;
        Ok(())
    }

    /// As [`crate::Appender::flush`]. A flush that is dropped while it is awaited is canceled: its rows are forgotten.
    ///
    /// # Errors
    /// As there.
    pub async fn flush(&mut self) -> Result<u64> {
        self.insert().await?;
        Ok(std::mem::take(&mut self.inserted))
    }

    /// As [`crate::Appender::finish`].
    ///
    /// # Errors
    /// As there.
    pub async fn finish(mut self) -> Result<u64> {
        self.flush().await
    }
}
