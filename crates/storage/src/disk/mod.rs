//! All file access of the engine, behind one trait, so that a test can cut the power at any call (contract 4).
//!
//! Comes in: names relative to the database directory and bytes. Goes out: bytes. Invariants: nothing is durable before
//! [`DiskFile::sync`] (its bytes) and [`Disk::sync_dir`] (its name) have returned. It does not own: any format but the
//! frame of the files that records name ([`AsideFile`]).

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_buffer::Buffer;

use crate::error::Result;

mod aside;
mod deferred;
mod guard;
mod lock;
mod memory;
mod real;
#[cfg(test)]
mod tests;

pub use aside::{AsideFile, AsideKind, AsideRef, AsideWriter, parse_aside_name};
pub use deferred::DeferredDisk;
pub use guard::GuardedDisk;
pub use memory::MemDisk;
pub use real::RealDisk;
#[cfg(test)]
pub(crate) use real::syncs_together;

/// The folder of segments and files aside.
pub const DATA_DIR: &str = "data";

/// The folder of what queries and loads put aside. It is made when they do, and goes when the database is opened the
/// next time.
pub const TEMPORARY_DIR: &str = "temp";

/// A place for files: a directory, memory, or a simulated disk that can fail.
pub trait Disk: Send + Sync + Debug {
    /// Makes a new, empty, writable file at `path`, replacing what stood there; who holds the old file keeps its bytes.
    ///
    /// # Errors
    /// Io or Full.
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>>;
    /// Opens a file to read.
    ///
    /// # Errors
    /// NotFound (58P01) or Io.
    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>>;
    /// Opens a file to read and to append to.
    ///
    /// # Errors
    /// NotFound (58P01) or Io.
    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>>;
    /// Gives `from` the name `to`, replacing what stood there, in one step.
    ///
    /// # Errors
    /// NotFound or Io.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// NotFound or Io.
    fn remove(&self, path: &str) -> Result<()>;
    /// Cuts a file to `len` bytes and makes that durable.
    ///
    /// # Errors
    /// NotFound or Io.
    fn truncate(&self, path: &str, len: u64) -> Result<()>;
    /// Names of the files directly in folder `dir` (`""` is the database directory itself), sorted, without the lock
    /// file; empty when there is no such folder.
    ///
    /// # Errors
    /// Io.
    fn list(&self, dir: &str) -> Result<Vec<String>>;
    /// Names of what stands directly in folder `dir` and is no file of the kind [`Disk::list`] names: folders, links
    /// and others. For messages: a name that is no text is not exact.
    ///
    /// # Errors
    /// Io.
    fn list_others(&self, dir: &str) -> Result<Vec<String>>;
    /// Makes a folder, and those above it, unless it is there.
    ///
    /// # Errors
    /// Io or Full.
    fn create_dir(&self, dir: &str) -> Result<()>;
    /// Makes the names in folder `dir` durable.
    ///
    /// # Errors
    /// Io or Full.
    fn sync_dir(&self, dir: &str) -> Result<()>;
    /// Makes all bytes written so far to any file of this disk durable; `false` if nothing is known to be durable by
    /// it: then each file has to be synced.
    ///
    /// # Errors
    /// Closed.
    fn sync_together(&self) -> Result<bool> {
        Ok(false)
    }
    /// How often something was made durable so far, as far as that is counted.
    fn syncs(&self) -> u64 {
        0
    }
    /// Whether there is a file at `path`.
    ///
    /// # Errors
    /// Io.
    fn exists(&self, path: &str) -> Result<bool>;
    /// The folder of the operating system for what queries put aside, without what an earlier process left there;
    /// `None` where files do not stand in one. To be called by a process that has the database alone. The folder need
    /// not be there, and is this database's alone, also where the one above is a link that others have, too.
    ///
    /// # Errors
    /// Io.
    fn temporary_folder(&self) -> Result<Option<PathBuf>> {
        Ok(None)
    }
    /// Makes a file without a name, which goes with its last handle, however the process ends; nothing of it has to be
    /// durable. `None` where files take memory: what is put aside would not leave it.
    ///
    /// # Errors
    /// Io or Full.
    fn temporary_file(&self) -> Result<Option<Arc<dyn DiskFile>>> {
        Ok(None)
    }
    /// Takes the database directory for this process: alone, or shared with other readers. Held until the guard drops.
    ///
    /// # Errors
    /// Closed (55006) that says which process holds it, or Io.
    fn lock(&self, exclusive: bool) -> Result<DiskLock>;
}

/// An open file. Reads and writes may come from many threads; appends come from one at a time.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty")]
pub trait DiskFile: Send + Sync + Debug {
    /// Writes `bytes` at the end; after an error the end is unspecified until [`DiskFile::cut`].
    ///
    /// # Errors
    /// Io or Full.
    fn append(&self, bytes: &[u8]) -> Result<()>;
    /// As [`DiskFile::append`]; a file in memory keeps `bytes` themselves.
    ///
    /// # Errors
    /// As [`DiskFile::append`].
    fn append_buffer(&self, bytes: &Buffer) -> Result<()> {
        self.append(bytes)
    }
    /// The `len` bytes from byte `offset` on, without a copy, if they were appended at once to a file in memory.
    fn shared(&self, offset: u64, len: usize) -> Option<Buffer> {
        let _ = (offset, len);
        None
    }
    /// Fills `buffer` from byte `offset`.
    ///
    /// # Errors
    /// Corrupt when the file ends before; Io.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
    /// Appends `len` bytes from byte `offset` on to `out`, which has room for them: they need not be set to zero
    /// before.
    ///
    /// # Errors
    /// As [`DiskFile::read_at`]; what was appended then is unspecified.
    fn read_into(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + len, 0);
        self.read_at(offset, out.get_mut(start..).unwrap_or_default())
    }
    /// Length in bytes.
    ///
    /// # Errors
    /// Io.
    fn len(&self) -> Result<u64>;
    /// Cuts the file to `len` bytes (not durable by itself).
    ///
    /// # Errors
    /// Io.
    fn cut(&self, len: u64) -> Result<()>;
    /// Sets disk space aside so that appends up to byte `len` cannot fail for lack of it; the length stays.
    ///
    /// # Errors
    /// Io or Full.
    fn reserve(&self, len: u64) -> Result<()>;
    /// Makes all bytes written so far durable (fdatasync).
    ///
    /// # Errors
    /// Io or Full.
    fn sync(&self) -> Result<()>;
}

/// Holds the database directory; released when dropped.
#[derive(Debug)]
pub struct DiskLock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Send + Sync + DebugAny>);

impl DiskLock {
    /// Wraps whatever releases the lock when dropped.
    pub fn new(guard: impl Send + Sync + Debug + 'static) -> Self {
        Self(Box::new(guard))
    }
}

/// Anything that can be held and shown.
trait DebugAny: Debug {}
impl<T: Debug> DebugAny for T {}
