//! The block cache: open blocks of segments, bounded by bytes.
//!
//! Comes in: a place of a segment and the block that was read for it. Goes out: the open block, shared. A block is
//! read, verified and opened once, and then serves all readers until it is evicted; readers that hold it keep it alive
//! beyond that.
//!
//! 1. Each segment has its [`OpenBlocks`]: a place for each block that may be open. To find a block is to look there:
//!    no map, and no lock, nor any memory that readers of several threads write to. Who fills or empties a place puts a
//!    new list of the segment's groups of places there, one of them new: that is nothing beside the reading of a block,
//!    however many columns there are.
//! 2. What stands in such places is known to one clock for all segments. A hit marks a place, the hand passes marked
//!    places once and empties unmarked ones. Only who puts a block in meets the clock, and has read a block for it.
//! 3. The bound can be moved while the database runs ([`BlockCache::resize_by`]): memory that queries leave is lent to
//!    the cache.
//!
//! Invariants: the blocks in all places together never weigh more than the bound: it is read, and moved, only by who
//! has the clock, who empties places until it holds, marked or not. A block heavier than the bound is handed out and
//! not kept; its weight stays known. Places are changed by who has the clock, too. A segment that goes takes its blocks
//! along. One cache serves one database: it also holds the list of its segment files.
//!
//! It does not own: what blocks mean, when files go, which blocks are worth being opened whole ([`super::pages`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use mainstem_kernels::filter::BlockedBloom;
use parking_lot::Mutex;

use super::block::ColumnBlock;
use super::file::SegmentFiles;
use super::format::SegmentMeta;
use super::pages::sums::PageSums;

/// An open block, or what is known of one that is not open.
#[derive(Clone, Debug)]
pub(crate) enum OpenBlock {
    /// A column.
    Column(Arc<ColumnBlock>),
    /// A filter over key hashes.
    Filter(Arc<BlockedBloom>),
    /// The checksums of the pages of a block.
    Sums(Arc<PageSums>),
}

impl OpenBlock {
    pub fn memory(&self) -> u64 {
        /// Of the entry in the clock.
        const ENTRY_BYTES: usize = 48;
        let bytes = match self {
            Self::Column(block) => block.memory(),
            Self::Filter(filter) => filter.byte_len(),
            Self::Sums(sums) => sums.memory(),
        };
        (ENTRY_BYTES + bytes) as u64
    }
}

/// What the cache did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Blocks read whole.
    pub blocks_read: u64,
    /// Bytes of them.
    pub block_bytes_read: u64,
    /// Reads of pages of blocks that were not open.
    pub page_reads: u64,
    /// Bytes of them.
    pub page_bytes_read: u64,
    /// Bytes held now.
    pub bytes: u64,
    /// Bytes that may be held now.
    pub bytes_max: u64,
}

/// The block of a segment that a place is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// That of the column at this position of the metadata.
    Column(usize),
    /// The key filter.
    Filter,
}

/// The open blocks of one segment: where its readers find them. See the module.
#[derive(Debug)]
pub(crate) struct OpenBlocks {
    columns: usize,
    slots: ArcSwap<Slots>,
    marks: Box<[Mark]>,
}

/// What happened at a place.
#[derive(Debug, Default)]
struct Mark {
    /// Used since the hand of the clock came by.
    used: AtomicBool,
    /// Bytes of pages that were read because the block was not open.
    page_bytes: AtomicU64,
    /// What the block weighed when it was open last, kept or not; 0 before.
    weight: AtomicU64,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    block: Option<OpenBlock>,
    /// The entry in the clock, if there is a block.
    entry: usize,
}

/// Places in a group.
const GROUP: usize = 32;

/// The places of a segment, in groups: whoever changes one copies its group, not all of them.
#[derive(Clone, Debug, Default)]
struct Slots {
    /// The only one of a segment with few columns: found at once.
    first: Arc<[Slot]>,
    more: Box<[Arc<[Slot]>]>,
}

impl Slots {
    fn empty(slots: usize) -> Self {
        let group = |slots: usize| (0..slots).map(|_| Slot::default()).collect::<Arc<[Slot]>>();
        let more = (GROUP..slots).step_by(GROUP).map(|start| group(GROUP.min(slots - start)));
        Self { first: group(GROUP.min(slots)), more: more.collect() }
    }

    #[inline]
    fn get(&self, slot: usize) -> Option<&Slot> {
        match slot.checked_sub(GROUP) {
            None => self.first.get(slot),
            Some(at) => self.more.get(at / GROUP)?.get(at % GROUP),
        }
    }

    /// The same with `new` at place `slot`, if there is one.
    fn with(&self, slot: usize, new: Slot) -> Option<Self> {
        let mut slots = self.clone();
        let group = match slot.checked_sub(GROUP) {
            None => &mut slots.first,
            Some(at) => slots.more.get_mut(at / GROUP)?,
        };
        // The one group is copied here: the list before has it, too.
        *Arc::make_mut(group).get_mut(slot % GROUP)? = new;
        Some(slots)
    }

    fn groups(&self) -> impl Iterator<Item = &Arc<[Slot]>> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

/// The open blocks of a segment, as they were when it was asked.
pub(crate) struct Held<'a> {
    slots: Guard<Arc<Slots>>,
    of: &'a OpenBlocks,
}

impl OpenBlocks {
    /// Places for the blocks of `meta`, all empty.
    pub fn of(meta: &SegmentMeta) -> Arc<Self> {
        let columns = meta.columns.len();
        // The blocks, then the checksums of their pages.
        let slots = 2 * (columns + 1);
        Arc::new(Self {
            columns,
            slots: ArcSwap::from_pointee(Slots::empty(slots)),
            marks: (0..slots).map(|_| Mark::default()).collect(),
        })
    }

    fn slot(&self, place: Place) -> usize {
        match place {
            Place::Column(at) => at,
            Place::Filter => self.columns,
        }
    }

    fn slot_of_sums(&self, place: Place) -> usize {
        self.columns + 1 + self.slot(place)
    }

    /// All that is open, and stays in memory while the answer lives: what it holds is used at once, and nothing is
    /// waited for.
    #[inline]
    pub fn hold(&self) -> Held<'_> {
        Held { slots: self.slots.load(), of: self }
    }

    /// Puts `block` into place `slot`, if there is one, and returns what was there. For who has the clock.
    fn replace(&self, slot: usize, block: Slot) -> Option<OpenBlock> {
        let before = self.slots.load();
        self.slots.store(Arc::new(before.with(slot, block)?));
        before.get(slot)?.block.clone()
    }

    /// The open column at position `at`.
    pub fn column(&self, at: usize) -> Option<Arc<ColumnBlock>> {
        self.hold().column(at).cloned()
    }

    /// The open key filter.
    pub fn filter(&self) -> Option<Arc<BlockedBloom>> {
        self.hold().filter().cloned()
    }

    /// The checksums of the pages of the block at `place`.
    pub fn sums(&self, place: Place) -> Option<Arc<PageSums>> {
        match self.hold().at(self.slot_of_sums(place)) {
            Some(OpenBlock::Sums(sums)) => Some(sums.clone()),
            _ => None,
        }
    }

    /// Counts `bytes` more that were read in pages of the block at `place`.
    pub fn count_pages(&self, place: Place, bytes: u64) {
        if let Some(mark) = self.marks.get(self.slot(place)) {
            mark.page_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes that were read in pages of the block at `place` since it was opened.
    pub fn pages_read(&self, place: Place) -> u64 {
        self.marks.get(self.slot(place)).map_or(0, |mark| mark.page_bytes.load(Ordering::Relaxed))
    }

    /// What the block at `place` weighed when it was open last: open texts may weigh several times their bytes in the
    /// file. 0 if it never was.
    pub fn weight(&self, place: Place) -> u64 {
        self.marks.get(self.slot(place)).map_or(0, |mark| mark.weight.load(Ordering::Relaxed))
    }
}

impl Held<'_> {
    /// The groups of places.
    #[cfg(test)]
    pub fn groups(&self) -> Vec<*const ()> {
        self.slots.groups().map(|group| Arc::as_ptr(group).cast()).collect()
    }

    /// The open column at position `at`.
    #[inline]
    pub fn column(&self, at: usize) -> Option<&Arc<ColumnBlock>> {
        match self.at(at) {
            Some(OpenBlock::Column(block)) => Some(block),
            _ => None,
        }
    }

    /// The open key filter.
    #[inline]
    pub fn filter(&self) -> Option<&Arc<BlockedBloom>> {
        match self.at(self.of.columns) {
            Some(OpenBlock::Filter(filter)) => Some(filter),
            _ => None,
        }
    }

    #[inline]
    fn at(&self, slot: usize) -> Option<&OpenBlock> {
        let block = self.slots.get(slot)?.block.as_ref()?;
        let used = &self.of.marks.get(slot)?.used;
        // Written only when it changes: readers of many threads share the line.
        if !used.load(Ordering::Relaxed) {
            used.store(true, Ordering::Relaxed);
        }
        Some(block)
    }
}

/// Open blocks of one database. See the module.
#[derive(Debug)]
pub struct BlockCache {
    /// Written by who has the clock.
    bytes_max: AtomicU64,
    clock: Mutex<Clock>,
    files: Arc<SegmentFiles>,
    blocks_read: AtomicU64,
    block_bytes_read: AtomicU64,
    page_reads: AtomicU64,
    page_bytes_read: AtomicU64,
}

#[derive(Debug, Default)]
struct Clock {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    hand: usize,
    bytes: u64,
}

/// A block in its place.
#[derive(Debug)]
struct Entry {
    home: Arc<OpenBlocks>,
    slot: usize,
    bytes: u64,
}

impl BlockCache {
    /// A cache that holds at most `bytes_max` bytes of blocks.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes_max: AtomicU64::new(bytes_max),
            clock: Mutex::default(),
            files: Arc::default(),
            blocks_read: AtomicU64::new(0),
            block_bytes_read: AtomicU64::new(0),
            page_reads: AtomicU64::new(0),
            page_bytes_read: AtomicU64::new(0),
        })
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let clock = self.clock.lock();
        CacheStats {
            blocks_read: read(&self.blocks_read),
            block_bytes_read: read(&self.block_bytes_read),
            page_reads: read(&self.page_reads),
            page_bytes_read: read(&self.page_bytes_read),
            bytes: clock.bytes,
            bytes_max: read(&self.bytes_max),
        }
    }

    /// Bytes that may be held now.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Holds at most `bytes_max` bytes from now on: what is too much is evicted at once.
    pub fn resize(&self, bytes_max: u64) {
        self.resize_by(|_| bytes_max);
    }

    /// Holds at most as many bytes from now on as `bound` says, which is given the bound of before: what is too much is
    /// evicted at once.
    ///
    /// `bound` is asked when nobody else can move the bound: what it looks at may change, but whoever changes that, and
    /// resizes after it, has the last word.
    pub fn resize_by(&self, bound: impl FnOnce(u64) -> u64) {
        // Given back to the system after the lock is.
        let mut evicted = Vec::new();
        let mut clock = self.clock.lock();
        let bytes_max = bound(self.bytes_max());
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        clock.shrink_to(bytes_max, &mut evicted);
        drop(clock);
    }

    /// Bytes that may be put in without pushing anything out.
    pub(crate) fn room(&self) -> u64 {
        let clock = self.clock.lock();
        self.bytes_max().saturating_sub(clock.bytes)
    }

    /// A block of `bytes` bytes was read whole.
    pub(crate) fn count_block(&self, bytes: u64) {
        self.blocks_read.fetch_add(1, Ordering::Relaxed);
        self.block_bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes of pages were read at once.
    pub(crate) fn count_pages(&self, bytes: u64) {
        self.page_reads.fetch_add(1, Ordering::Relaxed);
        self.page_bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Puts `block` into its `place` among the blocks of `home`, unless another thread was faster; others may have to
    /// go.
    pub(crate) fn put(&self, home: &Arc<OpenBlocks>, place: Place, block: OpenBlock) {
        let slot = match block {
            OpenBlock::Sums(_) => home.slot_of_sums(place),
            OpenBlock::Column(_) | OpenBlock::Filter(_) => home.slot(place),
        };
        let bytes = block.memory();
        // Given back to the system after the locks are.
        let mut evicted = Vec::new();
        let mut clock = self.clock.lock();
        if let Some(mark) = home.marks.get(slot) {
            mark.weight.store(bytes, Ordering::Relaxed);
            mark.page_bytes.store(0, Ordering::Relaxed);
        }
        // Not before the clock is held: it may be made smaller until then.
        let Some(bytes_of_others) = self.bytes_max().checked_sub(bytes) else { return };
        // Only who has the clock fills a place.
        if home.slots.load().get(slot).is_none_or(|slot| slot.block.is_some()) {
            return;
        }
        clock.shrink_to(bytes_of_others, &mut evicted);
        let entry = clock.enter(Entry { home: home.clone(), slot, bytes });
        if let Some(mark) = home.marks.get(slot) {
            mark.used.store(false, Ordering::Relaxed);
        }
        home.replace(slot, Slot { block: Some(block), entry });
        drop(clock);
    }

    /// The blocks of a segment go with it.
    pub(crate) fn forget(&self, home: &OpenBlocks) {
        let mut clock = self.clock.lock();
        let slots = home.slots.swap(Arc::default());
        for slot in slots.groups().flat_map(|group| group.iter()).filter(|slot| slot.block.is_some()) {
            clock.leave(slot.entry);
        }
        drop(clock);
    }

    /// The segment files of the database.
    pub(crate) fn files(&self) -> &Arc<SegmentFiles> {
        &self.files
    }
}

impl Clock {
    /// A place for `entry`.
    fn enter(&mut self, entry: Entry) -> usize {
        self.bytes += entry.bytes;
        match self.free.pop() {
            Some(at) => {
                if let Some(free) = self.entries.get_mut(at) {
                    *free = Some(entry);
                }
                at
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        }
    }

    fn leave(&mut self, at: usize) -> Option<Entry> {
        let entry = self.entries.get_mut(at).and_then(Option::take)?;
        self.bytes -= entry.bytes;
        self.free.push(at);
        Some(entry)
    }

    /// Empties places until what is in the others weighs at most `bytes_max`.
    fn shrink_to(&mut self, bytes_max: u64, evicted: &mut Vec<OpenBlock>) {
        while self.bytes > bytes_max && self.evict_one(evicted) {}
    }

    /// Moves the hand to a place that was not used lately and empties it; false if nothing is left.
    fn evict_one(&mut self, evicted: &mut Vec<OpenBlock>) -> bool {
        // Two rounds: the first may only take marks away. A third: readers may have put all of them back.
        let places = self.entries.len();
        for look in 0..3 * places {
            let at = self.hand;
            self.hand = (self.hand + 1) % places;
            let Some(Some(entry)) = self.entries.get(at) else { continue };
            let used = entry.home.marks.get(entry.slot).is_some_and(|mark| mark.used.swap(false, Ordering::Relaxed));
            if used && look < 2 * places {
                continue;
            }
            if let Some(Entry { home, slot, .. }) = self.leave(at) {
                evicted.extend(home.replace(slot, Slot::default()));
            }
            return true;
        }
        false
    }
}
