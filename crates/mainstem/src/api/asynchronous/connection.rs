//! Connections and statements whose calls are awaited.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use mainstem_storage::row::Value;
use mainstem_storage::schema::{DataType, TableSchema};
use mainstem_storage::{Error, Result};
use parking_lot::Mutex;

use super::{AsyncQueryResult, AsyncRows};
use crate::api::{Connection, InterruptHandle, Row};
use crate::error::from_panic;
use crate::provider::Progress;
use crate::session::{Prepared, TransactionStatus};
use crate::sql;
use crate::value::{Params, ResultColumn, ValueRef};

/// As [`Connection`], with calls that are awaited. It may be cloned: the clones are the same connection, and may be
/// used from any task of any runtime.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let connection = mainstem::Database::in_memory()?.connect_async()?;
/// connection.execute("CREATE TABLE city (name TEXT PRIMARY KEY, people INTEGER)").await?;
/// let insert = connection.prepare("INSERT INTO city VALUES ($1, $2)").await?;
/// insert.execute(("Ulm", 128_928)).await?;
/// let row = connection.query_row("SELECT people FROM city WHERE name = $1", ["Ulm"]).await?;
/// assert_eq!(row.get::<i32>(0)?, 128_928);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AsyncConnection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connection: Arc<Connection>,
    /// Held by the call that runs.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Transactions that were dropped. One that had begun is to be rolled back before anything else runs.
    dropped: Mutex<Vec<Begun>>,
}

/// Whether the BEGIN of a transaction took place.
pub(super) type Begun = Arc<AtomicBool>;

/// Values that outlive the call, with the types they were bound as, and their names.
#[derive(Debug)]
pub(super) struct OwnedValues {
    values: Vec<(Value, Option<DataType>)>,
    names: Option<Vec<String>>,
}

impl OwnedValues {
    fn new(params: impl Params) -> Self {
        let owned = |value: &ValueRef<'_>| (value.to_stored(), value.data_type());
        let names = params.names().map(|names| names.into_iter().map(String::from).collect());
        Self { values: params.with_values(|values| values.iter().map(owned).collect()), names }
    }
}

impl Params for OwnedValues {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        let values: Vec<ValueRef<'_>> = self.values.iter().map(borrowed).collect();
        work(&values)
    }

    fn names(&self) -> Option<Vec<&str>> {
        self.names.as_ref().map(|names| names.iter().map(String::as_str).collect())
    }
}

fn borrowed((value, data_type): &(Value, Option<DataType>)) -> ValueRef<'_> {
    data_type.map_or(ValueRef::Null, |data_type| ValueRef::stored(value, data_type))
}

/// Interrupts the statement when its future is dropped before it is done.
struct CancelOnDrop(Option<InterruptHandle>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.interrupt();
        }
    }
}

impl AsyncConnection {
    pub(in crate::api) fn new(connection: Connection) -> Self {
        Self(Arc::new(Inner { connection: Arc::new(connection), turn: Arc::default(), dropped: Mutex::default() }))
    }

    /// Runs `work` on a thread that may block, when it is this call's turn.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = self.0.turn.clone().lock_owned().await;
        let connection = self.0.connection.clone();
        // Whatever is interrupted from here on is this call, even before its statement starts.
        let since = connection.interrupt_count();
        // Their BEGIN, if there was one, is done: it had its turn before.
        let dropped = std::mem::take(&mut *self.0.dropped.lock());
        let mut cancel = CancelOnDrop(Some(connection.interrupt_handle()));
        let task = self.0.connection.spawn_blocking(move || {
            if dropped.iter().any(|begun| begun.load(Ordering::Acquire)) {
                connection.rollback();
            }
            let outcome = connection.counting_interrupts_from(since, work);
            drop(turn);
            outcome
        })?;
        let outcome = task.await;
        cancel.0 = None;
        match outcome {
            Ok(outcome) => outcome,
            Err(e) if e.is_panic() => Err(from_panic(e.into_panic().as_ref())),
            Err(_) => Err(Error::closed("the call ended because the database was closed")),
        }
    }

    /// Sees to it that a transaction is rolled back before anything else runs, if it has `begun`.
    pub(super) fn roll_back_soon(&self, begun: Begun) {
        self.0.dropped.lock().push(begun);
        let this = self.clone();
        // The next call does it if this cannot.
        let _ = self.0.connection.spawn(async move {
            let _ = this.call(|_| Ok(())).await;
        });
    }

    /// As [`Connection::execute`].
    ///
    /// # Errors
    /// As [`Connection::execute`]; this goes for the other calls too.
    pub async fn execute(&self, sql: &str) -> Result<u64> {
        let sql = sql.to_string();
        self.call(move |connection| connection.execute(&sql)).await
    }

    /// As [`Connection::execute_batch`].
    ///
    /// # Errors
    /// As there.
    pub async fn execute_batch(&self, sql: &str) -> Result<()> {
        self.execute(sql).await.map(|_| ())
    }

    /// As [`Connection::execute_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn execute_with(&self, sql: &str, params: impl Params) -> Result<u64> {
        let (sql, values) = (sql.to_string(), OwnedValues::new(params));
        self.call(move |connection| connection.execute_with(&sql, values)).await
    }

    /// As [`Connection::query`].
    ///
    /// # Errors
    /// As there.
    pub async fn query(&self, sql: &str) -> Result<AsyncQueryResult> {
        let sql = sql.to_string();
        self.call(move |connection| connection.query(&sql)).await.map(AsyncQueryResult::new)
    }

    /// As [`Connection::query_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn query_with(&self, sql: &str, params: impl Params) -> Result<AsyncRows> {
        let (sql, values) = (sql.to_string(), OwnedValues::new(params));
        let result = self.call(move |connection| connection.prepare(&sql)?.query_batches(values)).await?;
        Ok(AsyncQueryResult::new(result).rows())
    }

    /// As [`Connection::query_row`].
    ///
    /// # Errors
    /// As there.
    pub async fn query_row(&self, sql: &str, params: impl Params) -> Result<Row> {
        let (sql, values) = (sql.to_string(), OwnedValues::new(params));
        self.call(move |connection| connection.query_row(&sql, values)).await
    }

    /// As [`Connection::prepare`].
    ///
    /// # Errors
    /// As there.
    pub async fn prepare(&self, sql: &str) -> Result<AsyncStatement> {
        let template = Arc::new(sql::parse_template(sql)?);
        let prepared = self.call(move |connection| connection.prepare_template(template)).await?;
        Ok(AsyncStatement { connection: self.clone(), prepared: Arc::new(Mutex::new(prepared)) })
    }

    /// As [`Connection::status`], when the calls before it are done.
    ///
    /// # Errors
    /// Closed.
    pub async fn status(&self) -> Result<TransactionStatus> {
        self.call(|connection| Ok(connection.status())).await
    }

    /// Inserts the rows of `batches` into `table`, all or none, as an [`crate::Appender`] does; returns how many.
    ///
    /// # Errors
    /// As [`crate::Appender::append_batch`] and [`crate::Appender::flush`].
    pub async fn append(&self, table: &str, batches: Vec<RecordBatch>) -> Result<u64> {
        let table = table.to_string();
        self.call(move |connection| {
            let mut appender = connection.appender(&table)?;
            batches.iter().try_for_each(|batch| appender.append_batch(batch))?;
            appender.finish()
        })
        .await
    }

    /// As [`Connection::copy_in`].
    ///
    /// # Errors
    /// As there.
    pub async fn copy_in(&self, sql: &str, input: impl Read + Send + 'static) -> Result<u64> {
        let sql = sql.to_string();
        self.call(move |connection| connection.copy_in(&sql, input)).await
    }

    /// As [`Connection::copy_out`]; gives the output back.
    ///
    /// # Errors
    /// As there.
    pub async fn copy_out<W: Write + Send + 'static>(&self, sql: &str, mut output: W) -> Result<(u64, W)> {
        let sql = sql.to_string();
        self.call(move |connection| connection.copy_out(&sql, &mut output).map(|rows| (rows, output))).await
    }

    /// As [`Connection::dump`]; gives the output back.
    ///
    /// # Errors
    /// As there.
    pub async fn dump<W: Write + Send + 'static>(&self, mut output: W) -> Result<(u64, W)> {
        self.call(move |connection| connection.dump(&mut output).map(|rows| (rows, output))).await
    }

    /// As [`Connection::table`].
    ///
    /// # Errors
    /// As there.
    pub async fn table(&self, table: &str) -> Result<Arc<TableSchema>> {
        let table = table.to_string();
        self.call(move |connection| connection.table(&table)).await
    }

    /// As [`Connection::interrupt_handle`]: it cancels the call that runs and results still being read.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.0.connection.interrupt_handle()
    }

    /// As [`Connection::progress`].
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.0.connection.progress()
    }
}

/// As [`crate::Statement`], with calls that are awaited. Clones are the same statement.
#[derive(Clone, Debug)]
pub struct AsyncStatement {
    connection: AsyncConnection,
    prepared: Arc<Mutex<Prepared>>,
}

impl AsyncStatement {
    /// As [`crate::Statement::execute`].
    ///
    /// # Errors
    /// As there.
    pub async fn execute(&self, params: impl Params) -> Result<u64> {
        let (prepared, values) = (self.prepared.clone(), OwnedValues::new(params));
        self.connection.call(move |connection| connection.statement(&prepared).execute(values)).await
    }

    /// As [`crate::Statement::query`].
    ///
    /// # Errors
    /// As there.
    pub async fn query(&self, params: impl Params) -> Result<AsyncRows> {
        self.query_batches(params).await.map(AsyncQueryResult::rows)
    }

    /// As [`crate::Statement::query_batches`].
    ///
    /// # Errors
    /// As there.
    pub async fn query_batches(&self, params: impl Params) -> Result<AsyncQueryResult> {
        let (prepared, values) = (self.prepared.clone(), OwnedValues::new(params));
        let result = self.connection.call(move |connection| connection.statement(&prepared).query_batches(values));
        result.await.map(AsyncQueryResult::new)
    }

    /// As [`crate::Statement::query_row`].
    ///
    /// # Errors
    /// As there.
    pub async fn query_row(&self, params: impl Params) -> Result<Row> {
        let (prepared, values) = (self.prepared.clone(), OwnedValues::new(params));
        self.connection.call(move |connection| connection.statement(&prepared).query_row(values)).await
    }

    /// As [`crate::Statement::query_optional`].
    ///
    /// # Errors
    /// As there.
    pub async fn query_optional(&self, params: impl Params) -> Result<Option<Row>> {
        let (prepared, values) = (self.prepared.clone(), OwnedValues::new(params));
        self.connection.call(move |connection| connection.statement(&prepared).query_optional(values)).await
    }

    /// As [`crate::Statement::parameter_count`].
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.prepared.lock().parameters()
    }

    /// As [`crate::Statement::parameter_names`].
    #[must_use]
    pub fn parameter_names(&self) -> Vec<Box<str>> {
        self.prepared.lock().names().to_vec()
    }

    /// As [`crate::Statement::parameter_types`].
    ///
    /// # Errors
    /// As there.
    pub async fn parameter_types(&self) -> Result<Vec<Option<DataType>>> {
        let prepared = self.prepared.clone();
        self.connection.call(move |connection| connection.statement(&prepared).parameter_types()).await
    }

    /// As [`crate::Statement::writes`].
    #[must_use]
    pub fn writes(&self) -> bool {
        self.prepared.lock().writes()
    }

    /// As [`crate::Statement::schema`].
    ///
    /// # Errors
    /// As there.
    pub async fn schema(&self) -> Result<Option<SchemaRef>> {
        let prepared = self.prepared.clone();
        self.connection.call(move |connection| connection.statement(&prepared).schema()).await
    }

    /// As [`crate::Statement::columns`].
    ///
    /// # Errors
    /// As there.
    pub async fn columns(&self) -> Result<Arc<[ResultColumn]>> {
        let prepared = self.prepared.clone();
        self.connection.call(move |connection| connection.statement(&prepared).columns()).await
    }
}
