//! From the hash of a key to the newest row of that key. One writer, any number of readers, no locks.
//!
//! Slots of 64 bits: the upper 39 bits of the hash, and the offset + 1 in the lower 25; 0 is free. The upper bits choose the
//! partition, those above the offset the slot; a full partition moves to a table of twice the slots, alone.
//!
//! A reader of an old table misses only rows that were inserted after it began.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use crate::ids::RowRef;
use crate::limits;

/// Bits of `offset + 1`.
const OFFSET_BITS: u32 = RowRef::OFFSET_BITS + 1;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// See the module.
pub(super) struct KeyHash {
    partitions: Box<[ArcSwapOption<Table>]>,
}

struct Table {
    slots: Box<[AtomicU64]>,
    used: AtomicU32,
}

fn pack(hash: u64, offset: u32) -> u64 {
    (hash & !OFFSET_MASK) | (u64::from(offset) + 1)
}

fn offset_in(slot: u64) -> u32 {
    ((slot & OFFSET_MASK) as u32).wrapping_sub(1)
}

/// Keys that a table of `slots` slots of `partition` takes: 50 to 80 percent. Hashes fill all partitions alike; the
/// difference keeps them from growing all in one commit.
fn room(slots: usize, partition: usize) -> usize {
    slots / 2 + slots * 3 / 10 * partition / limits::DELTA_KEY_PARTITIONS
}

impl Table {
    fn new(slots: usize) -> Self {
        Self { slots: (0..slots).map(|_| AtomicU64::new(0)).collect(), used: AtomicU32::new(0) }
    }

    /// The slots to look at for `hash`, from its own on.
    #[inline]
    fn probe(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let (start, mask) = ((hash >> OFFSET_BITS) as usize, self.slots.len() - 1);
        (0..self.slots.len()).filter_map(move |step| self.slots.get((start + step) & mask))
    }

    /// Where the newest row inserted under `hash` that `is_key` accepts stands, or the first free place.
    #[inline]
    fn place(&self, hash: u64, mut is_key: impl FnMut(u32) -> bool) -> Option<(&AtomicU64, Option<u32>)> {
        self.probe(hash).find_map(|place| match place.load(Ordering::Acquire) {
            0 => Some((place, None)),
            slot if (slot ^ hash) & !OFFSET_MASK == 0 && is_key(offset_in(slot)) => {
                Some((place, Some(offset_in(slot))))
            }
            _ => None,
        })
    }

    /// Puts `slot` into `free`, a free place. For the one writer.
    #[inline]
    fn fill(&self, free: &AtomicU64, slot: u64) {
        free.store(slot, Ordering::Release);
        self.used.store(self.used.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Puts `slot` into the first free place. For the one writer.
    fn put(&self, slot: u64) {
        if let Some(free) = self.probe(slot).find(|s| s.load(Ordering::Relaxed) == 0) {
            self.fill(free, slot);
        }
    }

    /// A table of twice the slots with the same entries.
    fn grown(&self) -> Self {
        let table = Self::new(2 * self.slots.len());
        for slot in &self.slots {
            let slot = slot.load(Ordering::Relaxed);
            if slot != 0 {
                table.put(slot);
            }
        }
        table
    }
}

impl KeyHash {
    pub(super) fn new() -> Self {
        Self { partitions: (0..limits::DELTA_KEY_PARTITIONS).map(|_| ArcSwapOption::empty()).collect() }
    }

    fn partition_of(hash: u64) -> usize {
        (hash >> (64 - limits::DELTA_KEY_PARTITIONS.ilog2())) as usize
    }

    /// The newest row inserted under `hash` that `is_key` accepts: it is asked for each row whose hash looks the same.
    #[inline]
    pub(super) fn newest(&self, hash: u64, is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        let table = self.partitions.get(Self::partition_of(hash))?.load();
        table.as_ref()?.place(hash, is_key)?.1
    }

    /// Row `offset` is the newest of its key from now on, in the place of the one that `is_key` accepts, if there is one. For the
    /// one writer, once the row can be read. `link` is told of the former row before anybody finds the new one.
    ///
    /// # Errors
    /// Those of `link`: nothing has changed.
    #[inline]
    pub(super) fn supersede<E>(
        &self,
        hash: u64,
        offset: u32,
        is_key: impl FnMut(u32) -> bool,
        link: impl FnOnce(Option<u32>) -> Result<(), E>,
    ) -> Result<(), E> {
        let number = Self::partition_of(hash);
        let Some(partition) = self.partitions.get(number) else { return link(None) };
        let current = partition.load();
        let place = current.as_ref().and_then(|table| table.place(hash, is_key));
        let former = place.and_then(|(_, former)| former);
        link(former)?;
        let slot = pack(hash, offset);
        match (current.as_ref(), place) {
            (Some(_), Some((place, Some(_)))) => place.store(slot, Ordering::Release),
            (Some(table), Some((free, None)))
                if (table.used.load(Ordering::Relaxed) as usize) < room(table.slots.len(), number) =>
            {
                table.fill(free, slot);
            }
            (old, _) => {
                let table = old.map_or_else(|| Table::new(limits::DELTA_KEY_SLOTS_MIN), |old| old.grown());
                table.put(slot);
                partition.store(Some(Arc::new(table)));
            }
        }
        Ok(())
    }

    /// Bytes held.
    pub(super) fn memory_bytes(&self) -> usize {
        let table = |p: &ArcSwapOption<Table>| p.load().as_ref().map_or(0, |t| size_of_val(t.slots.as_ref()));
        size_of_val(self.partitions.as_ref()) + self.partitions.iter().map(table).sum::<usize>()
    }
}
