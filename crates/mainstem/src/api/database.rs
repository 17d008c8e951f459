//! Opening and closing.
//!
//! A folder is opened once in a process: who opens it again by a [`SharedDatabase`] shares the database, whichever
//! interface he comes by. It is closed with its last handle, whatever results are still read. A child process that was
//! forked has copies of the handles, which it neither uses nor closes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use mainstem_storage::database::{CheckReport, Database as Storage};
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use super::{AsyncConnection, Connection};
use crate::exec::{Interrupts, PlanCache, Runtime, Shared, cores, template};
use crate::provider::FileCache;
use crate::session::{Session, forget_temporary};

/// An open database. Clones are the same database; it closes when the last clone, connection and result are gone, or by
/// [`Database::close`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop");
/// let database = mainstem::Database::open(&path)?;
/// database.connect()?.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")?;
/// database.connect()?.execute("INSERT INTO item VALUES (1, 'nail')")?;
/// database.close()?;
///
/// let database = mainstem::Database::open(&path)?;
/// let row = database.connect()?.query_row("SELECT name FROM item WHERE id = 1", ())?;
/// assert_eq!(row.get::<&str>(0)?, "nail");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Database(Arc<Shared>);

impl Database {
    /// Opens the database in directory `path`; makes it if there is none.
    ///
    /// # Errors
    /// Closed (55006) when another process has it, Corrupt, Io, and Invalid when the directory is no database.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens the database in directory `path` as `options` say.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shop");
    /// use mainstem::{Database, OpenOptions, Synchronous};
    ///
    /// let options = OpenOptions::new().memory_limit(256 << 20).synchronous(Synchronous::Normal);
    /// Database::open_with(&path, options)?.close()?;
    /// assert!(Database::open_with(&path, OpenOptions::new().read_only(true)).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Later versions may have more options, so a struct literal does not compile:
    ///
    /// ```compile_fail,E0639
    /// let options = mainstem::OpenOptions { read_only: true, ..mainstem::OpenOptions::new() };
    /// ```
    ///
    /// # Errors
    /// As [`Database::open`]; NotFound when it is not there and may not be made.
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        Self::new(Storage::open(path.as_ref(), options)?)
    }

    /// Reads all files of the database in directory `path` and checks them, as `mainstem check` does, while another
    /// process writes to it, too. Writes nothing. Of `options` those of memory count.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shop");
    /// use mainstem::{Database, OpenOptions};
    ///
    /// let database = Database::open(&path)?;
    /// let report = Database::check(&path, OpenOptions::new())?;
    /// assert!(report.is_live && report.wrong.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// NotFound, Invalid, Corrupt or Io, when it cannot be opened.
    pub fn check(path: impl AsRef<Path>, options: OpenOptions) -> Result<CheckReport> {
        Storage::check(path.as_ref(), options)
    }

    /// A database that lives in memory, as long as it is open.
    ///
    /// # Errors
    /// Full or Io when its threads cannot be started.
    pub fn in_memory() -> Result<Self> {
        Self::in_memory_with(OpenOptions::default())
    }

    /// A database in memory, as `options` say.
    ///
    /// # Errors
    /// As [`Database::in_memory`].
    pub fn in_memory_with(options: OpenOptions) -> Result<Self> {
        Self::new(Storage::in_memory(options)?)
    }

    fn new(storage: Storage) -> Result<Self> {
        let threads = cores();
        let template = template(&storage, threads)?;
        let runtime = Runtime::start(threads, storage.activity())?;
        forget_temporary(&storage)?;
        let plans = PlanCache::new(storage.memory_budget().clone());
        Ok(Self(Arc::new(Shared {
            storage,
            runtime,
            template,
            sessions: AtomicU64::new(0),
            plans,
            files: FileCache::default(),
        })))
    }

    /// A new connection. Connections are independent; each may be used from any thread.
    ///
    /// # Errors
    /// None at present; statements on a closed database fail with 57P01.
    pub fn connect(&self) -> Result<Connection> {
        let interrupts = Interrupts::default();
        let session = Session::new(self.0.clone(), interrupts.clone());
        Ok(Connection::new(self.0.clone(), session, interrupts))
    }

    /// A new connection whose calls are awaited.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn connect_async(&self) -> Result<AsyncConnection> {
        self.connect().map(AsyncConnection::new)
    }

    /// What the opening has to tell: of a torn tail of the log that was cut off, and of files that were set aside for
    /// it.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        self.0.storage.notices()
    }

    /// Closes the database: background work stops, everything is made durable, the directory is free for others. Later
    /// statements of all connections fail with Closed.
    ///
    /// # Errors
    /// Closed, when the log cannot be written; Io or Full, when its end cannot be marked: closing can be tried again
    /// then, until the last handle is dropped, which frees the directory. Whatever was acknowledged as durable is so,
    /// and later statements fail in any case.
    pub fn close(&self) -> Result<()> {
        self.0.storage.close()
    }

    /// The storage engine underneath: to freeze, flush and merge tables by hand, and to look at containers.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }
}

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
