//! The nodes of a tree by kind, and what one can ask of a node whatever its kind.

use mainstem_kernels::memory;

use super::node::{Handle, Head, Kind, Leaf, Node4, Node16, Node48, Node256};
use crate::error::Result;
use crate::index::key::KeyKind;
use crate::index::pages::{IndexSpace, Pages};
use crate::limits::{
    INDEX_LEAF_BITS, INDEX_LEAF_PAGE_BITS, INDEX_NODE_BITS, INDEX_NODE4_PAGE_BITS, INDEX_NODE16_PAGE_BITS,
    INDEX_NODE48_PAGE_BITS, INDEX_NODE256_PAGE_BITS,
};

/// What a key finds at a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// It leaves the node's path after so many bytes.
    Path(usize),
    /// It ends with the path.
    End,
    /// The path has so many bytes, and the key goes on with this one, for which there is this child, or none.
    Child(usize, u8, Handle),
}

/// All nodes of a tree, or those that a part of a merge has made.
#[derive(Debug)]
pub(super) struct Nodes<K: KeyKind, V> {
    pub heap: K::Heap,
    pub leaves: Pages<Leaf<K::Stored, V>, INDEX_LEAF_BITS, INDEX_LEAF_PAGE_BITS>,
    n4: Pages<Node4<K::Stored>, INDEX_NODE_BITS, INDEX_NODE4_PAGE_BITS>,
    n16: Pages<Node16<K::Stored>, INDEX_NODE_BITS, INDEX_NODE16_PAGE_BITS>,
    n48: Pages<Node48<K::Stored>, INDEX_NODE_BITS, INDEX_NODE48_PAGE_BITS>,
    n256: Pages<Node256<K::Stored>, INDEX_NODE_BITS, INDEX_NODE256_PAGE_BITS>,
}

impl<K: KeyKind, V: Copy> Nodes<K, V> {
    pub fn new(space: &IndexSpace) -> Self {
        Self {
            heap: K::heap(space),
            leaves: Pages::new(space, 0),
            n4: Pages::new(space, 1),
            n16: Pages::new(space, 2),
            n48: Pages::new(space, 3),
            n256: Pages::new(space, 4),
        }
    }

    /// The space of its pages.
    pub fn space(&self) -> &IndexSpace {
        self.leaves.space()
    }

    /// Takes all that `other` has.
    pub fn adopt(&mut self, other: Self) {
        K::adopt(&mut self.heap, other.heap);
        self.leaves.adopt(other.leaves);
        self.n4.adopt(other.n4);
        self.n16.adopt(other.n16);
        self.n48.adopt(other.n48);
        self.n256.adopt(other.n256);
    }

    /// `dead` are no more.
    pub fn free_all(&mut self, dead: &[Handle]) {
        let of = |kinds: [Kind; 2]| dead.iter().filter(move |node| kinds.contains(&node.kind())).map(|node| node.at());
        self.leaves.free_all(dead.iter().filter(|node| node.is_leaf()).map(|leaf| leaf.leaf_at()));
        self.n4.free_all(of([Kind::N4; 2]));
        self.n16.free_all(of([Kind::N16; 2]));
        self.n48.free_all(of([Kind::N48; 2]));
        self.n256.free_all(of([Kind::N256, Kind::Direct256]));
    }

    pub fn bytes(&self) -> usize {
        K::bytes(&self.heap)
            + self.leaves.bytes()
            + self.n4.bytes()
            + self.n16.bytes()
            + self.n48.bytes()
            + self.n256.bytes()
    }

    /// Adds an entry.
    #[inline]
    pub fn add_leaf(&mut self, key: K::Key<'_>, value: V) -> Result<(Handle, K::Stored)> {
        let key = K::store(&mut self.heap, key)?;
        Ok((Handle::leaf(self.leaves.push(Leaf { key, value })?), key))
    }

    #[inline]
    pub fn leaf(&self, handle: Handle) -> Leaf<K::Stored, V> {
        *self.leaves.get(handle.leaf_at())
    }

    /// The key of `stored`.
    #[inline]
    pub fn key(&self, stored: K::Stored) -> K::Key<'_> {
        K::load(&self.heap, stored)
    }

    /// What `node`, an inner one, begins with.
    #[inline]
    pub fn head(&self, node: Handle) -> &Head<K::Stored> {
        let at = node.at();
        match node.kind() {
            Kind::N4 => &self.n4.get(at).head,
            Kind::N16 => &self.n16.get(at).head,
            Kind::N48 => &self.n48.get(at).head,
            _ => &self.n256.get(at).head,
        }
    }

    /// A key below `node`, or at it.
    #[inline]
    pub fn sample(&self, node: Handle) -> K::Stored {
        if node.is_leaf() { self.leaf(node).key } else { self.head(node).sample }
    }

    /// `leaf` is the entry of the key that ends at `node`.
    pub fn set_own(&mut self, node: Handle, leaf: Handle) {
        let at = node.at();
        let head = match node.kind() {
            Kind::N4 => &mut self.n4.get_mut(at).head,
            Kind::N16 => &mut self.n16.get_mut(at).head,
            Kind::N48 => &mut self.n48.get_mut(at).head,
            _ => &mut self.n256.get_mut(at).head,
        };
        head.own = leaf;
    }

    /// What there is for `key` at `node`, an inner one; `depth` bytes of it are told above the node.
    #[inline]
    pub fn find(&self, node: Handle, depth: usize, key: K::Key<'_>) -> Found {
        let at = node.at();
        match node.kind() {
            Kind::Direct256 => match K::byte(key, depth) {
                Some(byte) => Found::Child(depth, byte, self.n256.get(at).children[usize::from(byte)]),
                None => Found::End,
            },
            Kind::N4 => {
                let node = self.n4.get(at);
                self.find_below(&node.head, depth, key, |byte| node.find(byte).map(|place| node.children[place]))
            }
            Kind::N16 => {
                let node = self.n16.get(at);
                self.find_below(&node.head, depth, key, |byte| node.find(byte).map(|place| node.children[place]))
            }
            Kind::N48 => {
                let node = self.n48.get(at);
                self.find_below(&node.head, depth, key, |byte| node.find(byte).map(|place| node.children[place]))
            }
            _ => {
                let node = self.n256.get(at);
                self.find_below(&node.head, depth, key, |byte| Some(node.children[usize::from(byte)]))
            }
        }
    }

    #[inline]
    fn find_below(
        &self,
        head: &Head<K::Stored>,
        depth: usize,
        key: K::Key<'_>,
        child: impl FnOnce(u8) -> Option<Handle>,
    ) -> Found {
        let end = head.end as usize;
        if end > depth {
            let shared = K::shared(key, self.key(head.sample), depth);
            if shared < end {
                return Found::Path(shared);
            }
        }
        match K::byte(key, end) {
            Some(byte) => Found::Child(end, byte, child(byte).unwrap_or(Handle::NONE)),
            None => Found::End,
        }
    }

    /// The child of `node` for `byte`, or none.
    #[inline]
    pub fn child(&self, node: Handle, byte: u8) -> Handle {
        let at = node.at();
        let found = match node.kind() {
            Kind::N256 | Kind::Direct256 => return self.n256.get(at).children[usize::from(byte)],
            Kind::N4 => {
                let node = self.n4.get(at);
                node.find(byte).map(|place| node.children[place])
            }
            Kind::N16 => {
                let node = self.n16.get(at);
                node.find(byte).map(|place| node.children[place])
            }
            _ => {
                let node = self.n48.get(at);
                node.find(byte).map(|place| node.children[place])
            }
        };
        found.unwrap_or(Handle::NONE)
    }

    /// The next node on the way from `node` to `key`, of which `depth` bytes are told above it, with as many bytes
    /// more: what will be read of it is asked for. None at the end of the way. Paths are not compared.
    #[inline]
    pub fn step_ahead(&self, node: Handle, depth: usize, key: K::Key<'_>) -> (Handle, usize) {
        let end = match node.kind() {
            Kind::None | Kind::Leaf => return (Handle::NONE, depth),
            Kind::Direct256 => depth,
            _ => self.head(node).end as usize,
        };
        let Some(byte) = K::byte(key, end) else { return (Handle::NONE, depth) };
        let child = self.child(node, byte);
        let at = child.at();
        let next = usize::from(K::byte(key, end + 1).unwrap_or_default());
        match child.kind() {
            Kind::None => {}
            Kind::Leaf => memory::prefetch(self.leaves.get(child.leaf_at())),
            Kind::N4 => memory::prefetch(self.n4.get(at)),
            Kind::N16 => memory::prefetch(self.n16.get(at)),
            Kind::N48 => {
                let node = self.n48.get(at);
                memory::prefetch(&node.head);
                memory::prefetch(&node.index[next]);
            }
            kind => {
                let node = self.n256.get(at);
                memory::prefetch(&node.children[next]);
                if kind == Kind::N256 {
                    memory::prefetch(&node.head);
                }
            }
        }
        (child, end + 1)
    }

    /// Whether `node` is of the largest kind and has no child for `byte` yet.
    #[inline]
    pub fn has_place(&self, node: Handle, byte: u8) -> bool {
        matches!(node.kind(), Kind::N256 | Kind::Direct256)
            && self.n256.get(node.at()).children[usize::from(byte)].is_none()
    }

    /// Puts `child` where [`Nodes::has_place`] has found one.
    #[inline]
    pub fn fill_place(&mut self, node: Handle, byte: u8, child: Handle) {
        self.n256.get_mut(node.at()).children[usize::from(byte)] = child;
    }

    /// Puts `child` in the place of the child that `node` has for `byte`.
    pub fn replace(&mut self, node: Handle, byte: u8, child: Handle) {
        let at = node.at();
        match node.kind() {
            Kind::N4 => {
                let node = self.n4.get_mut(at);
                if let Some(place) = node.find(byte) {
                    node.children[place] = child;
                }
            }
            Kind::N16 => {
                let node = self.n16.get_mut(at);
                if let Some(place) = node.find(byte) {
                    node.children[place] = child;
                }
            }
            Kind::N48 => {
                let node = self.n48.get_mut(at);
                if let Some(place) = node.find(byte) {
                    node.children[place] = child;
                }
            }
            _ => self.n256.get_mut(at).children[usize::from(byte)] = child,
        }
    }

    /// Adds `child` for `byte`, for which `node` has none, and returns the node, which may be another one now: a larger
    /// one. `depth` bytes of its keys are told by its parents.
    #[inline]
    pub fn add_child(&mut self, node: Handle, byte: u8, child: Handle, depth: usize) -> Result<Handle> {
        let at = node.at();
        let has_room = match node.kind() {
            Kind::N256 | Kind::Direct256 => {
                self.n256.get_mut(at).children[usize::from(byte)] = child;
                true
            }
            Kind::N4 => self.n4.get_mut(at).add(byte, child),
            Kind::N16 => self.n16.get_mut(at).add(byte, child),
            _ => self.n48.get_mut(at).add(byte, child),
        };
        if has_room { Ok(node) } else { self.grow(node, byte, child, depth) }
    }

    /// The next larger node in the place of `node`, with `child` for `byte`.
    #[inline(never)]
    fn grow(&mut self, node: Handle, byte: u8, child: Handle, depth: usize) -> Result<Handle> {
        let at = node.at();
        match node.kind() {
            Kind::N4 => {
                let small = *self.n4.get(at);
                let mut large = Node16::new(small.head);
                large.bytes[..4].copy_from_slice(&small.bytes);
                large.children[..4].copy_from_slice(&small.children);
                large.len = 4;
                large.add(byte, child);
                let grown = Handle::node(Kind::N16, self.n16.push(large)?);
                self.n4.free(at);
                Ok(grown)
            }
            Kind::N16 => {
                let small = *self.n16.get(at);
                let mut large = Node48::new(small.head);
                small.bytes.iter().zip(small.children).for_each(|(byte, child)| {
                    large.add(*byte, child);
                });
                large.add(byte, child);
                let grown = Handle::node(Kind::N48, self.n48.push(large)?);
                self.n16.free(at);
                Ok(grown)
            }
            _ => {
                let small = self.n48.get(at);
                let mut large = Node256::new(small.head);
                for (byte, place) in small.index.iter().enumerate().filter(|(_, place)| **place > 0) {
                    large.children[byte] = small.children[usize::from(*place) - 1];
                }
                large.children[usize::from(byte)] = child;
                let kind = if large.head.end as usize == depth { Kind::Direct256 } else { Kind::N256 };
                let grown = Handle::node(kind, self.n256.push(large)?);
                self.n48.free(at);
                Ok(grown)
            }
        }
    }

    /// A node as small as its `children` allow, which are in the order of their bytes. `depth` as in
    /// [`Nodes::add_child`].
    pub fn add_node(&mut self, head: Head<K::Stored>, children: &[(u8, Handle)], depth: usize) -> Result<Handle> {
        Ok(match children.len() {
            ..=4 => {
                let mut node = Node4::new(head);
                for (place, (byte, child)) in children.iter().enumerate() {
                    (node.bytes[place], node.children[place]) = (*byte, *child);
                }
                node.len = children.len() as u8;
                Handle::node(Kind::N4, self.n4.push(node)?)
            }
            5..=16 => {
                let mut node = Node16::new(head);
                for (place, (byte, child)) in children.iter().enumerate() {
                    (node.bytes[place], node.children[place]) = (*byte, *child);
                }
                node.len = children.len() as u8;
                Handle::node(Kind::N16, self.n16.push(node)?)
            }
            17..=48 => {
                let mut node = Node48::new(head);
                for (byte, child) in children {
                    node.add(*byte, *child);
                }
                Handle::node(Kind::N48, self.n48.push(node)?)
            }
            _ => {
                let mut node = Node256::new(head);
                for (byte, child) in children {
                    node.children[usize::from(*byte)] = *child;
                }
                self.add_largest(node, depth)?
            }
        })
    }

    /// Adds a node of the largest kind. `depth` as in [`Nodes::add_child`].
    pub fn add_largest(&mut self, node: Node256<K::Stored>, depth: usize) -> Result<Handle> {
        let kind = if node.head.end as usize == depth { Kind::Direct256 } else { Kind::N256 };
        Ok(Handle::node(kind, self.n256.push(node)?))
    }

    /// Calls `visit` with each child of `node` in the order of their bytes.
    #[inline]
    pub fn for_each_child(&self, node: Handle, mut visit: impl FnMut(u8, Handle)) {
        let at = node.at();
        match node.kind() {
            Kind::N4 => {
                let node = self.n4.get(at);
                node.bytes.iter().zip(&node.children).take(node.len.into()).for_each(|(b, c)| visit(*b, *c));
            }
            Kind::N16 => {
                let node = self.n16.get(at);
                node.bytes.iter().zip(&node.children).take(node.len.into()).for_each(|(b, c)| visit(*b, *c));
            }
            Kind::N48 => {
                let node = self.n48.get(at);
                for (byte, place) in (0..=255).zip(&node.index).filter(|(_, place)| **place > 0) {
                    visit(byte, node.children[usize::from(*place) - 1]);
                }
            }
            _ => {
                let children = &self.n256.get(at).children;
                (0..=255).zip(children).filter(|(_, child)| !child.is_none()).for_each(|(b, c)| visit(b, *c));
            }
        }
    }

    /// The first child of `node` whose byte is at least `byte`.
    pub fn child_from(&self, node: Handle, byte: u8) -> Option<(u8, Handle)> {
        let at = node.at();
        match node.kind() {
            Kind::N4 => {
                let node = self.n4.get(at);
                let children = node.bytes.iter().copied().zip(node.children).take(node.len.into());
                children.into_iter().find(|(at, _)| *at >= byte)
            }
            Kind::N16 => {
                let node = self.n16.get(at);
                let children = node.bytes.iter().copied().zip(node.children).take(node.len.into());
                children.into_iter().find(|(at, _)| *at >= byte)
            }
            Kind::N48 => {
                let node = self.n48.get(at);
                let byte = (byte..=255).find(|byte| node.index[usize::from(*byte)] > 0)?;
                Some((byte, node.children[usize::from(node.index[usize::from(byte)]) - 1]))
            }
            _ => {
                let children = &self.n256.get(at).children;
                let byte = (byte..=255).find(|byte| !children[usize::from(*byte)].is_none())?;
                Some((byte, children[usize::from(byte)]))
            }
        }
    }
}

/// A leaf or a node as one of the ways on behind a path of some bytes, which all its keys begin with: its children, or
/// itself where its own path is longer.
impl<K: KeyKind, V: Copy> Nodes<K, V> {
    /// The leaf of the key below `node` that ends with the path of `end` bytes, or none.
    #[inline]
    pub fn own_behind(&self, node: Handle, end: usize) -> Handle {
        if node.is_leaf() {
            return if K::len(self.key(self.leaf(node).key)) == end { node } else { Handle::NONE };
        }
        let head = self.head(node);
        if head.end as usize == end { head.own } else { Handle::NONE }
    }

    /// Calls `visit` with each byte behind the path of `end` bytes, in order, and what `node` has for it.
    #[inline]
    pub fn for_each_behind(&self, node: Handle, end: usize, mut visit: impl FnMut(u8, Handle)) {
        match self.longer(node, end) {
            Some(key) => K::byte(key, end).into_iter().for_each(|byte| visit(byte, node)),
            None => self.for_each_child(node, visit),
        }
    }

    /// The children of `node` by their bytes, if it branches behind `end` bytes and is of the largest kind.
    #[inline]
    pub fn places(&self, node: Handle, end: usize) -> Option<&[Handle; 256]> {
        let is_large = matches!(node.kind(), Kind::N256 | Kind::Direct256);
        let node = is_large.then(|| self.n256.get(node.at()))?;
        (node.head.end as usize == end).then_some(&node.children)
    }

    /// What `node` has for `byte` behind the path of `end` bytes, or none.
    #[inline]
    pub fn child_behind(&self, node: Handle, end: usize, byte: u8) -> Handle {
        match self.longer(node, end) {
            Some(key) if K::byte(key, end) == Some(byte) => node,
            Some(_) => Handle::NONE,
            None => self.child(node, byte),
        }
    }

    /// A key below `node` if it does not branch behind `end` bytes.
    #[inline]
    fn longer(&self, node: Handle, end: usize) -> Option<K::Key<'_>> {
        if node.is_leaf() {
            return Some(self.key(self.leaf(node).key));
        }
        let head = self.head(node);
        (head.end as usize > end).then(|| self.key(head.sample))
    }
}

impl<K: KeyKind, V: Copy> Nodes<K, V> {
    /// Nodes to be made beside these: none yet.
    pub fn sibling(&self) -> Self {
        Self {
            heap: K::heap(self.space()),
            leaves: self.leaves.sibling(),
            n4: self.n4.sibling(),
            n16: self.n16.sibling(),
            n48: self.n48.sibling(),
            n256: self.n256.sibling(),
        }
    }
}
