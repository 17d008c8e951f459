//! Bulk insertion without SQL.

use std::sync::Arc;

use arrow::array::RecordBatch;
use mainstem_storage::error::sqlstate;
use mainstem_storage::limits;
use mainstem_storage::row::{Value, array_of};
use mainstem_storage::schema::TableSchema;
use mainstem_storage::{Error, Result};

use super::Connection;

/// Inserts many rows into one table. Rows are kept in memory until [`Appender::flush`] or [`Appender::finish`], each of which
/// inserts all of them or none; outside a transaction that is one commit. Rows not flushed when the appender is dropped
/// are forgotten.
#[derive(Debug)]
pub struct Appender<'a> {
    connection: &'a Connection,
    table: Arc<TableSchema>,
    /// One vector a column.
    columns: Vec<Vec<Value>>,
    batches: Vec<RecordBatch>,
}

impl<'a> Appender<'a> {
    pub(super) fn new(connection: &'a Connection, table: Arc<TableSchema>) -> Self {
        let columns = vec![Vec::new(); table.columns.len()];
        Self { connection, table, columns, batches: Vec::new() }
    }

    /// Adds a row: a value for each column, in the storage form that [`Value`] describes.
    ///
    /// # Errors
    /// 42804 when the number of values is not that of the columns.
    pub fn append_row(&mut self, row: &[Value]) -> Result<()> {
        if row.len() != self.columns.len() {
            return Err(Error::invalid(
                sqlstate::TYPE_MISMATCH,
                format!(
                    "a row of {} values for the {} columns of \"{}\"",
                    row.len(),
                    self.columns.len(),
                    self.table.name
                ),
            ));
        }
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value.clone());
        }
        if self.columns.first().is_some_and(|c| c.len() >= limits::BATCH_ROWS) {
            self.end_batch()?;
        }
        Ok(())
    }

    /// Adds the rows of a batch whose columns are those of the table in order; types that can be assigned are cast.
    ///
    /// # Errors
    /// 42804 when the number of columns differs; types and values are checked by flush.
    pub fn append_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.columns.len() {
            return Err(Error::invalid(
                sqlstate::TYPE_MISMATCH,
                format!(
                    "a batch of {} columns for the {} columns of \"{}\"",
                    batch.num_columns(),
                    self.columns.len(),
                    self.table.name
                ),
            ));
        }
        self.end_batch()?;
        self.batches.push(batch.clone());
        Ok(())
    }

    fn end_batch(&mut self) -> Result<()> {
        if self.columns.first().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let arrays = self
            .table
            .columns
            .iter()
            .zip(&self.columns)
            .map(|(column, values)| {
                array_of(values.iter(), column.data_type)
                    .map_err(|e| e.context(format_args!("column \"{}\"", column.name)))
            })
            .collect::<Result<Vec<_>>>();
        for column in &mut self.columns {
            column.clear();
        }
        self.batches.push(RecordBatch::try_new(crate::plan::nullable_schema(&self.table), arrays?)?);
        Ok(())
    }

    /// Rows waiting to be inserted.
    #[must_use]
    pub fn pending_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum::<usize>() + self.columns.first().map_or(0, Vec::len)
    }

    /// Inserts all rows added since the last flush, or none. Returns how many. After an error they are forgotten.
    ///
    /// # Errors
    /// 23505, 23502, 22001, 22003 and others of the values; 42P01 when the table is gone; 40001 in an explicit transaction.
    pub fn flush(&mut self) -> Result<u64> {
        let ended = self.end_batch();
        let batches = std::mem::take(&mut self.batches);
        ended?;
        if batches.is_empty() {
            return Ok(0);
        }
        self.connection.append(&self.table.name, &batches)
    }

    /// As [`Appender::flush`], for the last time.
    ///
    /// # Errors
    /// As [`Appender::flush`].
    pub fn finish(mut self) -> Result<u64> {
        self.flush()
    }
}
