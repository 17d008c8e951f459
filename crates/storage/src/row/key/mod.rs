//! Keys as bytes: `memcmp` order is the SQL order of the columns, ascending, NULLs last (`docs/formats/row.md`).
//!
//! Comes in: the key columns of arrays, rows or values. Goes out: key bytes, their sorted permutation, values again.
//!
//! 1. [`KeyCodec`] knows the columns. Each is encoded by itself: a marker if it may be NULL, then the value,
//!    sign-flipped big-endian for numbers, escaped and ended by a zero byte for text. No encoding is a prefix of
//!    another one, so columns simply follow one another.
//! 2. [`Keys`] holds many keys back to back, and sorts them.
//! 3. [`TableKey`] is a codec and what it encodes: one of the keys of a table.
//! 4. [`RowKeys`] are the keys of a buffer's rows with their hashes, made once for all checks and the delta.
//! 5. [`hash_key`] is the hash of a key everywhere: delta, filters, key indexes on disk.
//!
//! Invariants: equal values, equal bytes; the order is that of [`crate::predicate::compare_values`], column by column.
//!
//! It does not own: what a key is unique in, or where keys are kept.

mod codec;
mod encode;
mod keys;
mod range;
mod row_keys;
mod table_key;

#[cfg(test)]
mod tests;

pub use codec::KeyCodec;
pub use keys::Keys;
pub use range::KeyRange;
pub use row_keys::{HashedKey, KeyHashes, RowKeys};
pub use table_key::{RowsWithKey, TableKey};

/// The hash of a key: xxh3, 64 bits, without seed. Part of file formats.
#[must_use]
pub fn hash_key(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}
