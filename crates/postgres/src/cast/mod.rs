//! Columns of values as values of another type, as PostgreSQL converts them.
//!
//! Comes in: an array, and a type of columns. Goes out: an array of that type.
//!
//! - Numbers are rounded (halves away from zero for decimals, to even for floats) and must be in range (22003). A
//!   decimal has the first 15 digits of a double, 6 of a REAL.
//! - Text gives whatever it spells (22P02; 22007 and 22008 for dates and times). A timestamp may lack seconds, a date
//!   its dashes. Seconds are rounded to microseconds.
//! - Anything becomes text: floats with the fewest digits that read back the same, bytes as `\x` and hex digits, dates,
//!   timestamps and intervals as PostgreSQL writes them (`datetime`), arrays and rows too (`array`).
//! - A timestamp becomes the day that it is in, before 1970 too. Dates and times of other units come to days and
//!   microseconds first, cut toward the past (`units`).
//!
//! It does not own: which conversion is allowed where (assignment, the analyzer), lengths, NOT NULL.

mod array;
mod assignment;
mod assignment_function;
mod datetime;
mod units;

pub use array::{composed_text, inside, is_composed, with_composed_as_text};
pub use assignment::{assign, check as check_assignment};
pub use assignment_function::{ASSIGNED_TO, assigned_to};
use datetime::datetime_text;
pub use datetime::is_span;
pub use units::{in_own_unit, own_unit};

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, PrimitiveArray, StringViewArray, StringViewBuilder, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type,
    Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::util::display::FormatOptions;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use crate::error::from_arrow;
use crate::sqlstate::{self, BAD_DATETIME, DATETIME_RANGE};
use crate::types::{
    MICROS_OF_DAY, from_text, has_own_text, in_one_form, interval_text, is_datetime, micros_of_fraction, of_float,
    sql_name, to_text, without_exponent,
};

/// `array` as values of type `to`.
///
/// # Errors
/// As the module says; types that have no conversion are those of Arrow's cast.
pub fn convert(array: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    let target = to.arrow();
    match array.data_type() {
        ArrowType::Null => Ok(new_null_array(&target, array.len())),
        from if *from == target => Ok(array.clone()),
        ArrowType::Dictionary(_, value) => convert(&plain(array, value)?, to),
        from if from.is_string() && !to.is_text() => parsed(array, to),
        from if to.is_text() && has_own_text(from) => Ok(Arc::new(to_text(&in_own_unit(array)?)?)),
        from if to.is_text() && (from.is_binary() || from.is_floating()) => Ok(Arc::new(text(array)?)),
        ArrowType::Interval(_) | ArrowType::Duration(_) if to.is_text() => spans(array),
        from if to.is_text() && is_composed(from) => Ok(Arc::new(composed_text(array)?)),
        from if to.is_text() && (is_datetime(from) || *from == ArrowType::Date64) => {
            Ok(Arc::new(datetime_text(array)?))
        }
        from if from.is_numeric() && target.is_numeric() => number(array, to),
        from if is_time(from) && is_time(&target) => datetime(array, to),
        _ => plain(array, &target),
    }
}

fn is_time(data_type: &ArrowType) -> bool {
    matches!(
        data_type,
        ArrowType::Date32 | ArrowType::Date64 | ArrowType::Time32(_) | ArrowType::Time64(_) | ArrowType::Timestamp(..)
    )
}

/// Whether `to` is a date, with or without a time of day.
fn is_datetime_type(to: DataType) -> bool {
    matches!(to, DataType::Date | DataType::Timestamp | DataType::TimestampTz)
}

fn cast_options() -> CastOptions<'static> {
    CastOptions { safe: false, format_options: FormatOptions::default() }
}

fn plain(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef> {
    cast_with_options(array, target, &cast_options()).map_err(|e| from_arrow(&e))
}

fn out_of_range(to: DataType, value: Option<String>) -> Error {
    let value = value.map_or_else(|| "a value is".to_owned(), |v| format!("{v} is"));
    Error::invalid(sqlstate::OUT_OF_RANGE, format!("{value} out of range for type {}", sql_name(to)))
}

/// Numbers as numbers.
fn number(array: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    let whole = matches!(to, DataType::SmallInt | DataType::Integer | DataType::BigInt);
    let array = match array.data_type() {
        ArrowType::Float16 => plain(array, &ArrowType::Float32)?,
        _ => array.clone(),
    };
    if whole && array.data_type().is_floating() {
        let wide = plain(&array, &ArrowType::Float64)?;
        let wide = wide.as_primitive::<Float64Type>();
        return match to {
            DataType::SmallInt => round::<Int16Type>(wide, to, |v| in_range(v, 15).map(|v| v as i16)),
            DataType::Integer => round::<Int32Type>(wide, to, |v| in_range(v, 31).map(|v| v as i32)),
            _ => round::<Int64Type>(wide, to, |v| in_range(v, 63).map(|v| v as i64)),
        };
    }
    if let DataType::Decimal { precision, scale } = to
        && array.data_type().is_floating()
    {
        return from_floats(&array, precision, scale, to);
    }
    if let ArrowType::Decimal128(_, scale) = *array.data_type()
        && matches!(to, DataType::Real | DataType::Double)
    {
        return Ok(to_floats(&array, scale, to));
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
    let result = cast_with_options(&array, &to.arrow(), &cast_options()).map_err(|_| out_of_range(to, None))?;
    if to == DataType::Real && array.data_type() == &ArrowType::Float64 {
        check_finite(array.as_primitive::<Float64Type>(), result.as_primitive::<Float32Type>(), to)?;
    }
    Ok(result)
}

/// Decimals with `scale` digits behind the point as the floats next to them.
fn to_floats(array: &ArrayRef, scale: i8, to: DataType) -> ArrayRef {
    // What fits a double's digits is rounded once, by the division.
    const EXACT: i128 = 1 << 53;
    let divisor = 10_f64.powi(i32::from(scale));
    let is_exact = |v: i128| (-EXACT..=EXACT).contains(&v) && (0..=22).contains(&scale);
    let text = |v: i128| format!("{v}e{}", -i32::from(scale));
    let decimals = array.as_primitive::<Decimal128Type>();
    // The text of a number can be read.
    if to == DataType::Real {
        return Arc::new(decimals.unary::<_, Float32Type>(|v| text(v).parse().unwrap_or(f32::NAN)));
    }
    Arc::new(decimals.unary::<_, Float64Type>(|v| {
        if is_exact(v) { v as f64 / divisor } else { text(v).parse().unwrap_or(f64::NAN) }
    }))
}

/// Floats as decimals, by the digits that every value of their type has.
fn from_floats(array: &ArrayRef, precision: u8, scale: i8, to: DataType) -> Result<ArrayRef> {
    let figures = if array.data_type() == &ArrowType::Float32 { 6 } else { 15 };
    let wide = plain(array, &ArrowType::Float64)?;
    let most = 10_u128.checked_pow(u32::from(precision)).unwrap_or(u128::MAX);
    let digits = |value: f64| {
        let digits = of_float(value, figures, scale).filter(|digits| digits.unsigned_abs() < most);
        digits.ok_or_else(|| out_of_range(to, Some(value.to_string())))
    };
    let decimals = wide.as_primitive::<Float64Type>().try_unary::<_, Decimal128Type, Error>(digits)?;
    Ok(Arc::new(decimals.with_data_type(to.arrow())))
}

/// A double that is too large for REAL would become infinity, one that is too small 0.
fn check_finite(from: &PrimitiveArray<Float64Type>, real: &PrimitiveArray<Float32Type>, to: DataType) -> Result<()> {
    for (wide, narrow) in from.iter().zip(real.iter()) {
        if let (Some(wide), Some(narrow)) = (wide, narrow)
            && wide.is_finite()
            && (!narrow.is_finite() || narrow == 0.0 && wide != 0.0)
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
    to: DataType,
    convert: impl Fn(f64) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let result: PrimitiveArray<T> =
        array.try_unary(|v| convert(v).ok_or_else(|| out_of_range(to, Some(v.to_string()))))?;
    Ok(Arc::new(result))
}

/// Dates and timestamps as one another.
fn datetime(array: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    let array = in_own_unit(array)?;
    if *array.data_type() == to.arrow() {
        return Ok(array);
    }
    // A timestamp before 1970 with a time of day belongs to the day it is in: floor, not truncate.
    if let (ArrowType::Timestamp(..), DataType::Date) = (array.data_type(), to) {
        let days = array.as_primitive::<TimestampMicrosecondType>().try_unary::<_, Date32Type, Error>(|v| {
            i32::try_from(v.div_euclid(MICROS_OF_DAY)).map_err(|_| out_of_range(to, None))
        })?;
        return Ok(Arc::new(days));
    }
    cast_with_options(&array, &to.arrow(), &cast_options()).map_err(|_| out_of_range(to, None))
}

/// Text that spells values of another type.
fn parsed(array: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    let text = plain(array, &ArrowType::Utf8View)?;
    let text = text.as_string_view();
    match to {
        DataType::Bytea => return bytes(text, to),
        DataType::Time | DataType::Uuid => {
            return from_text(text, &to.arrow(), false);
        }
        _ => {}
    }
    let whole =
        |t: &'_ str| -> usize { if matches!(to, DataType::Date | DataType::Timestamp) { zone_at(t) } else { t.len() } };
    let mut trimmed: StringViewArray =
        text.iter().map(|t| t.map(str::trim).and_then(|t| t.get(..whole(t))).map(str::trim_end)).collect();
    if matches!(to, DataType::Decimal { .. }) && trimmed.iter().flatten().any(|t| t.contains(['e', 'E'])) {
        let digits = |text: &str| without_exponent(text).unwrap_or_else(|| text.to_owned());
        trimmed = trimmed.iter().map(|text| text.map(digits)).collect();
    }
    let target = to.arrow();
    let beyond = if matches!(to, DataType::Timestamp | DataType::TimestampTz) { micros_beyond(&trimmed) } else { None };
    let safe = CastOptions { safe: true, format_options: FormatOptions::default() };
    let read = |texts: &StringViewArray| {
        let values = cast_with_options(texts, &target, &safe).map_err(|e| from_arrow(&e))?;
        // The text `-0` spells 0.
        Ok::<_, Error>(in_one_form(values))
    };
    let mut result = read(&trimmed)?;
    if result.null_count() != trimmed.null_count() && is_datetime_type(to) {
        let mut again = StringViewBuilder::with_capacity(trimmed.len());
        for (row, text) in trimmed.iter().enumerate() {
            match text.filter(|_| result.is_null(row)).and_then(full_datetime) {
                Some(full) => again.append_value(full),
                None => again.append_option(text),
            }
        }
        trimmed = again.finish();
        result = read(&trimmed)?;
    }
    // There is no year 0, which Arrow reads.
    if is_datetime_type(to)
        && let Some(value) = trimmed.iter().flatten().find(|text| text.starts_with("0000"))
    {
        return Err(Error::invalid(DATETIME_RANGE, format!("date/time field value out of range: \"{value}\"")));
    }
    if result.null_count() != trimmed.null_count() {
        let wrong = (0..trimmed.len()).find(|row| result.is_null(*row) && trimmed.is_valid(*row));
        if let Some(row) = wrong.filter(|row| without_exponent(text.value(*row).trim()).is_some())
            && matches!(to, DataType::Decimal { .. })
        {
            return Err(out_of_range(to, Some(format!("\"{}\"", text.value(row)))));
        }
        return Err(unparsable(wrong.map_or("", |row| text.value(row)), to));
    }
    if let Some(more) = beyond {
        return Ok(later(&result, &more));
    }
    if let Some(row) = vanished(&result, &trimmed) {
        return Err(out_of_range(to, Some(format!("\"{}\"", trimmed.value(row)))));
    }
    if let Some(row) = infinite(&result) {
        let value = trimmed.value(row);
        if value.bytes().any(|b| b.is_ascii_digit()) {
            return Err(out_of_range(to, Some(format!("\"{value}\""))));
        }
    }
    Ok(result)
}

/// What is to be added to timestamps that are read from `texts`, in microseconds: Arrow cuts off what is behind these,
/// SQL rounds. None if no text has so many digits.
fn micros_beyond(texts: &StringViewArray) -> Option<Vec<i64>> {
    // More digits behind the point than microseconds have.
    let long_fraction = |text: &str| {
        let (_, behind) = text.rsplit_once('.')?;
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        behind.get(..digits).filter(|_| digits > 6).map(str::to_owned)
    };
    if !texts.iter().flatten().any(|text| long_fraction(text).is_some()) {
        return None;
    }
    let more = |text: Option<&str>| {
        let digits = text.and_then(long_fraction)?;
        Some(micros_of_fraction(&digits) - digits.get(..6)?.parse::<i64>().ok()?)
    };
    Some(texts.iter().map(|text| more(text).unwrap_or_default()).collect())
}

/// `timestamps`, each so many microseconds later.
fn later(timestamps: &ArrayRef, more: &[i64]) -> ArrayRef {
    let micros = timestamps.as_primitive::<TimestampMicrosecondType>();
    let moved = micros.iter().zip(more).map(|(micros, more)| micros.map(|micros| micros.saturating_add(*more)));
    Arc::new(moved.collect::<PrimitiveArray<TimestampMicrosecondType>>().with_data_type(timestamps.data_type().clone()))
}

/// The first row that is 0, of floats, where its text is not.
fn vanished(array: &ArrayRef, texts: &StringViewArray) -> Option<usize> {
    let is_zero = |row: usize| {
        let real = array.as_primitive_opt::<Float32Type>().map(|reals| reals.value(row) == 0.0);
        real.or_else(|| array.as_primitive_opt::<Float64Type>().map(|doubles| doubles.value(row) == 0.0))
    };
    let has_digits = |text: &str| {
        let digits = text.split(['e', 'E']).next().unwrap_or_default();
        digits.bytes().any(|b| matches!(b, b'1'..=b'9'))
    };
    if !array.data_type().is_floating() {
        return None;
    }
    (0..array.len()).find(|row| array.is_valid(*row) && is_zero(*row) == Some(true) && has_digits(texts.value(*row)))
}

/// The first row that is infinite, of floats.
fn infinite(array: &ArrayRef) -> Option<usize> {
    if let Some(reals) = array.as_primitive_opt::<Float32Type>() {
        return reals.iter().position(|v| v.is_some_and(f32::is_infinite));
    }
    let doubles = array.as_primitive_opt::<Float64Type>()?;
    doubles.iter().position(|v| v.is_some_and(f64::is_infinite))
}

fn unparsable(value: &str, to: DataType) -> Error {
    let name = sql_name(to);
    let is_number = !value.is_empty()
        && value.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().filter(|b| *b == b'.').count() <= 1;
    let whole = matches!(to, DataType::SmallInt | DataType::Integer | DataType::BigInt);
    let code = match to {
        to if is_datetime_type(to) => bad_datetime(value),
        DataType::Bytea if value.starts_with("\\x") => sqlstate::INVALID_PARAMETER,
        DataType::Decimal { .. } if is_number => return out_of_range(to, Some(format!("\"{value}\""))),
        _ if whole && is_number && !value.contains('.') => return out_of_range(to, Some(format!("\"{value}\""))),
        _ => sqlstate::INVALID_TEXT,
    };
    Error::invalid(code, format!("invalid input for type {name}: \"{value}\""))
}

/// BYTEA from `\x` and hex digits, or from text without backslashes.
fn bytes(text: &StringViewArray, to: DataType) -> Result<ArrayRef> {
    let decoded = |value: &str| match value.strip_prefix("\\x") {
        Some(hex) => from_hex(hex),
        None => (!value.contains('\\')).then(|| value.as_bytes().to_vec()),
    };
    let each = text.iter().map(|value| value.map(|v| decoded(v).ok_or_else(|| unparsable(v, to))).transpose());
    Ok(Arc::new(each.collect::<Result<BinaryViewArray>>()?))
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

/// `text`, a date with or without a time of day that Arrow cannot read, as it can: with dashes in the date, with two
/// digits for hours, minutes and seconds, with seconds.
fn full_datetime(text: &str) -> Option<String> {
    let (date, rest) = match text.find([' ', 'T', 't']) {
        Some(at) => text.split_at_checked(at)?,
        None => (text, ""),
    };
    let mut out = String::with_capacity(text.len() + 8);
    if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) {
        let (year, day) = date.split_at_checked(4)?;
        let (month, day) = day.split_at_checked(2)?;
        write!(out, "{year}-{month}-{day}").ok()?;
    } else {
        let mut parts = date.splitn(3, ['-', '/']);
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        let is_number = |part: &str, digits: usize| part.len() <= digits && part.parse::<u16>().is_ok();
        if year.len() != 4 || !is_number(year, 4) || !is_number(month, 2) || !is_number(day, 2) {
            return None;
        }
        write!(out, "{year}-{month:0>2}-{day:0>2}").ok()?;
    }
    let rest = rest.trim_start_matches([' ', 'T', 't']);
    if rest.is_empty() {
        return Some(out);
    }
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(rest.len());
    let (time, zone) = rest.split_at_checked(end)?;
    let mut fields = time.splitn(3, ':');
    let (hours, minutes) = (fields.next()?, fields.next()?);
    let seconds = fields.next().unwrap_or("00");
    write!(out, " {hours:0>2}:{minutes:0>2}:").ok()?;
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    write!(out, "{whole:0>2}").ok()?;
    if !fraction.is_empty() {
        write!(out, ".{fraction}").ok()?;
    }
    out.push_str(zone.trim_start());
    Some(out)
}

/// Where the zone behind a time of day begins, or the text's end: a type without a zone takes no notice of it.
fn zone_at(text: &str) -> usize {
    let Some(time) = text.find([' ', 'T', 't']) else { return text.len() };
    let zone = text.get(time + 1..).and_then(|time| time.find(['+', '-', 'Z', 'z']));
    zone.map_or(text.len(), |zone| time + 1 + zone)
}

/// SQLSTATE for a text that is no datetime: whether it looks like one with a field out of its range.
fn bad_datetime(value: &str) -> &'static str {
    let looks = |text: &str| {
        let date = text.get(..10).unwrap_or_default();
        let digits =
            date.bytes().enumerate().all(|(at, b)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() });
        let rest = text.get(10..).unwrap_or_default();
        !date.is_empty() && digits && rest.bytes().all(|b| b.is_ascii_digit() || b" T:.+-Zz".contains(&b))
    };
    let value = value.trim();
    if looks(value) || full_datetime(value).is_some_and(|full| looks(&full)) { DATETIME_RANGE } else { BAD_DATETIME }
}

/// A double as PostgreSQL writes it: with the fewest digits that read back the same.
#[must_use]
pub fn double_text(value: f64) -> String {
    float_text(value, &format!("{value:e}"), false)
}

/// The same of a REAL.
#[must_use]
pub fn real_text(value: f32) -> String {
    float_text(f64::from(value), &format!("{value:e}"), true)
}

/// The text of bytes and floats.
fn text(array: &ArrayRef) -> Result<StringViewArray> {
    let mut out = StringViewBuilder::with_capacity(array.len());
    if matches!(array.data_type(), ArrowType::Float32 | ArrowType::Float16) {
        let reals = plain(array, &ArrowType::Float32)?;
        return Ok(reals.as_primitive::<Float32Type>().iter().map(|value| value.map(real_text)).collect());
    }
    if array.data_type().is_floating() {
        return Ok(array.as_primitive::<Float64Type>().iter().map(|value| value.map(double_text)).collect());
    }
    let bytes = plain(array, &ArrowType::BinaryView)?;
    for value in bytes.as_binary_view() {
        out.append_option(value.map(|value| {
            let mut text = String::with_capacity(2 + 2 * value.len());
            text.push_str("\\x");
            for byte in value {
                for digit in [byte >> 4, byte & 15] {
                    text.extend(char::from_digit(u32::from(digit), 16));
                }
            }
            text
        }));
    }
    Ok(out.finish())
}

/// The text of intervals. What lies between two datetimes is so many days and a time, as PostgreSQL subtracts them.
fn spans(array: &ArrayRef) -> Result<ArrayRef> {
    let mut out = StringViewBuilder::with_capacity(array.len());
    if let ArrowType::Duration(_) = array.data_type() {
        let spans = plain(array, &ArrowType::Duration(TimeUnit::Microsecond))?;
        for micros in spans.as_primitive::<DurationMicrosecondType>() {
            let text = |micros: i64| {
                let days = i32::try_from(micros / MICROS_OF_DAY).unwrap_or(i32::MAX);
                interval_text(0, days, micros % MICROS_OF_DAY)
            };
            out.append_option(micros.map(text));
        }
    } else {
        let spans = plain(array, &ArrowType::Interval(IntervalUnit::MonthDayNano))?;
        for span in spans.as_primitive::<IntervalMonthDayNanoType>() {
            out.append_option(span.map(|span| interval_text(span.months, span.days, span.nanoseconds / 1_000)));
        }
    }
    Ok(Arc::new(out.finish()))
}

/// A float as PostgreSQL writes it. `digits` is the value as Rust's `{:e}` has it: the fewest digits that read back the
/// same.
fn float_text(value: f64, digits: &str, is_real: bool) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // The digits that a value of the type always has: from there on a number is written with an exponent.
    let plain_below = if is_real { 6 } else { 15 };
    if !(-4..plain_below).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let figures: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let point = exponent + 1;
    if point <= 0 {
        return format!("{sign}0.{}{figures}", "0".repeat(point.unsigned_abs() as usize));
    }
    let point = point.unsigned_abs() as usize;
    match figures.split_at_checked(point) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some((whole, behind)) => format!("{sign}{whole}.{behind}"),
        None => format!("{sign}{figures}{}", "0".repeat(point - figures.len())),
    }
}

#[cfg(test)]
mod tests;
