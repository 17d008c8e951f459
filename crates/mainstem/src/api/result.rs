//! What statements give back.

use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::MemoryReservation;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use crate::exec::{self, Batches, Notice, Shared};
use crate::session::Outcome;

/// Rows of a query as Arrow batches, streamed: the query runs while they are read. It reads one snapshot, whatever is
/// written meanwhile, and lives on its own: its connection may run other statements. Dropping it ends the query.
#[derive(Debug)]
pub struct QueryResult {
    schema: SchemaRef,
    source: Source,
    /// Keeps the query threads while rows are read.
    _shared: Arc<Shared>,
}

#[derive(Debug)]
enum Source {
    Running(Batches),
    Ready { batches: std::vec::IntoIter<RecordBatch>, _memory: Option<MemoryReservation> },
}

impl QueryResult {
    pub(super) fn new(rows: exec::Rows, shared: Arc<Shared>) -> Self {
        let (schema, source) = match rows {
            exec::Rows::Running(running) => (running.schema, Source::Running(running.batches)),
            exec::Rows::Ready { schema, batches, memory } => {
                (schema, Source::Ready { batches: batches.into_iter(), _memory: memory })
            }
        };
        Self { schema, source, _shared: shared }
    }

    /// Names and types of the columns; known before the first row is.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// All rows, in memory.
    ///
    /// # Errors
    /// The first error of the query.
    pub fn collect_batches(self) -> Result<Vec<RecordBatch>> {
        self.collect()
    }

    /// Reads and forgets all rows; returns how many there were.
    ///
    /// # Errors
    /// The first error of the query.
    pub fn count_rows(self) -> Result<u64> {
        let mut rows = 0;
        for batch in self {
            rows += batch?.num_rows() as u64;
        }
        Ok(rows)
    }
}

impl QueryResult {
    /// The next batch, or a promise to wake the task when there is one.
    pub(super) fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        match &mut self.source {
            Source::Running(batches) => batches.poll(context),
            Source::Ready { batches, .. } => Poll::Ready(batches.next().map(Ok)),
        }
    }
}

impl Iterator for QueryResult {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Running(batches) => batches.next(),
            Source::Ready { batches, .. } => batches.next().map(Ok),
        }
    }
}

/// What became of one statement.
#[derive(Debug)]
pub struct StatementOutcome {
    /// PostgreSQL's command tag: `INSERT 0 3`, `CREATE TABLE`, `COMMIT`; `SELECT` without a count, since rows are
    /// streamed.
    pub tag: String,
    /// Rows written, for statements that write rows.
    pub rows_affected: Option<u64>,
    /// Rows read, for statements that give some.
    pub rows: Option<QueryResult>,
    /// What a user should know that is no error.
    pub notices: Vec<Notice>,
}

impl StatementOutcome {
    pub(super) fn new(outcome: Outcome, shared: &Arc<Shared>) -> Self {
        Self {
            tag: outcome.tag,
            rows_affected: outcome.affected,
            rows: outcome.rows.map(|rows| QueryResult::new(rows, shared.clone())),
            notices: outcome.notices,
        }
    }

    /// Reads the rows to their end; returns how many rows were written.
    pub(super) fn finish(self) -> Result<u64> {
        if let Some(rows) = self.rows {
            rows.count_rows()?;
        }
        Ok(self.rows_affected.unwrap_or(0))
    }

    /// The rows, of a statement that gives some.
    pub(super) fn into_rows(self) -> Result<QueryResult> {
        self.rows.ok_or_else(|| Error::invalid(sqlstate::SYNTAX, "the statement gives no rows; use execute"))
    }
}
