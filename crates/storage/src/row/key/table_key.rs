//! One key of a table, ready to encode the keys of its rows.

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::NullBuffer;

use super::{KeyCodec, Keys};
use crate::error::Result;
use crate::ids::{ColumnId, KeyId};
use crate::row::RowView;
use crate::schema::TableSchema;

/// A key: the PRIMARY KEY or a UNIQUE constraint. A row with NULL in one of its columns has no such key.
///
/// Its bytes do not tell whether a column may be NULL: they stay the same when that changes, so that the hashes on disk
/// do.
#[derive(Clone, Debug)]
pub struct TableKey {
    id: KeyId,
    columns: Box<[ColumnId]>,
    codec: KeyCodec,
    /// Whether rows may be without it.
    nullable: bool,
}

impl TableKey {
    /// The keys of `schema`'s table in the order of [`TableSchema::keys`].
    #[must_use]
    pub fn all(schema: &TableSchema) -> Box<[Self]> {
        schema.keys().map(|(id, columns)| Self::new(schema, id, columns)).collect()
    }

    /// Key `id` of `schema`'s table, if there is one.
    #[must_use]
    pub fn of(schema: &TableSchema, id: KeyId) -> Option<Self> {
        let found = schema.keys().find(|(key, _)| *key == id);
        found.map(|(id, columns)| Self::new(schema, id, columns))
    }

    fn new(schema: &TableSchema, id: KeyId, columns: &[ColumnId]) -> Self {
        let nullable = columns.iter().filter_map(|id| schema.column(*id)).any(|column| column.nullable);
        Self { id, columns: columns.into(), codec: KeyCodec::of_values(schema, columns), nullable }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its columns in declared order.
    #[must_use]
    pub fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    /// How it is encoded.
    #[must_use]
    pub fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// Appends the key of `row` to `out`; false, and nothing is appended, if the row is without it.
    #[inline]
    pub fn encode_row(&self, row: RowView<'_>, out: &mut Vec<u8>) -> bool {
        let has_key = !self.nullable || !self.codec.is_null_in(row);
        if has_key {
            self.codec.encode_row(row, out);
        }
        has_key
    }

    /// The keys of all rows that have it, with their positions. `arrays` as in [`KeyCodec::encode_arrays`], NULLs
    /// allowed.
    ///
    /// # Errors
    /// Internal when the arrays are others.
    pub fn encode_arrays(&self, arrays: &[ArrayRef]) -> Result<(Keys, RowsWithKey)> {
        let (arrays, rows) = self.with_key(arrays)?;
        Ok((self.codec.encode_arrays(&arrays)?, rows))
    }

    /// The values of the key's columns in all rows that have it, with their positions. `arrays` as in
    /// [`TableKey::encode_arrays`].
    ///
    /// # Errors
    /// Internal.
    pub fn with_key(&self, arrays: &[ArrayRef]) -> Result<(Vec<ArrayRef>, RowsWithKey)> {
        let nulls = arrays.iter().fold(None, |all, array| NullBuffer::union(all.as_ref(), array.nulls()));
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            return Ok((arrays.to_vec(), RowsWithKey::All));
        };
        let rows: UInt32Array = (0..nulls.len() as u32).filter(|row| nulls.is_valid(*row as usize)).collect();
        let take = |array: &ArrayRef| arrow_select::take::take(array.as_ref(), &rows, None);
        let arrays = arrays.iter().map(take).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok((arrays, RowsWithKey::Some(rows.values().to_vec())))
    }
}

/// Positions of the rows that have a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowsWithKey {
    /// All have it.
    All,
    /// These, ascending.
    Some(Vec<u32>),
}

impl RowsWithKey {
    /// The position of the row that has the `nth` key.
    #[inline]
    #[must_use]
    pub fn row(&self, nth: u32) -> u32 {
        match self {
            Self::All => nth,
            Self::Some(rows) => rows.get(nth as usize).copied().unwrap_or(nth),
        }
    }
}
