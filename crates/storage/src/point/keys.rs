//! Encoded keys of rows to look up.

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::row::key::KeyCodec;
use crate::row::{RowBuffer, RowLayout};
use crate::version::TableView;

/// The encoded primary keys of the rows of `batch`, which has all columns of the view's table and was checked.
///
/// # Errors
/// Internal when the table has no key or the batch is not one of its rows.
pub fn keys_of(view: &TableView, batch: &RecordBatch) -> Result<Vec<Box<[u8]>>> {
    let schema = view.schema();
    if !schema.has_key() {
        return Err(Error::internal(format!("table \"{}\" has no primary key", schema.name)));
    }
    let codec = KeyCodec::new(schema, &schema.primary_key);
    let mut rows = RowBuffer::new(RowLayout::new(schema));
    rows.push_batch(batch)?;
    let encode = |row| {
        let mut key = Vec::new();
        codec.encode_row(rows.row(row), &mut key);
        key.into_boxed_slice()
    };
    Ok((0..rows.len()).map(encode).collect())
}
