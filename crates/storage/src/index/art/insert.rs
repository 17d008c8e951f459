//! One key more.

use super::RadixTree;
use super::node::{Handle, Head};
use super::nodes::Found;
use crate::error::Result;
use crate::index::Duplicate;
use crate::index::key::KeyKind;
use crate::limits::INDEX_KEYS_AHEAD;

/// Levels of nodes that are fetched ahead: keys of 4 bytes have no more, and longer ones seldom.
const LEVELS_AHEAD: usize = 5;

/// Where a node stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    node: Handle,
    /// None above the root.
    parent: Handle,
    /// Which child of the parent it is.
    byte: u8,
    /// Bytes of its keys that are told above it.
    depth: u32,
}

/// The node that the last key was added to. A key that begins with its path belongs below it: in an order that is dense
/// the next key does, and needs no way down from the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finger<S> {
    place: Place,
    /// Length of its path, and a key that begins with it.
    end: usize,
    sample: S,
}

impl<K: KeyKind, V: Copy> RadixTree<K, V> {
    /// Adds `key` with the row `value`. If the key is there already, nothing changes, and its row is returned.
    ///
    /// # Errors
    /// Full (54000) when the tree's space has no names left. The tree is then as it was.
    #[inline]
    pub fn insert(&mut self, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        if let Some(finger) = &self.finger
            && K::shared(key, self.nodes.key(finger.sample), 0) >= finger.end
        {
            // Most of what is dense comes to a node that needs no more room.
            if let Some(byte) = K::byte(key, finger.end)
                && self.nodes.has_place(finger.place.node, byte)
            {
                let node = finger.place.node;
                let (leaf, _) = self.nodes.add_leaf(key, value)?;
                self.nodes.fill_place(node, byte, leaf);
                self.len += 1;
                return Ok(None);
            }
            return self.insert_below(finger.place, key, value);
        }
        self.insert_below(Place { node: self.root, parent: Handle::NONE, byte: 0, depth: 0 }, key, value)
    }

    /// As [`RadixTree::insert`], of a key that belongs to the node at `place` or below it.
    fn insert_below(&mut self, mut place: Place, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        loop {
            if place.node.is_leaf() {
                return self.split_leaf(place, key, value);
            }
            if place.node.is_none() {
                return self.insert_first(key, value);
            }
            place = match self.nodes.find(place.node, place.depth as usize, key) {
                Found::Path(shared) => return self.split_path(place, shared, key, value),
                Found::End => return self.insert_own(place.node, key, value),
                Found::Child(end, byte, Handle::NONE) => return self.insert_child(place, end, byte, key, value),
                Found::Child(end, byte, node) => Place { node, parent: place.node, byte, depth: end as u32 + 1 },
            };
        }
    }

    /// Adds `entries` as [`RadixTree::insert`] does, one after the other, and tells those whose keys are there already.
    /// Keys that do not follow one another are looked for together first, so that their memory comes at once.
    ///
    /// # Errors
    /// Full (54000) when the tree's space has no names left. Those before are added.
    pub fn extend(&mut self, entries: &[(K::Key<'_>, V)]) -> Result<Vec<Duplicate<V>>> {
        let mut duplicates = Vec::new();
        for group in entries.chunks(INDEX_KEYS_AHEAD) {
            if group.iter().any(|(key, _)| !self.follows(*key)) {
                self.fetch_ways(group);
            }
            for (key, value) in group {
                if let Some(kept) = self.insert(*key, *value)? {
                    duplicates.push(Duplicate { kept, left_out: *value });
                }
            }
        }
        Ok(duplicates)
    }

    /// Whether `key` belongs where the last one was added.
    #[inline]
    fn follows(&self, key: K::Key<'_>) -> bool {
        self.finger.as_ref().is_some_and(|f| K::shared(key, self.nodes.key(f.sample), 0) >= f.end)
    }

    /// Has the nodes on the ways to all keys of `group` brought into the caches, level by level.
    fn fetch_ways(&self, group: &[(K::Key<'_>, V)]) {
        let mut ways = [(self.root, 0); INDEX_KEYS_AHEAD];
        for _ in 0..LEVELS_AHEAD {
            let mut open = false;
            for (way, (key, _)) in ways.iter_mut().zip(group) {
                *way = self.nodes.step_ahead(way.0, way.1, *key);
                open |= !way.0.is_none();
            }
            if !open {
                return;
            }
        }
    }

    fn insert_first(&mut self, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        let (leaf, _) = self.nodes.add_leaf(key, value)?;
        self.root = leaf;
        self.len += 1;
        Ok(None)
    }

    /// The node at `place`, whose path has `end` bytes, gets a leaf for `byte`, for which it has no child.
    #[inline]
    fn insert_child(&mut self, place: Place, end: usize, byte: u8, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        let (leaf, sample) = self.nodes.add_leaf(key, value)?;
        let node = self.nodes.add_child(place.node, byte, leaf, place.depth as usize)?;
        if node != place.node {
            self.put(place, node);
        }
        // Written when it moves only: what was just written is slow to read in one piece.
        if self.finger.as_ref().is_none_or(|finger| finger.place.node != node) {
            self.finger = Some(Finger { place: Place { node, ..place }, end, sample });
        }
        self.len += 1;
        Ok(None)
    }

    /// The key ends at `node`.
    fn insert_own(&mut self, node: Handle, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        let own = self.nodes.head(node).own;
        if !own.is_none() {
            return Ok(Some(self.nodes.leaf(own).value));
        }
        let (leaf, _) = self.nodes.add_leaf(key, value)?;
        self.nodes.set_own(node, leaf);
        self.len += 1;
        Ok(None)
    }

    /// Where a leaf stands, a node tells it and the key apart, if they are two.
    fn split_leaf(&mut self, place: Place, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        let leaf = self.nodes.leaf(place.node);
        let other = self.nodes.key(leaf.key);
        let shared = K::shared(key, other, place.depth as usize);
        if shared == K::len(key) && shared == K::len(other) {
            return Ok(Some(leaf.value));
        }
        let byte = K::byte(other, shared);
        self.split(place, shared, byte, key, value)
    }

    /// The path of the node at `place` and the key part after `shared` bytes.
    fn split_path(&mut self, place: Place, shared: usize, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        let byte = K::byte(self.nodes.key(self.nodes.head(place.node).sample), shared);
        self.split(place, shared, byte, key, value)
    }

    /// A node with a path of `shared` bytes in the place of what stands at `place`, for which it has a child for
    /// `byte`; a leaf whose key ends there has none. The other child, or the key that ends there, is the new one.
    fn split(&mut self, place: Place, shared: usize, byte: Option<u8>, key: K::Key<'_>, value: V) -> Result<Option<V>> {
        let new_byte = K::byte(key, shared);
        let (leaf, sample) = self.nodes.add_leaf(key, value)?;
        let head = |own| Head { sample, end: shared as u32, own };
        let depth = place.depth as usize;
        let node = match (byte, new_byte) {
            (Some(byte), Some(new)) if byte < new => {
                self.nodes.add_node(head(Handle::NONE), &[(byte, place.node), (new, leaf)], depth)?
            }
            (Some(byte), Some(new)) => {
                self.nodes.add_node(head(Handle::NONE), &[(new, leaf), (byte, place.node)], depth)?
            }
            (Some(byte), None) => self.nodes.add_node(head(leaf), &[(byte, place.node)], depth)?,
            (None, Some(new)) => self.nodes.add_node(head(place.node), &[(new, leaf)], depth)?,
            (None, None) => return Err(crate::error::Error::internal("a key and itself were to be told apart")),
        };
        self.put(place, node);
        self.finger = Some(Finger { place: Place { node, ..place }, end: shared, sample });
        self.len += 1;
        Ok(None)
    }

    /// `node` takes the place of what stands at `place`.
    fn put(&mut self, place: Place, node: Handle) {
        if place.parent.is_none() {
            self.root = node;
        } else {
            self.nodes.replace(place.parent, place.byte, node);
        }
    }
}
