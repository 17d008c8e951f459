//! The row delta: the rows of recent commits, in commit order, as columns.
//!
//! Comes in: [`RowBuffer`](crate::row::RowBuffer)s, appended under the commit lock. Goes out: Arrow arrays without a
//! copy, single values, row offsets by key, a permutation in sort-key order; a merge takes a frozen generation whole.
//!
//! 1. [`DeltaGeneration::append`] writes each column's values into the open block (`column`, long strings into its
//!    `heap`), then `begin`, then links each row to the former version of each of its keys (`key_hash`), then publishes
//!    the row count.
//! 2. A snapshot sees a prefix ([`DeltaGeneration::rows_at`]), less what [`DeltaGeneration::deletes`] says.
//! 3. Scans walk [`DeltaGeneration::block_ranges`]; `arrays` lays Arrow arrays over what is published.
//! 4. Ordered scans and merges ask `order` for one permutation; sealed blocks are sorted once.
//! 5. Look-ups of key ranges ask `key_order`, which lists keys in order as far as somebody has asked.
//! 6. [`DeltaGeneration::freeze`] ends appends; the generation dies whole when no version lists it.
//!
//! Invariants:
//! - One writer, the holder of the commit lock; readers never wait for it, nor it for them.
//! - Rows below the published count never change, and all of their columns, `begin`, `prev` and hash entry can be read.
//! - `begin` never falls from one row to the next. A version chain falls in offset, and so never rises in `begin`.
//! - All blocks but the last have exactly [`crate::limits::DELTA_BLOCK_ROWS`] rows.
//!
//! It does not own: which keys are free, which rows a commit may delete (`commit`), when to freeze (`merge`), or the
//! log.

mod directory;
mod heap;
mod column;
mod block;
mod arrays;
mod key_hash;
mod key_order;
mod order;
mod generation;
mod point_access;

#[cfg(test)]
mod tests;

pub use generation::DeltaGeneration;
pub use key_order::OrderedRows;
