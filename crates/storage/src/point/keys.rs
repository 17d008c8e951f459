//! Encoded keys of rows to look up.

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::ids::KeyId;
use crate::row::key::TableKey;
use crate::row::{RowBuffer, RowLayout};
use crate::version::TableView;

/// Key `id`, encoded, of each row of `batch`, which has all columns of the view's table and was checked; `None` for a
/// row without it.
///
/// # Errors
/// Internal when the table has no such key or the batch is not one of its rows.
pub fn keys_of(view: &TableView, id: KeyId, batch: &RecordBatch) -> Result<Vec<Option<Box<[u8]>>>> {
    let schema = view.schema();
    let key = TableKey::of(schema, id);
    let key = key.ok_or_else(|| Error::internal(format!("table \"{}\" has no key {id}", schema.name)))?;
    let mut rows = RowBuffer::new(RowLayout::new(schema));
    rows.push_batch(batch)?;
    let encode = |row| {
        let mut encoded = Vec::new();
        key.encode_row(rows.row(row), &mut encoded).then(|| encoded.into_boxed_slice())
    };
    Ok((0..rows.len()).map(encode).collect())
}
