//! The block cache: open blocks of segment files, bounded by bytes.
//!
//! Comes in: a block's place and how to load it. Goes out: the open block, shared. A block is read, verified and opened once,
//! and then serves all readers until it is evicted; readers that hold it keep it alive beyond that.
//!
//! Shards, each behind a mutex of its own, hold their blocks in a clock: a hit marks, the hand passes marked blocks once and
//! evicts unmarked ones. Loading happens outside the mutex.
//!
//! Invariants: the blocks of a shard never weigh more than its share; a block heavier than a share is handed out and not kept.
//! One cache serves one database: it also knows its open segment files, so that each has one handle.
//!
//! It does not own: what blocks mean, when files go.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use mainstem_kernels::filter::BlockedBloom;
use mainstem_kernels::hash::{hash_combine, hash_u64};
use parking_lot::Mutex;

use super::block::ColumnBlock;
use super::file::SegmentFile;
use super::rows::OpenColumns;
use crate::disk::Disk;
use crate::error::Result;
use crate::ids::FileId;
use crate::limits;

/// An open block.
#[derive(Clone, Debug)]
pub(crate) enum OpenBlock {
    /// A column.
    Column(Arc<ColumnBlock>),
    /// A filter over key hashes.
    Filter(Arc<BlockedBloom>),
    /// All columns of a segment.
    Columns(Arc<OpenColumns>),
}

impl OpenBlock {
    fn memory(&self) -> usize {
        /// Of the entry itself, in map and clock.
        const ENTRY_BYTES: usize = 96;
        ENTRY_BYTES
            + match self {
                Self::Column(block) => block.memory(),
                Self::Filter(filter) => filter.byte_len(),
                Self::Columns(columns) => columns.memory(),
            }
    }
}

/// What the cache did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Blocks found.
    pub hits: u64,
    /// Blocks loaded.
    pub misses: u64,
    /// Bytes held now.
    pub bytes: u64,
    /// Bytes that may be held.
    pub bytes_max: u64,
}

type Key = (FileId, u64);

/// Open blocks of one database. See the module.
#[derive(Debug)]
pub struct BlockCache {
    shards: Box<[Mutex<Shard>]>,
    shard_bytes_max: usize,
    misses: AtomicU64,
    files: Mutex<HashMap<FileId, Weak<SegmentFile>>>,
}

#[derive(Debug, Default)]
struct Shard {
    places: HashMap<Key, usize>,
    clock: Vec<Option<Entry>>,
    free: Vec<usize>,
    hand: usize,
    bytes: usize,
    /// Counted here, so that readers of different shards have nothing in common.
    hits: u64,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    block: OpenBlock,
    bytes: usize,
    used: bool,
}

impl BlockCache {
    /// A cache that holds at most `bytes_max` bytes of blocks.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Self> {
        let shards = (bytes_max / limits::CACHE_SHARD_BYTES_MIN).clamp(1, limits::CACHE_SHARDS_MAX);
        Arc::new(Self {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            shard_bytes_max: usize::try_from(bytes_max / shards).unwrap_or(usize::MAX),
            misses: AtomicU64::new(0),
            files: Mutex::default(),
        })
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.shards.iter().map(|s| s.lock().hits).sum(),
            misses: self.misses.load(Ordering::Relaxed),
            bytes: self.shards.iter().map(|s| s.lock().bytes as u64).sum(),
            bytes_max: self.shard_bytes_max as u64 * self.shards.len() as u64,
        }
    }

    /// The one handle of file `id`.
    pub(crate) fn file(self: &Arc<Self>, id: FileId, disk: &Arc<dyn Disk>) -> Arc<SegmentFile> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(&id).and_then(Weak::upgrade) {
            return file;
        }
        let file = Arc::new(SegmentFile::new(id, Arc::clone(disk), Arc::downgrade(self)));
        files.insert(id, Arc::downgrade(&file));
        file
    }

    /// File `id` has lost its handle; its blocks are dropped if it is `gone` for good.
    pub(crate) fn forget(&self, id: FileId, gone: bool) {
        {
            let mut files = self.files.lock();
            // A new handle may have been made meanwhile.
            if files.get(&id).is_some_and(|file| file.strong_count() == 0) {
                files.remove(&id);
            }
        }
        if gone {
            self.shards.iter().for_each(|shard| shard.lock().remove_file(id));
        }
    }

    /// The block at byte `offset` of `file` if it is here; neither a hit nor a miss.
    pub(crate) fn peek(&self, file: FileId, offset: u64) -> Option<OpenBlock> {
        let shard = self.shards.get(self.shard_of(file, offset))?.lock();
        shard.peek(&(file, offset)).cloned()
    }

    fn shard_of(&self, file: FileId, offset: u64) -> usize {
        (hash_combine(hash_u64(file.0), offset) % self.shards.len() as u64) as usize
    }

    /// The block at byte `offset` of `file`, which `load` makes if it is not here.
    ///
    /// # Errors
    /// What `load` gives.
    pub(crate) fn get(&self, file: FileId, offset: u64, load: impl FnOnce() -> Result<OpenBlock>) -> Result<OpenBlock> {
        let key = (file, offset);
        let Some(shard) = self.shards.get(self.shard_of(file, offset)) else { return load() };
        if let Some(block) = shard.lock().get(&key) {
            return Ok(block);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let block = load()?;
        shard.lock().insert(key, block.clone(), self.shard_bytes_max);
        Ok(block)
    }
}

impl Shard {
    fn peek(&self, key: &Key) -> Option<&OpenBlock> {
        self.clock.get(*self.places.get(key)?)?.as_ref().map(|entry| &entry.block)
    }

    fn get(&mut self, key: &Key) -> Option<OpenBlock> {
        let entry = self.clock.get_mut(*self.places.get(key)?)?.as_mut()?;
        entry.used = true;
        self.hits += 1;
        Some(entry.block.clone())
    }

    fn insert(&mut self, key: Key, block: OpenBlock, bytes_max: usize) {
        let bytes = block.memory();
        if bytes > bytes_max || self.places.contains_key(&key) {
            return;
        }
        while self.bytes + bytes > bytes_max && self.evict_one() {}
        let entry = Some(Entry { key, block, bytes, used: false });
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(slot) = self.clock.get_mut(place) {
                    *slot = entry;
                }
                place
            }
            None => {
                self.clock.push(entry);
                self.clock.len() - 1
            }
        };
        self.places.insert(key, place);
        self.bytes += bytes;
    }

    /// Moves the hand to an unused block and drops it; false if there is no block.
    fn evict_one(&mut self) -> bool {
        // Two rounds: the first may only take marks away.
        for _ in 0..2 * self.clock.len() {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.clock.len();
            match self.clock.get_mut(place) {
                Some(Some(entry)) if entry.used => entry.used = false,
                Some(Some(_)) => {
                    self.remove(place);
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    fn remove(&mut self, place: usize) {
        if let Some(entry) = self.clock.get_mut(place).and_then(Option::take) {
            self.bytes -= entry.bytes;
            self.places.remove(&entry.key);
            self.free.push(place);
        }
    }

    fn remove_file(&mut self, file: FileId) {
        let places: Vec<usize> = self.places.iter().filter(|(key, _)| key.0 == file).map(|(_, place)| *place).collect();
        places.into_iter().for_each(|place| self.remove(place));
    }
}
