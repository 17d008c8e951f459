//! A disk in memory whose syncs wait while a test holds them, and which remembers in what order files changed.

use std::sync::Arc;

use mainstem_storage::Result;
use mainstem_storage::disk::{Disk, DiskFile, DiskLock, MemDisk};
use parking_lot::{Condvar, Mutex};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct HeldDisk {
    pub live: MemDisk,
    holds: Arc<Holds>,
}

#[derive(Debug, Default)]
struct Holds {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Parts of paths of files whose syncs wait.
    held: Vec<String>,
    /// Paths of files whose sync waits now.
    waiting: Vec<String>,
    /// What was done, in order: verb and path.
    done: Vec<String>,
}

impl HeldDisk {
    /// Over the files of `live`.
    pub fn on(live: MemDisk) -> Self {
        Self { live, ..Self::default() }
    }

    /// From now on syncs of files with `part` in their path wait.
    pub fn hold(&self, part: &str) {
        self.holds.state.lock().held.push(part.to_owned());
    }

    /// Lets the syncs of files with `part` in their path go on.
    pub fn release(&self, part: &str) {
        self.holds.state.lock().held.retain(|held| held != part);
        self.holds.changed.notify_all();
    }

    /// Waits until a sync of a file with `part` in its path waits; returns the path.
    pub fn wait_for_sync(&self, part: &str) -> String {
        let mut state = self.holds.state.lock();
        loop {
            if let Some(path) = state.waiting.iter().find(|path| path.contains(part)) {
                return path.clone();
            }
            self.holds.changed.wait(&mut state);
        }
    }

    /// Waits until a sync of a file in the held `folder` waits; that one goes on waiting, until its path is released, all
    /// others go on.
    pub fn hold_first_only(&self, folder: &str) -> String {
        let path = self.wait_for_sync(folder);
        self.hold(&path);
        self.release(folder);
        path
    }

    /// What was done since the last call.
    pub fn take_done(&self) -> Vec<String> {
        std::mem::take(&mut self.holds.state.lock().done)
    }

    fn note(&self, verb: &str, path: &str) {
        self.holds.state.lock().done.push(format!("{verb} {path}"));
    }
}

impl Disk for HeldDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.note("create", path);
        let (file, disk) = (self.live.create(path)?, self.clone());
        Ok(Arc::new(HeldFile { path: path.to_owned(), file, disk }))
    }
    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.live.open(path)
    }
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.note("rename", to);
        self.live.rename(from, to)
    }
    fn remove(&self, path: &str) -> Result<()> {
        self.note("remove", path);
        self.live.remove(path)
    }
    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.note("truncate", path);
        self.live.truncate(path, len)
    }
    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.live.list(dir)
    }
    fn create_dir(&self, dir: &str) -> Result<()> {
        self.live.create_dir(dir)
    }
    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.note("sync", dir);
        self.live.sync_dir(dir)
    }
    fn exists(&self, path: &str) -> Result<bool> {
        self.live.exists(path)
    }
    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        self.live.lock(exclusive)
    }
}

#[derive(Debug)]
struct HeldFile {
    path: String,
    file: Arc<dyn DiskFile>,
    disk: HeldDisk,
}

impl DiskFile for HeldFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
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
        let holds = &self.disk.holds;
        let mut state = holds.state.lock();
        state.waiting.push(self.path.clone());
        holds.changed.notify_all();
        while state.held.iter().any(|part| self.path.contains(part.as_str())) {
            holds.changed.wait(&mut state);
        }
        let at = state.waiting.iter().position(|path| *path == self.path).unwrap();
        state.waiting.remove(at);
        state.done.push(format!("sync {}", self.path));
        drop(state);
        self.file.sync()
    }
}
