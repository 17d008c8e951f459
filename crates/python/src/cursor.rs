//! What statements give back: cursors of the DB-API, which are results of queries as well.
//!
//! A result lives on its own: any number of them may be open, whatever their connection runs meanwhile, and it is read
//! as it comes. Who looks at one (`repr`, `shape`) has it kept in memory from then on; nothing is lost by that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mainstem::arrow::array::{ArrayRef, RecordBatch, StructArray};
use mainstem::arrow::datatypes::{DataType as ArrowType, Field, SchemaRef};
use mainstem::arrow::error::ArrowError;
use mainstem::{Notice, QueryResult, ResultColumn, StatementOutcome, Value};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyString, PyTuple};
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader, to_stream_pycapsule};

use crate::session::Session;
use crate::target::Target;
use crate::{errors, rows, waiting};

/// Rows of a batch that are turned into tuples at once when they are asked for one by one.
const ROWS_AHEAD: usize = 1_024;

/// A cursor of the DB-API; what `execute` and `sql` return.
#[pyclass(frozen, module = "mainstem")]
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The object that made it.
    connection: Py<PyAny>,
    target: Target,
    state: Mutex<State>,
    array_size: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    columns: Option<(SchemaRef, Arc<[ResultColumn]>)>,
    rows: Rows,
    tag: String,
    row_count: i64,
    notices: Vec<Notice>,
}

/// Rows that were not fetched yet.
#[derive(Debug, Default)]
enum Rows {
    /// The statement gives none, or none ran.
    #[default]
    None,
    Values(Arc<[ResultColumn]>, VecDeque<Vec<Value>>),
    Batches(Box<Batches>),
    /// An Arrow stream has taken them.
    Taken,
    /// A call is reading them.
    Busy,
    /// The query has failed while they were read.
    Failed,
}

/// Rows of a query that comes in batches.
#[derive(Debug)]
struct Batches {
    /// Those that were read; rows before `from` of the first were fetched.
    read: VecDeque<RecordBatch>,
    from: usize,
    /// The rest of the query.
    running: Option<Box<QueryResult>>,
    /// Of the rows from `from` on, those that were made ahead.
    tuples: VecDeque<Py<PyTuple>>,
}

impl Rows {
    /// What comes after an error of the query would pass for its end; a row that Python has no value for stays.
    fn fail_after(&mut self, py: Python<'_>, error: &PyErr) {
        let is_of_value = error.value(py).getattr("sqlstate").is_ok_and(|code| code.eq("22008").unwrap_or(false));
        if matches!(self, Self::Batches(batches) if batches.running.is_some()) && !is_of_value {
            *self = Self::Failed;
        }
    }
}

impl State {
    fn of(outcome: StatementOutcome) -> Self {
        let columns = outcome.rows.as_ref().map(|rows| (rows.schema(), rows.columns()));
        let rows = match outcome.rows.map(QueryResult::into_values) {
            None => Rows::None,
            Some(Ok((columns, values))) => Rows::Values(columns, values.into()),
            Some(Err(running)) => Rows::Batches(Box::new(Batches {
                read: VecDeque::new(),
                from: 0,
                running: Some(Box::new(running)),
                tuples: VecDeque::new(),
            })),
        };
        let row_count = match (&rows, outcome.rows_affected) {
            (_, Some(written)) => i64::try_from(written).unwrap_or(i64::MAX),
            (Rows::Values(_, rows), None) => rows.len() as i64,
            _ => -1,
        };
        Self { is_closed: false, columns, rows, tag: outcome.tag, row_count, notices: outcome.notices }
    }
}

impl Cursor {
    /// A cursor with what a statement gave.
    pub(crate) fn of(connection: Py<PyAny>, target: Target, outcome: StatementOutcome) -> Self {
        Self { connection, target, state: Mutex::new(State::of(outcome)), array_size: AtomicUsize::new(1) }
    }

    pub(crate) fn new(connection: Py<PyAny>, target: Target) -> Self {
        let state = State { row_count: -1, ..State::default() };
        Self { connection, target, state: Mutex::new(state), array_size: AtomicUsize::new(1) }
    }

    fn session(&self) -> &Session {
        &self.target.session
    }

    fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.state.lock().is_closed {
            return Err(errors::misuse(py, "InterfaceError", "24000", "the cursor is closed"));
        }
        Ok(())
    }

    /// Takes over what a statement gave.
    pub(crate) fn set(&self, outcome: StatementOutcome) {
        let state = State::of(outcome);
        let before = std::mem::replace(&mut *self.state.lock(), state);
        drop(before);
    }

    /// Forgets the rows of the statement before one that has failed.
    fn forget(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), State { row_count: -1, ..State::default() });
        drop(before);
    }

    /// Takes over that a statement ran many times.
    pub(crate) fn set_written(&self, rows: u64) {
        let row_count = i64::try_from(rows).unwrap_or(i64::MAX);
        *self.state.lock() = State { row_count, ..State::default() };
    }

    /// Fetches at most `wanted` rows.
    fn fetch<'py>(&self, py: Python<'py>, wanted: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.check_open(py)?;
        let mut taken = self.busy(py)?;
        let fetched = self.fetch_from(py, &mut taken, wanted);
        if let Err(error) = &fetched {
            taken.fail_after(py, error);
        }
        self.give_back(taken);
        fetched
    }

    /// The rows, while a call reads them: no lock is held while Python or the engine works.
    fn busy(&self, py: Python<'_>) -> PyResult<Rows> {
        let rows = std::mem::replace(&mut self.state.lock().rows, Rows::Busy);
        if matches!(rows, Rows::Busy) {
            let message = "another thread is reading from this cursor; let each thread have its own";
            return Err(errors::misuse(py, "ProgrammingError", "55006", message));
        }
        Ok(rows)
    }

    fn give_back(&self, rows: Rows) {
        let mut state = self.state.lock();
        // It may have run something else meanwhile.
        if matches!(state.rows, Rows::Busy) {
            state.rows = rows;
        }
    }

    fn fetch_from<'py>(&self, py: Python<'py>, rows: &mut Rows, wanted: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        match rows {
            Rows::None => {
                Err(errors::misuse(py, "ProgrammingError", "24000", "there are no rows to fetch: no query ran"))
            }
            Rows::Failed => {
                let message = "the query has failed, and has no more rows; run it again";
                Err(errors::misuse(py, "OperationalError", "24000", message))
            }
            Rows::Taken | Rows::Busy => {
                let message = "the rows were given away as an Arrow stream; run the query again";
                Err(errors::misuse(py, "InterfaceError", "55000", message))
            }
            Rows::Values(columns, values) => {
                let count = wanted.min(values.len());
                let made =
                    values.iter().take(count).map(|row| rows::tuple(py, columns, row)).collect::<PyResult<_>>()?;
                values.drain(..count);
                Ok(made)
            }
            Rows::Batches(batches) => {
                let Batches { read, from, running, tuples } = &mut **batches;
                let mut fetched = Vec::new();
                while fetched.len() < wanted {
                    let Some(batch) = read.front() else {
                        let Some(query) = running else { break };
                        // Closed, or of another process.
                        self.session().connection(py)?;
                        match waiting::next_batch(py, self.session(), query)? {
                            Some(batch) => read.push_back(batch),
                            None => *running = None,
                        }
                        continue;
                    };
                    let missing = (wanted - fetched.len()).min(batch.num_rows() - *from);
                    if tuples.is_empty() {
                        // One by one, some are made ahead; where one of them cannot be, those before it can.
                        let ahead = (batch.num_rows() - *from).min(missing.max(ROWS_AHEAD));
                        let made = rows::tuples(py, batch, *from, ahead);
                        let made = if ahead > missing {
                            made.or_else(|_| rows::tuples(py, batch, *from, missing))
                        } else {
                            made
                        };
                        tuples.extend(made?.into_iter().map(Bound::unbind));
                    }
                    let count = missing.min(tuples.len());
                    fetched.extend(tuples.drain(..count).map(|tuple| tuple.into_bound(py)));
                    *from += count;
                    if *from == batch.num_rows() {
                        read.pop_front();
                        *from = 0;
                    }
                }
                Ok(fetched)
            }
        }
    }

    /// All rows that were not fetched, as batches; they are gone afterwards.
    fn take_batches(&self, py: Python<'_>) -> PyResult<(SchemaRef, VecDeque<RecordBatch>, Option<Box<QueryResult>>)> {
        self.check_open(py)?;
        let (schema, rows) = {
            let state = self.state.lock();
            let Some((schema, _)) = state.columns.clone() else {
                drop(state);
                return Err(errors::misuse(py, "ProgrammingError", "24000", "the statement gives no rows"));
            };
            drop(state);
            let rows = self.busy(py)?;
            self.give_back(Rows::Taken);
            (schema, rows)
        };
        match rows {
            Rows::Batches(batches) => {
                let Batches { mut read, from, running, .. } = *batches;
                if let Some(first) = read.front_mut() {
                    *first = first.slice(from, first.num_rows() - from);
                }
                Ok((schema, read, running))
            }
            Rows::Values(columns, values) => {
                let rows: Vec<_> = values.into();
                let batch = mainstem::batch_of(&schema, &columns, &rows).map_err(|e| errors::exception(py, &e))?;
                Ok((schema, VecDeque::from([batch]), None))
            }
            Rows::None | Rows::Taken | Rows::Busy | Rows::Failed => {
                let message = "the rows were given away as an Arrow stream, or there are none; run the query again";
                Err(errors::misuse(py, "InterfaceError", "55000", message))
            }
        }
    }
}

/// A stream of batches: those that were read, then the rest of a query.
struct Stream {
    read: VecDeque<RecordBatch>,
    running: Option<Box<QueryResult>>,
    session: Arc<Session>,
}

impl Iterator for Stream {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.read.pop_front() {
            Some(batch) => Ok(batch),
            None => waiting::next_of_stream(&self.session, self.running.as_mut()?)?,
        };
        let array = |batch: RecordBatch| Arc::new(StructArray::from(batch)) as ArrayRef;
        Some(batch.map(array).map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

#[pymethods]
impl Cursor {
    /// Runs statements, with values for the parameters of a single one; returns the cursor itself.
    #[pyo3(signature = (sql, params=None))]
    fn execute<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        params: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        slf.get().check_open(py)?;
        let outcome = slf.get().target.execute(py, sql, params.as_ref());
        slf.get().set(outcome.inspect_err(|_| slf.get().forget())?);
        Ok(slf)
    }

    /// Runs a statement once for each of `rows`, all or none; returns the cursor itself.
    fn executemany<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        slf.get().check_open(py)?;
        let written = slf.get().target.execute_many(py, sql, rows);
        slf.get().set_written(written.inspect_err(|_| slf.get().forget())?);
        Ok(slf)
    }

    /// The next row as a tuple; None after the last one.
    fn fetchone<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        Ok(self.fetch(py, 1)?.pop())
    }

    /// The next `size` rows, or `arraysize` of them.
    #[pyo3(signature = (size=None))]
    fn fetchmany<'py>(&self, py: Python<'py>, size: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let size = size.unwrap_or_else(|| self.array_size.load(Ordering::Relaxed));
        PyList::new(py, self.fetch(py, size)?)
    }

    /// All rows that are left.
    fn fetchall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.fetch(py, usize::MAX)?)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.fetchone(py)
    }

    /// Frees the result. The cursor cannot be used any more.
    fn close(&self) {
        let mut state = self.state.lock();
        // How many rows were written can be asked for later.
        let row_count = state.row_count;
        let before = std::mem::replace(&mut *state, State { is_closed: true, row_count, ..State::default() });
        drop(state);
        drop(before);
    }

    /// Name and type of each column, seven items each, as the DB-API has it; None without rows.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let columns = self.state.lock().columns.clone();
        let Some((schema, columns)) = columns else { return Ok(None) };
        let names = columns.iter().map(|column| column.name().to_owned()).collect::<Vec<_>>();
        let types = type_names(&schema, &columns);
        py.import("mainstem.types")?.call_method1("description", (names, types)).map(Some)
    }

    /// Rows written, or read by a statement that needed no plan; -1 while rows of a query are read.
    #[getter]
    fn rowcount(&self) -> i64 {
        self.state.lock().row_count
    }

    /// How many rows `fetchmany` fetches unless it is told.
    #[getter]
    fn arraysize(&self) -> usize {
        self.array_size.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_arraysize(&self, size: usize) {
        self.array_size.store(size, Ordering::Relaxed);
    }

    /// The connection that it is of.
    #[getter]
    fn connection(&self, py: Python<'_>) -> Py<PyAny> {
        self.connection.clone_ref(py)
    }

    /// None: RETURNING gives the keys of new rows.
    #[getter]
    fn lastrowid(&self) -> Option<i64> {
        None
    }

    /// The command tag of the last statement, such as "INSERT 0 3".
    #[getter]
    fn statusmessage(&self) -> Option<String> {
        let tag = self.state.lock().tag.clone();
        (!tag.is_empty()).then_some(tag)
    }

    /// What is to be known and is no error: pairs of SQLSTATE and text.
    #[getter]
    fn notices(&self) -> Vec<(String, String)> {
        let state = self.state.lock();
        state.notices.iter().map(|notice| (notice.sqlstate.to_owned(), notice.message.clone())).collect()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let state = self.state.lock();
        state.columns.iter().flat_map(|(_, columns)| columns.iter().map(|column| column.name().to_owned())).collect()
    }

    /// SQL types of the columns.
    #[getter]
    fn types(&self) -> Vec<String> {
        let columns = self.state.lock().columns.clone();
        columns.map_or_else(Vec::new, |(schema, columns)| type_names(&schema, &columns))
    }

    /// Does nothing: memory is allotted as it is needed.
    fn setinputsizes(&self, _sizes: &Bound<'_, PyAny>) {}

    /// Does nothing, as `setinputsizes`.
    #[pyo3(signature = (_size, _column=None))]
    fn setoutputsize(&self, _size: &Bound<'_, PyAny>, _column: Option<&Bound<'_, PyAny>>) {}

    /// How many rows are left. They are kept in memory.
    fn count_rows(&self, py: Python<'_>) -> PyResult<usize> {
        self.check_open(py)?;
        let mut taken = self.busy(py)?;
        let counted = (|| match &mut taken {
            Rows::None | Rows::Taken | Rows::Busy | Rows::Failed => Ok(0),
            Rows::Values(_, values) => Ok(values.len()),
            Rows::Batches(batches) => {
                let Batches { read, from, running, .. } = &mut **batches;
                while let Some(query) = running {
                    match waiting::next_batch(py, self.session(), query)? {
                        Some(batch) => read.push_back(batch),
                        None => *running = None,
                    }
                }
                Ok(read.iter().map(RecordBatch::num_rows).sum::<usize>() - *from)
            }
        })();
        if let Err(error) = &counted {
            taken.fail_after(py, error);
        }
        self.give_back(taken);
        counted
    }

    /// The first `rows` of the rows that are left, which stay.
    fn peek<'py>(&self, py: Python<'py>, rows: usize) -> PyResult<Bound<'py, PyList>> {
        self.count_rows(py)?;
        let taken = self.busy(py)?;
        let peeked = (|| match &taken {
            Rows::None | Rows::Taken | Rows::Busy | Rows::Failed => Ok(Vec::new()),
            Rows::Values(columns, values) => {
                values.iter().take(rows).map(|row| rows::tuple(py, columns, row)).collect::<PyResult<Vec<_>>>()
            }
            Rows::Batches(batches) => {
                let Batches { read, from, .. } = &**batches;
                let mut found = Vec::new();
                let mut from = *from;
                for batch in read {
                    let count = (batch.num_rows() - from).min(rows - found.len());
                    found.extend(rows::tuples(py, batch, from, count)?);
                    from = 0;
                }
                Ok(found)
            }
        })();
        self.give_back(taken);
        PyList::new(py, peeked?)
    }

    /// The rows that are left as a stream of Arrow's C interface: for pyarrow, Polars, pandas, nanoarrow and others.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let (schema, read, running) = self.take_batches(py)?;
        let field =
            Field::new("", ArrowType::Struct(schema.fields().clone()), false).with_metadata(schema.metadata().clone());
        let stream = Stream { read, running, session: self.target.session.clone() };
        let reader: Box<dyn ArrayReader + Send> = Box::new(ArrayIterator::new(stream, Arc::new(field)));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }

    /// Reads all rows of the query into memory, so that what is read later needs no waiting; Ctrl-C ends it.
    fn buffer(&self, py: Python<'_>) -> PyResult<()> {
        self.count_rows(py).map(|_| ())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_arguments))]
    fn __exit__(&self, _arguments: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(slf: Bound<'_, Self>) -> PyResult<String> {
        in_python(slf, "text")?.extract()
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Option<String>> {
        in_python(slf, "html")?.extract()
    }

    /// All rows that are left as a `pyarrow.Table`.
    fn arrow(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "arrow")
    }

    /// All rows that are left as a `polars.DataFrame`.
    fn pl(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "pl")
    }

    /// All rows that are left as a `pandas.DataFrame`.
    fn df(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "df")
    }

    /// All rows that are left as a NumPy array for each column, masked where there are NULLs.
    fn numpy(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "numpy")
    }

    /// All rows that are left as dictionaries.
    fn dicts(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "dicts")
    }

    /// As `arrow`: DuckDB's name for it.
    fn fetch_arrow_table(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "arrow")
    }

    /// As `arrow`: DuckDB's name for it.
    fn to_arrow_table(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "arrow")
    }

    /// As `df`: DuckDB's name for it.
    fn fetchdf(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "df")
    }

    /// As `df`: DuckDB's name for it.
    fn fetch_df(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "df")
    }

    /// As `df`: DuckDB's name for it.
    fn to_df(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "df")
    }

    /// As `numpy`: DuckDB's name for it.
    fn fetchnumpy(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "numpy")
    }

    /// The rows that are left as a `pyarrow.RecordBatchReader`, which reads them while the query runs.
    #[pyo3(signature = (rows=None))]
    fn reader(slf: Bound<'_, Self>, rows: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("mainstem._results")?.call_method1("reader", (slf, rows))
    }

    /// As `reader`: DuckDB's name for it.
    #[pyo3(signature = (rows=None))]
    fn fetch_record_batch(slf: Bound<'_, Self>, rows: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("mainstem._results")?.call_method1("reader", (slf, rows))
    }

    /// As `reader`: DuckDB's name for it.
    #[pyo3(signature = (rows=None))]
    fn to_arrow_reader(slf: Bound<'_, Self>, rows: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("mainstem._results")?.call_method1("reader", (slf, rows))
    }

    /// Names and SQL types of the columns.
    #[getter]
    fn schema(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        in_python(slf, "schema")
    }

    /// How many rows are left, and how many columns there are.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        Ok((self.count_rows(py)?, self.columns().len()))
    }
}

/// What the function `name` of `mainstem._results` makes of a cursor.
fn in_python<'py>(cursor: Bound<'py, Cursor>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    cursor.py().import("mainstem._results")?.call_method1(name, (cursor,))
}

fn type_names(schema: &SchemaRef, columns: &[ResultColumn]) -> Vec<String> {
    let name = |(field, column): (&Arc<Field>, &ResultColumn)| match field.data_type() {
        ArrowType::Interval(_) | ArrowType::Duration(_) => "interval".to_owned(),
        ArrowType::List(_) | ArrowType::LargeList(_) => "array".to_owned(),
        ArrowType::Struct(_) => "record".to_owned(),
        _ => column.data_type().to_string().to_lowercase(),
    };
    schema.fields().iter().zip(columns).map(name).collect()
}
