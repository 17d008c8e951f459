//! Tables of the program, which queries read by name: registered ones, and variables.
//!
//! What a table is made of is known in Python (`mainstem._tables`), which gives an adapter: its schema, how many rows
//! it has, and a stream of some of its columns. Adapters are asked with the interpreter's lock, and give Arrow
//! streams, which take it only where they have to.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mainstem::arrow::array::{RecordBatch, RecordBatchReader};
use mainstem::arrow::datatypes::SchemaRef;
use mainstem::arrow::error::ArrowError;
use mainstem::{Error, ErrorKind, ExternalBatches, ExternalTable, Result, TableResolver};
use pyo3::prelude::*;
use pyo3_arrow::{PyRecordBatchReader, PySchema};

/// Whether the interpreter is about to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Threads that run code of the program.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// How long the interpreter's end waits for them.
const WAIT_MAX: Duration = Duration::from_secs(2);

thread_local! {
    /// The frame whose variables the statement of this thread may mean.
    /// The session that reads a table of the program on this thread, whose code may run now; 0 for none.
    static READER: Cell<u64> = const { Cell::new(0) };
    static FRAME: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Runs `work`, in whose statements names may mean variables that `frame` sees.
pub(crate) fn within<T>(frame: Option<Py<PyAny>>, work: impl FnOnce() -> T) -> T {
    let before = FRAME.with(|slot| slot.replace(frame));
    let outcome = work();
    let frame = FRAME.with(|slot| slot.replace(before));
    // It may be the last that holds a program's variables.
    if frame.is_some() {
        let mut frame = Some(frame);
        if Python::try_attach(|_| drop(frame.take())).is_none() {
            std::mem::forget(frame);
        }
    }
    outcome
}

/// The schema of an object that has an Arrow stream.
#[pyfunction]
pub(crate) fn _schema_of_stream(stream: PyRecordBatchReader) -> PyResult<PySchema> {
    Ok(PySchema::new(stream.schema_ref()?))
}

/// The frame that calls.
pub(crate) fn calling_frame(py: Python<'_>) -> PyResult<Py<PyAny>> {
    Ok(py.import("sys")?.call_method0("_getframe")?.unbind())
}

/// Whether the session `id` reads a table of the program on this thread.
pub(crate) fn is_read_by(id: u64) -> bool {
    READER.get() == id
}

/// Runs `work`, a part of a table of the program that session `id` reads.
pub(crate) fn reading<T>(id: u64, work: impl FnOnce() -> T) -> T {
    let before = READER.replace(id);
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let outcome = work();
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    READER.set(before);
    outcome
}

/// Called before the interpreter ends: no code of the program begins to run after it, and what runs is waited for,
/// some time. A thread that was in the middle of it would end the process.
#[pyfunction]
pub(crate) fn ending(py: Python<'_>) {
    IS_ENDING.store(true, Ordering::SeqCst);
    let end = Instant::now() + WAIT_MAX;
    py.detach(|| {
        while RUNNING.load(Ordering::SeqCst) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// An error of Python as one of the engine.
fn raised(py: Python<'_>, error: &PyErr) -> Error {
    let value = error.value(py);
    let sqlstate = value.getattr("sqlstate").and_then(|code| code.extract::<String>()).ok();
    let text = value.str().map(|text| text.to_string()).unwrap_or_default();
    let name = value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    match sqlstate.as_deref() {
        Some("42P01") => Error::new(ErrorKind::NotFound, "42P01", text),
        Some("55000") => Error::new(ErrorKind::Invalid, "55000", text),
        Some("0A000") => Error::new(ErrorKind::Invalid, "0A000", text),
        _ => Error::new(ErrorKind::Invalid, "38000", format!("a table of the program has failed: {name}: {text}")),
    }
}

/// A table by its adapter.
#[derive(Debug)]
pub(crate) struct Adapted {
    adapter: Py<PyAny>,
    schema: SchemaRef,
    rows: Option<usize>,
    /// Of the session that reads it.
    reader: u64,
}

impl Adapted {
    /// The table that `object` is; an error says why it is none.
    pub(crate) fn of(object: &Bound<'_, PyAny>, reader: u64) -> PyResult<Arc<Self>> {
        let adapter = object.py().import("mainstem._tables")?.call_method1("adapter", (object,))?;
        Self::by(adapter, reader)
    }

    fn by(adapter: Bound<'_, PyAny>, reader: u64) -> PyResult<Arc<Self>> {
        let schema: PySchema = adapter.getattr("schema")?.extract()?;
        let rows = adapter.getattr("rows")?.extract()?;
        Ok(Arc::new(Self { schema: schema.into(), rows, adapter: adapter.unbind(), reader }))
    }

    fn stream(&self, py: Python<'_>, columns: &[usize]) -> PyResult<Box<dyn RecordBatchReader + Send>> {
        let stream = self.adapter.bind(py).call_method1("scan", (columns.to_vec(),))?;
        stream.extract::<PyRecordBatchReader>()?.into_reader()
    }
}

impl ExternalTable for Adapted {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn rows(&self) -> Option<usize> {
        self.rows
    }

    fn scan(&self, columns: &[usize]) -> Result<ExternalBatches> {
        if IS_ENDING.load(Ordering::SeqCst) {
            return Err(ended());
        }
        let stream = || {
            let stream = Python::try_attach(|py| self.stream(py, columns).map_err(|error| raised(py, &error)));
            stream.unwrap_or_else(|| Err(ended()))
        };
        let stream = reading(self.reader, stream)?;
        // What cannot leave columns out gives all of them.
        let all = (stream.schema().fields().len() != columns.len()).then(|| columns.to_vec());
        Ok(Box::new(Stream { batches: Some(stream), columns: all, reader: self.reader }))
    }
}

/// A stream of batches, which is let go where the interpreter may be asked.
struct Stream {
    batches: Option<Box<dyn RecordBatchReader + Send>>,
    columns: Option<Vec<usize>>,
    reader: u64,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        if IS_ENDING.load(Ordering::SeqCst) {
            return Some(Err(ended()));
        }
        let batch = reading(self.reader, || batches.next())?.and_then(|batch| match &self.columns {
            Some(columns) => batch.project(columns),
            None => Ok(batch),
        });
        Some(batch.map_err(|error| failed(&error)))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut batches = self.batches.take();
        // Where the interpreter has ended, nothing of it may be let go.
        if Python::try_attach(|_| drop(batches.take())).is_none() {
            std::mem::forget(batches);
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Closed, "57P01", "the interpreter has ended")
}

/// What a stream has failed with.
fn failed(error: &ArrowError) -> Error {
    let message = error.to_string();
    Error::new(ErrorKind::Invalid, "38000", format!("a table of the program has failed: {message}"))
}

/// Finds variables, for the session that has this number.
#[derive(Debug)]
pub(crate) struct Variables(pub(crate) u64);

impl TableResolver for Variables {
    fn resolve(&self, name: &str) -> Result<Option<Arc<dyn ExternalTable>>> {
        Python::attach(|py| {
            let Some(frame) = FRAME.with_borrow(|frame| frame.as_ref().map(|frame| frame.clone_ref(py))) else {
                return Ok(None);
            };
            let find = || -> PyResult<Option<Arc<Adapted>>> {
                let found = py.import("mainstem._tables")?.call_method1("find", (frame, name))?;
                if found.is_none() { Ok(None) } else { Adapted::by(found, self.0).map(Some) }
            };
            let found = reading(self.0, find).map_err(|error| raised(py, &error))?;
            Ok(found.map(|table| table as Arc<dyn ExternalTable>))
        })
    }
}
