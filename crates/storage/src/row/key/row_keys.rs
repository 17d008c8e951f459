//! One key of the rows of a buffer: encoded and hashed once, for all who look it up.

use super::{TableKey, hash_key};
use crate::ids::KeyId;
use crate::row::RowBuffer;

/// A key with its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedKey<'a> {
    bytes: &'a [u8],
    hash: u64,
}

impl<'a> HashedKey<'a> {
    /// The encoded key `bytes`.
    #[inline]
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, hash: hash_key(bytes) }
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its hash ([`hash_key`]).
    #[inline]
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// The hashes of one key of some rows.
#[derive(Clone, Copy, Debug)]
pub enum KeyHashes<'a> {
    /// Of these keys.
    Of(&'a RowKeys),
    /// Of one row, if it has the key.
    One(Option<u64>),
}

impl KeyHashes<'_> {
    /// The hash of row `row`'s key, if it has it.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> Option<u64> {
        match self {
            Self::Of(keys) => keys.get(row).map(|key| key.hash()),
            Self::One(hash) => *hash,
        }
    }
}

/// What the rows of a buffer have as one key of their table, by row.
#[derive(Clone, Debug)]
pub struct RowKeys {
    id: KeyId,
    /// The keys, one behind the other in row order.
    encoded: Vec<u8>,
    /// Where each row's key ends, and its hash. One that ends where it begins is none: no key is empty.
    ends: Vec<(usize, u64)>,
}

impl RowKeys {
    /// Key `key` of all `rows`.
    #[must_use]
    pub fn of(key: &TableKey, rows: &RowBuffer) -> Self {
        let width = key.codec().fixed_width().unwrap_or(0);
        let mut encoded = Vec::with_capacity(width * rows.len());
        let mut ends = Vec::with_capacity(rows.len());
        for row in rows.rows() {
            let start = encoded.len();
            key.encode_row(row, &mut encoded);
            let key = encoded.get(start..).unwrap_or_default();
            ends.push((encoded.len(), if key.is_empty() { 0 } else { hash_key(key) }));
        }
        Self { id: key.id(), encoded, ends }
    }

    /// Each key of `keys`, of all `rows`.
    #[must_use]
    pub fn all(keys: &[TableKey], rows: &RowBuffer) -> Box<[Self]> {
        keys.iter().map(|key| Self::of(key, rows)).collect()
    }

    /// Which key of the table.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// How many rows there are, with the key and without.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// The key of row `row`, if it has it.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> Option<HashedKey<'_>> {
        let start = row.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|(end, _)| *end))?;
        let (end, hash) = *self.ends.get(row)?;
        let bytes = self.encoded.get(start..end)?;
        (!bytes.is_empty()).then_some(HashedKey { bytes, hash })
    }

    /// The keys of the rows that have it, in row order, with the rows.
    pub fn iter(&self) -> impl Iterator<Item = (usize, HashedKey<'_>)> {
        (0..self.ends.len()).filter_map(|row| self.get(row).map(|key| (row, key)))
    }
}
