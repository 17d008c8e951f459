//! Rows of values that are bound to the parameters of a statement.
//!
//! Comes in: a stream of batches, a row for each run. Goes out: how many rows were written, or a stream of what the
//! runs give. Values go to parameters in their order; where a statement names its parameters and the batch has columns
//! of all of these names, by name.

use std::sync::Arc;

use adbc_core::error::Result;
use mainstem::arrow::array::{RecordBatch, RecordBatchReader};
use mainstem::arrow::datatypes::SchemaRef;
use mainstem::arrow::error::ArrowError;
use mainstem::{Connection, OwnedStatement, Params, ResultColumn, Statement, Value, ValueRef, values_of};

use crate::errors::{adbc, of_stream};
use crate::results::{Reader, Results, as_shown, shown};

/// The rows of a stream, one after the other.
pub(crate) struct BoundRows {
    batches: Reader,
    columns: Arc<[ResultColumn]>,
    rows: std::vec::IntoIter<Vec<Value>>,
}

impl BoundRows {
    pub(crate) fn new(batches: Reader) -> Self {
        Self { batches, columns: Arc::from([]), rows: Vec::new().into_iter() }
    }

    /// The next row.
    fn next(&mut self) -> Result<Option<Vec<Value>>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let Some(batch) = self.batches.next() else { return Ok(None) };
            let batch = batch.map_err(|error| of_stream(&error))?;
            let (columns, rows) = values_of(&batch).map_err(|error| adbc(&error))?;
            (self.columns, self.rows) = (columns, rows.into_iter());
        }
    }

    /// `row` as values for `statement`.
    fn params<'v>(&'v self, statement: &Statement<'_>, row: &'v [Value]) -> impl Params + use<'v> {
        let value = |(column, value): (&'v ResultColumn, &'v Value)| column.value_of(value);
        let names = statement.parameter_names();
        let has = |name: &str| self.columns.iter().position(|column| column.name() == name);
        let by_name = names.iter().map(|name| has(name)).collect::<Option<Vec<_>>>();
        let pairs = || self.columns.iter().zip(row);
        match by_name {
            Some(columns) if !names.is_empty() && self.columns.len() == names.len() => {
                columns.into_iter().filter_map(|at| pairs().nth(at)).map(value).collect::<Vec<ValueRef<'v>>>()
            }
            _ => pairs().map(value).collect(),
        }
    }

    /// Runs `statement` with each row, all or none; how many rows were written.
    pub(crate) fn write(mut self, connection: &Connection, statement: &Statement<'_>) -> Result<u64> {
        let raised = |error: mainstem::Error| adbc(&error);
        if let Some(mut inserted) = statement.insert_rows().map_err(raised)? {
            while let Some(row) = self.next()? {
                inserted.push(self.params(statement, &row)).map_err(raised)?;
                if inserted.is_full() {
                    inserted.flush().map_err(raised)?;
                }
            }
            return inserted.finish().map_err(raised);
        }
        let scope = connection.scope().map_err(raised)?;
        let mut written = 0;
        while let Some(row) = self.next()? {
            written += statement.execute(self.params(statement, &row)).map_err(raised)?;
        }
        scope.end().map_err(raised)?;
        Ok(written)
    }
}

/// What a query gives for all rows that are bound.
pub(crate) struct Repeated {
    statement: OwnedStatement,
    rows: BoundRows,
    /// Of the row that is being run.
    running: Option<Results>,
    keeps_views: bool,
    schema: SchemaRef,
}

impl Repeated {
    /// Begins with the first row.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        statement: OwnedStatement,
        bound: Reader,
        keeps_views: bool,
    ) -> Result<Self> {
        let statement = typed(connection, statement, &bound.schema()).map_err(|error| adbc(&error))?;
        let schema = statement.statement().schema().map_err(|error| adbc(&error))?;
        let schema = schema.map_or_else(|| bound.schema(), |schema| shown(&schema, keeps_views));
        let mut repeated = Self { statement, rows: BoundRows::new(bound), running: None, keeps_views, schema };
        repeated.running = repeated.begin()?;
        Ok(repeated)
    }

    /// Runs the statement with the next row.
    fn begin(&mut self) -> Result<Option<Results>> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let statement = self.statement.statement();
        let results = statement
            .query_batches(self.rows.params(&statement, &row))
            .and_then(|rows| Results::new(rows, self.keeps_views));
        results.map(Some).map_err(|error| adbc(&error))
    }
}

impl Iterator for Repeated {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.running.as_mut()?.next() {
                return Some(batch.and_then(|batch| as_shown(&batch, &self.schema)));
            }
            match self.begin() {
                Ok(next) => self.running = next,
                Err(error) => {
                    self.running = None;
                    return Some(Err(ArrowError::ExternalError(Box::new(error))));
                }
            }
        }
    }
}

impl RecordBatchReader for Repeated {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// `statement`, where parameters whose context tells no type have those of the columns of `bound`.
fn typed(
    connection: &Arc<Connection>,
    statement: OwnedStatement,
    bound: &SchemaRef,
) -> mainstem::Result<OwnedStatement> {
    let types = statement.statement().parameter_types()?;
    if types.iter().all(Option::is_some) || types.len() != bound.fields().len() {
        return Ok(statement);
    }
    let (columns, _) = values_of(&RecordBatch::new_empty(bound.clone()))?;
    let types: Vec<_> = types.iter().zip(&*columns).map(|(own, column)| own.unwrap_or(column.data_type())).collect();
    connection.retype_owned(&statement, &types)
}
