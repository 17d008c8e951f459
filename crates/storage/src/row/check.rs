//! What a table accepts: types, NOT NULL, lengths, ranges, one form of each float. The rules stand here once, for
//! batches ([`check_batch`]) and for single values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int32Type,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StringViewArray, new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType as ArrowType, TimeUnit};
use mainstem_kernels::extremes::{extremes_i64, longest_text};

use crate::error::{Error, Result, sqlstate};
use crate::schema::{Column, DataType, TableSchema};

use super::Value;
use super::layout::{decimal_limit, int_limits};
use super::value::{normal_f32, normal_f64};

/// Makes `batch` a batch of the table: its columns, by position, in the Arrow types of the schema.
///
/// Coerced are types that are the same thing in another dress: strings and binaries of any kind, dictionaries,
/// timestamp units and zone names, integers and decimals of other widths. Errors: 42804 for other types, 22003 for
/// numbers out of range, 22008 for times and timestamps out of range, 22001 for text that is too long (an excess of
/// spaces is cut, as SQL says; CHAR(n) loses all blanks at its end), 23502 for NULL where it is not allowed. Nothing is
/// copied when nothing changes.
pub fn check_batch(schema: &TableSchema, batch: &RecordBatch) -> Result<RecordBatch> {
    if batch.num_columns() != schema.columns.len() {
        return Err(wrong_column_count(schema, batch.num_columns()));
    }
    let mut columns = Vec::with_capacity(schema.columns.len());
    for (column, array) in schema.columns.iter().zip(batch.columns()) {
        columns.push(check_array(schema, column, array)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.arrow(), columns, &options)?)
}

/// As [`check_batch`], of `columns` that go into segments as they are: texts that are in no key stay as offsets and
/// bytes, or as codes ([`coded_texts`]), and decimals that are in none stay in 64 bits, for an encoding reads these as
/// well.
///
/// # Errors
/// As [`check_batch`].
pub fn check_load(schema: &TableSchema, columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    if columns.len() != schema.columns.len() {
        return Err(wrong_column_count(schema, columns.len()));
    }
    let is_key = |column: &Column| {
        schema.sort_key.contains(&column.id) || schema.keys().any(|(_, key)| key.contains(&column.id))
    };
    let texts_of = |array: &'_ ArrayRef| match coded_texts(array) {
        Some((_, texts)) if is_bounded(texts, array.len()) => Some(texts.clone()),
        Some(_) => None,
        None => array.as_string_opt().cloned(),
    };
    let stays = |column: &Column, array: &ArrayRef| match column.data_type {
        DataType::Text { max_chars } => texts_of(array).is_some_and(|texts| is_short(&texts, max_chars)),
        DataType::Char { chars } => {
            texts_of(array).is_some_and(|texts| is_short(&texts, Some(chars)) && is_without_padding(&texts))
        }
        DataType::Decimal { precision, scale } => {
            let is_same = *array.data_type() == ArrowType::Decimal64(precision, scale);
            is_same && array.as_primitive_opt().is_some_and(|values| are_within(values, precision))
        }
        _ => false,
    };
    let check = |(column, array): (&Column, ArrayRef)| {
        if is_key(column) || !stays(column, &array) {
            return check_array(schema, column, &array);
        }
        if !column.nullable && array.null_count() > 0 {
            return Err(null_violation(schema, column));
        }
        Ok(array)
    };
    schema.columns.iter().zip(columns).map(check).collect()
}

/// The codes of `array` and the texts that they name, none of them NULL, if it is an Arrow dictionary as a load takes
/// it.
pub(crate) fn coded_texts(array: &dyn Array) -> Option<(&PrimitiveArray<Int32Type>, &StringArray)> {
    let coded = array.as_dictionary_opt::<Int32Type>()?;
    let texts = coded.values().as_string_opt().filter(|texts| texts.null_count() == 0)?;
    Some((coded.keys(), texts))
}

/// Bytes of texts that offsets of 32 bits tell apart, whatever stands around them.
const TEXT_BYTES_MAX: u64 = 1 << 30;

/// Whether any `rows` of `texts` have no more bytes than the offsets of one array tell.
fn is_bounded(texts: &StringArray, rows: usize) -> bool {
    u64::from(longest_text(texts.value_offsets())).saturating_mul(rows as u64) <= TEXT_BYTES_MAX
}

/// Whether all `values` have at most `precision` digits, those that stand where a value is NULL, too.
fn are_within(values: &PrimitiveArray<Decimal64Type>, precision: u8) -> bool {
    let Ok(limit) = i64::try_from(decimal_limit(precision)) else { return true };
    extremes_i64(values.values()).is_none_or(|(least, greatest)| -limit < least && greatest < limit)
}

/// Whether no text has more than `max_chars` bytes: characters are never more.
fn is_short(texts: &StringArray, max_chars: Option<u32>) -> bool {
    let Some(max_chars) = max_chars else { return true };
    longest_text(texts.value_offsets()) <= max_chars
}

/// Whether no text has a blank at its end, those that stand where a value is NULL neither.
fn is_without_padding(texts: &StringArray) -> bool {
    let bytes = texts.value_data();
    texts.value_offsets().windows(2).all(|ends| match ends {
        [start, end] => start == end || bytes.get((*end - 1) as usize) != Some(&b' '),
        _ => true,
    })
}

fn check_array(schema: &TableSchema, column: &Column, array: &ArrayRef) -> Result<ArrayRef> {
    let array = coerce(schema, column, array)?;
    if !column.nullable && array.null_count() > 0 {
        return Err(null_violation(schema, column));
    }
    match column.data_type {
        DataType::Real => Ok(normalised::<Float32Type>(array, |v| normal_f32(v).to_bits() == v.to_bits(), normal_f32)),
        DataType::Double => {
            Ok(normalised::<Float64Type>(array, |v| normal_f64(v).to_bits() == v.to_bits(), normal_f64))
        }
        DataType::Decimal { precision, .. } => {
            let values = array.as_primitive::<Decimal128Type>();
            let limit = decimal_limit(precision);
            // No early exit, and 64 bits where they are enough: it vectorises, and nearly always all are within.
            let are_within = match i64::try_from(limit) {
                Ok(limit) => values.values().iter().fold(true, |all, value| {
                    let narrow = *value as i64;
                    all & (*value == i128::from(narrow)) & (-limit < narrow) & (narrow < limit)
                }),
                Err(_) => values.values().iter().all(|value| value.unsigned_abs() < limit.unsigned_abs()),
            };
            if are_within {
                return Ok(array);
            }
            for (row, value) in values.values().iter().enumerate() {
                if values.is_valid(row) {
                    decimal(schema, column, *value)?;
                }
            }
            Ok(array)
        }
        DataType::Text { max_chars: Some(max_chars) } => cut_to_length(schema, column, array, max_chars),
        DataType::Char { chars } => trim_to_length(schema, column, array, chars),
        DataType::Time => {
            let values = array.as_primitive::<Time64MicrosecondType>();
            let (lo, hi) = int_limits(DataType::Time);
            let outside = |row: usize| !(lo..=hi).contains(&values.value(row)) && values.is_valid(row);
            if (0..values.len()).any(outside) { Err(datetime_overflow(schema, column)) } else { Ok(array) }
        }
        _ => Ok(array),
    }
}

/// `array` in the column's Arrow type, if it is the same thing.
fn coerce(schema: &TableSchema, column: &Column, array: &ArrayRef) -> Result<ArrayRef> {
    use ArrowType as A;
    let target = column.data_type.arrow();
    let from = array.data_type();
    if *from == target {
        return Ok(array.clone());
    }
    let cast = |array: &ArrayRef| cast(schema, column, array, &target);
    match (column.data_type, from) {
        (_, A::Null) => Ok(new_null_array(&target, array.len())),
        (DataType::SmallInt | DataType::Integer | DataType::BigInt, from) if from.is_integer() => cast(array),
        (DataType::Decimal { .. }, from) if from.is_decimal() || from.is_integer() => cast(array),
        (DataType::Real, A::Float16) | (DataType::Double, A::Float16 | A::Float32) => cast(array),
        (DataType::Date, A::Date64) => {
            let day = |millis: i64| i32::try_from(millis.div_euclid(DAY_MILLIS));
            let days = array.as_primitive::<Date64Type>().try_unary::<_, Date32Type, _>(day);
            Ok(Arc::new(days.map_err(|_| datetime_overflow(schema, column))?))
        }
        (DataType::Time, A::Time32(_) | A::Time64(TimeUnit::Nanosecond))
        | (DataType::Timestamp, A::Timestamp(_, None))
        | (DataType::TimestampTz, A::Timestamp(_, Some(_))) => cast(&microseconds(array)),
        (DataType::Text { .. } | DataType::Char { .. }, A::Utf8 | A::LargeUtf8) => cast(array),
        (DataType::Bytea, A::Binary | A::LargeBinary | A::FixedSizeBinary(_)) => cast(array),
        (_, A::Dictionary(_, value)) => {
            let plain = cast_with_options(array, value, &STRICT)?;
            coerce(schema, column, &plain)
        }
        (_, from) => Err(type_mismatch(schema, column, from)),
    }
}

const DAY_MILLIS: i64 = 86_400_000;

const STRICT: CastOptions<'static> =
    CastOptions { safe: false, format_options: arrow_cast::display::FormatOptions::new() };

/// A cast between types of one family: what fails is a value out of range.
fn cast(schema: &TableSchema, column: &Column, array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef> {
    cast_with_options(array, target, &STRICT).map_err(|e| match (e, column.data_type) {
        (ArrowError::MemoryError(m), _) => ArrowError::MemoryError(m).into(),
        (_, DataType::Decimal { .. }) => numeric_overflow(schema, column),
        (_, DataType::Timestamp | DataType::TimestampTz | DataType::Date | DataType::Time) => {
            datetime_overflow(schema, column)
        }
        _ => out_of_range(schema, column),
    })
}

/// Nanoseconds as microseconds, rounded down on both sides of 1970 so that order is kept; other units as they are.
fn microseconds(array: &ArrayRef) -> ArrayRef {
    if let Some(nanoseconds) = array.as_primitive_opt::<TimestampNanosecondType>() {
        let zone = nanoseconds.timezone().map(Arc::from);
        let values: PrimitiveArray<TimestampMicrosecondType> = nanoseconds.unary(|v| v.div_euclid(1_000));
        return Arc::new(values.with_timezone_opt(zone));
    }
    match array.as_primitive_opt::<Time64NanosecondType>() {
        Some(nanoseconds) => Arc::new(nanoseconds.unary::<_, Time64MicrosecondType>(|v| v.div_euclid(1_000))),
        None => array.clone(),
    }
}

fn normalised<T: ArrowPrimitiveType>(
    array: ArrayRef,
    is_normal: impl Fn(T::Native) -> bool,
    normal: impl Fn(T::Native) -> T::Native,
) -> ArrayRef {
    let values = array.as_primitive::<T>();
    // No early exit: it vectorises, and nearly always all are normal.
    let all_normal = values.values().iter().fold(true, |all, v| all & is_normal(*v));
    if all_normal { array } else { Arc::new(values.unary::<_, T>(normal)) }
}

fn cut_to_length(schema: &TableSchema, column: &Column, array: ArrayRef, max_chars: u32) -> Result<ArrayRef> {
    let values = array.as_string_view();
    // The low half of a view is the value's length in bytes, and characters are never more than bytes.
    if values.views().iter().all(|view| *view as u32 <= max_chars) {
        return Ok(array);
    }
    let mut cut = Vec::with_capacity(values.len());
    let mut changed = false;
    for value in values {
        let kept = value.map(|v| fit_chars(schema, column, v, max_chars)).transpose()?;
        changed |= kept.map(str::len) != value.map(str::len);
        cut.push(kept);
    }
    if changed { Ok(Arc::new(StringViewArray::from_iter(cut))) } else { Ok(array) }
}

/// CHAR(n): at most `chars` characters, and no blanks at the end.
fn trim_to_length(schema: &TableSchema, column: &Column, array: ArrayRef, chars: u32) -> Result<ArrayRef> {
    let values = array.as_string_view();
    let mut trimmed = Vec::with_capacity(values.len());
    let mut changed = false;
    for value in values {
        let kept = value.map(|v| fit_chars(schema, column, without_padding(v), chars)).transpose()?;
        changed |= kept.map(str::len) != value.map(str::len);
        trimmed.push(kept);
    }
    if changed { Ok(Arc::new(StringViewArray::from_iter(trimmed))) } else { Ok(array) }
}

/// `text` without the blanks at its end: the form in which CHAR(n) holds and compares it.
#[must_use]
pub fn without_padding(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// `text` with at most `max_chars` characters: only spaces may be cut.
fn fit_chars<'a>(schema: &TableSchema, column: &Column, text: &'a str, max_chars: u32) -> Result<&'a str> {
    if text.len() <= max_chars as usize {
        return Ok(text);
    }
    let end = text.char_indices().nth(max_chars as usize).map_or(text.len(), |(at, _)| at);
    let (kept, excess) = text.split_at(end);
    if excess.bytes().any(|b| b != b' ') {
        return Err(Error::invalid(
            sqlstate::STRING_TOO_LONG,
            format!("value too long for type {}: {}", column.data_type, place(schema, column)),
        ));
    }
    Ok(kept)
}

/// The 8-byte slot of a fixed-width value, if the column takes it.
pub(super) fn fixed(schema: &TableSchema, column: &Column, value: &Value) -> Result<u64> {
    match (column.data_type, value) {
        (_, Value::Null) => Err(null_violation(schema, column)),
        (DataType::Boolean, Value::Boolean(v)) => Ok(u64::from(*v)),
        (DataType::Real, Value::Real(v)) => Ok(u64::from(normal_f32(*v).to_bits())),
        (DataType::Double, Value::Double(v)) => Ok(normal_f64(*v).to_bits()),
        (DataType::Decimal { .. }, Value::Decimal(v)) => {
            decimal(schema, column, *v)?;
            Ok(*v as u64)
        }
        (
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Date
            | DataType::Time
            | DataType::Timestamp
            | DataType::TimestampTz,
            Value::Int(v),
        ) => {
            let (lo, hi) = int_limits(column.data_type);
            match column.data_type {
                _ if (lo..=hi).contains(v) => Ok(*v as u64),
                DataType::Time => Err(datetime_overflow(schema, column)),
                _ => Err(out_of_range(schema, column)),
            }
        }
        _ => Err(value_mismatch(schema, column, value)),
    }
}

/// Whether the column takes UUIDs.
pub(super) fn uuid(schema: &TableSchema, column: &Column) -> Result<()> {
    match column.data_type {
        DataType::Uuid => Ok(()),
        _ => Err(value_mismatch(schema, column, &Value::Uuid(0))),
    }
}

/// The bytes of a text or bytea value, if the column takes it.
pub(super) fn variable<'a>(schema: &TableSchema, column: &Column, value: &'a Value) -> Result<&'a [u8]> {
    match (column.data_type, value) {
        (DataType::Text { max_chars: None }, Value::Text(v)) => Ok(v.as_bytes()),
        (DataType::Text { max_chars: Some(n) }, Value::Text(v)) => Ok(fit_chars(schema, column, v, n)?.as_bytes()),
        (DataType::Char { chars }, Value::Text(v)) => {
            Ok(fit_chars(schema, column, without_padding(v), chars)?.as_bytes())
        }
        (DataType::Bytea, Value::Bytes(v)) => Ok(v),
        _ => Err(value_mismatch(schema, column, value)),
    }
}

/// Whether an unscaled decimal fits the column.
pub(super) fn decimal(schema: &TableSchema, column: &Column, value: i128) -> Result<()> {
    match column.data_type {
        DataType::Decimal { precision, .. } if value.unsigned_abs() < decimal_limit(precision).unsigned_abs() => Ok(()),
        DataType::Decimal { .. } => Err(numeric_overflow(schema, column)),
        _ => Err(value_mismatch(schema, column, &Value::Decimal(value))),
    }
}

/// `n` columns or values where the table has another number.
pub(super) fn wrong_column_count(schema: &TableSchema, n: usize) -> Error {
    Error::invalid(
        sqlstate::TYPE_MISMATCH,
        format!("relation \"{}\" has {} columns, not {n}", schema.name, schema.columns.len()),
    )
}

fn place(schema: &TableSchema, column: &Column) -> String {
    format!("column \"{}\" of relation \"{}\"", column.name, schema.name)
}

fn null_violation(schema: &TableSchema, column: &Column) -> Error {
    Error::constraint(
        sqlstate::NOT_NULL,
        format!("null value in {} violates not-null constraint", place(schema, column)),
    )
}

fn numeric_overflow(schema: &TableSchema, column: &Column) -> Error {
    Error::invalid(
        sqlstate::OUT_OF_RANGE,
        format!("numeric field overflow: {} is {}", place(schema, column), column.data_type),
    )
}

fn datetime_overflow(schema: &TableSchema, column: &Column) -> Error {
    Error::invalid(sqlstate::DATETIME_OVERFLOW, format!("{} out of range: {}", column.data_type, place(schema, column)))
}

fn out_of_range(schema: &TableSchema, column: &Column) -> Error {
    Error::invalid(sqlstate::OUT_OF_RANGE, format!("{} out of range: {}", column.data_type, place(schema, column)))
}

fn type_mismatch(schema: &TableSchema, column: &Column, from: &ArrowType) -> Error {
    Error::invalid(
        sqlstate::TYPE_MISMATCH,
        format!("{} is of type {} but the values are of type {from}", place(schema, column), column.data_type),
    )
}

fn value_mismatch(schema: &TableSchema, column: &Column, value: &Value) -> Error {
    let from = match value {
        Value::Null => "null",
        Value::Boolean(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Decimal(_) => "numeric",
        Value::Real(_) => "real",
        Value::Double(_) => "double precision",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytea",
        Value::Uuid(_) => "uuid",
    };
    Error::invalid(
        sqlstate::TYPE_MISMATCH,
        format!("{} is of type {} but the value is of type {from}", place(schema, column), column.data_type),
    )
}
