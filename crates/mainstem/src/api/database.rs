//! Opening and closing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mainstem_storage::Result;
use mainstem_storage::database::{CheckReport, Database as Storage};
use mainstem_storage::settings::OpenOptions;

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
