//! What statements give back.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::execution::memory_pool::MemoryReservation;
use mainstem_storage::error::sqlstate;
use mainstem_storage::row::Value;
use mainstem_storage::{Error, Result};

use crate::exec::{self, Batches, Notice, Shared};
use crate::session::Outcome;
use crate::value::{ResultColumn, ValueRows, batch_of};

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
    Ready {
        batches: std::vec::IntoIter<RecordBatch>,
        _memory: Option<MemoryReservation>,
    },
    /// The rows of a statement that ran without a plan; they are a batch once somebody asks for one.
    Values {
        columns: Arc<[ResultColumn]>,
        rows: Option<Vec<Vec<Value>>>,
    },
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

    /// The rows of a statement that ran without a plan.
    pub(super) fn of_values(
        schema: SchemaRef,
        columns: Arc<[ResultColumn]>,
        rows: Vec<Vec<Value>>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { schema, source: Source::Values { columns, rows: Some(rows) }, _shared: shared }
    }

    /// Its columns and rows as values in storage form, if it has them so and no batch was taken: the statement ran
    /// without a plan then. Else the result itself.
    pub fn into_values(self) -> std::result::Result<ValueRows, Self> {
        match self.source {
            Source::Values { columns, rows: Some(rows) } => Ok((columns, rows)),
            source => Err(Self { source, ..self }),
        }
    }

    /// The batches as a stream of Arrow's own interface: what the C stream interface and other crates read. It lives
    /// on its own, as the result does; its errors are [`ArrowError::ExternalError`] with an [`Error`] in it.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// use mainstem::arrow::array::RecordBatchReader;
    ///
    /// let reader = {
    ///     let connection = mainstem::Database::in_memory()?.connect()?;
    ///     connection.query("SELECT n, n * n AS square FROM generate_series(1, 3) n")?.into_reader()
    /// };
    /// assert_eq!(reader.schema().field(1).name(), "square");
    /// assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 3);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn into_reader(self) -> ResultReader {
        ResultReader(self)
    }

    /// Names and types of the columns; known before the first row is.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Name and SQL type of each column.
    #[must_use]
    pub fn columns(&self) -> Arc<[ResultColumn]> {
        match &self.source {
            Source::Values { columns, .. } => columns.clone(),
            _ => ResultColumn::of(&self.schema),
        }
    }

    /// The next batch, as the iterator gives it, unless there is none within `timeout`: then the query goes on, and
    /// [`Poll::Pending`] is returned.
    ///
    /// # Errors
    /// As the iterator.
    pub fn next_within(&mut self, timeout: Duration) -> Poll<Option<Result<RecordBatch>>> {
        exec::park_within(timeout, |context| self.poll_batch(context))
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
            Source::Ready { .. } | Source::Values { .. } => Poll::Ready(self.next()),
        }
    }
}

impl Iterator for QueryResult {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Running(batches) => batches.next(),
            Source::Ready { batches, .. } => batches.next().map(Ok),
            Source::Values { columns, rows } => Some(batch_of(&self.schema, columns, &rows.take()?)),
        }
    }
}

/// The batches of a result, as [`QueryResult::into_reader`] gives them.
#[derive(Debug)]
pub struct ResultReader(QueryResult);

impl Iterator for ResultReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for ResultReader {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
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
