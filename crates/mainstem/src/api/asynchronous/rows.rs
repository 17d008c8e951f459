//! Results that are awaited.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::{Stream, StreamExt};
use mainstem_storage::Result;

use crate::api::{QueryResult, Row};
use crate::value::{BatchRows, ResultColumn};

/// As [`QueryResult`]: a stream of Arrow batches. Dropping it ends the query.
#[derive(Debug)]
pub struct AsyncQueryResult(QueryResult);

impl AsyncQueryResult {
    pub(super) fn new(result: QueryResult) -> Self {
        Self(result)
    }

    /// Names and types of the columns; known before the first row is.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// That of the query; nothing comes after it.
    pub async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.next().await.transpose()
    }

    /// All rows, in memory.
    ///
    /// # Errors
    /// The first error of the query.
    pub async fn collect_batches(mut self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch().await? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// The rows one by one, as values.
    #[must_use]
    pub fn rows(self) -> AsyncRows {
        AsyncRows { columns: ResultColumn::of(&self.schema()), result: self, batch: None }
    }
}

impl Stream for AsyncQueryResult {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_batch(context)
    }
}

/// As [`crate::Rows`]: a stream of rows. Dropping it ends the query.
#[derive(Debug)]
pub struct AsyncRows {
    columns: Arc<[ResultColumn]>,
    result: AsyncQueryResult,
    batch: Option<BatchRows>,
}

impl AsyncRows {
    /// Name and type of each column; known before the first row is.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    /// That of the query; nothing comes after it.
    pub async fn next_row(&mut self) -> Result<Option<Row>> {
        self.next().await.transpose()
    }
}

impl Stream for AsyncRows {
    type Item = Result<Row>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(values) = self.batch.as_mut().and_then(BatchRows::next) {
                return Poll::Ready(Some(values.map(|values| Row::new(self.columns.clone(), values))));
            }
            let batch = match self.result.0.poll_batch(context) {
                Poll::Ready(Some(batch)) => batch,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            match batch.and_then(|batch| BatchRows::new(&batch, &self.columns)) {
                Ok(rows) => self.batch = Some(rows),
                Err(e) => return Poll::Ready(Some(Err(e))),
            }
        }
    }
}
