//! Sessions, which connections and their statements share.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adbc_core::error::{Result, Status};
use mainstem::arrow::array::{RecordBatch, RecordBatchReader};
use mainstem::arrow::datatypes::SchemaRef;
use mainstem::arrow::error::ArrowError;
use mainstem::{InterruptHandle, SharedDatabase, TransactionStatus};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::errors::{adbc, refused};
use crate::results::Reader;

thread_local! {
    /// The session for which this thread asks a stream of the program for rows; 0 for none.
    static ASKING: Cell<u64> = const { Cell::new(0) };
}

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// The name of the only catalog, which names of tables may begin with.
pub(crate) const CATALOG: &str = "mainstem";

/// A session, which its statements share.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Arc<mainstem::Connection>,
    /// Tells sessions apart.
    id: u64,
    /// The process that it belongs to: a child that was forked has a copy.
    process: u32,
    /// Whose turn it is: statements of other threads do not come between the rows of one.
    turn: ReentrantMutex<()>,
    interrupt: InterruptHandle,
    /// How often it was interrupted.
    interrupts: AtomicU64,
    pub(crate) autocommit: AtomicBool,
    /// Whether results keep texts as views.
    pub(crate) keeps_views: AtomicBool,
    pub(crate) read_only: bool,
    /// Closed after the connection.
    _database: SharedDatabase,
}

impl Session {
    /// A session of `database`, with autocommit on.
    pub(crate) fn new(database: SharedDatabase, read_only: bool) -> Result<Self> {
        let connection = database.database().connect().map_err(|error| adbc(&error))?;
        Ok(Self {
            id: SESSIONS.fetch_add(1, Ordering::Relaxed) + 1,
            process: std::process::id(),
            turn: ReentrantMutex::new(()),
            interrupts: AtomicU64::new(0),
            interrupt: connection.interrupt_handle(),
            connection: Arc::new(connection),
            autocommit: AtomicBool::new(true),
            keeps_views: AtomicBool::new(false),
            read_only,
            _database: database,
        })
    }

    /// Waits for its turn.
    ///
    /// # Errors
    /// 08003 in a process that was forked, 55006 for a stream of the program that asks the connection that reads it.
    pub(crate) fn turn(&self) -> Result<ReentrantMutexGuard<'_, ()>> {
        self.check_process()?;
        if ASKING.get() == self.id {
            let message = "the connection reads the rows that are bound; use another one for what they come from";
            return Err(refused(Status::InvalidState, "55006", message));
        }
        Ok(self.turn.lock())
    }

    /// # Errors
    /// 08003 in a process that was forked from the one that has connected.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message = "this process was forked from the one that opened the connection; open the database again here";
        Err(refused(Status::InvalidState, "08003", message))
    }

    /// How often it was interrupted.
    pub(crate) fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed)
    }

    pub(crate) fn autocommit(&self) -> bool {
        self.autocommit.load(Ordering::Relaxed)
    }

    /// `rows`, a stream of the program, which may not ask this session for anything.
    pub(crate) fn asked(&self, rows: Reader) -> Reader {
        Box::new(Asked { rows, session: self.id })
    }

    /// Begins a transaction for `sql`, if it needs one.
    pub(crate) fn begin_implicitly(&self, sql: &str) -> Result<()> {
        if self.autocommit.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.connection.begin_implicitly(sql).map_err(|error| adbc(&error))
    }

    /// Ends what the session runs, and results of it that are still read.
    pub(crate) fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::Relaxed);
        self.interrupt.interrupt();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // It is the parent's: nothing of it may end here.
            std::mem::forget(self.connection.clone());
            return;
        }
        if self.connection.status() != TransactionStatus::Idle {
            // There is nobody to tell.
            let _ = self.connection.execute("ROLLBACK");
        }
    }
}

/// A stream of the program, as a session reads it.
struct Asked {
    rows: Reader,
    session: u64,
}

impl Iterator for Asked {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let before = ASKING.replace(self.session);
        let batch = self.rows.next();
        ASKING.set(before);
        batch
    }
}

impl RecordBatchReader for Asked {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// `name` in double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as a literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
