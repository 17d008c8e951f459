//! What short statements need of a table, made once for each version of its schema.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::KeyId;
use crate::row::key::{KeyRange, RowKeys, TableKey};
use crate::row::{RowBuffer, RowLayout, RowView, Value};
use crate::schema::TableSchema;

/// A table whose rows are found by one of its keys: its schema, the format of its rows, the encoding of its keys.
#[derive(Clone, Debug)]
pub struct KeyedTable {
    schema: Arc<TableSchema>,
    layout: Arc<RowLayout>,
    /// The key that rows are found by.
    key: TableKey,
    /// The other keys of the table.
    others: Box<[TableKey]>,
}

impl KeyedTable {
    /// `schema` with what follows from it, its rows found by PRIMARY KEY; `None` without one.
    #[must_use]
    pub fn new(schema: &Arc<TableSchema>) -> Option<Self> {
        Self::by(schema, KeyId::PRIMARY)
    }

    /// As [`KeyedTable::new`], its rows found by key `id`; `None` without that key.
    #[must_use]
    pub fn by(schema: &Arc<TableSchema>, id: KeyId) -> Option<Self> {
        let key = TableKey::of(schema, id)?;
        let others =
            schema.keys().filter(|(other, _)| *other != id).filter_map(|(other, _)| TableKey::of(schema, other));
        Some(Self { layout: RowLayout::new(schema), others: others.collect(), schema: schema.clone(), key })
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The format of its rows.
    #[must_use]
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// The key that rows are found by.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key.id()
    }

    /// Whether main is in the order of that key, so that it has ranges.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.schema.is_order(self.key.columns())
    }

    /// The range of its keys that have the values `equal` in their first columns, and in the next one between `low` and
    /// `high`. Errors as [`KeyedTable::encode`].
    pub fn range(&self, equal: Vec<Value>, low: Bound<Value>, high: Bound<Value>) -> Result<KeyRange> {
        KeyRange::new(self.key.codec(), equal, low, high)
    }

    /// No rows yet, of this table.
    #[must_use]
    pub fn new_rows(&self) -> RowBuffer {
        RowBuffer::new(self.layout.clone())
    }

    /// Appends the key of `row`, one of this table's, to `out`; false, and nothing is appended, if the row is without
    /// it. The key is that of the row as it is stored: a text may have lost an excess of spaces on its way there.
    pub fn encode_key_of(&self, row: RowView<'_>, out: &mut Vec<u8>) -> bool {
        self.key.encode_row(row, out)
    }

    /// Appends the encoded key of `values`, one for each column of the key, to `out`. Errors as
    /// [`KeyCodec::encode_values`](crate::row::key::KeyCodec::encode_values): no row has a key with NULL.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
        self.key.codec().encode_values(values, out)
    }

    /// The keys of `row` besides the one that rows are found by, as far as it has them.
    #[must_use]
    pub fn other_keys(&self, row: RowView<'_>) -> Vec<(KeyId, Box<[u8]>)> {
        let mut keys = Vec::with_capacity(self.others.len());
        for key in &self.others {
            let mut encoded = Vec::new();
            if key.encode_row(row, &mut encoded) {
                keys.push((key.id(), encoded.into()));
            }
        }
        keys
    }

    /// All keys of `rows`, of each that the table has.
    #[must_use]
    pub fn row_keys(&self, rows: &RowBuffer) -> Vec<RowKeys> {
        std::iter::once(&self.key).chain(&self.others).map(|key| RowKeys::of(key, rows)).collect()
    }
}
