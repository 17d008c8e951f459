//! A disk in memory whose syncs, or requests for space, wait while a test holds them, and which remembers in what order
//! files changed.

use std::sync::Arc;

use mainstem_storage::Result;
use mainstem_storage::disk::{Disk, DiskFile, DiskLock, MemDisk};
use parking_lot::{Condvar, Mutex};

const SYNC: &str = "sync";
const SPACE: &str = "reserve";

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
    /// What waits: verb, and a part of the paths of the files.
    held: Vec<(&'static str, String)>,
    /// What waits now: verb and path.
    waiting: Vec<(&'static str, String)>,
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
        self.holds.state.lock().held.push((SYNC, part.to_owned()));
    }

    /// From now on files with `part` in their path wait for space.
    pub fn hold_space(&self, part: &str) {
        self.holds.state.lock().held.push((SPACE, part.to_owned()));
    }

    /// Lets what is held for `part` go on.
    pub fn release(&self, part: &str) {
        self.holds.state.lock().held.retain(|held| held.1 != part);
        self.holds.changed.notify_all();
    }

    /// Waits until a sync of a file with `part` in its path waits; returns the path.
    pub fn wait_for_sync(&self, part: &str) -> String {
        self.wait_for(SYNC, part)
    }

    /// Waits until a file with `part` in its path waits for space.
    pub fn wait_for_space(&self, part: &str) -> String {
        self.wait_for(SPACE, part)
    }

    fn wait_for(&self, verb: &str, part: &str) -> String {
        let mut state = self.holds.state.lock();
        loop {
            let waits = |(waits, path): &&(&str, String)| *waits == verb && path.contains(part);
            if let Some((_, path)) = state.waiting.iter().find(waits) {
                return path.clone();
            }
            self.holds.changed.wait(&mut state);
        }
    }

    /// Waits until a sync of a file in the held `folder` waits; that one goes on waiting, until its path is released,
    /// all others go on.
    pub fn hold_first_only(&self, folder: &str) -> String {
        let path = self.wait_for_sync(folder);
        self.hold(&path);
        self.release(folder);
        path
    }

    /// Waits while `verb` is held for files like `path`.
    fn pass(&self, verb: &'static str, path: &str) {
        let mut state = self.holds.state.lock();
        state.waiting.push((verb, path.to_owned()));
        self.holds.changed.notify_all();
        while state.held.iter().any(|(held, part)| *held == verb && path.contains(part.as_str())) {
            self.holds.changed.wait(&mut state);
        }
        let at = state.waiting.iter().position(|(waits, of)| *waits == verb && of == path).unwrap();
        state.waiting.remove(at);
        if verb == SYNC {
            state.done.push(format!("{verb} {path}"));
        }
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
    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let (file, disk) = (self.live.open_to_append(path)?, self.clone());
        Ok(Arc::new(HeldFile { path: path.to_owned(), file, disk }))
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
    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        self.live.list_others(dir)
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
        self.disk.pass(SPACE, &self.path);
        self.file.reserve(len)
    }
    fn sync(&self) -> Result<()> {
        self.disk.pass(SYNC, &self.path);
        self.file.sync()
    }
}
