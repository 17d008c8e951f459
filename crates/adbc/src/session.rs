//! Sessions, which connections and their statements share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adbc_core::error::Result;
use mainstem::{InterruptHandle, SharedDatabase, TransactionStatus};

use crate::errors::adbc;

/// The name of the only catalog, which names of tables may begin with.
pub(crate) const CATALOG: &str = "mainstem";

/// A session, which its statements share.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Arc<mainstem::Connection>,
    interrupt: InterruptHandle,
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
            interrupt: connection.interrupt_handle(),
            connection: Arc::new(connection),
            autocommit: AtomicBool::new(true),
            keeps_views: AtomicBool::new(false),
            read_only,
            _database: database,
        })
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
        self.interrupt.interrupt();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.connection.status() != TransactionStatus::Idle {
            // There is nobody to tell.
            let _ = self.connection.execute("ROLLBACK");
        }
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
