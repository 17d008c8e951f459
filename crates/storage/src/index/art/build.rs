//! Many keys at once: a sort by their bytes, the first one first, each step of which is a node.
//!
//! 1. The keys of a node have a path in common, which is measured; the byte behind it is where they part.
//! 2. Keys with the same byte there go next to each other, in the order they have (a counting sort). Keys that are few
//!    stay where they are: those with the same byte are chained. Keys that came in order are moved by neither.
//! 3. Each group becomes a child in the same way, and one key a leaf. The node is made last, as small as may be: none
//!    grows.

use std::cmp::Ordering;

use mainstem_kernels::memory;
use parking_lot::Mutex;

use super::RadixTree;
use super::byte_set::ByteSet;
use super::node::{Handle, Head};
use crate::error::{Error, Result};
use crate::index::Duplicate;
use crate::index::key::KeyKind;
use crate::index::pages::IndexSpace;
use crate::index::partition::{PARTS, Partitions, count_parts, move_counted};
use crate::limits::INDEX_DEPTH_MAX;
use crate::threads::in_parallel;

/// Keys that are chained instead of being counted and moved: counting has 257 counters to go through several times.
const CHAINED_MAX: usize = 512;
/// Keys that are put in order one by one.
const INSERTION_SORT_MAX: usize = 16;
/// Keys of which the next group is searched for, instead of going through all of them.
const MANY: usize = 1024;

/// A key with its row.
type Entry<'k, K, V> = (<K as KeyKind>::Key<'k>, V);

/// Makes nodes of entries.
struct Build<'t, K: KeyKind, V> {
    tree: &'t mut RadixTree<K, V>,
    duplicates: Vec<Duplicate<V>>,
    /// Children of nodes that are not made yet.
    children: Vec<(u8, Handle)>,
}

impl<K: KeyKind, V: Copy> RadixTree<K, V> {
    /// A tree of `entries`, which may come in any order and are left in another one. Of equal keys the first one stays,
    /// and the others are told. Takes the memory of `entries` once more unless they come in order.
    ///
    /// # Errors
    /// Full (54000) when `space` has no names left.
    pub fn build<'k>(space: &IndexSpace, entries: &mut [Entry<'k, K, V>]) -> Result<(Self, Vec<Duplicate<V>>)> {
        let mut tree = Self::new(space);
        if entries.is_empty() {
            return Ok((tree, Vec::new()));
        }
        let is_sorted = is_sorted::<K, V>(entries);
        let mut spare = Vec::new();
        if !is_sorted {
            spare.reserve_exact(entries.len());
            memory::advise_huge_pages(&mut spare);
            spare.extend_from_slice(entries);
        }
        let mut build = Build { tree: &mut tree, duplicates: Vec::new(), children: Vec::new() };
        let root = if is_sorted { build.sorted(entries, 0, 0)? } else { build.unsorted(entries, &mut spare, 0, 0)? };
        let duplicates = build.duplicates;
        tree.root = root;
        tree.len = entries.len() - duplicates.len();
        Ok((tree, duplicates))
    }
}

/// A thread's part of a tree, and memory to put entries in order.
struct Worker<'k, K: KeyKind, V> {
    tree: RadixTree<K, V>,
    entries: Vec<Entry<'k, K, V>>,
    spare: Vec<Entry<'k, K, V>>,
}

impl<K, V> RadixTree<K, V>
where
    K: KeyKind,
    V: Copy + Send + Sync,
{
    /// A tree of the entries of all `chunks`, in any order, by `threads` threads. The first step of the sort is done
    /// before the tree is begun, and each child of the root by one thread, so that nothing is merged. Of equal keys the
    /// first one stays, and the others are told, in an order that threads do not change. Takes the memory of `chunks`
    /// once more, and that of two parts for each thread: where most keys have the same byte behind the path that all
    /// share, one thread has most to do, and memory of its own for it.
    ///
    /// # Errors
    /// Full (54000) when `space` has no names left.
    pub fn build_parallel(
        space: &IndexSpace,
        chunks: &[Vec<Entry<'_, K, V>>],
        threads: usize,
    ) -> Result<(Self, Vec<Duplicate<V>>)> {
        let mut tree = Self::new(space);
        let Some((first, _)) = chunks.iter().find_map(|chunk| chunk.first()) else { return Ok((tree, Vec::new())) };
        let ends = in_parallel(threads, chunks.len(), |at| {
            let chunk = chunks.get(at).ok_or_else(|| Error::internal("a chunk that is not there"))?;
            Ok(chunk.iter().fold(K::len(*first), |end, entry| end.min(K::shared(*first, entry.0, 0))))
        })?;
        let end = ends.into_iter().min().unwrap_or_default();
        let partitions = Partitions::of(chunks, threads, |entry| place::<K>(entry.0, end))?;
        let idle = Mutex::new(Vec::new());
        let parts = in_parallel(threads, PARTS, |part| {
            let new = || Worker { tree: Self::new(space), entries: Vec::new(), spare: Vec::new() };
            let mut worker: Worker<'_, K, V> = idle.lock().pop().unwrap_or_else(new);
            worker.entries.clear();
            partitions.part(part).for_each(|entries| worker.entries.extend_from_slice(entries));
            let built = worker.subtree(part.checked_sub(1).map(|_| end + 1));
            idle.lock().push(worker);
            built
        })?;
        for worker in idle.into_inner() {
            tree.nodes.adopt(worker.tree.nodes);
        }
        let (mut own, mut children, mut duplicates) = (Handle::NONE, Vec::new(), Vec::new());
        for (part, (child, of_part)) in parts.into_iter().enumerate() {
            match part.checked_sub(1) {
                None => own = child,
                Some(byte) if !child.is_none() => children.push((byte as u8, child)),
                Some(_) => {}
            }
            duplicates.extend(of_part);
        }
        tree.root = own;
        if let Some((_, child)) = children.first() {
            let head = Head { sample: tree.nodes.sample(*child), end: end as u32, own };
            tree.root = tree.nodes.add_node(head, &children, 0)?;
        }
        tree.len = chunks.iter().map(Vec::len).sum::<usize>() - duplicates.len();
        Ok((tree, duplicates))
    }
}

impl<K: KeyKind, V: Copy> Worker<'_, K, V> {
    /// The subtree of its entries, which have `depth` bytes in common, or are all of one key.
    fn subtree(&mut self, depth: Option<usize>) -> Result<(Handle, Vec<Duplicate<V>>)> {
        let Self { tree, entries, spare } = self;
        let mut build = Build { tree, duplicates: Vec::new(), children: Vec::new() };
        let root = match depth {
            None => build.own(entries)?,
            Some(depth) if is_sorted::<K, V>(entries) => build.sorted(entries, depth, 1)?,
            Some(depth) => {
                spare.extend_from_slice(entries.get(spare.len()..).unwrap_or_default());
                let spare = &mut spare[..entries.len()];
                build.unsorted(entries, spare, depth, 1)?
            }
        };
        Ok((root, build.duplicates))
    }
}

impl<K: KeyKind, V: Copy> Build<'_, K, V> {
    /// The subtree of `entries` in any order, which have `depth` bytes in common; `spare` is as long.
    fn unsorted<'k>(
        &mut self,
        entries: &mut [Entry<'k, K, V>],
        spare: &mut [Entry<'k, K, V>],
        depth: usize,
        level: usize,
    ) -> Result<Handle> {
        if entries.len() <= INSERTION_SORT_MAX {
            insertion_sort::<K, V>(entries);
            return self.sorted(entries, depth, level);
        }
        if entries.len() <= CHAINED_MAX {
            return self.chained(entries, spare, depth, level);
        }
        if level >= INDEX_DEPTH_MAX {
            return self.inserted(entries);
        }
        let Some(((first, _), rest)) = entries.split_first() else { return Ok(Handle::NONE) };
        let first = *first;
        // Keys part at once more often than not: a longer path is measured when counting shows none.
        let mut end = depth;
        let mut counts = count_parts(entries, |entry| place::<K>(entry.0, end));
        if counts.iter().any(|count| *count as usize == entries.len()) {
            end = rest.iter().fold(K::len(first), |end, entry| end.min(K::shared(first, entry.0, depth)));
            counts = count_parts(entries, |entry| place::<K>(entry.0, end));
        }
        let ends = move_counted(entries, spare, counts, |entry| place::<K>(entry.0, end));
        let own = self.own(&spare[..ends[0] as usize])?;
        let base = self.children.len();
        let mut start = ends[0] as usize;
        for (byte, end_of) in (0..=255).zip(&ends[1..]) {
            let group = start..*end_of as usize;
            start = group.end;
            let child = match &mut spare[group.clone()] {
                [] => continue,
                [entry] => self.tree.nodes.add_leaf(entry.0, entry.1)?.0,
                several => self.unsorted(several, &mut entries[group], end + 1, level + 1)?,
            };
            self.children.push((byte, child));
        }
        self.node(end, own, base, depth)
    }

    /// As [`Build::unsorted`], of few entries: those with the same byte are a chain.
    fn chained<'k>(
        &mut self,
        entries: &[Entry<'k, K, V>],
        spare: &mut [Entry<'k, K, V>],
        depth: usize,
        level: usize,
    ) -> Result<Handle> {
        let Some(((first, _), rest)) = entries.split_first() else { return Ok(Handle::NONE) };
        if level >= INDEX_DEPTH_MAX {
            return self.inserted(entries);
        }
        let end = rest.iter().fold(K::len(*first), |end, entry| end.min(K::shared(*first, entry.0, depth)));
        let chains = Chains::of::<K, V>(entries, end);
        let own = match chains.first[0] {
            END_OF_CHAIN => Handle::NONE,
            first => {
                let ended = chains.gather(first, entries, spare);
                self.own(&spare[..ended])?
            }
        };
        let base = self.children.len();
        for byte in chains.bytes {
            let first = chains.first[usize::from(byte) + 1];
            let child = if chains.next[usize::from(first)] == END_OF_CHAIN {
                let (key, value) = entries[usize::from(first)];
                self.tree.nodes.add_leaf(key, value)?.0
            } else {
                let count = chains.gather(first, entries, spare);
                let group = &mut spare[..count];
                if count <= INSERTION_SORT_MAX {
                    insertion_sort::<K, V>(group);
                } else {
                    group.sort_by(|a, b| K::compare(a.0, b.0));
                }
                self.sorted(group, end + 1, level + 1)?
            };
            self.children.push((byte, child));
        }
        self.node(end, own, base, depth)
    }

    /// The subtree of `entries`, which are in order, and have `depth` bytes in common.
    fn sorted(&mut self, entries: &[Entry<'_, K, V>], depth: usize, level: usize) -> Result<Handle> {
        let (first, last) = match entries {
            [] => return Ok(Handle::NONE),
            [entry] => return Ok(self.tree.nodes.add_leaf(entry.0, entry.1)?.0),
            [first, .., last] => (first.0, last.0),
        };
        let end = K::shared(first, last, depth);
        if let ([a, b], Some(of_a), Some(of_b)) = (entries, K::byte(first, end), K::byte(last, end)) {
            let (leaf, sample) = self.tree.nodes.add_leaf(a.0, a.1)?;
            let (other, _) = self.tree.nodes.add_leaf(b.0, b.1)?;
            let head = Head { sample, end: end as u32, own: Handle::NONE };
            return self.tree.nodes.add_node(head, &[(of_a, leaf), (of_b, other)], depth);
        }
        if end == K::len(last) {
            return self.own(entries);
        }
        if level >= INDEX_DEPTH_MAX {
            return self.inserted(entries);
        }
        let ended = entries.iter().take_while(|entry| K::len(entry.0) == end).count();
        let (ended, mut rest) = entries.split_at(ended);
        let own = self.own(ended)?;
        let base = self.children.len();
        while let Some(byte) = rest.first().and_then(|entry| K::byte(entry.0, end)) {
            let is_in = |entry: &Entry<'_, K, V>| K::byte(entry.0, end) == Some(byte);
            let count = if rest.len() > MANY {
                rest.partition_point(is_in)
            } else {
                rest.iter().take_while(|entry| is_in(entry)).count()
            };
            let (group, others) = rest.split_at(count);
            rest = others;
            let child = match group {
                [entry] => self.tree.nodes.add_leaf(entry.0, entry.1)?.0,
                several => self.sorted(several, end + 1, level + 1)?,
            };
            self.children.push((byte, child));
        }
        self.node(end, own, base, depth)
    }

    /// A node of the children from `base` on, which share a path of `end` bytes, as the key of `own` does.
    fn node(&mut self, end: usize, own: Handle, base: usize, depth: usize) -> Result<Handle> {
        let children = &self.children[base..];
        let sample = match children.first() {
            Some((_, child)) => self.tree.nodes.sample(*child),
            None => return Ok(own),
        };
        let head = Head { sample, end: end as u32, own };
        let node = self.tree.nodes.add_node(head, children, depth)?;
        self.children.truncate(base);
        Ok(node)
    }

    /// The leaf of `entries`, which all have the same key: of the first one.
    fn own(&mut self, entries: &[Entry<'_, K, V>]) -> Result<Handle> {
        let Some((first, rest)) = entries.split_first() else { return Ok(Handle::NONE) };
        self.duplicates.extend(rest.iter().map(|entry| Duplicate { kept: first.1, left_out: entry.1 }));
        Ok(self.tree.nodes.add_leaf(first.0, first.1)?.0)
    }

    /// The subtree of `entries` whose keys have so many others as beginnings that there is no way down by recursion.
    fn inserted(&mut self, entries: &[Entry<'_, K, V>]) -> Result<Handle> {
        let root = std::mem::replace(&mut self.tree.root, Handle::NONE);
        self.tree.finger = None;
        for (key, value) in entries {
            if let Some(kept) = self.tree.insert(*key, *value)? {
                self.duplicates.push(Duplicate { kept, left_out: *value });
            }
        }
        self.tree.finger = None;
        Ok(std::mem::replace(&mut self.tree.root, root))
    }
}

fn is_sorted<K: KeyKind, V>(entries: &[Entry<'_, K, V>]) -> bool {
    entries.is_sorted_by(|a, b| K::compare(a.0, b.0) != Ordering::Greater)
}

/// Where a key goes that parts from others behind `end` bytes: keys that end there, then those of each byte.
#[inline]
fn place<K: KeyKind>(key: K::Key<'_>, end: usize) -> usize {
    K::byte(key, end).map_or(0, |byte| usize::from(byte) + 1)
}

/// Ends a chain.
const END_OF_CHAIN: u16 = u16::MAX;

/// Entries with the same byte behind a path, as chains in the order in which they come.
struct Chains {
    /// The first entry of each place ([`place`]).
    first: [u16; 257],
    /// The entry behind each one.
    next: [u16; CHAINED_MAX],
    /// The bytes that somebody has.
    bytes: ByteSet,
}

impl Chains {
    /// Those of `entries`, at most [`CHAINED_MAX`] of them, behind `end` bytes.
    fn of<K: KeyKind, V>(entries: &[Entry<'_, K, V>], end: usize) -> Self {
        let mut chains =
            Self { first: [END_OF_CHAIN; 257], next: [END_OF_CHAIN; CHAINED_MAX], bytes: ByteSet::default() };
        for (at, ((entry, _), next)) in entries.iter().zip(&mut chains.next).enumerate().rev() {
            let place = place::<K>(*entry, end);
            *next = std::mem::replace(&mut chains.first[place], at as u16);
            if let Some(byte) = place.checked_sub(1) {
                chains.bytes.insert(byte as u8);
            }
        }
        chains
    }

    /// Copies the chain that begins with `at` to the front of `to`, and returns its length.
    fn gather<E: Copy>(&self, mut at: u16, entries: &[E], to: &mut [E]) -> usize {
        let mut count = 0;
        while at != END_OF_CHAIN {
            to[count] = entries[usize::from(at)];
            count += 1;
            at = self.next[usize::from(at)];
        }
        count
    }
}

/// Puts `entries` in order; equal keys stay as they come.
fn insertion_sort<K: KeyKind, V: Copy>(entries: &mut [Entry<'_, K, V>]) {
    for sorted in 1..entries.len() {
        let entry = entries[sorted];
        let mut at = sorted;
        while at > 0 && K::compare(entries[at - 1].0, entry.0) == Ordering::Greater {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        entries[at] = entry;
    }
}
