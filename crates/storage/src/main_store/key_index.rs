//! Key indexes: where the keys of a run are whose order is another one (`docs/design/0003-key-index.md`).
//!
//! A key index is a [`Run`] of [`index_schema`]: an entry (hash of the encoded key, row reference) for each row that
//! has the key of the run it belongs to, in order of the hash. It is written, listed and dropped together with that
//! run, which has one for each key of its table that is not its order.
//!
//! 1. [`Run::sought`] says which run to search for a key, and by which bytes: the index by the hash, if there is one.
//! 2. [`Run::indexed_row`] turns an entry into the row it stands for. Whoever asks compares the row's own key: hashes
//!    collide.
//!
//! Invariant: each row of the run has one entry, or none if it is without the key. Entries of rows that the run no
//! longer has are passed over.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::run::{Run, RunSegment};
use crate::error::{Error, Result};
use crate::ids::{ColumnId, KeyId, RowRef, TableId};
use crate::row::Value;
use crate::row::key::{TableKey, hash_key};
use crate::schema::{Column, DataType, Layout, TableSchema};
use crate::segment::Segment;

static SCHEMA: LazyLock<Arc<TableSchema>> = LazyLock::new(|| {
    let column = |id, name: &str| Column::new(ColumnId(id), name, DataType::BigInt, false);
    Arc::new(TableSchema {
        primary_key: vec![ColumnId(0)],
        sort_key: vec![ColumnId(0)],
        layout: Layout::Sorted,
        ..TableSchema::new(TableId(0), "key index", vec![column(0, "hash"), column(1, "row")])
    })
});

/// The schema of key indexes: (hash BIGINT, row BIGINT), found and sorted by the hash, which two rows may share.
#[must_use]
pub fn index_schema() -> &'static Arc<TableSchema> {
    &SCHEMA
}

/// The hash under which a key index has the encoded key `key`.
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

impl Run {
    /// The run to search for rows whose key `id` is `key`, and the key to search it by: the run itself by `key`, or its
    /// key index.
    #[must_use]
    pub fn sought<'a>(&'a self, id: KeyId, key: &'a [u8]) -> (&'a Self, Cow<'a, [u8]>) {
        match self.index(id) {
            None => (self, Cow::Borrowed(key)),
            Some(index) => (index, Cow::Owned(encoded(index_key(key)).to_vec())),
        }
    }

    /// The row that entry `at` of `part`, a segment of one of this run's key indexes, stands for; `None` if the run no
    /// longer has it.
    ///
    /// # Errors
    /// Corrupt or Io.
    pub fn indexed_row(&self, part: &Segment, at: u32) -> Result<Option<(&RunSegment, RowRef)>> {
        let Some(column) = index_schema().columns.get(1) else { return Err(no_entry(part)) };
        let Value::Int(bits) = part.value(column, at)? else { return Err(no_entry(part)) };
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

    fn verify_index(&self, schema: &TableSchema, key: &TableKey, index: &Self) -> Vec<Error> {
        let name = schema.key_name(key.id());
        let named = |e: Error| e.context(format!("its key index for \"{name}\""));
        let mut wrong: Vec<Error> = index.verify(index_schema()).into_iter().map(named).collect();
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
    fn sum_of_entries(&self, index: &Self) -> Result<(u64, u64)> {
        let mut sum = (0, 0u64);
        for part in index.segments() {
            let column = |column| part.segment.read(column, part.range.clone());
            let entries = index_schema().columns.iter().map(column).collect::<Result<Vec<_>>>()?;
            let [hashes, rows] = entries.as_slice() else { return Err(no_entry(&part.segment)) };
            let (hashes, rows) = (hashes.as_primitive::<Int64Type>(), rows.as_primitive::<Int64Type>());
            for (hash, bits) in hashes.values().iter().zip(rows.values()) {
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
    }
}
