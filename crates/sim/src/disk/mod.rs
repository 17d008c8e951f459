//! A simulated disk with two images: `live`, what the operating system shows, and `durable`, what a power cut leaves
//! for certain.
//!
//! 1. Writes, creates, renames and removals change `live`.
//! 2. [`DiskFile::sync`] copies a file's bytes to `durable`, [`Disk::sync_dir`] a folder's names; each does only that.
//! 3. [`SimDisk::power_cut`] makes a new disk of `durable` and, chosen by a seed, any part of the rest: each name
//!    change happened or not, each sector of unsynced bytes is there, zero or rubbish (`image`).
//! 4. Faults: a call may fail once, from some call on all may, the power may go at the k-th sync, the disk may be
//!    small.
//!
//! Invariants: calls are counted from 1, each once, and happen one at a time; after a failed sync of a file its
//! unsynced bytes never become durable, though later syncs claim it (as real systems do); after a power cut the old
//! disk fails every call.

mod image;
mod names;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mainstem_storage::disk::{Disk, DiskFile, DiskLock};
use mainstem_storage::error::{Error, ErrorKind, Result, sqlstate};
use parking_lot::{Condvar, Mutex};
use rand::SeedableRng;
use rand::rngs::StdRng;

use image::Bytes;
use names::{Names, folder};

/// Calls remembered for messages.
const RECENT_CALLS: usize = 64;
/// How messages name a file without a name.
const TEMPORARY_FILE: &str = "temp/(temporary)";

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device reports an error; a write may have happened in part.
    Io,
    /// There is no space left; a write may have happened in part. Calls that need no space fail with Io instead.
    Full,
}

/// A disk in memory that can fail and lose power. Clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    /// Syncs wait no longer.
    released: Arc<Condvar>,
}

#[derive(Debug)]
struct State {
    names: Names,
    calls: u64,
    syncs: u64,
    recent: VecDeque<String>,
    /// Numbers of the calls that need space.
    growing: Vec<u64>,
    fault: Option<Fault>,
    /// The power goes instead of this sync.
    cut_at_sync: Option<u64>,
    powered: bool,
    capacity_bytes: Option<u64>,
    /// Folder whose files' syncs take a while, and how long.
    slow: Option<(String, Duration)>,
    /// Folder whose files' syncs wait.
    held: Option<String>,
    /// Files without a name.
    temporary: Vec<Weak<Mutex<Bytes>>>,
    /// Readers that hold the lock; -1: a writer does.
    holders: i64,
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    at: u64,
    kind: FaultKind,
    for_ever: bool,
}

/// What a call does, as far as faults are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Change,
    NeedsSpace,
    Sync,
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// An empty disk that works.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Names::default())
    }

    fn with(names: Names) -> Self {
        let state = State {
            names,
            calls: 0,
            syncs: 0,
            recent: VecDeque::new(),
            growing: Vec::new(),
            fault: None,
            cut_at_sync: None,
            powered: true,
            capacity_bytes: None,
            slow: None,
            held: None,
            temporary: Vec::new(),
            holders: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), released: Arc::default() }
    }

    /// Calls so far: each call of [`Disk`] and [`DiskFile`] is one.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// Syncs so far: of files and folders, truncations included.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// The last calls, to say in a message where a fault struck.
    #[must_use]
    pub fn recent_calls(&self) -> Vec<String> {
        self.state.lock().recent.iter().cloned().collect()
    }

    /// The calls so far that need space: at every other one a full disk fails no other way than a broken one, or not at
    /// all.
    #[must_use]
    pub fn calls_that_need_space(&self) -> Vec<u64> {
        self.state.lock().growing.clone()
    }

    /// Lets call `call` (counted as [`SimDisk::calls`] does) fail, once.
    pub fn fail_at(&self, call: u64, kind: FaultKind) {
        self.state.lock().fault = Some(Fault { at: call, kind, for_ever: false });
    }

    /// Lets every call from `call` on fail, until [`SimDisk::repair`]. With [`FaultKind::Full`] reads, removals and
    /// syncs go on, as on a full disk.
    pub fn fail_all_from(&self, call: u64, kind: FaultKind) {
        self.state.lock().fault = Some(Fault { at: call, kind, for_ever: true });
    }

    /// Lets the power go instead of sync `sync` (counted as [`SimDisk::syncs`] does): it and every later call fail, and
    /// change nothing.
    pub fn cut_at_sync(&self, sync: u64) {
        self.state.lock().cut_at_sync = Some(sync);
    }

    /// Takes back faults and limits set before; the power stays off if it is.
    pub fn repair(&self) {
        let mut state = self.state.lock();
        state.fault = None;
        state.cut_at_sync = None;
        state.capacity_bytes = None;
    }

    /// Lets the disk hold `bytes` bytes of files and reserved space, in whole blocks: what needs more fails with Full.
    pub fn limit_capacity(&self, bytes: u64) {
        self.state.lock().capacity_bytes = Some(bytes);
    }

    /// Has syncs of files in `folder` take `time`; other calls go on meanwhile.
    pub fn slow_syncs(&self, folder: &str, time: Duration) {
        self.state.lock().slow = Some((folder.to_owned(), time));
    }

    /// Has syncs of files in `folder` wait until [`SimDisk::release_syncs`]; other calls go on meanwhile.
    pub fn hold_syncs(&self, folder: &str) {
        self.state.lock().held = Some(folder.to_owned());
    }

    /// Lets syncs go on that wait.
    pub fn release_syncs(&self) {
        self.state.lock().held = None;
        self.released.notify_all();
    }

    /// Bytes of files and reserved space.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// Whether the power is on.
    #[must_use]
    pub fn is_powered(&self) -> bool {
        self.state.lock().powered
    }

    /// Cuts the power, and returns the disk found afterwards: what was synced, and what `tear_seed` chooses of the
    /// rest.
    #[must_use]
    pub fn power_cut(&self, tear_seed: u64) -> Self {
        let mut state = self.state.lock();
        state.powered = false;
        Self::with(state.names.after_power_cut(&mut StdRng::seed_from_u64(tear_seed)))
    }

    /// Kills the process, and returns the disk the next one finds: all that was written; what was synced stays known.
    #[must_use]
    pub fn process_kill(&self) -> Self {
        let mut state = self.state.lock();
        state.powered = false;
        Self::with(state.names.copy())
    }

    /// Changes bytes of a file behind the engine's back, in both images.
    ///
    /// # Errors
    /// NotFound.
    pub fn damage(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let state = self.state.lock();
        let bytes = state.names.find(path)?;
        let mut bytes = bytes.lock();
        let mut live = bytes.live().to_vec();
        change(&mut live);
        *bytes = Bytes::durable(live);
        Ok(())
    }

    /// Counts a call and decides whether it fails; `what` names it.
    fn enter(&self, call: Call, what: &str, path: &str) -> Result<parking_lot::MutexGuard<'_, State>, Refused<'_>> {
        let mut state = self.state.lock();
        state.calls += 1;
        if state.recent.len() == RECENT_CALLS {
            state.recent.pop_front();
        }
        let number = state.calls;
        state.recent.push_back(format!("{number}: {what} {path}"));
        if call == Call::NeedsSpace {
            state.growing.push(number);
        }
        if call == Call::Sync {
            state.syncs += 1;
            state.powered &= state.cut_at_sync.is_none_or(|at| state.syncs < at);
        }
        let failed = |message: &str| Error::io(what, path, std::io::Error::other(message));
        if !state.powered {
            return Err(Refused { error: failed("the power is gone"), powered: false, state });
        }
        let strikes = |f: &Fault| number == f.at || (f.for_ever && number > f.at);
        let Some(fault) = state.fault.filter(strikes) else { return Ok(state) };
        let error = match (fault.kind, call, fault.for_ever) {
            (FaultKind::Full, Call::NeedsSpace, _) => full(what, path),
            (FaultKind::Full, _, true) => return Ok(state),
            _ => failed("simulated fault"),
        };
        Err(Refused { error, powered: true, state })
    }
}

/// A call that fails.
struct Refused<'a> {
    error: Error,
    /// Without power nothing happens; else a write may have happened in part.
    powered: bool,
    state: parking_lot::MutexGuard<'a, State>,
}

impl From<Refused<'_>> for Error {
    fn from(refused: Refused<'_>) -> Self {
        refused.error
    }
}

fn full(what: &str, path: &str) -> Error {
    Error::io(what, path, std::io::Error::from(std::io::ErrorKind::StorageFull))
}

impl State {
    fn used_bytes(&self) -> u64 {
        let temporary = self.temporary.iter().filter_map(Weak::upgrade).map(|file| file.lock().space());
        self.names.files().map(|file| file.lock().space()).chain(temporary).sum()
    }

    /// Whether a file may grow by `bytes`.
    fn has_space(&self, bytes: u64) -> bool {
        self.capacity_bytes.is_none_or(|capacity| self.used_bytes() + bytes <= capacity)
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let mut state = self.enter(Call::NeedsSpace, "create", path)?;
        let bytes = state.names.create(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), path: path.to_owned(), bytes }))
    }

    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let state = self.enter(Call::Read, "open", path)?;
        let bytes = state.names.find(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), path: path.to_owned(), bytes }))
    }

    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.open(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.enter(Call::Change, "rename", from)?.names.rename(from, to)
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.enter(Call::Change, "remove", path)?.names.remove(path)
    }

    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        let state = self.enter(Call::Sync, "truncate", path)?;
        let bytes = state.names.find(path)?;
        let mut bytes = bytes.lock();
        bytes.cut(len);
        bytes.sync();
        Ok(())
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let state = self.enter(Call::Read, "list", dir)?;
        Ok(state.names.list(dir))
    }

    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        let state = self.enter(Call::Read, "list", dir)?;
        Ok(state.names.list_folders(dir))
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        self.enter(Call::NeedsSpace, "make directory", dir)?.names.create_dir(dir);
        Ok(())
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.enter(Call::Sync, "sync directory", dir)?.names.sync_dir(dir);
        Ok(())
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let state = self.enter(Call::Read, "look for", path)?;
        Ok(state.names.find(path).is_ok())
    }

    fn temporary_file(&self) -> Result<Option<Arc<dyn DiskFile>>> {
        let mut state = self.enter(Call::NeedsSpace, "create", TEMPORARY_FILE)?;
        let bytes = Arc::<Mutex<Bytes>>::default();
        state.temporary.retain(|file| file.strong_count() > 0);
        state.temporary.push(Arc::downgrade(&bytes));
        Ok(Some(Arc::new(SimFile { disk: self.clone(), path: TEMPORARY_FILE.to_owned(), bytes })))
    }

    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        let mut state = self.enter(Call::Change, "lock", "LOCK")?;
        state.holders = match (exclusive, state.holders) {
            (true, 0) => -1,
            (false, 0..) => state.holders + 1,
            _ => {
                let message = "the simulated disk is open elsewhere; close it there first";
                return Err(Error::new(ErrorKind::Closed, sqlstate::LOCKED, message));
            }
        };
        Ok(DiskLock::new(Held(self.clone())))
    }
}

#[derive(Debug)]
struct Held(SimDisk);

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.holders = (state.holders - 1).max(0);
    }
}

struct SimFile {
    disk: SimDisk,
    path: String,
    bytes: Arc<Mutex<Bytes>>,
}

impl std::fmt::Debug for SimFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SimFile({}, folder {:?})", self.path, folder(&self.path))
    }
}

impl DiskFile for SimFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        let state = match self.disk.enter(Call::NeedsSpace, "write to", &self.path) {
            Ok(state) => state,
            Err(refused) => {
                if refused.powered {
                    self.bytes.lock().append_unowned(&bytes[..bytes.len() / 2]);
                }
                let _held_until_here = &refused.state;
                return Err(refused.error);
            }
        };
        let file = self.bytes.lock();
        let growth = file.growth(file.end() + bytes.len() as u64);
        drop(file);
        if !state.has_space(growth) {
            return Err(full("write to", &self.path));
        }
        self.bytes.lock().append(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let _state = self.disk.enter(Call::Read, "read", &self.path)?;
        let bytes = self.bytes.lock();
        let range = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(buffer.len())?));
        match range.and_then(|range| bytes.live().get(range)) {
            Some(found) => {
                buffer.copy_from_slice(found);
                Ok(())
            }
            None => {
                let message = format!("the file ends before the {} bytes expected here", buffer.len());
                Err(Error::corrupt(&self.path, offset, message))
            }
        }
    }

    fn len(&self) -> Result<u64> {
        let _state = self.disk.enter(Call::Read, "measure", &self.path)?;
        Ok(self.bytes.lock().end())
    }

    fn cut(&self, len: u64) -> Result<()> {
        let _state = self.disk.enter(Call::Change, "cut", &self.path)?;
        self.bytes.lock().cut(len);
        Ok(())
    }

    fn reserve(&self, len: u64) -> Result<()> {
        let state = self.disk.enter(Call::NeedsSpace, "reserve space for", &self.path)?;
        let growth = self.bytes.lock().growth(len);
        if !state.has_space(growth) {
            return Err(full("reserve space for", &self.path));
        }
        self.bytes.lock().reserve(len);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.disk.state.lock();
        while state.held.as_ref().is_some_and(|folder| self.path.starts_with(folder)) {
            self.disk.released.wait(&mut state);
        }
        let slow = state.slow.clone();
        drop(state);
        if let Some((_, time)) = slow.filter(|(folder, _)| self.path.starts_with(folder)) {
            std::thread::sleep(time);
        }
        match self.disk.enter(Call::Sync, "sync", &self.path) {
            Ok(_state) => {
                self.bytes.lock().sync();
                Ok(())
            }
            Err(refused) => {
                if refused.powered {
                    self.bytes.lock().fail_sync();
                }
                Err(refused.error)
            }
        }
    }
}
