//! What short statements need of a table, made once for each version of its schema.

use std::sync::Arc;

use crate::error::Result;
use crate::row::key::KeyCodec;
use crate::row::{RowLayout, Value};
use crate::schema::TableSchema;

/// A table whose rows are found by PRIMARY KEY: its schema, the format of its rows, the encoding of its keys.
#[derive(Clone, Debug)]
pub struct KeyedTable {
    schema: Arc<TableSchema>,
    layout: Arc<RowLayout>,
    codec: KeyCodec,
    /// Positions of the key columns in the schema, in key order.
    key_positions: Vec<usize>,
}

impl KeyedTable {
    /// `schema` with what follows from it; `None` without a PRIMARY KEY.
    #[must_use]
    pub fn new(schema: &Arc<TableSchema>) -> Option<Self> {
        schema.has_key().then(|| Self {
            schema: schema.clone(),
            layout: RowLayout::new(schema),
            codec: KeyCodec::new(schema, &schema.primary_key),
            key_positions: schema.primary_key.iter().filter_map(|&id| schema.position(id)).collect(),
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

    /// Appends the encoded key of a row, a value for each column of the table, to `out`. Whether it has a key that could be
    /// encoded: no part of it is NULL, or of another type.
    pub fn encode_key_of(&self, row: &[Value], out: &mut Vec<u8>) -> bool {
        let mut key = Vec::with_capacity(self.key_positions.len());
        for at in &self.key_positions {
            match row.get(*at) {
                Some(value) if !value.is_null() => key.push(value.clone()),
                _ => return false,
            }
        }
        self.codec.encode_values(&key, out).is_ok()
    }

    /// Appends the encoded key of `values`, one for each column of the primary key, to `out`. Errors as
    /// [`KeyCodec::encode_values`].
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
        self.codec.encode_values(values, out)
    }
}
