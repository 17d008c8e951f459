//! A disk that can be closed: what is still running when a database is closed can no longer touch a directory that is
//! then free for others.
//!
//! A transaction, a load or a merge may outlive the close in another thread, and would make or remove files whose
//! numbers the next process uses again. So every change passes a gate; closing waits for changes under way, and refuses
//! later ones.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_buffer::Buffer;
use parking_lot::RwLock;

use super::{Disk, DiskFile, DiskLock};
use crate::error::{Error, Result};

/// Passes everything on until it is closed; then refuses changes, and to open files: what has their names may be
/// another's.
#[derive(Debug)]
pub struct GuardedDisk {
    disk: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate(RwLock<bool>);

impl Gate {
    fn pass<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let closed = self.0.read();
        if *closed {
            return Err(Error::closed("the database is closed"));
        }
        change()
    }
}

impl GuardedDisk {
    /// Guards `disk`.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>) -> Arc<Self> {
        Arc::new(Self { disk, gate: Arc::default() })
    }

    /// Waits for changes under way; from now on there are none.
    pub fn close(&self) {
        *self.gate.0.write() = true;
    }
}

impl Disk for GuardedDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let file = self.gate.pass(|| self.disk.create(path))?;
        Ok(Arc::new(GuardedFile { file, gate: self.gate.clone() }))
    }

    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.gate.pass(|| self.disk.open(path))
    }

    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let file = self.gate.pass(|| self.disk.open_to_append(path))?;
        Ok(Arc::new(GuardedFile { file, gate: self.gate.clone() }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.gate.pass(|| self.disk.rename(from, to))
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.gate.pass(|| self.disk.remove(path))
    }

    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.gate.pass(|| self.disk.truncate(path, len))
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list_others(dir)
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        self.gate.pass(|| self.disk.create_dir(dir))
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.gate.pass(|| self.disk.sync_dir(dir))
    }

    fn sync_together(&self) -> Result<bool> {
        self.gate.pass(|| self.disk.sync_together())
    }

    fn syncs(&self) -> u64 {
        self.disk.syncs()
    }

    fn exists(&self, path: &str) -> Result<bool> {
        self.disk.exists(path)
    }

    fn temporary_folder(&self) -> Result<Option<PathBuf>> {
        self.gate.pass(|| self.disk.temporary_folder())
    }

    fn temporary_file(&self) -> Result<Option<Arc<dyn DiskFile>>> {
        let file = self.gate.pass(|| self.disk.temporary_file())?;
        Ok(file.map(|file| Arc::new(GuardedFile { file, gate: self.gate.clone() }) as Arc<dyn DiskFile>))
    }

    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        self.disk.lock(exclusive)
    }
}

#[derive(Debug)]
struct GuardedFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl DiskFile for GuardedFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.gate.pass(|| self.file.append(bytes))
    }

    fn append_buffer(&self, bytes: &Buffer) -> Result<()> {
        self.gate.pass(|| self.file.append_buffer(bytes))
    }

    fn shared(&self, offset: u64, len: usize) -> Option<Buffer> {
        self.file.shared(offset, len)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn read_into(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        self.file.read_into(offset, len, out)
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn cut(&self, len: u64) -> Result<()> {
        self.gate.pass(|| self.file.cut(len))
    }

    fn reserve(&self, len: u64) -> Result<()> {
        self.gate.pass(|| self.file.reserve(len))
    }

    fn sync(&self) -> Result<()> {
        self.gate.pass(|| self.file.sync())
    }
}
