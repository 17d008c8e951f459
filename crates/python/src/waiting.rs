//! Waiting for the engine: without the interpreter's lock, and with an eye on signals.
//!
//! Python delivers signals to its main thread, between two steps of the interpreter: a call that blocks there would
//! never hear of Ctrl-C, nor of the stop button of a notebook. So what may take long runs on another thread while the
//! main one looks at signals; any other thread may block.

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::task::Poll;
use std::time::{Duration, Instant};

use mainstem::arrow::array::RecordBatch;
use mainstem::{Error, QueryResult, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors;
use crate::session::Session;

/// How often the main thread looks at signals.
const LOOK: Duration = Duration::from_millis(50);

/// A statement that takes longer shows how far it is.
const SHOW_BEHIND: Duration = Duration::from_secs(1);
const SHOW_AGAIN: Duration = Duration::from_millis(250);

/// Whether the calling thread is the one that signals come to.
fn is_main(py: Python<'_>) -> bool {
    thread_local!(static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) });
    IS_MAIN.with(|known| {
        if let Some(known) = known.get() {
            return known;
        }
        let ask = || -> PyResult<bool> {
            let threading = py.import("threading")?;
            let main = threading.call_method0("main_thread")?.getattr("ident")?;
            threading.call_method0("get_ident")?.eq(main)
        };
        let answer = ask().unwrap_or(false);
        known.set(Some(answer));
        answer
    })
}

/// What `work` gives; errors as exceptions. Signals interrupt it.
pub(crate) fn run<T: Send>(py: Python<'_>, session: &Session, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    if !is_main(py) {
        return py.detach(work).map_err(|error| errors::exception(py, &error));
    }
    let (outcome, signal) = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            let worker = std::thread::Builder::new().name("mainstem statement".into());
            let spawned = worker.spawn_scoped(scope, move || {
                // Nobody waits any more where the process ends.
                let _ = sender.send(work());
            });
            if let Err(error) = spawned {
                let message = format!("no thread can be started for the statement: {error}");
                return (Err(Error::new(mainstem::ErrorKind::Full, "53000", message)), None);
            }
            let mut signal = None;
            let mut shown = Shown::new(session);
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(outcome) => return (outcome, signal),
                    Err(RecvTimeoutError::Disconnected) => {
                        return (Err(Error::internal("the thread of the statement has ended")), signal);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(raised) = Python::attach(|py| py.check_signals()) {
                            session.interrupt().interrupt();
                            signal.get_or_insert(raised);
                        }
                        shown.look();
                    }
                }
            }
        })
    });
    match signal {
        None => outcome.map_err(|error| errors::exception(py, &error)),
        Some(raised) => Err(told(py, raised, outcome.is_ok())),
    }
}

/// What is shown of a statement that takes long; it is taken away at the end.
struct Shown<'s> {
    session: &'s Session,
    begun: Instant,
    next: Duration,
    is_shown: bool,
}

impl<'s> Shown<'s> {
    fn new(session: &'s Session) -> Self {
        Self { session, begun: Instant::now(), next: SHOW_BEHIND, is_shown: false }
    }

    fn look(&mut self) {
        let elapsed = self.begun.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + SHOW_AGAIN;
        let progress = self.session.progress();
        let figures = (elapsed.as_secs_f64(), progress.bytes(), progress.bytes_total());
        // What cannot be shown is no reason to fail.
        let shown = Python::attach(|py| -> PyResult<bool> {
            let module = py.import("mainstem._progress")?;
            let wanted = module.call_method0("is_wanted")?.extract()?;
            if wanted {
                module.call_method1("show", figures)?;
            }
            Ok(wanted)
        });
        self.is_shown |= shown.unwrap_or(false);
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = Python::attach(|py| py.import("mainstem._progress")?.call_method0("clear").map(|_| ()));
        }
    }
}

/// `raised`, with what became of the statement meanwhile.
fn told(py: Python<'_>, raised: PyErr, has_ended: bool) -> PyErr {
    if !raised.is_instance_of::<PyKeyboardInterrupt>(py)
        || !raised.value(py).str().is_ok_and(|text| text.is_empty().unwrap_or(false))
    {
        return raised;
    }
    PyKeyboardInterrupt::new_err(if has_ended {
        "the statement was done before it could be interrupted"
    } else {
        "the statement was interrupted, and has left nothing behind; those before it in the same call are done"
    })
}

/// The next batch of `result`. Signals interrupt it.
pub(crate) fn next_batch(py: Python<'_>, session: &Session, result: &mut QueryResult) -> PyResult<Option<RecordBatch>> {
    loop {
        match py.detach(|| result.next_within(LOOK)) {
            Poll::Ready(batch) => return batch.transpose().map_err(|error| errors::exception(py, &error)),
            Poll::Pending => {
                if let Err(raised) = py.check_signals() {
                    session.interrupt().interrupt();
                    return Err(raised);
                }
            }
        }
    }
}

/// As [`next_batch`], for whoever reads a stream, with the interpreter's lock or without.
pub(crate) fn next_of_stream(session: &Session, result: &mut QueryResult) -> Option<Result<RecordBatch>> {
    if session.is_of_parent() {
        return Some(Err(Error::new(
            mainstem::ErrorKind::Closed,
            "08003",
            "the query is of the process that was forked",
        )));
    }
    loop {
        match result.next_within(LOOK) {
            Poll::Ready(batch) => return batch,
            Poll::Pending => {
                // Elsewhere than on the main thread there are no signals.
                if Python::attach(|py| py.check_signals()).is_err() {
                    session.interrupt().interrupt();
                    return Some(Err(Error::new(mainstem::ErrorKind::Invalid, "57014", "the query was interrupted")));
                }
            }
        }
    }
}
