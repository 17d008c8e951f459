//! A disk whose files are made durable together: one phase for all that a load writes.
//!
//! Comes in: files of one load, each of which is synced when it is whole. Goes out: the same files, durable when
//! [`DeferredDisk::sync_all`] has returned. Until then a sync only notes the file. When the files noted have
//! [`limits::SYNC_PHASE_BYTES`], or are [`limits::SYNC_PHASE_FILES`], they are synced at once: what is not on the disk
//! yet, and descriptors that are open, stay bounded.
//!
//! It does not own: names, which are as durable as ever.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_buffer::Buffer;
use parking_lot::Mutex;

use super::{Disk, DiskFile, DiskLock};
use crate::error::Result;
use crate::limits;

/// Files from which on they are synced together, where the disk can do that.
const TOGETHER_MIN: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct DeferredDisk {
    disk: Arc<dyn Disk>,
    noted: Arc<Noted>,
}

/// Files that are whole and not durable, and their bytes.
#[derive(Debug)]
struct Noted {
    disk: Arc<dyn Disk>,
    files: Mutex<(Vec<Arc<dyn DiskFile>>, u64)>,
}

impl Noted {
    fn note(&self, file: Arc<dyn DiskFile>) -> Result<()> {
        let bytes = file.len()?;
        let mut noted = self.files.lock();
        noted.0.push(file);
        noted.1 += bytes;
        let is_full = noted.1 >= limits::SYNC_PHASE_BYTES || noted.0.len() >= limits::SYNC_PHASE_FILES;
        drop(noted);
        if is_full { self.sync_all() } else { Ok(()) }
    }

    fn sync_all(&self) -> Result<()> {
        let (files, _) = std::mem::take(&mut *self.files.lock());
        if files.len() >= TOGETHER_MIN && self.disk.sync_together()? {
            return Ok(());
        }
        // One by one, and no lock around them: each passes the gate of a disk that may be closed by itself.
        files.iter().try_for_each(|file| file.sync())
    }
}

impl DeferredDisk {
    /// The same files as of `disk`.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>) -> Arc<Self> {
        let noted = Arc::new(Noted { disk: disk.clone(), files: Mutex::default() });
        Arc::new(Self { disk, noted })
    }

    /// Makes durable what was written to files that were synced.
    ///
    /// # Errors
    /// Io or Full: none of them counts as durable.
    pub fn sync_all(&self) -> Result<()> {
        self.noted.sync_all()
    }
}

impl Disk for DeferredDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(DeferredFile { file: self.disk.create(path)?, noted: self.noted.clone() }))
    }

    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.disk.open(path)
    }

    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.disk.open_to_append(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.disk.remove(path)
    }

    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.disk.truncate(path, len)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list_others(dir)
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        self.disk.create_dir(dir)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.disk.sync_dir(dir)
    }

    fn sync_together(&self) -> Result<bool> {
        self.disk.sync_together()
    }

    fn syncs(&self) -> u64 {
        self.disk.syncs()
    }

    fn exists(&self, path: &str) -> Result<bool> {
        self.disk.exists(path)
    }

    fn temporary_folder(&self) -> Result<Option<PathBuf>> {
        self.disk.temporary_folder()
    }

    fn temporary_file(&self) -> Result<Option<Arc<dyn DiskFile>>> {
        self.disk.temporary_file()
    }

    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        self.disk.lock(exclusive)
    }
}

#[derive(Debug)]
struct DeferredFile {
    file: Arc<dyn DiskFile>,
    noted: Arc<Noted>,
}

impl DiskFile for DeferredFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)
    }

    fn append_buffer(&self, bytes: &Buffer) -> Result<()> {
        self.file.append_buffer(bytes)
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
        self.file.cut(len)
    }

    fn reserve(&self, len: u64) -> Result<()> {
        self.file.reserve(len)
    }

    fn sync(&self) -> Result<()> {
        self.noted.note(self.file.clone())
    }
}
