//! Assignment casts: a computed value becomes a value of a column, as PostgreSQL does it in INSERT and UPDATE.
//!
//! Numbers are rounded to the column (halves away from zero for decimals, to even for floats) and must be in range (22003);
//! anything becomes text; a string literal becomes anything it spells (22P02, 22007); text that is no literal does not turn
//! into another type by itself (42804). Lengths and NOT NULL are checked by storage.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, PrimitiveArray, StringViewArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimeUnit,
};
use arrow::util::display::FormatOptions;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::{Error, Result};

use crate::sql::sql_name;
use crate::value::{from_text, has_own_text, to_text};

/// invalid_datetime_format
const BAD_DATETIME: &str = "22007";

/// How a value of one type gets into a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All NULL.
    Null,
    /// The same values under another Arrow type, or none.
    Same,
    /// Numbers, by value.
    Number,
    /// Text that spells a value.
    Spelled,
    /// Written as text.
    Text,
    /// Dates and timestamps.
    Time,
}

fn is_text(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
}

fn is_time(data_type: &ArrowType) -> bool {
    matches!(
        data_type,
        ArrowType::Date32 | ArrowType::Date64 | ArrowType::Time32(_) | ArrowType::Time64(_) | ArrowType::Timestamp(..)
    )
}

fn way(from: &ArrowType, to: &Column) -> Option<Way> {
    let target = to.data_type;
    Some(match from {
        ArrowType::Null => Way::Null,
        from if *from == target.arrow() => Way::Same,
        from if is_text(from) => match target {
            DataType::Text { .. } | DataType::Char { .. } => Way::Same,
            _ => Way::Spelled,
        },
        ArrowType::FixedSizeBinary(16) => match target {
            DataType::Text { .. } | DataType::Char { .. } => Way::Text,
            _ => return None,
        },
        ArrowType::Dictionary(_, value) => return way(value, to),
        from if target.is_text() && !from.is_nested() && !from.is_binary() => Way::Text,
        from if from.is_numeric() => match target {
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Real
            | DataType::Double
            | DataType::Decimal { .. } => Way::Number,
            _ => return None,
        },
        ArrowType::Time32(_) | ArrowType::Time64(_) if target == DataType::Time => Way::Time,
        ArrowType::Time32(_) | ArrowType::Time64(_) => return None,
        from if is_time(from) => match target {
            DataType::Date | DataType::Timestamp | DataType::TimestampTz => Way::Time,
            DataType::Time if matches!(from, ArrowType::Timestamp(..)) => Way::Time,
            _ => return None,
        },
        from if from.is_binary() && target == DataType::Bytea => Way::Same,
        _ => return None,
    })
}

/// Whether values of type `from` may be assigned to `to`; `literal` says that they are string literals.
///
/// # Errors
/// 42804.
pub(crate) fn check(from: &ArrowType, literal: bool, to: &Column) -> Result<()> {
    match way(from, to) {
        Some(Way::Spelled) if !literal => Err(mismatch(from, to)),
        Some(_) => Ok(()),
        None => Err(mismatch(from, to)),
    }
}

fn mismatch(from: &ArrowType, to: &Column) -> Error {
    let from = match from {
        t if is_text(t) => "text".to_string(),
        ArrowType::Int64 => "bigint".into(),
        ArrowType::Float64 => "double precision".into(),
        ArrowType::Boolean => "boolean".into(),
        ArrowType::FixedSizeBinary(16) => "uuid".into(),
        ArrowType::Time32(_) | ArrowType::Time64(_) => "time".into(),
        other => other.to_string().to_lowercase(),
    };
    Error::invalid(
        sqlstate::TYPE_MISMATCH,
        format!(
            "column \"{}\" is of type {} but the expression is of type {from}; use CAST",
            to.name,
            sql_name(to.data_type)
        ),
    )
}

/// `array` as values of column `to`.
///
/// # Errors
/// As the module says; the message names the column.
pub(crate) fn assign(array: &ArrayRef, to: &Column) -> Result<ArrayRef> {
    let target = to.data_type.arrow();
    let array = &match array.data_type() {
        ArrowType::Dictionary(_, value) => plain_cast(array, value, to)?,
        _ => array.clone(),
    };
    match way(array.data_type(), to).ok_or_else(|| mismatch(array.data_type(), to))? {
        Way::Null => Ok(new_null_array(&target, array.len())),
        Way::Same if *array.data_type() == target => Ok(array.clone()),
        Way::Text if has_own_text(array.data_type()) => Ok(Arc::new(to_text(array)?)),
        Way::Same | Way::Text => plain_cast(array, &target, to),
        Way::Number => number(array, to),
        Way::Spelled => spelled(array, to),
        Way::Time => time(array, &target, to),
    }
}

fn cast_options() -> CastOptions<'static> {
    CastOptions { safe: false, format_options: FormatOptions::default() }
}

fn plain_cast(array: &ArrayRef, target: &ArrowType, to: &Column) -> Result<ArrayRef> {
    cast_with_options(array, target, &cast_options())
        .map_err(|e| crate::error::from_arrow(&e).context(format_args!("column \"{}\"", to.name)))
}

fn out_of_range(to: &Column, value: Option<String>) -> Error {
    let value = value.map(|v| format!("{v} is ")).unwrap_or_default();
    Error::invalid(
        sqlstate::OUT_OF_RANGE,
        format!("column \"{}\": {value}out of range for type {}", to.name, sql_name(to.data_type)),
    )
}

fn number(array: &ArrayRef, to: &Column) -> Result<ArrayRef> {
    let whole = matches!(to.data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt);
    let array = match array.data_type() {
        ArrowType::Float16 => plain_cast(array, &ArrowType::Float32, to)?,
        _ => array.clone(),
    };
    if whole && array.data_type().is_floating() {
        let wide = plain_cast(&array, &ArrowType::Float64, to)?;
        let wide = wide.as_primitive::<Float64Type>();
        return match to.data_type {
            DataType::SmallInt => round::<Int16Type>(wide, to, |v| in_range(v, 15).map(|v| v as i16)),
            DataType::Integer => round::<Int32Type>(wide, to, |v| in_range(v, 31).map(|v| v as i32)),
            _ => round::<Int64Type>(wide, to, |v| in_range(v, 63).map(|v| v as i64)),
        };
    }
    let array = match array.data_type() {
        // To whole numbers by way of a decimal without digits behind the point: that rounds.
        ArrowType::Decimal32(_, s) | ArrowType::Decimal64(_, s) | ArrowType::Decimal128(_, s) if whole && *s > 0 => {
            cast_with_options(&array, &ArrowType::Decimal128(38, 0), &cast_options())
                .map_err(|_| out_of_range(to, None))?
        }
        ArrowType::Decimal256(_, s) if whole && *s > 0 => {
            cast_with_options(&array, &ArrowType::Decimal256(76, 0), &cast_options())
                .map_err(|_| out_of_range(to, None))?
        }
        _ => array,
    };
    let result =
        cast_with_options(&array, &to.data_type.arrow(), &cast_options()).map_err(|_| out_of_range(to, None))?;
    if to.data_type == DataType::Real && array.data_type() == &ArrowType::Float64 {
        check_finite(array.as_primitive::<Float64Type>(), result.as_primitive::<Float32Type>(), to)?;
    }
    Ok(result)
}

/// A double that is too large for REAL would become infinity.
fn check_finite(from: &PrimitiveArray<Float64Type>, real: &PrimitiveArray<Float32Type>, to: &Column) -> Result<()> {
    for (wide, narrow) in from.iter().zip(real.iter()) {
        if let (Some(wide), Some(narrow)) = (wide, narrow)
            && wide.is_finite()
            && !narrow.is_finite()
        {
            return Err(out_of_range(to, Some(wide.to_string())));
        }
    }
    Ok(())
}

/// `value` rounded, if it is below 2^bits in magnitude (or exactly -2^bits).
fn in_range(value: f64, bits: i32) -> Option<f64> {
    let rounded = value.round_ties_even();
    let limit = 2_f64.powi(bits);
    (rounded >= -limit && rounded < limit).then_some(rounded)
}

fn round<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<Float64Type>,
    to: &Column,
    convert: impl Fn(f64) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let result: PrimitiveArray<T> =
        array.try_unary(|v| convert(v).ok_or_else(|| out_of_range(to, Some(v.to_string()))))?;
    Ok(Arc::new(result))
}

fn time(array: &ArrayRef, target: &ArrowType, to: &Column) -> Result<ArrayRef> {
    // A timestamp before 1970 with a time of day belongs to the day it is in: floor, not truncate.
    if let (ArrowType::Timestamp(..), ArrowType::Date32) = (array.data_type(), target) {
        let micros = plain_cast(array, &ArrowType::Timestamp(TimeUnit::Microsecond, None), to)?;
        let days = micros
            .as_primitive::<arrow::datatypes::TimestampMicrosecondType>()
            .try_unary::<_, arrow::datatypes::Date32Type, Error>(|v| {
                i32::try_from(v.div_euclid(86_400_000_000)).map_err(|_| out_of_range(to, None))
            })?;
        return Ok(Arc::new(days));
    }
    cast_with_options(array, target, &cast_options()).map_err(|_| out_of_range(to, None))
}

/// Text that spells values of another type.
fn spelled(array: &ArrayRef, to: &Column) -> Result<ArrayRef> {
    let text = plain_cast(array, &ArrowType::Utf8View, to)?;
    let text = text.as_string_view();
    match to.data_type {
        DataType::Bytea => return bytes(text, to),
        DataType::Time | DataType::Uuid => {
            return from_text(text, &to.data_type.arrow(), false)
                .map_err(|e| e.context(format_args!("column \"{}\"", to.name)));
        }
        _ => {}
    }
    let trimmed: StringViewArray = text.iter().map(|t| t.map(str::trim)).collect();
    let target = to.data_type.arrow();
    let safe = CastOptions { safe: true, format_options: FormatOptions::default() };
    let result = cast_with_options(&trimmed, &target, &safe)
        .map_err(|e| crate::error::from_arrow(&e).context(format_args!("column \"{}\"", to.name)))?;
    if result.null_count() != trimmed.null_count() {
        let wrong = (0..trimmed.len()).find(|row| result.is_null(*row) && trimmed.is_valid(*row));
        let value = wrong.map_or("", |row| trimmed.value(row));
        return Err(misspelled(value, to));
    }
    if let Some(row) = infinite(&result) {
        let value = trimmed.value(row);
        if value.bytes().any(|b| b.is_ascii_digit()) {
            return Err(out_of_range(to, Some(format!("\"{value}\""))));
        }
    }
    Ok(result)
}

/// The first row that is infinite, of floats.
fn infinite(array: &ArrayRef) -> Option<usize> {
    if let Some(reals) = array.as_primitive_opt::<Float32Type>() {
        return reals.iter().position(|v| v.is_some_and(f32::is_infinite));
    }
    let doubles = array.as_primitive_opt::<Float64Type>()?;
    doubles.iter().position(|v| v.is_some_and(f64::is_infinite))
}

fn misspelled(value: &str, to: &Column) -> Error {
    let name = sql_name(to.data_type);
    let is_number = !value.is_empty()
        && value.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().filter(|b| *b == b'.').count() <= 1;
    let whole = matches!(to.data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt);
    let code = match to.data_type {
        DataType::Date | DataType::Timestamp | DataType::TimestampTz => BAD_DATETIME,
        DataType::Decimal { .. } if is_number => return out_of_range(to, Some(format!("\"{value}\""))),
        _ if whole && is_number && !value.contains('.') => return out_of_range(to, Some(format!("\"{value}\""))),
        _ => sqlstate::INVALID_TEXT,
    };
    Error::invalid(code, format!("column \"{}\": invalid input for type {name}: \"{value}\"", to.name))
}

/// BYTEA from `\x` and hex digits, or from text with `\\` and `\ooo` escapes.
fn bytes(text: &StringViewArray, to: &Column) -> Result<ArrayRef> {
    let mut builder = BinaryViewBuilder::with_capacity(text.len());
    for value in text {
        match value {
            None => builder.append_null(),
            Some(value) => {
                let decoded = match value.strip_prefix("\\x") {
                    Some(hex) => from_hex(hex),
                    None => from_escapes(value.as_bytes()),
                };
                builder.append_value(decoded.ok_or_else(|| misspelled(value, to))?);
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits = hex
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .map(|b| (b as char).to_digit(16))
        .collect::<Option<Vec<u32>>>()?;
    if digits.len() % 2 != 0 {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect()
}

fn from_escapes(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = after;
            continue;
        }
        rest = match after {
            [b'\\', tail @ ..] => {
                out.push(b'\\');
                tail
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                tail
            }
            _ => return None,
        };
    }
    Some(out)
}

#[cfg(test)]
mod tests;
