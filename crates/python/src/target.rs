//! How the statements of a connection and of its cursors run.
//!
//! 1. A statement that needs no plan runs at once. Any other runs where signals can interrupt it ([`waiting`]).
//! 2. With autocommit off, a statement begins a transaction where none is open, as the DB-API wants it.
//! 3. Many rows of values are turned into columns with the interpreter's lock, and written without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstem::{Error, InsertRows, OwnedStatement, StatementOutcome, number_placeholders};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::parameters::{Named, Row, Values};
use crate::session::Session;
use crate::{errors, tables, waiting};

/// Rows between two looks at signals while values are taken from Python.
const ROWS_BETWEEN_LOOKS: u64 = 16_384;

/// Where statements run, and how.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) session: Arc<Session>,
    pub(crate) autocommit: Arc<AtomicBool>,
    pub(crate) replacement_scans: bool,
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
            let (frame, autocommit) = (self.frame(py)?, self.autocommit.load(Ordering::Relaxed));
            return waiting::run(py, &self.session, move || {
                tables::within(frame, || {
                    let last = statements.run_to_last(sql, autocommit)?;
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

    /// Begins a transaction for `sql`, if it needs one and none is open.
    pub(crate) fn begin_if_needed(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        if self.autocommit.load(Ordering::Relaxed) {
            return Ok(());
        }
        let connection = self.session.connection(py)?;
        py.detach(|| connection.begin_implicitly(sql)).map_err(|error| errors::exception(py, &error))
    }

    fn frame(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.replacement_scans.then(|| tables::calling_frame(py)).transpose()
    }

    /// Runs a statement that gives no rows.
    pub(crate) fn run(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        let connection = self.session.connection(py)?;
        waiting::run(py, &self.session, || connection.execute(sql)).map(|_| ())
    }
}
