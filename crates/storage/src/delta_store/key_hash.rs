//! From the hash of a key to the newest row of that key. One writer, any number of readers, no locks.
//!
//! Slots of 64 bits: the upper 39 bits of the hash, and the offset + 1 in the lower 25; 0 is free. The upper bits
//! choose the partition, those above the offset the slot; a full partition moves to a larger table, alone.
//!
//! A reader of an old table misses only rows that were inserted after it began. Old tables stay for as long as the
//! generation, which is not long: so a look-up writes to no memory at all, and the processor looks up several keys at
//! once. Small tables grow fourfold, so that the old ones of a partition take a third of what the present one takes;
//! from [`QUADRUPLED`] on they double.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::ids::RowRef;
use crate::limits;

/// Bits of `offset + 1`.
const OFFSET_BITS: u32 = RowRef::OFFSET_BITS + 1;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// Slots from which tables double.
const QUADRUPLED: usize = limits::DELTA_KEY_SLOTS_MIN << (2 * QUADRUPLINGS);
const QUADRUPLINGS: usize = 3;
/// Sizes of tables: the largest has room for all rows of a generation in one partition.
const LEVELS: usize = 20;
const _: () = assert!(slots_at(LEVELS - 1) / 2 >= RowRef::OFFSETS as usize);

/// Slots of a table of the given size.
const fn slots_at(level: usize) -> usize {
    if level < QUADRUPLINGS { limits::DELTA_KEY_SLOTS_MIN << (2 * level) } else { QUADRUPLED << (level - QUADRUPLINGS) }
}

/// See the module.
pub(super) struct KeyHash {
    /// For each partition, the size of its present table, plus 1; 0 without one.
    sizes: Box<[AtomicU8]>,
    /// For each size, the table of each partition that has or had one.
    levels: [OnceLock<Box<[OnceLock<Table>]>>; LEVELS],
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

    /// Puts all entries of `other` into free places. For the one writer.
    fn put_all(&self, other: &Self) {
        for slot in &other.slots {
            let slot = slot.load(Ordering::Relaxed);
            if slot != 0 {
                self.put(slot);
            }
        }
    }
}

impl KeyHash {
    pub(super) fn new() -> Self {
        Self {
            sizes: (0..limits::DELTA_KEY_PARTITIONS).map(|_| AtomicU8::new(0)).collect(),
            levels: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    fn partition_of(hash: u64) -> usize {
        (hash >> (64 - limits::DELTA_KEY_PARTITIONS.ilog2())) as usize
    }

    /// The present table of partition `number`.
    #[inline]
    fn table(&self, number: usize) -> Option<&Table> {
        let level = self.sizes.get(number)?.load(Ordering::Acquire).checked_sub(1)?;
        self.levels.get(usize::from(level))?.get()?.get(number)?.get()
    }

    /// Gives partition `number` a larger table, with the entries of the present one and `slot`. For the one writer.
    fn grow(&self, number: usize, slot: u64) {
        let Some(size) = self.sizes.get(number) else { return };
        let level = size.load(Ordering::Relaxed);
        let Some(of_size) = self.levels.get(usize::from(level)) else { return };
        let of_size = of_size.get_or_init(|| (0..limits::DELTA_KEY_PARTITIONS).map(|_| OnceLock::new()).collect());
        let table = Table::new(slots_at(usize::from(level)));
        if let Some(present) = self.table(number) {
            table.put_all(present);
        }
        table.put(slot);
        // Nobody else sets it, and each size comes once.
        if of_size.get(number).is_some_and(|place| place.set(table).is_ok()) {
            size.store(level + 1, Ordering::Release);
        }
    }

    /// The newest row inserted under `hash` that `is_key` accepts: it is asked for each row whose hash looks the same.
    #[inline]
    pub(super) fn newest(&self, hash: u64, is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table(Self::partition_of(hash))?.place(hash, is_key)?.1
    }

    /// Row `offset` is the newest of its key from now on, in the place of the one that `is_key` accepts, if there is
    /// one. For the one writer, once the row can be read. `link` is told of the former row before anybody finds the new
    /// one.
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
        let table = self.table(number);
        let place = table.and_then(|table| table.place(hash, is_key));
        let former = place.and_then(|(_, former)| former);
        link(former)?;
        let slot = pack(hash, offset);
        match (table, place) {
            (Some(_), Some((place, Some(_)))) => place.store(slot, Ordering::Release),
            (Some(table), Some((free, None)))
                if (table.used.load(Ordering::Relaxed) as usize) < room(table.slots.len(), number) =>
            {
                table.fill(free, slot);
            }
            _ => self.grow(number, slot),
        }
        Ok(())
    }

    /// Bytes held.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_size = |tables: &[OnceLock<Table>]| {
            let slots = tables.iter().filter_map(OnceLock::get).map(|table| size_of_val(table.slots.as_ref()));
            size_of_val(tables) + slots.sum::<usize>()
        };
        size_of::<Self>()
            + self.sizes.len()
            + self.levels.iter().filter_map(OnceLock::get).map(|tables| of_size(tables)).sum::<usize>()
    }
}
