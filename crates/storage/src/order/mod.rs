//! Rows of several sorted inputs in one order: for merges, sorted loads, ordered scans and bulk key checks.
//!
//! Comes in: *streams* of [`Part`]s. A run is a stream of its segments, a delta is a stream of one part in the order of
//! its permutation. Goes out: [`Picks`] (stretches of rows of a part) in key order, ties by stream, then as the stream
//! has them.
//!
//! 1. [`KeyReader`] reads the key columns of a part and encodes them (`part`).
//! 2. [`Cursor`] merges the streams with a loser tree over the first eight bytes of the keys as a number; where all
//!    keys have at most eight bytes nothing else is compared (`cursor`, `tree`). For scans, new versions of updated
//!    rows come where the old ones stood (`replace`, `replacements`).
//! 3. [`Gather`] turns picks into arrays, one column at a time (`gather`).
//! 4. [`KeyStream`] walks the keys of one stream; [`first_common_key`] joins two (`key_stream`).
//! 5. [`first_shared_key`] and [`first_repeated_key`] find keys that two rows have, in either order (`shared_keys`).
//!
//! Invariants: a cursor holds the keys of one part of each stream at a time, and of deltas until their rows have come;
//! without a key, streams simply follow one another. It does not own: which rows are live (the caller gives bitmaps),
//! what the rows are for, how runs are written (`run_writer`).

mod cursor;
mod gather;
mod key_stream;
pub(crate) mod part;
mod picks;
mod replace;
mod replacements;
mod shared_keys;
mod tree;

#[cfg(test)]
mod tests;

pub use cursor::{Cursor, Stop};
pub use gather::Gather;
pub use key_stream::{KeyStream, first_common_key};
pub use part::{KeyAt, KeyReader, Part, PartRows};
pub use picks::{Pick, Picks, Stretch};
pub use shared_keys::{entries_in_order, first_repeated_key, first_shared_key};
