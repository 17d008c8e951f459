//! The error of a key that is there twice.

use arrow_cast::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result, sqlstate};
use crate::ids::KeyId;
use crate::row::array_of;
use crate::row::key::KeyCodec;
use crate::schema::TableSchema;

/// 23505 for `key`, the bytes of key `id` of `schema`'s table.
#[must_use]
pub fn duplicate_key(schema: &TableSchema, id: KeyId, key: &[u8]) -> Error {
    let names: Vec<&str> =
        schema.key_columns(id).iter().filter_map(|id| schema.column(*id)).map(|column| column.name.as_str()).collect();
    let values = match values_of(schema, id, key) {
        Ok(values) => values.join(", "),
        Err(e) => return e,
    };
    let (constraint, names) = (schema.key_name(id), names.join(", "));
    Error::constraint(
        sqlstate::UNIQUE,
        format!(
            "duplicate key value violates unique constraint \"{constraint}\": Key ({names})=({values}) already exists."
        ),
    )
}

fn values_of(schema: &TableSchema, id: KeyId, key: &[u8]) -> Result<Vec<String>> {
    let options = FormatOptions::default()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f+00"));
    let values = KeyCodec::of_values(schema, schema.key_columns(id)).decode(key)?;
    let mut shown = Vec::with_capacity(values.len());
    for (value, id) in values.iter().zip(schema.key_columns(id)) {
        let Some(column) = schema.column(*id) else { continue };
        let array = array_of(std::iter::once(value), column.data_type)?;
        shown.push(ArrayFormatter::try_new(&array, &options)?.value(0).try_to_string()?);
    }
    Ok(shown)
}
