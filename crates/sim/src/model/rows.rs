//! Rows as values, random ones, and their way into batches and back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::ArrowError;
use mainstem_storage::row::Value;
use mainstem_storage::schema::TableSchema;
use rand::Rng;
use rand::rngs::StdRng;

use super::shape::{B, COLUMNS, K, Shape, T, UID, V, X};

/// One row: a value per column.
pub type Row = Vec<Value>;

const WORDS: [&str; 10] =
    ["", "a", "ab", "b", "\u{e9}mile", "zz", "twelve bytes", "twelve bytes and more", "twelve bytes or less", "~"];

/// A random row with number `uid` of a table with so many columns `added`. `keys` bounds the key values: few make
/// collisions.
pub(super) fn random_row(rng: &mut StdRng, shape: Shape, added: usize, uid: i64, keys: i64) -> Row {
    (0..COLUMNS + added)
        .map(|at| match at {
            UID => Value::Int(uid),
            _ => random_value(rng, at, keys, shape.nullable(at)),
        })
        .collect()
}

/// A random value for the column at position `at`.
pub(super) fn random_value(rng: &mut StdRng, at: usize, keys: i64, nullable: bool) -> Value {
    if nullable && rng.random_ratio(1, 8) {
        return Value::Null;
    }
    match at {
        UID | K => Value::Int(random_key(rng, keys)),
        T => Value::Text(random_text(rng).into()),
        V => Value::Int(match rng.random_range(0..12) {
            0 => i64::from(i32::MIN),
            1 => i64::from(i32::MAX),
            _ => rng.random_range(-3..20),
        }),
        X => Value::Double(match rng.random_range(0..10) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => -0.0,
            4 => rng.random::<f64>() * 1e9,
            n => f64::from(n) / 4.0,
        }),
        B => Value::Boolean(rng.random()),
        _ => random_added(rng),
    }
}

/// A value of an added column.
pub(super) fn random_added(rng: &mut StdRng) -> Value {
    Value::Int(rng.random_range(-2..6))
}

fn random_key(rng: &mut StdRng, keys: i64) -> i64 {
    match rng.random_range(0..40) {
        0 => i64::MIN + rng.random_range(0..2),
        1 => i64::MAX - rng.random_range(0..2),
        _ => rng.random_range(0..keys),
    }
}

fn random_text(rng: &mut StdRng) -> String {
    match rng.random_range(0..16) {
        // Longer than what zone maps and key bounds keep whole.
        0 => format!("{}{}", "long ".repeat(60), rng.random_range(0..3)),
        1 => format!("thirty-two bytes and then a bit {}", rng.random_range(0..4)),
        _ => WORDS[rng.random_range(0..WORDS.len())].to_owned(),
    }
}

fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(v) => Some(*v),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(v) => Some(v),
        _ => None,
    }
}

/// A batch of `rows` for `schema`'s table.
///
/// # Errors
/// When a row has NULL where the schema has none.
pub fn to_batch(schema: &TableSchema, rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let column = |at: usize| rows.iter().map(move |row| &row[at]);
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(column(UID).map(int).collect::<Int64Array>()),
        Arc::new(column(K).map(int).collect::<Int64Array>()),
        Arc::new(column(T).map(text).collect::<StringViewArray>()),
        Arc::new(column(V).map(|v| int(v).map(|v| v as i32)).collect::<Int32Array>()),
        Arc::new(column(X).map(|v| if let Value::Double(v) = v { Some(*v) } else { None }).collect::<Float64Array>()),
        Arc::new(column(B).map(|v| if let Value::Boolean(v) = v { Some(*v) } else { None }).collect::<BooleanArray>()),
    ];
    for at in COLUMNS..schema.columns.len() {
        columns.push(Arc::new(column(at).map(|v| int(v).map(|v| v as i32)).collect::<Int32Array>()));
    }
    let fields: Vec<_> =
        schema.arrow().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns)
}

/// The rows of a batch whose first `columns` columns are the table's.
#[must_use]
pub fn read_batch(batch: &RecordBatch, columns: usize) -> Vec<Row> {
    let value = |at: usize, row: usize| {
        let array = batch.column(at);
        if array.is_null(row) {
            return Value::Null;
        }
        match at {
            UID | K => Value::Int(array.as_primitive::<Int64Type>().value(row)),
            T => Value::Text(array.as_string_view().value(row).into()),
            X => Value::Double(array.as_primitive::<Float64Type>().value(row)),
            B => Value::Boolean(array.as_boolean().value(row)),
            _ => Value::Int(array.as_primitive::<Int32Type>().value(row).into()),
        }
    };
    (0..batch.num_rows()).map(|row| (0..columns).map(|at| value(at, row)).collect()).collect()
}
