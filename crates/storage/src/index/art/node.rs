//! Nodes of a radix tree, in four sizes, and the 32 bits that name one.

use crate::limits::{INDEX_LEAF_BITS, INDEX_NODE_BITS};

/// What a [`Handle`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Nothing.
    None = 0,
    /// [`Node4`].
    N4 = 1,
    /// [`Node16`].
    N16 = 2,
    /// [`Node48`].
    N48 = 3,
    /// [`Node256`].
    N256 = 4,
    /// [`Node256`] right behind its parent's byte: there is nothing to compare before its children.
    Direct256 = 5,
    /// An entry.
    Leaf = 8,
}

/// A leaf or a node. The first bit tells leaves, of which there are most; the place of one has all others. Of a node 3
/// more bits are the kind, and the rest is its place among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(u32);

const LEAF: u32 = 1 << INDEX_LEAF_BITS;

impl Handle {
    /// No child.
    pub const NONE: Self = Self(0);

    #[inline]
    pub fn leaf(at: u32) -> Self {
        Self(LEAF | at)
    }

    /// A node of `kind`.
    #[inline]
    pub fn node(kind: Kind, at: u32) -> Self {
        Self((kind as u32) << INDEX_NODE_BITS | at)
    }

    #[inline]
    pub fn kind(self) -> Kind {
        match self.0 >> INDEX_NODE_BITS {
            0 => Kind::None,
            1 => Kind::N4,
            2 => Kind::N16,
            3 => Kind::N48,
            4 => Kind::N256,
            5 => Kind::Direct256,
            _ => Kind::Leaf,
        }
    }

    #[inline]
    pub fn is_leaf(self) -> bool {
        self.0 >= LEAF
    }

    #[inline]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The place of a leaf.
    #[inline]
    pub fn leaf_at(self) -> u32 {
        self.0 & (LEAF - 1)
    }

    /// The place of a node among those of its kind.
    #[inline]
    pub fn at(self) -> u32 {
        self.0 & ((1 << INDEX_NODE_BITS) - 1)
    }
}

const _: () = assert!(INDEX_LEAF_BITS == 31 && INDEX_NODE_BITS == INDEX_LEAF_BITS - 3);

/// A key with its row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf<S, V> {
    pub key: S,
    pub value: V,
}

/// What all inner nodes begin with. The first `end` bytes of every key below are those of `sample`, and the children
/// are told apart by the byte behind them. So a compressed path may be as long as it likes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<S> {
    pub sample: S,
    pub end: u32,
    /// The leaf of the key that ends there, if there is one.
    pub own: Handle,
}

/// Up to 4 children, in the order of their bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node4<S> {
    pub head: Head<S>,
    pub children: [Handle; 4],
    pub bytes: [u8; 4],
    pub len: u8,
}

/// Up to 16 children, in the order of their bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node16<S> {
    pub head: Head<S>,
    pub children: [Handle; 16],
    pub bytes: [u8; 16],
    pub len: u8,
}

/// Up to 48 children in any order; `index` has one more than the place of the child of each byte, or 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node48<S> {
    pub head: Head<S>,
    pub children: [Handle; 48],
    pub index: [u8; 256],
    pub len: u8,
}

/// A child for each byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node256<S> {
    pub children: [Handle; 256],
    pub head: Head<S>,
}

impl<S> Node4<S> {
    pub fn new(head: Head<S>) -> Self {
        Self { head, children: [Handle::NONE; 4], bytes: [0; 4], len: 0 }
    }

    #[inline]
    pub fn find(&self, byte: u8) -> Option<usize> {
        // Bytes behind the last one are 0 as well: the first that fits is the child, if there is one.
        let found = (0..4).find(|at| self.bytes[*at] == byte)?;
        (found < usize::from(self.len)).then_some(found)
    }

    /// Adds a child; false if there is no room.
    pub fn add(&mut self, byte: u8, child: Handle) -> bool {
        insert_sorted(&mut self.bytes, &mut self.children, &mut self.len, byte, child)
    }
}

impl<S> Node16<S> {
    pub fn new(head: Head<S>) -> Self {
        Self { head, children: [Handle::NONE; 16], bytes: [0; 16], len: 0 }
    }

    /// All bytes at once: those that differ from `byte` are not 0 after XOR, and the lowest byte that is 0 is marked
    /// without fail (Mycroft's test; what stands above it may be marked falsely).
    #[inline]
    pub fn find(&self, byte: u8) -> Option<usize> {
        const LOW: u128 = u128::from_ne_bytes([1; 16]);
        let differing = u128::from_le_bytes(self.bytes) ^ (LOW * u128::from(byte));
        let zeros = differing.wrapping_sub(LOW) & !differing & (LOW << 7);
        let found = zeros.trailing_zeros() as usize / 8;
        (found < usize::from(self.len)).then_some(found)
    }

    /// As [`Node4::add`].
    pub fn add(&mut self, byte: u8, child: Handle) -> bool {
        insert_sorted(&mut self.bytes, &mut self.children, &mut self.len, byte, child)
    }
}

impl<S> Node48<S> {
    pub fn new(head: Head<S>) -> Self {
        Self { head, children: [Handle::NONE; 48], index: [0; 256], len: 0 }
    }

    #[inline]
    pub fn find(&self, byte: u8) -> Option<usize> {
        usize::from(self.index[usize::from(byte)]).checked_sub(1)
    }

    /// As [`Node4::add`].
    pub fn add(&mut self, byte: u8, child: Handle) -> bool {
        let Some(place) = self.children.get_mut(usize::from(self.len)) else { return false };
        *place = child;
        self.len += 1;
        self.index[usize::from(byte)] = self.len;
        true
    }
}

impl<S> Node256<S> {
    pub fn new(head: Head<S>) -> Self {
        Self { head, children: [Handle::NONE; 256] }
    }
}

/// Puts `child` in its place between the first `len` children; false if there is no room. Most come in order.
fn insert_sorted<const N: usize>(
    bytes: &mut [u8; N],
    children: &mut [Handle; N],
    len: &mut u8,
    byte: u8,
    child: Handle,
) -> bool {
    let count = usize::from(*len);
    if count >= N {
        return false;
    }
    let mut at = count;
    while at > 0 && bytes[at - 1] > byte {
        (bytes[at], children[at]) = (bytes[at - 1], children[at - 1]);
        at -= 1;
    }
    (bytes[at], children[at]) = (byte, child);
    *len += 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head<u32> {
        Head { sample: 0, end: 0, own: Handle::NONE }
    }

    /// Every byte is looked for in nodes with any number of children, 0 and 255 among them.
    #[test]
    fn children_are_found_by_their_bytes() {
        let (mut small, mut middle, mut large) = (Node4::new(head()), Node16::new(head()), Node48::new(head()));
        for (at, byte) in (0..48).map(|at| (at, (at * 101 % 256) as u8)) {
            for wanted in 0..=255 {
                let is_there = |len: u32| (0..at.min(len)).any(|at| (at * 101 % 256) as u8 == wanted);
                assert_eq!(small.find(wanted).map(|at| small.bytes[at]), is_there(4).then_some(wanted));
                assert_eq!(middle.find(wanted).map(|at| middle.bytes[at]), is_there(16).then_some(wanted));
                assert_eq!(large.find(wanted).is_some(), is_there(48), "{wanted} of {at}");
            }
            let child = Handle::leaf(at);
            assert_eq!(small.add(byte, child), at < 4);
            assert_eq!(middle.add(byte, child), at < 16);
            assert!(large.add(byte, child));
            assert_eq!(large.find(byte).map(|at| large.children[at]), Some(child));
            assert!(small.bytes[..small.len.into()].is_sorted() && middle.bytes[..middle.len.into()].is_sorted());
        }
        assert!(!large.add(7, Handle::NONE));
        assert_eq!(middle.find(101).map(|at| middle.children[at]), Some(Handle::leaf(1)));
    }

    #[test]
    fn handles_tell_kind_and_place() {
        for kind in [Kind::N4, Kind::N16, Kind::N48, Kind::N256, Kind::Direct256] {
            for at in [0, 1, (1 << INDEX_NODE_BITS) - 1] {
                let handle = Handle::node(kind, at);
                assert_eq!((handle.kind(), handle.at()), (kind, at));
                assert!(!handle.is_none() && !handle.is_leaf());
            }
        }
        for at in [0, 1, (1 << INDEX_LEAF_BITS) - 1] {
            let handle = Handle::leaf(at);
            assert_eq!((handle.kind(), handle.leaf_at(), handle.is_leaf()), (Kind::Leaf, at, true));
        }
        assert_eq!(Handle::NONE.kind(), Kind::None);
    }
}
