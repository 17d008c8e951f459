//! The adaptive radix tree: keys in the order of their bytes, a level for each byte that tells keys apart.
//!
//! 1. A node has 4, 16, 48 or 256 places for children and grows when they are full (`node`, `nodes`); it begins with
//!    how long the path to it is and a key of those below it, which spells that path.
//! 2. A key is a leaf where no other one shares its path any further. Whoever comes with a longer common path puts a
//!    node there (`insert`). Where the key before was added is where the next one of a dense order belongs.
//! 3. Many keys at once are sorted by their bytes, and each step of the sort is a node (`build`).
//! 4. Trees become one: nodes with the same path are merged, all else goes on as it is (`merge`).
//! 5. Keys come back in order, all or from one to another (`iter`).
//!
//! Invariants: nodes tell at least two ways apart, counting the key that ends at them; the keys below a node have its
//! path in common and no more, those of a [`Direct256`](node::Kind) none behind their parent's byte.

mod build;
mod byte_set;
mod insert;
mod iter;
mod merge;
mod node;
mod nodes;

#[cfg(test)]
mod tests;

pub use iter::Iter;

use insert::Finger;
use node::Handle;
use nodes::{Found, Nodes};

use super::key::KeyKind;
use super::pages::IndexSpace;

/// An adaptive radix tree from keys to the numbers of their rows.
#[derive(Debug)]
pub struct RadixTree<K: KeyKind, V> {
    nodes: Nodes<K, V>,
    root: Handle,
    len: usize,
    /// Where the last key was added.
    finger: Option<Finger<K::Stored>>,
}

impl<K: KeyKind, V: Copy> RadixTree<K, V> {
    /// A tree without keys. Trees that are to become one are made in the same `space`.
    #[must_use]
    pub fn new(space: &IndexSpace) -> Self {
        Self { nodes: Nodes::new(space), root: Handle::NONE, len: 0, finger: None }
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
        self.nodes.bytes()
    }

    /// The row of `key`.
    #[must_use]
    pub fn get(&self, key: K::Key<'_>) -> Option<V> {
        let (mut node, mut depth) = (self.root, 0);
        loop {
            if node.is_none() {
                return None;
            }
            if node.is_leaf() {
                let leaf = self.nodes.leaf(node);
                let other = self.nodes.key(leaf.key);
                let is_same = K::len(key) == K::len(other) && K::shared(key, other, depth) == K::len(key);
                return is_same.then_some(leaf.value);
            }
            (node, depth) = match self.nodes.find(node, depth, key) {
                Found::Path(_) => return None,
                Found::End => (self.nodes.head(node).own, K::len(key)),
                Found::Child(end, _, child) => (child, end + 1),
            };
        }
    }
}
