//! Rows of values that are bound to the parameters of a statement.
//!
//! Comes in: a stream of batches, a row for each run. Goes out: how many rows were written, or a stream of what the
//! runs give. Values go to parameters by their names where a statement has names, unless the columns are numbered;
//! else in their order.

use std::sync::Arc;

use adbc_core::error::{Result, Status};
use mainstem::arrow::array::{RecordBatch, RecordBatchReader};
use mainstem::arrow::datatypes::{Schema, SchemaRef};
use mainstem::arrow::error::ArrowError;
use mainstem::{Connection, DataType, OwnedStatement, ResultColumn, Statement, Value, ValueRef, values_of};

use crate::errors::{adbc, in_stream, misuse, of_stream, refused};
use crate::results::{Reader, Results, as_shown, shown};
use crate::session::Session;

/// The rows of a stream, one after the other.
pub(crate) struct BoundRows {
    batches: Reader,
    columns: Arc<[ResultColumn]>,
    rows: std::vec::IntoIter<Vec<Value>>,
    by_name: Option<bool>,
}

impl BoundRows {
    /// `by_name` says whether values go by the names of parameters, if that is not to be found out.
    pub(crate) fn new(batches: Reader, by_name: Option<bool>) -> Self {
        Self { batches, columns: Arc::from([]), rows: Vec::new().into_iter(), by_name }
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
    fn params<'v>(&'v self, statement: &Statement<'_>, row: &'v [Value]) -> Result<Vec<ValueRef<'v>>> {
        let value = |at: usize| Some(self.columns.get(at)?.value_of(row.get(at)?));
        match places(statement.parameter_names(), &self.columns, self.by_name)? {
            Some(places) => Ok(places.into_iter().filter_map(value).collect()),
            None => Ok((0..row.len()).filter_map(value).collect()),
        }
    }

    /// Runs `statement` with each row, all or none; how many rows were written, and those that RETURNING gives.
    pub(crate) fn write(
        mut self,
        session: &Session,
        statement: &Statement<'_>,
        keeps_views: bool,
    ) -> Result<(u64, Vec<RecordBatch>)> {
        let raised = |error: mainstem::Error| adbc(&error);
        let since = session.interrupts();
        let check = || {
            if session.interrupts() == since {
                return Ok(());
            }
            Err(refused(Status::Cancelled, "57014", "the statement was canceled; none of its rows are written"))
        };
        let returns = statement.schema().map_err(raised)?.is_some();
        if let Some(mut inserted) = statement.insert_rows().map_err(raised)? {
            while let Some(row) = self.next()? {
                check()?;
                inserted.push(self.params(statement, &row)?).map_err(raised)?;
                if inserted.is_full() {
                    inserted.flush().map_err(raised)?;
                }
            }
            check()?;
            return Ok((inserted.finish().map_err(raised)?, Vec::new()));
        }
        let scope = session.connection.scope().map_err(raised)?;
        let (mut written, mut returned, mut at) = (0, Vec::new(), 0_u64);
        while let Some(row) = self.next()? {
            check()?;
            at += 1;
            let outcome = statement.run(self.params(statement, &row)?);
            let outcome = outcome.map_err(|error| adbc(&error.context(format_args!("row {at}"))))?;
            written += outcome.rows_affected.unwrap_or(0);
            if let Some(rows) = outcome.rows.filter(|_| returns) {
                let schema = shown(&rows.schema(), keeps_views);
                for batch in rows {
                    let batch = as_shown(&batch.map_err(raised)?, &schema);
                    returned.push(batch.map_err(|error| misuse(Status::Internal, error.to_string()))?);
                }
            }
        }
        check()?;
        scope.end().map_err(raised)?;
        Ok((written, returned))
    }
}

/// Which columns parameters take that have names; none where they go by their order: where there are no names, or the
/// columns are numbered.
///
/// # Errors
/// 08P01 for a name that no column has.
fn places(names: &[Box<str>], columns: &[ResultColumn], by_name: Option<bool>) -> Result<Option<Vec<usize>>> {
    let columns: Vec<&str> = columns.iter().map(ResultColumn::name).collect();
    let are_numbered = columns.iter().enumerate().all(|(at, name)| name.is_empty() || *name == at.to_string());
    if names.is_empty() || !by_name.unwrap_or(!are_numbered) {
        return Ok(None);
    }
    let place = |name: &str| {
        columns.iter().position(|column| *column == name).ok_or_else(|| {
            let message = format!("no column that is bound is called {name}; they are {}", columns.join(", "));
            refused(Status::InvalidArguments, "08P01", message)
        })
    };
    names.iter().map(|name| place(name)).collect::<Result<_>>().map(Some)
}

/// What a query gives for all rows that are bound.
pub(crate) struct Repeated {
    session: Arc<Session>,
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
        session: &Arc<Session>,
        statement: OwnedStatement,
        rows: BoundRows,
        keeps_views: bool,
    ) -> Result<Self> {
        let statement = typed(&session.connection, statement, &rows)?;
        let schema = statement.statement().schema().map_err(|error| adbc(&error))?;
        let schema = shown(&schema.unwrap_or_else(|| Arc::new(Schema::empty())), keeps_views);
        let mut repeated = Self { session: session.clone(), statement, rows, running: None, keeps_views, schema };
        repeated.running = repeated.begin()?;
        Ok(repeated)
    }

    /// Runs the statement with the next row.
    fn begin(&mut self) -> Result<Option<Results>> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let _turn = self.session.turn()?;
        let statement = self.statement.statement();
        let results = statement
            .query_batches(self.rows.params(&statement, &row)?)
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
                    return Some(Err(in_stream(&error)));
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

/// `statement`, where parameters whose context tells no type have the types of the columns of `bound`.
fn typed(connection: &Arc<Connection>, statement: OwnedStatement, bound: &BoundRows) -> Result<OwnedStatement> {
    let raised = |error: mainstem::Error| adbc(&error);
    let types = statement.statement().parameter_types().map_err(raised)?;
    if types.iter().all(Option::is_some) {
        return Ok(statement);
    }
    let (columns, _) = values_of(&RecordBatch::new_empty(bound.batches.schema())).map_err(raised)?;
    let names = places(statement.statement().parameter_names(), &columns, bound.by_name)?;
    let places = names.unwrap_or_else(|| (0..columns.len()).collect());
    if places.len() != types.len() {
        return Ok(statement);
    }
    let of_column = |at: usize| columns.get(at).map_or(DataType::Text { max_chars: None }, ResultColumn::data_type);
    let types: Vec<_> = types.iter().zip(places).map(|(own, at)| own.unwrap_or_else(|| of_column(at))).collect();
    connection.retype_owned(&statement, &types).map_err(raised)
}
