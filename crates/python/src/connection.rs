//! Connections: what a program calls.

use std::io::{Cursor as Bytes, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstem::{Database, Error, OpenOptions, SharedDatabase, TransactionStatus, parse_byte_size};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::cursor::Cursor;
use crate::session::Session;
use crate::tables::{self, Adapted, Variables};
use crate::target::Target;
use crate::{errors, waiting};

/// A connection to a database: a session with its own transaction and settings.
#[pyclass(subclass, frozen, module = "mainstem._mainstem")]
#[derive(Debug)]
pub(crate) struct Connection {
    target: Target,
}

impl Connection {
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
                other.get().session().database()
            }
            None => None,
        };
        let open = || match shared {
            Some(shared) => Session::new(shared),
            None => Session::new(match path {
                Some(path) => SharedDatabase::open(path, options)?,
                None => SharedDatabase::in_memory(options)?,
            }),
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
    fn execute(slf: Bound<'_, Self>, sql: &Bound<'_, PyString>, params: Option<Bound<'_, PyAny>>) -> PyResult<Cursor> {
        let target = slf.get().target.clone();
        let outcome = target.execute(slf.py(), sql, params.as_ref())?;
        Ok(Cursor::of(slf.into_any().unbind(), target, outcome))
    }

    /// Runs a statement once for each of `rows`, all or none; returns a cursor.
    fn executemany(slf: Bound<'_, Self>, sql: &Bound<'_, PyString>, rows: &Bound<'_, PyAny>) -> PyResult<Cursor> {
        let target = slf.get().target.clone();
        let written = target.execute_many(slf.py(), sql, rows)?;
        let cursor = Cursor::new(slf.into_any().unbind(), target);
        cursor.set_written(written);
        Ok(cursor)
    }

    /// As `execute`.
    #[pyo3(signature = (sql, params=None))]
    fn sql(slf: Bound<'_, Self>, sql: &Bound<'_, PyString>, params: Option<Bound<'_, PyAny>>) -> PyResult<Cursor> {
        Self::execute(slf, sql, params)
    }

    /// A cursor that has run nothing yet.
    fn cursor(slf: Bound<'_, Self>) -> PyResult<Cursor> {
        let target = slf.get().target.clone();
        target.session.connection(slf.py())?;
        Ok(Cursor::new(slf.into_any().unbind(), target))
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
        self.session().database()?.path().map(Into::into)
    }

    /// Reads and verifies every file of the database, while others write to it; what is wrong, a text each.
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

    /// Whether names in FROM may be variables.
    #[getter]
    fn replacement_scans(&self) -> bool {
        self.target.replacement_scans
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
