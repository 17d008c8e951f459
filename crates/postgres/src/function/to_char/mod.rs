//! `to_char(value, pattern)` for numbers, days and instants, with PostgreSQL's patterns (42883 for other types; 0A000
//! for what of them is not read); `to_date(text, pattern)` and `to_timestamp(text, pattern)`, which read with the same
//! ones, and `to_timestamp(seconds)`.

mod datetime;
mod number;
mod parse;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use mainstem_storage::Error;

use crate::error::external;
use crate::evaluate::over_rows;
use crate::sqlstate;
use crate::types::sql_type;
use datetime::DateTimePattern;
use number::{Digits, NumberPattern};
use parse::ParsePattern;

/// The function.
pub(crate) fn to_char() -> ScalarUDF {
    ScalarUDF::new_from_impl(ToChar { signature: Signature::any(2, Volatility::Immutable) })
}

/// `to_date`.
pub(crate) fn to_date() -> ScalarUDF {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::new_from_impl(Reads { gives: DataType::Date32, signature })
}

/// `to_timestamp`.
pub(crate) fn to_timestamp() -> ScalarUDF {
    let arguments = vec![TypeSignature::Any(1), TypeSignature::Any(2)];
    let gives = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    ScalarUDF::new_from_impl(Reads { gives, signature: Signature::one_of(arguments, Volatility::Immutable) })
}

/// Text that stands for itself in a pattern.
struct Literal<'a> {
    text: String,
    behind: &'a str,
}

/// The text in quotes, or the one character, that `rest` begins with.
fn literal(rest: &str) -> Literal<'_> {
    let mut chars = rest.chars();
    let mut text = String::new();
    match chars.next() {
        Some('"') => {
            while let Some(c) = chars.next() {
                match c {
                    '"' => break,
                    '\\' => text.extend(chars.next().or(Some('\\'))),
                    c => text.push(c),
                }
            }
        }
        Some('\\') if chars.as_str().starts_with('"') => text.extend(chars.next()),
        Some(c) => text.push(c),
        None => {}
    }
    Literal { text, behind: chars.as_str() }
}

/// What makes an ordinal of a number: `st`, `nd`, `rd`, `th`.
fn ordinal(digits: &str, upper: bool) -> &'static str {
    let mut last = digits.bytes().rev();
    let (one, ten) = (last.next(), last.next());
    let (lower, capital) = match one {
        _ if ten == Some(b'1') => ("th", "TH"),
        Some(b'1') => ("st", "ST"),
        Some(b'2') => ("nd", "ND"),
        Some(b'3') => ("rd", "RD"),
        _ => ("th", "TH"),
    };
    if upper { capital } else { lower }
}

/// `digits`, a whole number whose last `scale` digits stand behind the point, rounded to `behind` digits there, halves
/// away from 0.
fn rounded(unscaled: i128, scale: usize, behind: usize) -> Digits {
    let mut digits = unscaled.unsigned_abs().to_string();
    if digits.len() <= scale {
        digits.insert_str(0, &"0".repeat(scale + 1 - digits.len()));
    }
    if scale > behind {
        let cut = digits.len() - (scale - behind);
        let up = digits.as_bytes().get(cut).is_some_and(|digit| *digit >= b'5');
        digits.truncate(cut);
        if up {
            increment(&mut digits);
        }
    } else {
        digits.push_str(&"0".repeat(behind - scale));
    }
    let negative = unscaled < 0 && digits.bytes().any(|digit| digit != b'0');
    if behind > 0 {
        digits.insert(digits.len() - behind, '.');
    }
    Digits { negative, digits }
}

/// Adds 1 to a whole number in digits.
fn increment(digits: &mut String) {
    let nines = digits.bytes().rev().take_while(|digit| *digit == b'9').count();
    let kept = digits.len() - nines;
    digits.truncate(kept);
    match digits.pop() {
        Some(digit) => digits.push(char::from(digit as u8 + 1)),
        None => digits.push('1'),
    }
    digits.push_str(&"0".repeat(nines));
}

/// A float with as many digits behind the point as the pattern has, as far as its type knows them: `known` digits in
/// all.
fn of_float(value: f64, known: usize, behind: usize) -> Digits {
    if value.is_nan() || value.is_infinite() {
        return Digits { negative: value < 0.0, digits: if value.is_nan() { "nan" } else { "inf" }.into() };
    }
    let whole = format!("{:.0}", value.abs()).len();
    let behind = behind.min(known.saturating_sub(whole));
    let digits = format!("{value:.behind$}");
    match digits.strip_prefix('-') {
        Some(digits) => Digits { negative: true, digits: digits.into() },
        None => Digits { negative: false, digits },
    }
}

/// Values that can be written.
enum Values {
    Whole(ArrayRef),
    Decimal(ArrayRef, usize),
    /// With the digits that the type knows.
    Float(ArrayRef, usize),
    /// With the name of the time zone.
    DateTime(ArrayRef, Option<&'static str>),
}

impl Values {
    fn of(array: &ArrayRef) -> Result<Self> {
        let micros = |zone: Option<Arc<str>>| DataType::Timestamp(TimeUnit::Microsecond, zone);
        Ok(match array.data_type() {
            t if t.is_integer() && *t != DataType::UInt64 => Self::Whole(cast(array, &DataType::Int64)?),
            DataType::UInt64 => Self::Decimal(cast(array, &DataType::Decimal128(20, 0))?, 0),
            DataType::Decimal128(_, scale) if *scale >= 0 => {
                Self::Decimal(array.clone(), usize::try_from(*scale).unwrap_or_default())
            }
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
                let scale = match array.data_type() {
                    DataType::Decimal32(_, s) | DataType::Decimal64(_, s) | DataType::Decimal256(_, s) => (*s).max(0),
                    _ => 0,
                };
                let decimal = cast(array, &DataType::Decimal128(38, scale))?;
                Self::Decimal(decimal, usize::try_from(scale).unwrap_or_default())
            }
            DataType::Float16 | DataType::Float32 => Self::Float(cast(array, &DataType::Float32)?, 6),
            DataType::Float64 => Self::Float(array.clone(), 15),
            DataType::Timestamp(_, None) => Self::DateTime(cast(array, &micros(None))?, None),
            DataType::Timestamp(_, zone) => {
                let local = cast(array, &micros(zone.clone()))?;
                Self::DateTime(local, Some("UTC"))
            }
            DataType::Date32 | DataType::Date64 => Self::DateTime(cast(array, &micros(None))?, Some("UTC")),
            other => return Err(no_function(other)),
        })
    }
}

fn no_function(of: &DataType) -> DataFusionError {
    let name = sql_type(of).map_or_else(|| of.to_string(), |known| known.to_string());
    external(Error::invalid(sqlstate::UNDEFINED_FUNCTION, format!("function to_char({name}, text) does not exist")))
}

/// Patterns come in rows, mostly one for all of them.
struct Patterns<P> {
    last: Option<(String, P)>,
    read: fn(&str) -> mainstem_storage::Result<P>,
}

impl<P> Patterns<P> {
    fn new(read: fn(&str) -> mainstem_storage::Result<P>) -> Self {
        Self { last: None, read }
    }

    fn get(&mut self, text: &str) -> Result<&P> {
        if self.last.as_ref().is_none_or(|(last, _)| last != text) {
            self.last = Some((text.to_owned(), (self.read)(text).map_err(external)?));
        }
        let Some((_, pattern)) = &self.last else {
            return Err(DataFusionError::Internal("no pattern was read".into()));
        };
        Ok(pattern)
    }
}

/// Writes each row that is not NULL and has a pattern that is not.
fn each<P>(
    values: &dyn Array,
    texts: &StringViewArray,
    read: fn(&str) -> mainstem_storage::Result<P>,
    write: impl Fn(&P, usize) -> String,
) -> Result<ArrayRef> {
    let mut patterns = Patterns::new(read);
    let mut out = StringViewBuilder::with_capacity(values.len());
    for (row, text) in texts.iter().enumerate() {
        match text {
            Some(text) if values.is_valid(row) => {
                out.append_value(write(patterns.get(text)?, row));
            }
            _ => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn write_all(values: &ArrayRef, texts: &StringViewArray) -> Result<ArrayRef> {
    match Values::of(values)? {
        Values::Whole(array) => each(&array, texts, NumberPattern::read, |pattern, row| {
            pattern.write(&rounded(array.as_primitive::<Int64Type>().value(row).into(), 0, pattern.behind))
        }),
        Values::Decimal(array, scale) => each(&array, texts, NumberPattern::read, |pattern, row| {
            pattern.write(&rounded(array.as_primitive::<Decimal128Type>().value(row), scale, pattern.behind))
        }),
        Values::Float(array, known) => each(&array, texts, NumberPattern::read, |pattern, row| {
            let value = match array.as_primitive_opt::<Float32Type>() {
                Some(floats) => floats.value(row).into(),
                None => array.as_primitive::<Float64Type>().value(row),
            };
            pattern.write(&of_float(value, known, pattern.behind))
        }),
        Values::DateTime(array, zone) => each(&array, texts, DateTimePattern::read, |pattern, row| {
            pattern.write(array.as_primitive::<TimestampMicrosecondType>().value(row), zone)
        }),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar {
    signature: Signature,
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &str {
        "to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Null, _] | [_, DataType::Null] => Ok(DataType::Utf8View),
            [value, pattern] => {
                let known = value.is_numeric()
                    || matches!(value, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
                if known && pattern.is_string() { Ok(DataType::Utf8View) } else { Err(no_function(value)) }
            }
            _ => Err(DataFusionError::Internal("to_char without its arguments".into())),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, pattern] = args.args.as_slice() else {
            return Err(DataFusionError::Internal(format!("to_char with {} arguments", args.args.len())));
        };
        if value.data_type().is_null() || pattern.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(None)));
        }
        over_rows(&args, |arrays, _| {
            let [values, patterns] = arrays else {
                return Err(DataFusionError::Internal("to_char without its arguments".into()));
            };
            write_all(values, cast(patterns, &DataType::Utf8View)?.as_string_view())
        })
    }
}

/// `to_date` and `to_timestamp`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Reads {
    gives: DataType,
    signature: Signature,
}

/// 2000-01-01, from which PostgreSQL counts: floats are rounded to its microseconds.
const MILLENNIUM_SECONDS: i64 = 946_684_800;

/// The instant so many seconds after 1970-01-01.
fn after_epoch(seconds: f64) -> Result<i64> {
    let micros = ((seconds - MILLENNIUM_SECONDS as f64) * 1e6).round_ties_even();
    let out_of_range = |what: String| external(Error::invalid(sqlstate::DATETIME_OVERFLOW, what));
    if micros.is_nan() {
        return Err(out_of_range("timestamp cannot be NaN".into()));
    }
    if micros.abs() >= i64::MAX as f64 / 2.0 {
        return Err(out_of_range(format!("timestamp out of range: \"{seconds}\"")));
    }
    Ok(micros as i64 + MILLENNIUM_SECONDS * 1_000_000)
}

impl ScalarUDFImpl for Reads {
    fn name(&self) -> &str {
        if self.gives == DataType::Date32 { "to_date" } else { "to_timestamp" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_text = |data_type: &DataType| data_type.is_string() || data_type.is_null();
        let known = match types {
            [seconds] => seconds.is_numeric() || seconds.is_null(),
            types => types.iter().all(is_text),
        };
        if known {
            return Ok(self.gives.clone());
        }
        let name = |given: &DataType| sql_type(given).map_or_else(|| given.to_string(), |known| known.to_string());
        let given = types.iter().map(name).collect::<Vec<_>>().join(", ");
        let message = format!("function {}({given}) does not exist", self.name());
        Err(external(Error::invalid(sqlstate::UNDEFINED_FUNCTION, message)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let is_date = self.gives == DataType::Date32;
        // Days of `to_date`.
        let found: TimestampMicrosecondArray = match args.args.as_slice() {
            [seconds] => {
                let seconds = cast(&seconds.to_array(rows)?, &DataType::Float64)?;
                let each = seconds.as_primitive::<Float64Type>().iter();
                each.map(|seconds| seconds.map(after_epoch).transpose()).collect::<Result<_>>()?
            }
            [texts, patterns] => {
                let text = |value: &ColumnarValue| {
                    Ok::<_, DataFusionError>(cast(&value.to_array(rows)?, &DataType::Utf8View)?)
                };
                let (texts, patterns) = (text(texts)?, text(patterns)?);
                let mut read = Patterns::new(ParsePattern::read);
                let pairs = texts.as_string_view().iter().zip(patterns.as_string_view().iter());
                let each = pairs.map(|pair| match pair {
                    (Some(text), Some(pattern)) => {
                        let pattern = read.get(pattern)?;
                        let found = if is_date { pattern.day(text) } else { pattern.instant(text) };
                        found.map(Some).map_err(external)
                    }
                    _ => Ok(None),
                });
                each.collect::<Result<_>>()?
            }
            other => return Err(DataFusionError::Internal(format!("{} with {} arguments", self.name(), other.len()))),
        };
        let result: ArrayRef = match &self.gives {
            DataType::Date32 => Arc::new(found.unary_opt::<_, Date32Type>(|day| i32::try_from(day).ok())),
            gives => Arc::new(found.with_data_type(gives.clone())),
        };
        Ok(if constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}
