//! What short statements need of a table, made once for each version of its schema.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::KeyId;
use crate::row::key::{KeyRange, RowKeys, TableKey};
use crate::row::{RowBuffer, RowLayout, RowView, Value};
use crate::schema::TableSchema;

/// A table whose rows are found by one of its keys: its schema, the format of its rows, the encoding of its keys. Rows
/// of a table without keys are not found, but can be inserted.
#[derive(Clone, Debug)]
pub struct PointTable {
    schema: Arc<TableSchema>,
    layout: Arc<RowLayout>,
    /// The key that rows are found by, if there is one.
    key: Option<TableKey>,
    /// The other keys of the table.
    others: Box<[TableKey]>,
}

impl PointTable {
    /// `schema` with what follows from it, its rows found by PRIMARY KEY; `None` without one.
    #[must_use]
    pub fn new(schema: &Arc<TableSchema>) -> Option<Self> {
        Self::by(schema, KeyId::PRIMARY)
    }

    /// As [`PointTable::new`], its rows found by key `id`; `None` without that key.
    #[must_use]
    pub fn by(schema: &Arc<TableSchema>, id: KeyId) -> Option<Self> {
        let key = TableKey::of(schema, id)?;
        let others =
            schema.keys().filter(|(other, _)| *other != id).filter_map(|(other, _)| TableKey::of(schema, other));
        let others = others.collect();
        Some(Self { layout: RowLayout::new(schema), others, schema: schema.clone(), key: Some(key) })
    }

    /// `schema`, which has no key, with what follows from it; `None` if it has one.
    #[must_use]
    pub fn without_key(schema: &Arc<TableSchema>) -> Option<Self> {
        let is_without = schema.keys().next().is_none();
        is_without.then(|| Self {
            layout: RowLayout::new(schema),
            others: Box::default(),
            schema: schema.clone(),
            key: None,
        })
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

    /// The key that rows are found by; `None` without keys.
    #[must_use]
    pub fn key(&self) -> Option<KeyId> {
        self.key.as_ref().map(TableKey::id)
    }

    /// The key that rows are found by.
    ///
    /// # Errors
    /// Internal without keys.
    pub fn found_by(&self) -> Result<KeyId> {
        self.table_key().map(TableKey::id)
    }

    /// The range of its keys that have the values `equal` in their first columns, and in the next one between `low` and
    /// `high`. Errors as [`PointTable::encode`].
    pub fn range(&self, equal: Vec<Value>, low: Bound<Value>, high: Bound<Value>) -> Result<KeyRange> {
        KeyRange::new(self.table_key()?.codec(), equal, low, high)
    }

    /// No rows yet, of this table.
    #[must_use]
    pub fn new_rows(&self) -> RowBuffer {
        RowBuffer::new(self.layout.clone())
    }

    /// Appends the key of `row`, one of this table's, to `out`; false, and nothing is appended, if the row is without
    /// it. The key is that of the row as it is stored: a text may have lost an excess of spaces on its way there.
    pub fn encode_key_of(&self, row: RowView<'_>, out: &mut Vec<u8>) -> bool {
        self.key.as_ref().is_some_and(|key| key.encode_row(row, out))
    }

    /// Appends the encoded key of `values`, one for each column of the key, to `out`. Errors as
    /// [`KeyCodec::encode_values`](crate::row::key::KeyCodec::encode_values): no row has a key with NULL.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
        self.table_key()?.codec().encode_values(values, out)
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
        self.key.iter().chain(&self.others).map(|key| RowKeys::of(key, rows)).collect()
    }

    fn table_key(&self) -> Result<&TableKey> {
        self.key.as_ref().ok_or_else(|| Error::internal("a key of a table without keys"))
    }
}
