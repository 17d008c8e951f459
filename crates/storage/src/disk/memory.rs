//! Files in memory: for in-memory databases and tests. Behaves like a directory, and never fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::{Disk, DiskFile, DiskLock};
use crate::error::{Error, ErrorKind, Result, sqlstate};

/// A directory in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemDisk {
    names: Arc<Mutex<Names>>,
    /// Readers that hold the lock; -1: a writer does.
    holders: Arc<AtomicI64>,
}

#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<String, Arc<MemFile>>,
    dirs: BTreeSet<String>,
}

#[derive(Debug)]
struct MemFile {
    name: String,
    bytes: RwLock<Vec<u8>>,
}

impl MemDisk {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory of its own with copies of the files as they are now.
    #[must_use]
    pub fn copy(&self) -> Self {
        let names = self.names.lock();
        let copy = |(name, file): (&String, &Arc<MemFile>)| {
            let bytes = RwLock::new(file.bytes.read().clone());
            (name.clone(), Arc::new(MemFile { name: name.clone(), bytes }))
        };
        let copied = Names { files: names.files.iter().map(copy).collect(), dirs: names.dirs.clone() };
        Self { names: Arc::new(Mutex::new(copied)), holders: Arc::default() }
    }

    /// Puts a file with these bytes at `path`, whatever stood there.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let file = MemFile { name: path.to_owned(), bytes: RwLock::new(bytes) };
        self.names.lock().files.insert(path.to_owned(), Arc::new(file));
    }

    /// The bytes of the file at `path`.
    ///
    /// # Errors
    /// NotFound.
    pub fn get(&self, path: &str) -> Result<Vec<u8>> {
        Ok(self.file(path)?.bytes.read().clone())
    }

    fn file(&self, path: &str) -> Result<Arc<MemFile>> {
        self.names.lock().files.get(path).cloned().ok_or_else(|| missing(path))
    }
}

fn missing(path: &str) -> Error {
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_FILE, format!("there is no file {path}"))
}

/// The folder of a path: `""` for a file of the database directory itself.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

impl Disk for MemDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let mut names = self.names.lock();
        if !folder(path).is_empty() && !names.dirs.contains(folder(path)) {
            return Err(missing(folder(path)));
        }
        let file = Arc::new(MemFile { name: path.to_owned(), bytes: RwLock::default() });
        names.files.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        Ok(self.file(path)?)
    }

    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.open(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut names = self.names.lock();
        let file = names.files.remove(from).ok_or_else(|| missing(from))?;
        names.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.names.lock().files.remove(path).map(|_| ()).ok_or_else(|| missing(path))
    }

    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.file(path)?.cut(len)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let names = self.names.lock();
        let in_dir = names.files.keys().filter(|path| folder(path) == dir);
        Ok(in_dir.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect())
    }

    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        let names = self.names.lock();
        let in_dir = names.dirs.iter().filter(|path| folder(path) == dir);
        Ok(in_dir.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect())
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        let mut names = self.names.lock();
        let ends = dir.match_indices('/').map(|(at, _)| at).chain([dir.len()]);
        names.dirs.extend(ends.map(|end| dir.split_at(end).0.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }

    fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.names.lock().files.contains_key(path))
    }

    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        let take = |holders: i64| match (exclusive, holders) {
            (true, 0) => Some(-1),
            (false, 0..) => Some(holders + 1),
            _ => None,
        };
        match self.holders.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
            Ok(_) => Ok(DiskLock::new(Held { holders: Arc::clone(&self.holders) })),
            Err(_) => {
                let message = "the database is open elsewhere in this process; close it there first";
                Err(Error::new(ErrorKind::Closed, sqlstate::LOCKED, message))
            }
        }
    }
}

#[derive(Debug)]
struct Held {
    holders: Arc<AtomicI64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let release = |holders: i64| Some(if holders < 0 { 0 } else { holders - 1 });
        let _ = self.holders.fetch_update(Ordering::AcqRel, Ordering::Acquire, release);
    }
}

impl DiskFile for MemFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.bytes.write().extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let bytes = self.bytes.read();
        let range = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(buffer.len())?));
        match range.and_then(|range| bytes.get(range)) {
            Some(found) => {
                buffer.copy_from_slice(found);
                Ok(())
            }
            None => {
                let message = format!("the file ends before the {} bytes expected here", buffer.len());
                Err(Error::corrupt(&self.name, offset, message))
            }
        }
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn cut(&self, len: u64) -> Result<()> {
        let mut bytes = self.bytes.write();
        if len < bytes.len() as u64 {
            bytes.truncate(len as usize);
        }
        Ok(())
    }

    fn reserve(&self, _len: u64) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
