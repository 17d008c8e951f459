//! Keys in order, all or from one to another.

use std::cmp::Ordering;
use std::ops::Bound;

use super::RadixTree;
use super::node::{Handle, Kind};
use super::nodes::Nodes;
use crate::index::key::KeyKind;

/// A node on the way to the next key.
#[derive(Clone, Copy, Debug)]
struct Step {
    node: Handle,
    /// What comes next: 0 is the key that ends there, n the first child whose byte is n - 1 or more.
    next: u16,
}

/// Keys with their rows, in order.
#[derive(Debug)]
pub struct Iter<'a, 'k, K: KeyKind, V> {
    nodes: &'a Nodes<K, V>,
    /// From the top down; what lies before the first key is not in it.
    way: Vec<Step>,
    to: Bound<K::Key<'k>>,
}

impl<K: KeyKind, V: Copy> RadixTree<K, V> {
    /// All keys.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, '_, K, V> {
        self.range(Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys from `from` to `to`; none if they are the wrong way round.
    #[must_use]
    pub fn range<'k>(&self, from: Bound<K::Key<'_>>, to: Bound<K::Key<'k>>) -> Iter<'_, 'k, K, V> {
        let mut iter = Iter { nodes: &self.nodes, way: Vec::new(), to };
        match from {
            Bound::Unbounded if self.root.is_none() => {}
            Bound::Unbounded => iter.way.push(Step { node: self.root, next: 0 }),
            Bound::Included(key) => iter.seek(self.root, key, true),
            Bound::Excluded(key) => iter.seek(self.root, key, false),
        }
        iter
    }
}

impl<'a, K: KeyKind, V: Copy> Iter<'a, '_, K, V> {
    /// Goes to the first key above `key`, or at it if it is `included`.
    fn seek(&mut self, root: Handle, key: K::Key<'_>, included: bool) {
        let (mut node, mut depth) = (root, 0);
        loop {
            let (sample, end) = match node.kind() {
                Kind::None => return,
                Kind::Leaf => {
                    let found = K::compare(self.nodes.key(self.nodes.leaf(node).key), key);
                    if found == Ordering::Greater || included && found == Ordering::Equal {
                        self.way.push(Step { node, next: 0 });
                    }
                    return;
                }
                _ => {
                    let head = self.nodes.head(node);
                    (self.nodes.key(head.sample), head.end as usize)
                }
            };
            let shared = K::shared(key, sample, depth);
            if shared < end {
                // The path is all above the key or all below it; a key that ends on it is below.
                if K::byte(key, shared) < K::byte(sample, shared) {
                    self.way.push(Step { node, next: 0 });
                }
                return;
            }
            let Some(byte) = K::byte(key, end) else {
                return self.way.push(Step { node, next: u16::from(!included) });
            };
            self.way.push(Step { node, next: u16::from(byte) + 2 });
            (node, depth) = (self.nodes.child(node, byte), end + 1);
        }
    }

    fn next_leaf(&mut self) -> Option<Handle> {
        loop {
            let step = self.way.last_mut()?;
            let node = step.node;
            if node.is_leaf() {
                self.way.pop();
                return Some(node);
            }
            if step.next == 0 {
                step.next = 1;
                let own = self.nodes.head(node).own;
                if !own.is_none() {
                    return Some(own);
                }
            }
            let child = u8::try_from(step.next - 1).ok().and_then(|byte| self.nodes.child_from(node, byte));
            match child {
                Some((byte, child)) => {
                    step.next = u16::from(byte) + 2;
                    self.way.push(Step { node: child, next: 0 });
                }
                None => {
                    self.way.pop();
                }
            }
        }
    }
}

impl<'a, K: KeyKind, V: Copy> Iterator for Iter<'a, '_, K, V> {
    type Item = (K::Key<'a>, V);

    fn next(&mut self) -> Option<Self::Item> {
        let leaf = self.nodes.leaf(self.next_leaf()?);
        let key = self.nodes.key(leaf.key);
        let is_wanted = match self.to {
            Bound::Unbounded => true,
            Bound::Included(to) => K::compare(key, to) != Ordering::Greater,
            Bound::Excluded(to) => K::compare(key, to) == Ordering::Less,
        };
        if !is_wanted {
            self.way.clear();
            return None;
        }
        Some((key, leaf.value))
    }
}
