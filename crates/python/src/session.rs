//! Sessions: connections as objects of Python share them.
//!
//! A session ends with its object, or with the interpreter. A child process that was forked has copies of all of them,
//! which it must not touch: what belongs to another generation is neither used nor closed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mainstem::{InterruptHandle, OwnedStatement, Progress, SharedDatabase, forget_after_fork};
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::{errors, tables};

/// How often this process was forked.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Statements that a connection remembers by the objects of their texts.
const STATEMENTS_MAX: usize = 16;

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Called in the child after a fork.
#[pyfunction]
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    forget_after_fork();
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
    database: Mutex<Option<SharedDatabase>>,
    interrupt: InterruptHandle,
    progress: Progress,
    is_closed: AtomicBool,
    generation: u64,
}

impl Session {
    pub(crate) fn new(database: SharedDatabase) -> mainstem::Result<Self> {
        let connection = database.database().connect()?;
        Ok(Self {
            id: SESSIONS.fetch_add(1, Ordering::Relaxed) + 1,
            turn: ReentrantMutex::new(()),
            interrupt: connection.interrupt_handle(),
            progress: connection.progress(),
            connection: Some(Arc::new(connection)),
            statements: Mutex::default(),
            database: Mutex::new(Some(database)),
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
    pub(crate) fn database(&self) -> Option<SharedDatabase> {
        self.database.lock().clone()
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
        let database = self.database.lock().take();
        database.map_or(Ok(()), SharedDatabase::close)
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
        std::mem::forget(self.database.lock().take());
    }
}
