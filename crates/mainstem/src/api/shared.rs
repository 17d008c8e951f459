//! Databases that are open in this process, by their folders.
//!
//! A folder is opened once in a process: who opens it again shares the database, whichever interface he comes by. It is
//! closed with its last handle, whatever results are still read. A child process that was forked has copies of the
//! handles, which it neither uses nor closes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use mainstem_storage::settings::OpenOptions;
use mainstem_storage::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use super::Database;

static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Opened>>>> = Mutex::new(None);

/// A handle of a database that several parts of a program may have opened, each for itself.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop");
/// use mainstem::{OpenOptions, SharedDatabase};
///
/// let first = SharedDatabase::open(&path, OpenOptions::new())?;
/// first.database().connect()?.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")?;
/// let second = SharedDatabase::open(&path, OpenOptions::new())?;
/// first.close()?;
/// assert_eq!(second.database().connect()?.query_row("SELECT count(*) FROM t", ())?.get::<i64>(0)?, 0);
/// second.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SharedDatabase(Option<Arc<Opened>>);

#[derive(Debug)]
struct Opened {
    database: Database,
    /// None in memory.
    path: Option<PathBuf>,
    read_only: bool,
    /// The process that has opened it.
    process: u32,
}

impl SharedDatabase {
    /// The database in folder `path`: the one that this process has open already, else as
    /// [`Database::open_with`] opens it.
    ///
    /// # Errors
    /// As there; 55006 when it is open here for reading alone and is to be written, or the other way round.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let (path, read_only) = (path.as_ref(), options.read_only);
        let mut open = OPEN.lock();
        let open = open.get_or_insert_default();
        open.retain(|_, database| database.strong_count() > 0);
        let known = path.canonicalize().ok().and_then(|path| open.get(&path)?.upgrade());
        let known = known.filter(|known| known.process == std::process::id());
        if let Some(known) = known {
            let shown = path.display();
            let message = match (known.read_only, read_only) {
                (true, false) => format!("{shown} is open in this process for reading alone"),
                (false, true) => format!("{shown} is open in this process for writing, too; leave read_only out"),
                _ => return Ok(Self(Some(known))),
            };
            return Err(Error::new(ErrorKind::Closed, "55006", message));
        }
        let database = Database::open_with(path, options).map_err(|e| {
            let name = path.display().to_string();
            if e.message().contains(&name) { e } else { e.context(name) }
        })?;
        let path = path.canonicalize().ok();
        let opened = Arc::new(Opened { database, path: path.clone(), read_only, process: std::process::id() });
        if let Some(path) = path {
            open.insert(path, Arc::downgrade(&opened));
        }
        Ok(Self(Some(opened)))
    }

    /// A database in memory, which only clones of the handle share.
    ///
    /// # Errors
    /// As [`Database::in_memory`].
    pub fn in_memory(options: OpenOptions) -> Result<Self> {
        let read_only = options.read_only;
        let database = Database::in_memory_with(options)?;
        Ok(Self(Some(Arc::new(Opened { database, path: None, read_only, process: std::process::id() }))))
    }

    /// The database. A clone of it is not counted: it is closed with the last handle.
    #[must_use]
    #[allow(clippy::missing_panics_doc, clippy::expect_used, reason = "only `close` and `drop` take it")]
    pub fn database(&self) -> &Database {
        &self.0.as_ref().expect("a handle has its database").database
    }

    /// Its folder; none in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_ref()?.path.as_deref()
    }

    /// Gives up the handle, and closes the database if it is the last one.
    ///
    /// # Errors
    /// As [`Database::close`].
    pub fn close(mut self) -> Result<()> {
        self.give_up()
    }

    fn give_up(&mut self) -> Result<()> {
        let Some(opened) = self.0.take() else { return Ok(()) };
        if opened.process != std::process::id() {
            // It is the parent's.
            std::mem::forget(opened);
            return Ok(());
        }
        // Who opens the folder meanwhile waits until it is free.
        let _open = OPEN.lock();
        Arc::into_inner(opened).map_or(Ok(()), |last| last.database.close())
    }
}

impl Drop for SharedDatabase {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = self.give_up();
    }
}

/// Called in the child after a fork, while nothing else runs in it: what it has of its parent stays as it is.
pub fn forget_after_fork() {
    // The lock may have been held by a thread that the child does not have.
    if let Some(mut open) = OPEN.try_lock() {
        std::mem::forget(open.take());
    }
}
