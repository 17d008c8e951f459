//! The hash table with chaining: a directory of fixed size, and the entries with the same place in it as a list
//! (Instant Loading, section 3.6.1).
//!
//! 1. The upper bits of a key's hash are its place. A place names the entry that came last, which names the one before
//!    it.
//! 2. Tables with directories of the same size become one place by place: the lists of both are put together. Threads
//!    take ranges of places, so that no two of them meet. What names the next entry is atomic for that alone: entries
//!    of a range lie anywhere.
//!
//! Invariants: a list has a key once. It does not own: how large a directory has to be; it never grows.

use std::sync::atomic::{AtomicU32, Ordering};

use mainstem_kernels::memory;
use parking_lot::Mutex;

use super::Duplicate;
use super::key::KeyKind;
use super::pages::{IndexSpace, Pages};
use super::partition::{PARTS, Partitions};
use crate::error::{Error, Result};
use crate::limits::{
    INDEX_DIRECTORY_BITS_MAX, INDEX_KEYS_AHEAD, INDEX_LEAF_BITS, INDEX_LEAF_PAGE_BITS, INDEX_MERGE_PARTS,
};
use crate::threads::in_parallel;

/// Ends a list. Names of entries are smaller.
const END: u32 = u32::MAX;

/// A directory of 2^`bits` places without lists.
fn directory(bits: u32) -> Vec<u32> {
    let mut places = Vec::with_capacity(1 << bits);
    memory::advise_huge_pages(&mut places);
    places.resize(1 << bits, END);
    places
}

/// A key with its row, and the next entry of its list.
#[derive(Debug)]
struct Entry<S, V> {
    next: AtomicU32,
    key: S,
    value: V,
}

impl<S, V> Entry<S, V> {
    fn next(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }
}

/// A hash table from keys to the numbers of their rows.
#[derive(Debug)]
pub struct ChainedHash<K: KeyKind, V> {
    heap: K::Heap,
    entries: Pages<Entry<K::Stored, V>, INDEX_LEAF_BITS, INDEX_LEAF_PAGE_BITS>,
    /// The first entry of each list.
    directory: Vec<u32>,
    /// Bits of a hash that are not its place.
    shift: u32,
    len: usize,
}

impl<K: KeyKind, V: Copy> ChainedHash<K, V> {
    /// A table without keys, with 2^`directory_bits` places; from 1 to [`INDEX_DIRECTORY_BITS_MAX`] bits, the nearest
    /// of them. Tables that are to become one have as many, and are made in the same `space`.
    #[must_use]
    pub fn new(space: &IndexSpace, directory_bits: u32) -> Self {
        let bits = directory_bits.clamp(1, INDEX_DIRECTORY_BITS_MAX);
        Self {
            heap: K::heap(space),
            entries: Pages::new(space, 0),
            directory: directory(bits),
            shift: u64::BITS - bits,
            len: 0,
        }
    }

    /// Bits for as many places as `keys`, or the next power of two.
    #[must_use]
    pub fn directory_bits(keys: usize) -> u32 {
        keys.max(2).next_power_of_two().trailing_zeros().min(INDEX_DIRECTORY_BITS_MAX)
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory, those of pages that are not full yet included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        K::bytes(&self.heap) + self.entries.bytes() + self.directory.capacity() * size_of::<u32>()
    }

    /// The row of `key`.
    #[must_use]
    pub fn get(&self, key: K::Key<'_>) -> Option<V> {
        let first = *self.directory.get(self.place(key))?;
        find::<K, V>(&self.heap, &self.entries, first, key)
    }

    /// Adds `key` with the row `value`. If the key is there already, nothing changes, and its row is returned.
    ///
    /// # Errors
    /// Full (54000) when the table's space has no names left. The table is then as it was.
    #[inline]
    pub fn insert(&mut self, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        let place = self.place(key);
        let first = self.directory[place];
        if let Some(kept) = find::<K, V>(&self.heap, &self.entries, first, key) {
            return Ok(Some(kept));
        }
        let key = K::store(&mut self.heap, key)?;
        self.directory[place] = self.entries.push(Entry { next: AtomicU32::new(first), key, value })?;
        self.len += 1;
        Ok(None)
    }

    /// Adds `entries` as [`ChainedHash::insert`] does, one after the other, and tells those whose keys are there
    /// already. Memory is asked for a few keys ahead.
    ///
    /// # Errors
    /// Full (54000) when the table's space has no names left. Those before are added.
    pub fn extend(&mut self, entries: &[(K::Key<'_>, V)]) -> Result<Vec<Duplicate<V>>> {
        let mut duplicates = Vec::new();
        for group in entries.chunks(INDEX_KEYS_AHEAD) {
            for (key, _) in group {
                memory::prefetch(&self.directory[self.place(*key)]);
            }
            for (key, _) in group {
                let first = self.directory[self.place(*key)];
                if first != END {
                    memory::prefetch(self.entries.get(first));
                }
            }
            for (key, value) in group {
                if let Some(kept) = self.insert(*key, *value)? {
                    duplicates.push(Duplicate { kept, left_out: *value });
                }
            }
        }
        Ok(duplicates)
    }

    /// The keys with their rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (K::Key<'_>, V)> {
        let list = move |first: &u32| {
            let mut at = *first;
            std::iter::from_fn(move || {
                let entry = (at != END).then(|| self.entries.get(at))?;
                at = entry.next();
                Some((K::load(&self.heap, entry.key), entry.value))
            })
        };
        self.directory.iter().flat_map(list)
    }

    #[inline]
    fn place(&self, key: K::Key<'_>) -> usize {
        (K::hash(key) >> self.shift) as usize
    }
}

/// The row of `key` in the list that begins with `first`.
#[inline]
fn find<K: KeyKind, V: Copy>(
    heap: &K::Heap,
    entries: &Pages<Entry<K::Stored, V>, INDEX_LEAF_BITS, INDEX_LEAF_PAGE_BITS>,
    first: u32,
    key: K::Key<'_>,
) -> Option<V> {
    let mut at = first;
    while at != END {
        let entry = entries.get(at);
        if K::compare(K::load(heap, entry.key), key).is_eq() {
            return Some(entry.value);
        }
        at = entry.next();
    }
    None
}

/// What became of a range of places.
struct Merged<V> {
    duplicates: Vec<Duplicate<V>>,
    /// The entries of keys that were there.
    dead: Vec<u32>,
}

impl<K, V> ChainedHash<K, V>
where
    K: KeyKind,
    V: Copy + Send + Sync,
    K::Stored: Send + Sync,
{
    /// A table of the entries of all `chunks` with 2^`directory_bits` places ([`ChainedHash::new`]), by `threads`
    /// threads, each of which fills ranges of the places, so that nothing is merged. Of equal keys the first one stays,
    /// and the others are told, in an order that threads do not change. Takes the memory of `chunks` once more.
    ///
    /// # Errors
    /// Full (54000) when `space` has no names left.
    pub fn build_parallel(
        space: &IndexSpace,
        directory_bits: u32,
        chunks: &[Vec<(K::Key<'_>, V)>],
        threads: usize,
    ) -> Result<(Self, Vec<Duplicate<V>>)> {
        let mut all = Self::new(space, directory_bits);
        let bits = u64::BITS - all.shift;
        // As many ranges as bytes: the part for keys that have no byte is the tree's alone.
        let part_bits = bits.saturating_sub((PARTS - 1).trailing_zeros());
        let partitions = Partitions::of(chunks, threads, |(key, _)| all.place(*key) >> part_bits)?;
        let ranges: Vec<_> = all.directory.chunks_mut(1 << part_bits).map(Mutex::new).collect();
        let idle = Mutex::new(Vec::new());
        let new = || (K::heap(space), Pages::new(space, 0));
        let told = in_parallel(threads, ranges.len(), |part| {
            let mut range = ranges.get(part).ok_or_else(|| Error::internal("a part that is not there"))?.lock();
            let (mut heap, mut entries) = idle.lock().pop().unwrap_or_else(new);
            let mut duplicates = Vec::new();
            for (key, value) in partitions.part(part).flatten() {
                let place = &mut range[(K::hash(*key) >> all.shift) as usize & ((1 << part_bits) - 1)];
                if let Some(kept) = find::<K, V>(&heap, &entries, *place, *key) {
                    duplicates.push(Duplicate { kept, left_out: *value });
                    continue;
                }
                let key = K::store(&mut heap, *key)?;
                *place = entries.push(Entry { next: AtomicU32::new(*place), key, value: *value })?;
            }
            idle.lock().push((heap, entries));
            Ok(duplicates)
        })?;
        drop(ranges);
        for (heap, entries) in idle.into_inner() {
            K::adopt(&mut all.heap, heap);
            all.entries.adopt(entries);
        }
        let duplicates: Vec<_> = told.into_iter().flatten().collect();
        all.len = chunks.iter().map(Vec::len).sum::<usize>() - duplicates.len();
        Ok((all, duplicates))
    }

    /// One table of all `tables`, which have directories of the same size in the same space, by `threads` threads. Of
    /// keys that several have, the one of the first of them stays, and the others are told, in an order that threads do
    /// not change. No tables are no table.
    ///
    /// # Errors
    /// Internal when the tables do not fit together.
    pub fn merge(tables: Vec<Self>, threads: usize) -> Result<Option<(Self, Vec<Duplicate<V>>)>> {
        let mut tables = tables.into_iter();
        let Some(mut all) = tables.next() else { return Ok(None) };
        let mut others = Vec::new();
        for table in tables {
            if !table.entries.space().is(all.entries.space()) || table.shift != all.shift {
                return Err(Error::internal("indexes of several spaces or sizes cannot be merged"));
            }
            all.len += table.len;
            all.entries.adopt(table.entries);
            K::adopt(&mut all.heap, table.heap);
            others.push(table.directory);
        }
        if others.is_empty() {
            return Ok(Some((all, Vec::new())));
        }
        let Self { heap, entries, directory, .. } = &mut all;
        let (heap, entries) = (&*heap, &*entries);
        let places = directory.len().div_ceil(INDEX_MERGE_PARTS);
        let ranges: Vec<_> = directory.chunks_mut(places).map(Mutex::new).collect();
        let merged = in_parallel(threads, ranges.len(), |part| {
            let Some(range) = ranges.get(part) else { return Err(Error::internal("a part that is not there")) };
            let mut range = range.lock();
            let mut merged = Merged { duplicates: Vec::new(), dead: Vec::new() };
            for other in &others {
                let other = other.get(part * places..).unwrap_or_default();
                for (first, more) in range.iter_mut().zip(other) {
                    *first = merged.join::<K>(heap, entries, *first, *more);
                }
            }
            Ok(merged)
        })?;
        drop(ranges);
        let (mut duplicates, mut dead) = (Vec::new(), Vec::new());
        for part in merged {
            duplicates.extend(part.duplicates);
            dead.extend(part.dead);
        }
        if !dead.is_empty() {
            all.entries.free_all(dead);
        }
        all.len -= duplicates.len();
        Ok(Some((all, duplicates)))
    }
}

impl<V: Copy> Merged<V> {
    /// The list that begins with `first`, and before it the entries of the one that begins with `more` whose keys are
    /// not in it.
    #[inline]
    fn join<K: KeyKind>(
        &mut self,
        heap: &K::Heap,
        entries: &Pages<Entry<K::Stored, V>, INDEX_LEAF_BITS, INDEX_LEAF_PAGE_BITS>,
        first: u32,
        more: u32,
    ) -> u32 {
        if first == END || more == END {
            return if first == END { more } else { first };
        }
        let (mut head, mut at) = (first, more);
        while at != END {
            let entry = entries.get(at);
            let next = entry.next();
            match find::<K, V>(heap, entries, first, K::load(heap, entry.key)) {
                Some(kept) => {
                    self.duplicates.push(Duplicate { kept, left_out: entry.value });
                    self.dead.push(at);
                }
                None => {
                    entry.next.store(head, Ordering::Relaxed);
                    head = at;
                }
            }
            at = next;
        }
        head
    }
}
