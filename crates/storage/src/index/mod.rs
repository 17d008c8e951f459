//! Indexes that several threads build, each over the rows of its chunks, and that become one: pure structures in
//! memory, without a table, a file or a timestamp.
//!
//! Comes in: keys, as numbers or as the bytes of [`crate::row::key`], with the numbers of their rows. Goes out: an
//! index over all of them, and each key that two rows have ([`Duplicate`]).
//!
//! 1. Items lie in pages (`pages`), named by 32 bits. Indexes that are to become one number their pages together
//!    ([`IndexSpace`]): a merge moves pages, and what names an item goes on naming it.
//! 2. A [`KeyKind`] says what keys are: 4 or 8 bytes, which lie in the entry itself, or as many as one likes (`key`).
//! 3. [`RadixTree`] is ordered (`art`): adaptive nodes, compressed paths, leaves as high up as they can be.
//! 4. [`ChainedHash`] is not (`chained`): a directory of fixed size, and entries with the same place in it as a list.
//!
//! Source: Instant Loading, section 3.6; The Adaptive Radix Tree (Leis, Kemper and Neumann, ICDE 2013).
//!
//! Invariants: a key is there once, with the row that came first; whoever comes later is told. It does not own: what a
//! key is unique in, which rows are live, whose memory it is (`bytes` tells how much).

mod art;
mod chained;
mod key;
mod pages;
mod partition;

#[cfg(test)]
mod tests;

pub use art::{Iter, RadixTree};
pub use chained::ChainedHash;
pub use key::{ByteKeys, KeyKind, U32Keys, U64Keys};
pub use pages::IndexSpace;

/// Two rows with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duplicate<V> {
    /// The row that is in the index.
    pub kept: V,
    /// The one that is not.
    pub left_out: V,
}
