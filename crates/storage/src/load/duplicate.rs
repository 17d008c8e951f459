//! The error of a key that is there twice.

use arrow_cast::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};
use crate::ids::KeyId;
use crate::row::key::KeyCodec;
use crate::row::{Value, array_of};
use crate::schema::{DataType, TableSchema};

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
    Error::duplicate(
        id,
        key,
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
        shown.push(match value {
            Value::Boolean(value) => if *value { "t" } else { "f" }.to_owned(),
            Value::Uuid(bits) => uuid(bits.to_be_bytes()),
            Value::Bytes(bytes) => bytes.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
            Value::Real(value) => float(f64::from(*value), value.to_string(), format!("{value:e}"), 6),
            Value::Double(value) => float(*value, value.to_string(), format!("{value:e}"), 15),
            value => {
                let array = array_of(std::iter::once(value), column.data_type)?;
                let text = ArrayFormatter::try_new(&array, &options)?.value(0).try_to_string()?;
                match column.data_type {
                    DataType::Time | DataType::Timestamp | DataType::TimestampTz => without_zeros(&text),
                    _ => text,
                }
            }
        });
    }
    Ok(shown)
}

fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    text
}

/// A time of day, perhaps with a zone behind it, without zeros at the end of its fraction.
fn without_zeros(text: &str) -> String {
    let Some((whole, fraction)) = text.split_once('.') else { return text.to_owned() };
    let (fraction, zone) = fraction.split_at(fraction.find('+').unwrap_or(fraction.len()));
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}{zone}"),
        fraction => format!("{whole}.{fraction}{zone}"),
    }
}

/// `value` as PostgreSQL spells it: `plain`, or with an exponent if it has `digits` before the point or five zeros
/// behind it.
fn float(value: f64, plain: String, with_exponent: String, digits: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-4..10f64.powi(digits)).contains(&size) {
        return plain;
    }
    match with_exponent.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) => format!("{digits}e{exponent:+03}"),
        _ => with_exponent,
    }
}
