//! Key indexes: where the keys of a run are whose order is another one (`docs/design/0003-key-index.md`).
//!
//! A key index is a [`Run`] of entries (columns of the key, row reference), one for each row that has the key of the
//! run it belongs to, in the order of the key. It is written, listed and dropped together with that run, which has one
//! for each key of its table that is not its order; where a load extends the run, that of the load extends it. Indexes
//! of segments of format version 2 and older have the hash of the encoded key in place of its columns, and are in the
//! order of that: they find keys, and no ranges of them.
//!
//! 1. [`RunIndex::sought`] says by which bytes an index is searched for a key.
//! 2. [`Run::indexed_row`] turns an entry into the row it stands for; [`Run::find_indexed`] finds the row of a key.
//!
//! Invariant: each row of the run has one entry, or none if it is without the key. Entries of rows that the run no
//! longer has are passed over.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::run::{Run, RunIndex, RunSegment};
use crate::error::{Error, Result};
use crate::ids::{ColumnId, KeyId, RowRef, TableId};
use crate::row::Value;
use crate::row::key::{HashedKey, KeyCodec, TableKey, hash_key};
use crate::schema::{Column, DataType, Layout, TableSchema};
use crate::segment::{Segment, SegmentMeta};

/// The hash, in an index by hash. No index by key has such a column.
const HASH: ColumnId = ColumnId(0);
/// The row reference.
const ROW: ColumnId = ColumnId(1);
/// The first column of the key; the others follow.
const FIRST_OF_KEY: u32 = 2;

static ROW_COLUMN: LazyLock<Column> = LazyLock::new(|| Column::new(ROW, "row", DataType::BigInt, false));

static BY_HASH: LazyLock<Arc<TableSchema>> = LazyLock::new(|| {
    let hash = Column::new(HASH, "hash", DataType::BigInt, false);
    index_of(vec![hash])
});

/// The schema of an index whose entries are in the order of `columns`, which name a row or nearly so.
fn index_of(columns: Vec<Column>) -> Arc<TableSchema> {
    let key: Vec<ColumnId> = columns.iter().map(|column| column.id).collect();
    let columns = columns.into_iter().chain([ROW_COLUMN.clone()]).collect();
    Arc::new(TableSchema {
        primary_key: key.clone(),
        sort_key: key,
        layout: Layout::Sorted,
        ..TableSchema::new(TableId(0), "key index", columns)
    })
}

/// The schema of an index in the order of a key whose columns have `types`: each of them, and the row.
fn by_key(types: impl Iterator<Item = DataType>) -> Arc<TableSchema> {
    let column = |(id, data_type)| Column::new(ColumnId(id), format!("key {}", id - 1), data_type, false);
    index_of((FIRST_OF_KEY..).zip(types).map(column).collect())
}

/// The schema of the key indexes for `key` of `schema`'s table: the columns of the key, and the row (BIGINT), sorted by
/// the key. Rows of several times may share one.
#[must_use]
pub fn index_schema(schema: &TableSchema, key: &TableKey) -> Arc<TableSchema> {
    #[cfg(test)]
    if testing::BY_HASH.get() {
        return BY_HASH.clone();
    }
    by_key(key.columns().iter().filter_map(|id| schema.column(*id)).map(|column| column.data_type))
}

/// The schema of an index that has a segment with the metadata `meta`.
fn schema_of(meta: &SegmentMeta) -> Arc<TableSchema> {
    if meta.column(HASH).is_some() {
        return BY_HASH.clone();
    }
    by_key(meta.columns.iter().filter(|column| column.id != ROW).map(|column| column.data_type))
}

/// The hash under which an index by hash has the encoded key `key`.
#[must_use]
pub fn index_key(key: &[u8]) -> i64 {
    #[cfg(test)]
    if testing::COLLIDE.get() {
        return (hash_key(key) % 5) as i64 - 2;
    }
    hash_key(key).cast_signed()
}

/// How an index encodes its hash as a key.
fn encoded(hash: i64) -> [u8; 8] {
    (hash.cast_unsigned() ^ 1 << 63).to_be_bytes()
}

impl RunIndex {
    /// The index for `key` that has `entries`; none if no row has the key.
    #[must_use]
    pub fn new(key: KeyId, entries: Arc<Run>) -> Self {
        let first = entries.segments().first();
        let schema = first.map_or_else(|| by_key(std::iter::empty()), |part| schema_of(part.segment.meta()));
        Self { key, entries, schema }
    }

    /// The columns of an entry: those of the key in its order, or its hash, and the row.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Whether entries are in the order of the hashes of keys.
    #[must_use]
    pub fn is_by_hash(&self) -> bool {
        self.schema.sort_key.first() == Some(&HASH)
    }

    /// What the entry of the encoded key `key` is searched by.
    #[must_use]
    pub fn sought<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        if self.is_by_hash() { Cow::Owned(encoded(index_key(key)).to_vec()) } else { Cow::Borrowed(key) }
    }

    /// The encoded keys of all rows of `arrays`, one for each column of the key in order, as an index has them.
    ///
    /// # Errors
    /// Internal when the arrays are others.
    fn keys_of(&self, arrays: &[ArrayRef]) -> Result<Vec<i64>> {
        if let ([hashes], true) = (arrays, self.is_by_hash()) {
            return Ok(hashes.as_primitive::<Int64Type>().values().to_vec());
        }
        let keys = KeyCodec::new(&self.schema, &self.schema.sort_key).encode_arrays(arrays)?;
        Ok(keys.iter().map(index_key).collect())
    }
}

impl Run {
    /// The run to search for rows whose key `id` is `key`, and the key to search it by: the run itself by `key`, or its
    /// key index.
    #[must_use]
    pub fn sought<'a>(&'a self, id: KeyId, key: &'a [u8]) -> (&'a Self, Cow<'a, [u8]>) {
        match self.index(id) {
            None => (self, Cow::Borrowed(key)),
            Some(index) => (&index.entries, index.sought(key)),
        }
    }

    /// The row with `key` that `index`, this run's for key `id`, leads to, and that is `wanted`.
    ///
    /// # Errors
    /// Corrupt or Io.
    pub fn find_indexed(
        &self,
        schema: &TableSchema,
        index: &RunIndex,
        key: HashedKey<'_>,
        wanted: impl Fn(&RunSegment, RowRef) -> bool,
    ) -> Result<Option<RowRef>> {
        let (sought, by_hash) = (index.sought(key.bytes()), index.is_by_hash());
        for part in index.entries.find_segments(&sought) {
            let hash = || if by_hash { hash_key(&sought) } else { key.hash() };
            for entry in part.segment.probe_key(&index.schema, &sought, hash)? {
                let Some((holder, row)) = self.indexed_row(&part.segment, entry)? else { continue };
                if !wanted(holder, row) {
                    continue;
                }
                // Two keys may share a hash.
                if !by_hash || holder.segment.key_of(schema, index.key, row.offset())?.as_deref() == Some(key.bytes()) {
                    return Ok(Some(row));
                }
            }
        }
        Ok(None)
    }

    /// The row that entry `at` of `part`, a segment of one of this run's key indexes, stands for; `None` if the run no
    /// longer has it.
    ///
    /// # Errors
    /// Corrupt or Io.
    pub fn indexed_row(&self, part: &Segment, at: u32) -> Result<Option<(&RunSegment, RowRef)>> {
        let Value::Int(bits) = part.value(&ROW_COLUMN, at)? else { return Err(no_entry(part)) };
        Ok(self.held_row(bits))
    }

    /// The row whose reference has these bits; `None` if the run no longer has it.
    fn held_row(&self, bits: i64) -> Option<(&RunSegment, RowRef)> {
        let row = RowRef::from_bits(bits.cast_unsigned());
        let holder = self.segment(row.container()).filter(|holder| holder.range.contains(&row.offset()));
        holder.map(|holder| (holder, row))
    }

    /// What is wrong with the key indexes of a run of `schema`'s table. Compares sums over all entries and over all
    /// rows instead of looking each row up: one pass over each, in order.
    pub(super) fn verify_indexes(&self, schema: &TableSchema) -> Vec<Error> {
        let mut wrong = Vec::new();
        for key in TableKey::all(schema) {
            match self.index(key.id()) {
                Some(index) => wrong.extend(self.verify_index(schema, &key, index)),
                None if schema.is_order(key.columns()) => {}
                None => wrong.push(self.without_index(schema, key.id())),
            }
        }
        wrong
    }

    /// A run that is not in the order of `key` and has no index for it.
    pub(crate) fn without_index(&self, schema: &TableSchema, key: KeyId) -> Error {
        Error::internal(format!("run {}: it has no key index for \"{}\"", self.id(), schema.key_name(key)))
    }

    fn verify_index(&self, schema: &TableSchema, key: &TableKey, index: &RunIndex) -> Vec<Error> {
        let name = schema.key_name(key.id());
        let named = |e: Error| e.context(format!("its key index for \"{name}\""));
        let mut wrong: Vec<Error> = index.entries.verify(&index.schema).into_iter().map(named).collect();
        if wrong.is_empty() {
            match self.sum_of_keys(schema, key).and_then(|keys| Ok((keys, self.sum_of_entries(index)?))) {
                Ok((keys, entries)) if keys == entries => {}
                Ok(_) => {
                    let id = self.id();
                    let what = format!("run {id}: its key index for \"{name}\" has other rows or keys");
                    wrong.push(Error::internal(what));
                }
                Err(e) => wrong.push(e),
            }
        }
        wrong
    }

    /// Count and sum of (hash, row) over the rows that have `key`.
    fn sum_of_keys(&self, schema: &TableSchema, key: &TableKey) -> Result<(u64, u64)> {
        let columns = key.columns().iter().filter_map(|id| schema.column(*id));
        let mut sum = (0, 0u64);
        for part in self.segments() {
            let arrays = columns.clone().map(|column| part.segment.read(column, part.range.clone()));
            let (keys, rows) = key.encode_arrays(&arrays.collect::<Result<Vec<_>>>()?)?;
            for (key, nth) in keys.iter().zip(0..) {
                let offset = part.range.start + rows.row(nth);
                add(&mut sum, index_key(key), RowRef::new(part.segment.id(), offset));
            }
        }
        Ok(sum)
    }

    /// The same over the entries whose rows the run still has.
    fn sum_of_entries(&self, index: &RunIndex) -> Result<(u64, u64)> {
        let mut sum = (0, 0u64);
        for part in index.entries.segments() {
            let column = |column| part.segment.read(column, part.range.clone());
            let entries = index.schema.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
            let Some((rows, keys)) = entries.split_last() else { return Err(no_entry(&part.segment)) };
            let (hashes, rows) = (index.keys_of(keys)?, rows.as_primitive::<Int64Type>());
            for (hash, bits) in hashes.iter().zip(rows.values()) {
                if let Some((_, row)) = self.held_row(*bits) {
                    add(&mut sum, *hash, row);
                }
            }
        }
        Ok(sum)
    }
}

fn add(sum: &mut (u64, u64), hash: i64, row: RowRef) {
    let mut entry = [0; 16];
    let (left, right) = entry.split_at_mut(8);
    left.copy_from_slice(&hash.to_le_bytes());
    right.copy_from_slice(&row.to_bits().to_le_bytes());
    *sum = (sum.0 + 1, sum.1.wrapping_add(hash_key(&entry)));
}

fn no_entry(part: &Segment) -> Error {
    Error::internal(format!("segment {} is none of a key index", part.id()))
}

#[cfg(test)]
pub(crate) mod testing {
    use std::cell::Cell;

    thread_local! {
        /// Whether all keys of this thread's indexes share five hashes.
        pub(crate) static COLLIDE: Cell<bool> = const { Cell::new(false) };
        /// Whether this thread writes indexes by hash, as older versions did.
        pub(crate) static BY_HASH: Cell<bool> = const { Cell::new(false) };
    }
}
