//! Many keys at once: a sort by their bytes, the first one first, each step of which is a node.
//!
//! 1. The keys of a node have a path in common, which is measured; the byte behind it is where they part.
//! 2. Keys with the same byte there go next to each other, in the order they have (a counting sort). Keys that are few
//!    are put in order at once. Keys that came in order are moved by neither.
//! 3. Each group becomes a child in the same way, and one key a leaf. The node is made last, as small as may be: none
//!    grows.

use std::cmp::Ordering;

use super::RadixTree;
use super::node::{Handle, Head};
use crate::error::Result;
use crate::index::Duplicate;
use crate::index::key::KeyKind;
use crate::index::pages::IndexSpace;
use crate::limits::INDEX_DEPTH_MAX;

/// Keys that are put in order one by one: counting has 257 counters to look at.
const FEW: usize = 32;
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
        let is_sorted = entries.is_sorted_by(|a, b| K::compare(a.0, b.0) != Ordering::Greater);
        let mut spare = if is_sorted { Vec::new() } else { entries.to_vec() };
        let mut build = Build { tree: &mut tree, duplicates: Vec::new(), children: Vec::new() };
        let root = if is_sorted { build.sorted(entries, 0, 0)? } else { build.unsorted(entries, &mut spare, 0, 0)? };
        let duplicates = build.duplicates;
        tree.root = root;
        tree.len = entries.len() - duplicates.len();
        Ok((tree, duplicates))
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
        if entries.len() <= FEW {
            sort_few::<K, V>(entries);
            return self.sorted(entries, depth, level);
        }
        if level >= INDEX_DEPTH_MAX {
            return self.inserted(entries);
        }
        let Some(((first, _), rest)) = entries.split_first() else { return Ok(Handle::NONE) };
        let first = *first;
        // Keys part at once more often than not: a longer path is measured when counting shows none.
        let mut end = depth;
        let mut ends = counts::<K, V>(entries, end);
        if ends.iter().any(|count| *count as usize == entries.len()) {
            end = rest.iter().fold(K::len(first), |end, entry| end.min(K::shared(first, entry.0, depth)));
            ends = counts::<K, V>(entries, end);
        }
        if ends.iter().all(|count| *count < 2) {
            return self.leaves(entries, end, depth);
        }
        let mut at = 0;
        for end in &mut ends {
            at += std::mem::replace(end, at);
        }
        for entry in entries.iter() {
            let to = &mut ends[place::<K>(entry.0, end)];
            spare[*to as usize] = *entry;
            *to += 1;
        }
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

    /// A node of nothing but leaves: no two of `entries` have the same byte behind the path.
    fn leaves(&mut self, entries: &[Entry<'_, K, V>], end: usize, depth: usize) -> Result<Handle> {
        let (mut own, base) = (Handle::NONE, self.children.len());
        let mut children = [Handle::NONE; 256];
        for (key, value) in entries {
            let (leaf, _) = self.tree.nodes.add_leaf(*key, *value)?;
            match K::byte(*key, end) {
                Some(byte) => children[usize::from(byte)] = leaf,
                None => own = leaf,
            }
        }
        self.children.extend((0..=255).zip(children).filter(|(_, child)| !child.is_none()));
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

/// Where a key goes that parts from others behind `end` bytes: keys that end there, then those of each byte.
#[inline]
fn place<K: KeyKind>(key: K::Key<'_>, end: usize) -> usize {
    K::byte(key, end).map_or(0, |byte| usize::from(byte) + 1)
}

/// How many of `entries` go to each place.
fn counts<K: KeyKind, V>(entries: &[Entry<'_, K, V>], end: usize) -> [u32; 257] {
    let mut counts = [0; 257];
    entries.iter().for_each(|entry| counts[place::<K>(entry.0, end)] += 1);
    counts
}

/// Puts `entries` in order; equal keys stay as they come.
fn sort_few<K: KeyKind, V: Copy>(entries: &mut [Entry<'_, K, V>]) {
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
