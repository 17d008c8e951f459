//! Databases that are open in this process, and the connections to them.
//!
//! A folder is opened once: who connects to it again shares the database. It is closed with its last connection, or by
//! the interpreter's end. A child process that was forked has copies of all of them, which it must not touch: what
//! belongs to another generation is neither used nor closed.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use mainstem::{Database, InterruptHandle, OpenOptions, OwnedStatement, Progress};
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::{errors, tables};

/// How often this process was forked.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Statements that a connection remembers by the objects of their texts.
const STATEMENTS_MAX: usize = 16;

static SESSIONS: AtomicU64 = AtomicU64::new(0);

static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Opened>>>> = Mutex::new(None);

/// Called in the child after a fork.
#[pyfunction]
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    // The lock may have been held by a thread that the child does not have; nobody else runs now.
    if let Some(mut open) = OPEN.try_lock() {
        // What it has stays as it is.
        std::mem::forget(open.take());
    }
}

/// A database that connections share.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) database: Database,
    /// Its folder; none in memory.
    pub(crate) path: Option<PathBuf>,
    read_only: bool,
}

impl Opened {
    /// The database in folder `path`, or one in memory.
    pub(crate) fn open(path: Option<PathBuf>, options: OpenOptions) -> mainstem::Result<Arc<Self>> {
        let read_only = options.read_only;
        let Some(path) = path else {
            return Ok(Arc::new(Self { database: Database::in_memory_with(options)?, path: None, read_only }));
        };
        let mut open = OPEN.lock();
        let open = open.get_or_insert_default();
        open.retain(|_, database| database.strong_count() > 0);
        let known = path.canonicalize().ok().and_then(|path| open.get(&path)?.upgrade());
        if let Some(known) = known {
            if known.read_only && !read_only {
                let message = format!("{} is open in this process for reading alone", path.display());
                return Err(mainstem::Error::new(mainstem::ErrorKind::Closed, "55006", message));
            }
            if read_only && !known.read_only {
                let message =
                    format!("{} is open in this process for writing, too; leave read_only out", path.display());
                return Err(mainstem::Error::new(mainstem::ErrorKind::Closed, "55006", message));
            }
            return Ok(known);
        }
        let database = Database::open_with(&path, options).map_err(|e| {
            let name = path.display().to_string();
            if e.message().contains(&name) { e } else { e.context(name) }
        })?;
        let full = path.canonicalize();
        let opened = Arc::new(Self { database, path: full.as_ref().ok().cloned(), read_only });
        if let Ok(path) = full {
            open.insert(path, Arc::downgrade(&opened));
        }
        Ok(opened)
    }
}

/// A connection, as objects of Python share it.
#[derive(Debug)]
pub(crate) struct Session {
    /// Tells sessions apart.
    pub(crate) id: u64,
    /// Whose turn it is: other threads' statements do not come between several of one call.
    turn: ReentrantMutex<()>,
    connection: Option<Arc<mainstem::Connection>>,
    /// Statements of the texts that came last, the last one first: a program's texts are the same objects mostly.
    statements: Mutex<VecDeque<(Py<PyString>, OwnedStatement)>>,
    opened: Mutex<Option<Arc<Opened>>>,
    interrupt: InterruptHandle,
    progress: Progress,
    is_closed: AtomicBool,
    generation: u64,
}

impl Session {
    pub(crate) fn new(opened: Arc<Opened>) -> mainstem::Result<Self> {
        let connection = opened.database.connect()?;
        Ok(Self {
            id: SESSIONS.fetch_add(1, Ordering::Relaxed) + 1,
            turn: ReentrantMutex::new(()),
            interrupt: connection.interrupt_handle(),
            progress: connection.progress(),
            connection: Some(Arc::new(connection)),
            statements: Mutex::default(),
            opened: Mutex::new(Some(opened)),
            is_closed: AtomicBool::new(false),
            generation: GENERATION.load(Ordering::SeqCst),
        })
    }

    /// The connection, if it is open.
    pub(crate) fn connection(&self, py: Python<'_>) -> PyResult<&Arc<mainstem::Connection>> {
        if self.is_of_parent() {
            let message =
                "this process was forked from the one that opened the connection; open the database again here";
            return Err(errors::misuse(py, "InterfaceError", "08003", message));
        }
        if tables::is_read_by(self.id) {
            let message = "the connection reads this table for a statement; use another one here: con.session()";
            return Err(errors::misuse(py, "ProgrammingError", "55006", message));
        }
        match &self.connection {
            Some(connection) if !self.is_closed.load(Ordering::Acquire) => Ok(connection),
            _ => Err(errors::misuse(py, "InterfaceError", "08003", "the connection is closed")),
        }
    }

    /// Waits until no other thread is in the middle of several statements.
    pub(crate) fn turn(&self, py: Python<'_>) -> ReentrantMutexGuard<'_, ()> {
        loop {
            if let Some(turn) = self.turn.try_lock() {
                return turn;
            }
            // The other one may need the interpreter; a guard cannot be carried over.
            py.detach(|| drop(self.turn.try_lock_for(Duration::from_millis(50))));
        }
    }

    /// The statement of `text`, if that very object was seen lately.
    pub(crate) fn statement(&self, text: &Bound<'_, PyString>) -> Option<OwnedStatement> {
        let mut statements = self.statements.lock();
        let at = statements.iter().position(|(known, _)| known.is(text))?;
        if at > 0 {
            statements.swap(0, at);
        }
        statements.front().map(|(_, statement)| statement.clone())
    }

    /// Remembers `statement` for `text`.
    pub(crate) fn remember(&self, text: &Bound<'_, PyString>, statement: OwnedStatement) {
        let forgotten = {
            let mut statements = self.statements.lock();
            statements.push_front((text.clone().unbind(), statement));
            if statements.len() > STATEMENTS_MAX { statements.pop_back() } else { None }
        };
        // No lock is held where objects of Python end.
        drop(forgotten);
    }

    /// Whether it belongs to the process that this one was forked from.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.generation != GENERATION.load(Ordering::Relaxed)
    }

    pub(crate) fn interrupt(&self) -> &InterruptHandle {
        &self.interrupt
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The database, while it is open.
    pub(crate) fn opened(&self) -> Option<Arc<Opened>> {
        self.opened.lock().clone()
    }

    /// Closes the connection: what is open is rolled back. With its last connection the database is closed.
    pub(crate) fn close(&self) -> mainstem::Result<()> {
        if self.is_closed.swap(true, Ordering::AcqRel) || self.generation != GENERATION.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.interrupt.interrupt();
        let statements = std::mem::take(&mut *self.statements.lock());
        drop(statements);
        if let Some(connection) = &self.connection
            && connection.status() != mainstem::TransactionStatus::Idle
        {
            connection.execute("ROLLBACK")?;
        }
        let mut open = OPEN.lock();
        match self.opened.lock().take().map(Arc::try_unwrap) {
            Some(Ok(last)) => {
                open.get_or_insert_default().retain(|_, database| database.strong_count() > 0);
                last.database.close()
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.generation == GENERATION.load(Ordering::SeqCst) {
            // There is nobody to tell. Where the interpreter ends, its lock cannot be given up.
            if Python::try_attach(|py| py.detach(|| self.close())).is_none() {
                let _ = self.close();
            }
            return;
        }
        // Another process has it.
        std::mem::forget(std::mem::take(&mut *self.statements.lock()));
        std::mem::forget(self.connection.take());
        std::mem::forget(self.opened.lock().take());
    }
}
