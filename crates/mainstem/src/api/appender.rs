//! Bulk insertion without SQL.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use mainstem_storage::error::sqlstate;
use mainstem_storage::limits;
use mainstem_storage::row::Value;
use mainstem_storage::schema::{Column, DataType, TableSchema};
use mainstem_storage::{Error, Result};

use super::Connection;
use crate::sql::existing_column;
use crate::value::{ColumnBuilder, Params, ValueRef, with_bound};

/// Bytes of rows that an appender keeps before it inserts them by itself.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Inserts many rows into one table, fast. Rows are kept in memory until [`Appender::flush`], [`Appender::finish`], or
/// until they are about 64 MB; then they are inserted, all of them or none. Outside a transaction each time is a
/// commit; inside one all of them are done or undone with it. Every constraint of the table is checked. Rows not
/// inserted yet when the appender is dropped are forgotten.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// connection.execute("CREATE TABLE reading (sensor INTEGER, at BIGINT, value DOUBLE PRECISION, PRIMARY KEY (sensor, at))")?;
/// let mut appender = connection.appender("reading")?;
/// for at in 0..10_000_i64 {
///     appender.append_row((7, at, at as f64 / 10.0))?;
/// }
/// assert_eq!(appender.finish()?, 10_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Appender<'a> {
    connection: &'a Connection,
    kept: KeptRows,
    /// Rows inserted since the last call that said how many.
    inserted: u64,
}

impl Connection {
    /// An appender to table `table`: see [`Connection::table`].
    ///
    /// # Errors
    /// 42P01.
    pub fn appender(&self, table: &str) -> Result<Appender<'_>> {
        let schema = self.table(table)?;
        Ok(Appender::new(self, KeptRows::new(schema)))
    }

    /// An appender to the columns `columns` of table `table`, in that order; the others take their defaults.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE city (id SERIAL PRIMARY KEY, name TEXT, country TEXT DEFAULT 'DE')")?;
    /// let mut appender = connection.appender_to_columns("city", &["name"])?;
    /// appender.append_row(["Ulm"])?;
    /// appender.append_row(["Jena"])?;
    /// appender.finish()?;
    /// let row = connection.query_row("SELECT id, country FROM city WHERE name = 'Jena'", ())?;
    /// assert_eq!((row.get::<i32>(0)?, row.get::<String>(1)?), (2, "DE".to_owned()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 42P01, 42703 and 42701 for the columns.
    pub fn appender_to_columns(&self, table: &str, columns: &[&str]) -> Result<Appender<'_>> {
        Ok(Appender::new(self, KeptRows::of_columns(self.table(table)?.as_ref(), columns)?))
    }
}

impl<'a> Appender<'a> {
    fn new(connection: &'a Connection, kept: KeptRows) -> Self {
        Self { connection, kept, inserted: 0 }
    }

    /// Adds a row: a value for each column, as for [`super::Statement::execute`], in their order or by their names. A
    /// value of another type than its column's is converted as INSERT converts an expression, not a literal.
    ///
    /// # Errors
    /// 42804 when the number of values is not that of the columns or a type does not fit, 22003 for a number that does
    /// not: the row is left out. When the rows kept so far are inserted: as [`Appender::flush`].
    pub fn append_row(&mut self, row: impl Params) -> Result<()> {
        self.kept.append_row(row)?;
        self.insert_if_full()
    }

    /// Adds a row of values in storage form, as [`Value`] describes it for each type of column.
    ///
    /// # Errors
    /// As [`Appender::append_row`].
    pub fn append_values(&mut self, row: &[Value]) -> Result<()> {
        self.kept.append_values(row)?;
        self.insert_if_full()
    }

    /// Adds the rows of a batch whose columns are those of the table in order; types that can be assigned are cast.
    ///
    /// # Errors
    /// 42804 when the number of columns differs; types and values are checked by flush. As [`Appender::flush`] when the
    /// rows kept so far are inserted.
    pub fn append_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.kept.append_batch(batch)?;
        self.insert_if_full()
    }

    /// Rows waiting to be inserted.
    #[must_use]
    pub fn pending_rows(&self) -> usize {
        self.kept.rows()
    }

    fn insert_if_full(&mut self) -> Result<()> {
        if self.kept.is_full() { self.insert() } else { Ok(()) }
    }

    fn insert(&mut self) -> Result<()> {
        self.inserted += self.kept.take()?.insert(self.connection)?;
        Ok(())
    }

    /// Inserts the rows that are kept, all or none. Returns how many were inserted since the last flush. After an error
    /// those that were kept are forgotten.
    ///
    /// # Errors
    /// 23505, 23502, 22001, 22003 and others of the values; 42P01 when the table is gone; 40001 in an explicit
    /// transaction.
    pub fn flush(&mut self) -> Result<u64> {
        self.insert()?;
        Ok(std::mem::take(&mut self.inserted))
    }

    /// As [`Appender::flush`], for the last time.
    ///
    /// # Errors
    /// As [`Appender::flush`].
    pub fn finish(mut self) -> Result<u64> {
        self.flush()
    }
}

/// The rows that an appender keeps, of either kind.
#[derive(Debug)]
pub(super) struct KeptRows {
    /// With the columns that rows have a value for.
    table: Arc<TableSchema>,
    /// The columns that rows have a value for, by name; none means all.
    named: Vec<String>,
    columns: Vec<ColumnBuilder>,
    /// Rows in `columns`.
    rows: usize,
    /// Those of them that were refused half-way, and are left out.
    refused: Vec<usize>,
    batches: Vec<RecordBatch>,
    /// Bytes of `batches`.
    bytes: usize,
    /// The types of the parameters that the columns are given by, if values are converted as those are, and not as
    /// expressions.
    bound: Option<Vec<DataType>>,
}

/// Rows to be inserted together.
#[derive(Debug)]
pub(super) struct TakenRows {
    table: Arc<TableSchema>,
    named: Vec<String>,
    batches: Vec<RecordBatch>,
}

impl TakenRows {
    /// Inserts them, all or none.
    pub(super) fn insert(&self, connection: &Connection) -> Result<u64> {
        if self.batches.is_empty() {
            return Ok(0);
        }
        connection.append(&self.table, &self.named, &self.batches)
    }
}

impl KeptRows {
    /// None yet, for all columns of `table`.
    pub(super) fn new(table: Arc<TableSchema>) -> Self {
        let columns = table.columns.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
        Self {
            table,
            named: Vec::new(),
            columns,
            rows: 0,
            refused: Vec::new(),
            batches: Vec::new(),
            bytes: 0,
            bound: None,
        }
    }

    /// The same, of values that are bound to parameters of the types `bound`, one for each column.
    pub(super) fn bound_as(self, bound: Vec<DataType>) -> Self {
        Self { bound: Some(bound), ..self }
    }

    /// None yet, for the columns `columns`.
    ///
    /// # Errors
    /// 42703, 42701 and 42601 for the columns.
    pub(super) fn of_columns(table: &TableSchema, columns: &[&str]) -> Result<Self> {
        let mut chosen: Vec<Column> = Vec::with_capacity(columns.len());
        for name in columns {
            let column = existing_column(table, name)?;
            if chosen.iter().any(|before| before.id == column.id) {
                let message = format!("column \"{name}\" is named twice");
                return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, message));
            }
            chosen.push(column.clone());
        }
        if chosen.is_empty() {
            return Err(Error::invalid(sqlstate::SYNTAX, "an appender needs a column"));
        }
        let named = chosen.iter().map(|column| column.name.clone()).collect();
        let chosen = Arc::new(TableSchema { columns: chosen, ..table.clone() });
        Ok(Self { named, ..Self::new(chosen) })
    }

    pub(super) fn append_row(&mut self, row: impl Params) -> Result<()> {
        if row.names().is_none() {
            return row.with_values(|values| self.append(values.iter().copied()));
        }
        let table = self.table.clone();
        let columns = table.columns.iter().map(|column| &*column.name);
        with_bound(&row, columns, |values| self.append(values.iter().copied()))
    }

    pub(super) fn append_values(&mut self, row: &[Value]) -> Result<()> {
        if row.len() != self.columns.len() {
            return Err(self.wrong_count("row", "values", row.len()));
        }
        let mut refused = None;
        for ((builder, column), value) in self.columns.iter_mut().zip(&self.table.columns).zip(row) {
            if !builder.append_whole(value) {
                append_value(builder, column, ValueRef::stored(value, column.data_type), None, &mut refused);
            }
        }
        self.end_row(refused)
    }

    pub(super) fn append<'v>(&mut self, row: impl ExactSizeIterator<Item = ValueRef<'v>>) -> Result<()> {
        if row.len() != self.columns.len() {
            return Err(self.wrong_count("row", "values", row.len()));
        }
        let mut refused = None;
        for (at, ((builder, column), value)) in self.columns.iter_mut().zip(&self.table.columns).zip(row).enumerate() {
            let bound = self.bound.as_ref().and_then(|bound| bound.get(at)).copied();
            append_value(builder, column, value, bound, &mut refused);
        }
        self.end_row(refused)
    }

    /// Ends a row that is in all columns; without it where a value was refused.
    fn end_row(&mut self, refused: Option<Error>) -> Result<()> {
        self.rows += 1;
        if let Some(error) = refused {
            self.refused.push(self.rows - 1);
            return Err(error);
        }
        if self.rows >= limits::BATCH_ROWS { self.end_batch() } else { Ok(()) }
    }

    fn wrong_count(&self, what: &str, parts: &str, given: usize) -> Error {
        let (columns, name) = (self.columns.len(), &self.table.name);
        Error::invalid(
            sqlstate::TYPE_MISMATCH,
            format!("a {what} of {given} {parts} for the {columns} columns of \"{name}\""),
        )
    }

    pub(super) fn append_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.columns.len() {
            return Err(self.wrong_count("batch", "columns", batch.num_columns()));
        }
        self.end_batch()?;
        self.keep(batch.clone());
        Ok(())
    }

    /// Makes a batch of the rows in the columns.
    fn end_batch(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let mut batch = RecordBatch::try_new(crate::plan::nullable_schema(&self.table), arrays)?;
        let refused = std::mem::take(&mut self.refused);
        if !refused.is_empty() {
            let kept: BooleanArray = (0..self.rows).map(|row| Some(refused.binary_search(&row).is_err())).collect();
            batch = filter_record_batch(&batch, &kept)?;
        }
        self.rows = 0;
        self.keep(batch);
        Ok(())
    }

    fn keep(&mut self, batch: RecordBatch) {
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= KEPT_BYTES_MAX
    }

    /// The rows, which are kept no longer.
    pub(super) fn take(&mut self) -> Result<TakenRows> {
        let ended = self.end_batch();
        self.bytes = 0;
        let batches = std::mem::take(&mut self.batches);
        ended?;
        Ok(TakenRows { table: self.table.clone(), named: self.named.clone(), batches })
    }

    pub(super) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum::<usize>() + self.rows - self.refused.len()
    }
}

/// Appends a value of a row to a column, or NULL in its place and the reason to `refused`. It is converted as one that
/// is bound to a parameter of type `bound`, or else as INSERT converts an expression.
#[inline]
fn append_value(
    builder: &mut ColumnBuilder,
    column: &Column,
    value: ValueRef<'_>,
    bound: Option<DataType>,
    refused: &mut Option<Error>,
) {
    if builder.append(value) {
        return;
    }
    // Of another type: converted by the rules of assignment, or a reason to leave the row out.
    let converted = match bound {
        Some(bound) => crate::plan::stored_value(value, bound, column),
        None => crate::plan::assign_value(value, column),
    };
    let appended = converted.map(|value| builder.append(ValueRef::stored(&value, column.data_type)));
    if !matches!(appended, Ok(true)) {
        builder.append_null();
        let error = appended.err().unwrap_or_else(|| Error::internal("a converted value of another type"));
        refused.get_or_insert(error);
    }
}
