//! Connections: what a program calls.
//!
//! 1. A statement that needs no plan runs at once. Any other runs where signals can interrupt it ([`waiting`]).
//! 2. With autocommit off, a statement begins a transaction where none is open, as the DB-API wants it.
//! 3. Many rows of values are turned into columns with the interpreter's lock, and written without it.

use std::io::{Cursor as Bytes, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstem::{
    Database, Error, InsertRows, OpenOptions, OwnedStatement, StatementOutcome, TransactionStatus, number_placeholders,
    parse_byte_size, split_statements,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::cursor::Cursor;
use crate::opened::{Opened, Session};
use crate::parameters::{Named, Row, Values};
use crate::tables::{self, Adapted, Variables};
use crate::{errors, waiting};

/// Rows between two looks at signals while values are taken from Python.
const ROWS_BETWEEN_LOOKS: u64 = 16_384;
/// Statements that begin no transaction by themselves, by their first words.
const CONTROL: [&str; 13] = [
    "begin",
    "start",
    "commit",
    "rollback",
    "end",
    "abort",
    "set",
    "show",
    "reset",
    "checkpoint",
    "unload",
    "load",
    "discard",
];

/// Where statements run, and how.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) session: Arc<Session>,
    autocommit: Arc<AtomicBool>,
    replacement_scans: bool,
}

impl Target {
    /// Runs the statements of `sql`, with values for the parameters of a single one. What the last one gave.
    pub(crate) fn execute(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StatementOutcome> {
        let connection = self.session.connection(py)?;
        let _turn = self.session.turn(py);
        let sql = text.to_str()?;
        self.begin_if_needed(py, sql)?;
        let raised = |error: Error| errors::exception(py, &error);
        let Some(params) = params.filter(|params| !params.is_none()) else {
            let mut statements = py.detach(|| connection.run(sql)).map_err(raised)?;
            if let Some(outcome) = py.detach(|| statements.next_if_short()) {
                return outcome.map_err(raised);
            }
            let frame = self.frame(py)?;
            return waiting::run(py, &self.session, move || {
                tables::within(frame, || {
                    let mut last = None;
                    for outcome in statements {
                        if let Some(StatementOutcome { rows: Some(rows), .. }) = last.replace(outcome?) {
                            rows.count_rows()?;
                        }
                    }
                    last.ok_or_else(|| Error::new(mainstem::ErrorKind::Invalid, "42601", "there is no statement"))
                })
            });
        };
        let row = Row::of(params)?;
        let values = row.values()?;
        let owned = self.prepared(py, text)?;
        let statement = owned.statement();
        let names = row.names();
        let short = py.detach(|| match names {
            None => statement.run_if_short(Values(&values)),
            Some(names) => statement.run_if_short(Named(names, &values)),
        });
        if let Some(outcome) = short.map_err(raised)? {
            return Ok(outcome);
        }
        let (frame, values) = (self.frame(py)?, &values);
        waiting::run(py, &self.session, move || {
            tables::within(frame, || match names {
                None => statement.run(Values(values)),
                Some(names) => statement.run(Named(names, values)),
            })
        })
    }

    /// Runs `sql` once for each of `rows`, all or none; how many rows were written.
    pub(crate) fn execute_many(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let connection = self.session.connection(py)?;
        let _turn = self.session.turn(py);
        self.begin_if_needed(py, text.to_str()?)?;
        let raised = |error: Error| errors::exception(py, &error);
        let owned = self.prepared(py, text)?;
        let statement = owned.statement();
        let rows = rows.try_iter()?;
        if let Some(inserted) = py.detach(|| statement.insert_rows()).map_err(raised)? {
            return self.insert_many(py, inserted, rows);
        }
        let scope = py.detach(|| connection.scope()).map_err(raised)?;
        let mut written = 0;
        let run_all = || -> PyResult<()> {
            for (at, row) in rows.enumerate() {
                let row = Row::of(&row?)?;
                let values = row.values()?;
                let names = row.names();
                let work = || match names {
                    None => statement.execute(Values(&values)),
                    Some(names) => statement.execute(Named(names, &values)),
                };
                written += py.detach(work).map_err(|e| raised(e.context(format_args!("row {}", at + 1))))?;
                if at as u64 % 256 == 255 {
                    py.check_signals()?;
                }
            }
            Ok(())
        };
        let outcome = run_all();
        match outcome {
            Ok(()) => py.detach(|| scope.end()).map_err(raised).map(|()| written),
            Err(error) => {
                py.detach(|| drop(scope));
                Err(error)
            }
        }
    }

    fn insert_many<'py>(
        &self,
        py: Python<'py>,
        mut inserted: InsertRows<'_>,
        rows: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<u64> {
        let fill = || -> PyResult<()> {
            for (at, row) in rows.enumerate() {
                let row = Row::of(&row?)?;
                let values = row.values()?;
                let pushed = match row.names() {
                    None => inserted.push(Values(&values)),
                    Some(names) => inserted.push(Named(names, &values)),
                };
                pushed.map_err(|error| errors::exception(py, &error))?;
                if at as u64 % ROWS_BETWEEN_LOOKS == ROWS_BETWEEN_LOOKS - 1 {
                    py.check_signals()?;
                }
                if inserted.is_full() {
                    waiting::run(py, &self.session, || inserted.flush())?;
                }
            }
            Ok(())
        };
        let filled = fill();
        match filled {
            Ok(()) => waiting::run(py, &self.session, move || inserted.finish()),
            Err(error) => {
                py.detach(|| drop(inserted));
                Err(error)
            }
        }
    }

    /// The statement of `text`, whose tables may be variables.
    fn prepared(&self, py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<OwnedStatement> {
        let connection = self.session.connection(py)?;
        if let Some(known) = self.session.statement(text) {
            return Ok(known);
        }
        let sql = number_placeholders(text.to_str()?);
        let prepared = match py.detach(|| connection.prepare_kept_owned(&sql)) {
            Err(error) if error.sqlstate() == "42P01" && self.replacement_scans => {
                let frame = self.frame(py)?;
                py.detach(|| tables::within(frame, || connection.prepare_kept_owned(&sql)))
            }
            prepared => prepared,
        };
        let prepared = prepared.map_err(|error| errors::exception(py, &error))?;
        self.session.remember(text, prepared.clone());
        Ok(prepared)
    }

    fn begin_if_needed(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        if self.autocommit.load(Ordering::Relaxed) {
            return Ok(());
        }
        let connection = self.session.connection(py)?;
        if begins_nothing(sql) || py.detach(|| connection.status()) != TransactionStatus::Idle {
            return Ok(());
        }
        py.detach(|| connection.execute("BEGIN")).map_err(|error| errors::exception(py, &error)).map(|_| ())
    }

    fn frame(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.replacement_scans.then(|| tables::calling_frame(py)).transpose()
    }

    fn run(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        let connection = self.session.connection(py)?;
        waiting::run(py, &self.session, || connection.execute(sql)).map(|_| ())
    }
}

/// Whether the first word of `sql` is of a statement that needs no transaction.
fn begins_nothing(sql: &str) -> bool {
    let (statements, rest) = split_statements(sql);
    if statements.iter().chain([&rest]).filter(|statement| !statement.trim().is_empty()).count() > 1 {
        return false;
    }
    let word: String = without_comments(sql).chars().take_while(char::is_ascii_alphabetic).collect();
    CONTROL.contains(&word.to_ascii_lowercase().as_str())
}

/// `sql` from where its first statement begins.
fn without_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let behind = if let Some(line) = rest.strip_prefix("--") {
            line.split_once('\n').map_or("", |(_, behind)| behind)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, behind)| behind)
        } else {
            return rest;
        };
        rest = behind.trim_start();
    }
}

/// A connection to a database: a session with its own transaction and settings.
#[pyclass(subclass, frozen, module = "mainstem._mainstem")]
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) target: Target,
}

impl Connection {
    pub(crate) fn of(target: Target) -> Self {
        Self { target }
    }

    fn session(&self) -> &Session {
        &self.target.session
    }
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (path=None, *, read_only=false, memory_limit=None, autocommit=true, replacement_scans=true, of=None))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        read_only: bool,
        memory_limit: Option<&Bound<'_, PyAny>>,
        autocommit: bool,
        replacement_scans: bool,
        of: Option<Bound<'_, Self>>,
    ) -> PyResult<Self> {
        let raised = |error: Error| errors::exception(py, &error);
        let mut options = OpenOptions::new().read_only(read_only);
        if let Some(limit) = memory_limit {
            options.memory_limit = match limit.cast::<PyString>() {
                Ok(text) => parse_byte_size(text.to_str()?).map_err(raised)?,
                Err(_) => limit.extract()?,
            };
        }
        let path = path.filter(|path| path.as_os_str() != ":memory:");
        let shared = match &of {
            Some(other) => {
                other.get().session().connection(py)?;
                other.get().session().opened()
            }
            None => None,
        };
        let open = || match shared {
            Some(shared) => Session::new(shared),
            None => Session::new(Opened::open(path, options)?),
        };
        let session = py.detach(open).map_err(raised)?;
        if replacement_scans {
            session.connection(py)?.set_table_resolver(Some(Arc::new(Variables(session.id))));
        }
        let autocommit = Arc::new(AtomicBool::new(autocommit));
        Ok(Self { target: Target { session: Arc::new(session), autocommit, replacement_scans } })
    }

    /// Runs statements, with values for the parameters of a single one; returns a cursor with what the last one gave.
    #[pyo3(signature = (sql, params=None))]
    fn execute(&self, py: Python<'_>, sql: &Bound<'_, PyString>, params: Option<Bound<'_, PyAny>>) -> PyResult<Cursor> {
        Ok(Cursor::of(self.target.clone(), self.target.execute(py, sql, params.as_ref())?))
    }

    /// Runs a statement once for each of `rows`, all or none; returns a cursor.
    fn executemany(&self, py: Python<'_>, sql: &Bound<'_, PyString>, rows: &Bound<'_, PyAny>) -> PyResult<Cursor> {
        let written = self.target.execute_many(py, sql, rows)?;
        let cursor = Cursor::new(self.target.clone());
        cursor.set_written(written);
        Ok(cursor)
    }

    /// As `execute`.
    #[pyo3(signature = (sql, params=None))]
    fn sql(&self, py: Python<'_>, sql: &Bound<'_, PyString>, params: Option<Bound<'_, PyAny>>) -> PyResult<Cursor> {
        self.execute(py, sql, params)
    }

    /// A cursor that has run nothing yet.
    fn cursor(&self, py: Python<'_>) -> PyResult<Cursor> {
        self.session().connection(py)?;
        Ok(Cursor::new(self.target.clone()))
    }

    /// Begins a transaction.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.target.run(py, "BEGIN")
    }

    /// Makes the transaction's writes true, if one is open.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let connection = self.session().connection(py)?;
        if py.detach(|| connection.status()) == TransactionStatus::Idle {
            return Ok(());
        }
        waiting::run(py, self.session(), || connection.commit())
    }

    /// Undoes the transaction's writes, if one is open.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let connection = self.session().connection(py)?;
        if py.detach(|| connection.status()) == TransactionStatus::Idle {
            return Ok(());
        }
        self.target.run(py, "ROLLBACK")
    }

    /// Closes the connection; an open transaction is rolled back. Closing twice does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.session().close()).map_err(|error| errors::exception(py, &error))
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.session().is_closed()
    }

    /// The folder of the database; None in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.session().opened()?.path.clone()
    }

    /// Reads and verifies every file of the database, beside whoever writes to it; what is wrong, a text each.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.session().connection(py)?;
        let Some(path) = self.path() else { return Ok(Vec::new()) };
        let report = waiting::run(py, self.session(), || Database::check(&path, OpenOptions::new()))?;
        Ok(report.wrong.iter().chain(&report.unsettled).map(ToString::to_string).collect())
    }

    /// Whether a transaction is open, one that has failed included.
    #[getter]
    fn in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        let connection = self.session().connection(py)?;
        Ok(py.detach(|| connection.status()) != TransactionStatus::Idle)
    }

    /// Whether every statement outside a transaction is one of its own.
    #[getter]
    fn autocommit(&self) -> bool {
        self.target.autocommit.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_autocommit(&self, py: Python<'_>, autocommit: bool) -> PyResult<()> {
        if self.in_transaction(py)? {
            let message = "autocommit cannot be changed inside a transaction; commit or roll it back first";
            return Err(errors::misuse(py, "ProgrammingError", "25001", message));
        }
        self.target.autocommit.store(autocommit, Ordering::Relaxed);
        Ok(())
    }

    /// Ends what the connection runs, from any thread: it fails with 57014.
    fn interrupt(&self) {
        self.session().interrupt().interrupt();
    }

    /// How far the running statement has come with its files: bytes done and bytes in all.
    #[getter]
    fn progress(&self) -> (u64, u64) {
        let progress = self.session().progress();
        (progress.bytes(), progress.bytes_total())
    }

    /// From now on queries read `data` by `name`: a frame, an Arrow table, or whatever has an Arrow stream.
    fn register(&self, py: Python<'_>, name: &str, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let connection = self.session().connection(py)?;
        let table = Adapted::of(data, self.session().id)?;
        let before = py.detach(|| connection.register(name, table)).map_err(|e| errors::exception(py, &e))?;
        drop(before);
        Ok(())
    }

    /// Takes back `register`.
    fn unregister(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let connection = self.session().connection(py)?;
        let before = py.detach(|| connection.unregister(name));
        Ok(before.is_some())
    }

    /// Runs a COPY FROM STDIN with the bytes of `data`.
    fn _copy_in_bytes(&self, py: Python<'_>, sql: &str, data: &Bound<'_, PyBytes>) -> PyResult<u64> {
        let connection = self.session().connection(py)?;
        self.target.begin_if_needed(py, sql)?;
        let data = data.as_bytes();
        waiting::run(py, self.session(), || connection.copy_in(sql, Bytes::new(data)))
    }

    /// Runs a COPY FROM STDIN with what `read(n)` gives.
    fn _copy_in(&self, py: Python<'_>, sql: &str, read: Py<PyAny>) -> PyResult<u64> {
        let connection = self.session().connection(py)?;
        self.target.begin_if_needed(py, sql)?;
        let mut failure = None;
        let outcome = waiting::run(py, self.session(), || {
            connection.copy_in(
                sql,
                Calls { call: &read, failure: &mut failure, rest: Bytes::default(), reader: self.session().id },
            )
        });
        // What the program has raised says more.
        failure.map_or(outcome, Err)
    }

    /// Runs a COPY TO STDOUT and hands the bytes to `write(bytes)`.
    fn _copy_out(&self, py: Python<'_>, sql: &str, write: Py<PyAny>) -> PyResult<u64> {
        let connection = self.session().connection(py)?;
        self.target.begin_if_needed(py, sql)?;
        let mut failure = None;
        let outcome = waiting::run(py, self.session(), || {
            let mut calls =
                Calls { call: &write, failure: &mut failure, rest: Bytes::default(), reader: self.session().id };
            connection.copy_out(sql, std::io::BufWriter::with_capacity(1 << 16, &mut calls))
        });
        failure.map_or(outcome, Err)
    }
}

/// A reader or writer of Python.
struct Calls<'c> {
    call: &'c Py<PyAny>,
    /// What it has raised.
    failure: &'c mut Option<PyErr>,
    /// Bytes that it gave and nobody has read yet.
    rest: Bytes<Vec<u8>>,
    /// The session that runs the COPY.
    reader: u64,
}

impl Calls<'_> {
    fn kept<T>(&mut self, outcome: PyResult<T>) -> std::io::Result<T> {
        outcome.map_err(|error| {
            let told = std::io::Error::other(error.to_string());
            *self.failure = Some(error);
            told
        })
    }
}

impl Read for Calls<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.rest.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        let outcome = Python::attach(|py| -> PyResult<Vec<u8>> {
            let data = tables::reading(self.reader, || self.call.bind(py).call1((buffer.len().max(1 << 16),)))?;
            match data.cast::<PyString>() {
                Ok(text) => Ok(text.to_str()?.as_bytes().to_vec()),
                Err(_) => data.extract(),
            }
        });
        self.rest = Bytes::new(self.kept(outcome)?);
        self.rest.read(buffer)
    }
}

impl Write for Calls<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let outcome = Python::attach(|py| -> PyResult<usize> {
            let taken = tables::reading(self.reader, || self.call.bind(py).call1((PyBytes::new(py, data),)))?;
            // What says nothing has taken all.
            if taken.is_none() { Ok(data.len()) } else { Ok(taken.extract::<usize>()?.min(data.len())) }
        });
        self.kept(outcome)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
