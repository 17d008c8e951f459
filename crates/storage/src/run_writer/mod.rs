//! Rows in order become runs aside: for loads, merges and write sets that spill.
//!
//! Comes in: arrays of rows in the order of the table, and segments that stand already. Goes out: a [`WrittenRun`], its
//! bytes durable, under temporary names.
//!
//! 1. [`SegmentTarget`] says where segments go and who numbers them (`target`).
//! 2. [`RunWriter`] writes rows as the segments of a run (`run`).
//! 3. While it does, the entries of a key index are collected for each key that is not the order. They are sorted in
//!    bounded memory (`entries`) and become the index (`index`).
//!
//! Invariants: nothing lists a written run yet, and its files go with the last reference to it unless they are kept. It
//! does not own: the order of rows (`order`, `load`), which rows are live, what makes a run part of a table (`commit`).

mod entries;
mod index;
mod run;
mod target;

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
pub(crate) use index::testing::SORT_ENTRIES;
pub use run::{RunWriter, WrittenRun};
pub use target::{IdSource, SegmentTarget};
