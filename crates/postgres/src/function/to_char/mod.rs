//! `to_char(datetime, pattern)` of days and timestamps, with PostgreSQL's patterns (42883 for other types; 0A000 for
//! what of them is not read); `to_date(text, pattern)` and `to_timestamp(text, pattern)`, which read with the same
//! ones, and `to_timestamp(seconds)`.

mod pattern;
mod read;
mod write;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Float64Type, TimeUnit, TimestampMicrosecondType};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use mainstem_storage::Error;

use crate::error::external;
use crate::evaluate::simple::Simple;
use crate::sqlstate;
use crate::types::{MICROS_OF_DAY, sql_type};
use pattern::{Part, parts};

/// The function `name` of the module.
pub(crate) fn to_char(name: &'static str) -> ScalarUDF {
    let signature = Signature::any(2, Volatility::Immutable);
    let result = move |types: &[DataType]| match types {
        [DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Null, pattern]
            if pattern.is_string() || pattern.is_null() =>
        {
            Ok(DataType::Utf8View)
        }
        types => Err(no_function(name, types)),
    };
    Simple::new(name, signature, DataType::Utf8View, |arrays, _| written(arrays)).giving(result).udf()
}

/// `to_date` or `to_timestamp`, as `name` says.
pub(crate) fn reads(name: &'static str) -> ScalarUDF {
    let (gives, takes) = match name {
        "to_date" => (DataType::Date32, vec![TypeSignature::Any(2)]),
        _ => {
            let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
            (instant, vec![TypeSignature::Any(1), TypeSignature::Any(2)])
        }
    };
    let result = {
        let gives = gives.clone();
        move |types: &[DataType]| {
            let known = match types {
                [seconds] => seconds.is_numeric() || seconds.is_null(),
                types => types.iter().all(|given| given.is_string() || given.is_null()),
            };
            if known { Ok(gives.clone()) } else { Err(no_function(name, types)) }
        }
    };
    let signature = Signature::one_of(takes, Volatility::Immutable);
    Simple::new(name, signature, gives.clone(), move |arrays, _| read_all(arrays, &gives)).giving(result).udf()
}

fn no_function(name: &str, of: &[DataType]) -> DataFusionError {
    let named = |given: &DataType| sql_type(given).map_or_else(|| given.to_string(), |known| known.to_string());
    let given = of.iter().map(named).collect::<Vec<_>>().join(", ");
    external(Error::invalid(sqlstate::UNDEFINED_FUNCTION, format!("function {name}({given}) does not exist")))
}

fn no_arguments() -> DataFusionError {
    DataFusionError::Internal("a pattern without a value".into())
}

/// Patterns come in rows, mostly one for all of them.
struct Patterns {
    last: Option<(String, Vec<Part>)>,
    fields: &'static [&'static str],
}

impl Patterns {
    fn new(fields: &'static [&'static str]) -> Self {
        Self { last: None, fields }
    }

    fn get(&mut self, text: &str) -> Result<&[Part]> {
        let (_, known) = match self.last.take().filter(|(last, _)| last == text) {
            Some(known) => self.last.insert(known),
            None => self.last.insert((text.to_owned(), parts(text, self.fields).map_err(external)?)),
        };
        Ok(known)
    }
}

fn written(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [values, patterns] = arrays else { return Err(no_arguments()) };
    let (zone, shown) = match values.data_type() {
        DataType::Timestamp(_, zone) => (zone.clone(), zone.as_ref().map(|_| "UTC")),
        _ => (None, Some("UTC")),
    };
    let micros = cast(values, &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
    let texts = cast(patterns, &DataType::Utf8View)?;
    let mut known = Patterns::new(write::FIELDS);
    let pairs = micros.as_primitive::<TimestampMicrosecondType>().iter().zip(texts.as_string_view());
    let each = pairs.map(|pair| match pair {
        (Some(micros), Some(pattern)) => Ok(Some(write::written(known.get(pattern)?, micros, shown))),
        _ => Ok(None),
    });
    Ok(Arc::new(each.collect::<Result<StringViewArray>>()?))
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

fn read_all(arrays: &[ArrayRef], gives: &DataType) -> Result<ArrayRef> {
    let found: TimestampMicrosecondArray = match arrays {
        [seconds] => {
            let seconds = cast(seconds, &DataType::Float64)?;
            let each = seconds.as_primitive::<Float64Type>().iter();
            each.map(|seconds| seconds.map(after_epoch).transpose()).collect::<Result<_>>()?
        }
        [texts, patterns] => {
            let (texts, patterns) = (cast(texts, &DataType::Utf8View)?, cast(patterns, &DataType::Utf8View)?);
            let mut known = Patterns::new(read::FIELDS);
            let pairs = texts.as_string_view().iter().zip(patterns.as_string_view());
            let each = pairs.map(|pair| match pair {
                (Some(text), Some(pattern)) => read::instant(known.get(pattern)?, text).map(Some).map_err(external),
                _ => Ok(None),
            });
            each.collect::<Result<_>>()?
        }
        _ => return Err(no_arguments()),
    };
    Ok(match gives {
        DataType::Date32 => {
            Arc::new(found.unary_opt::<_, Date32Type>(|micros| i32::try_from(micros.div_euclid(MICROS_OF_DAY)).ok()))
        }
        gives => Arc::new(found.with_data_type(gives.clone())),
    })
}
