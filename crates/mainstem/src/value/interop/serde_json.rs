//! `serde_json::Value`, of any value, and as a parameter.
//!
//! Out of rows: numbers are numbers where JSON's hold them exactly, and else their text, as are what JSON has no word
//! for: NaN, the infinities, bytes, UUIDs, dates and times, each as PostgreSQL's `to_json` writes it. As a parameter:
//! `null`, `true`, numbers and strings are NULL, BOOLEAN, BIGINT (DECIMAL where it is too large) or DOUBLE PRECISION,
//! and TEXT; arrays and objects are their JSON as TEXT, for there is no type JSON.

use mainstem_storage::Result;
use serde_json::{Number, Value as Json};

use crate::value::{Decimal, FromValue, ToValue, ValueRef};

impl From<ValueRef<'_>> for Json {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Boolean(v) => Self::Bool(v),
            ValueRef::SmallInt(v) => v.into(),
            ValueRef::Integer(v) => v.into(),
            ValueRef::BigInt(v) => v.into(),
            // The fewest digits that are this number, not those of the double next to it.
            ValueRef::Real(v) => v.to_string().parse().ok().map_or(Self::Null, of_double),
            ValueRef::Double(v) => of_double(v),
            ValueRef::Decimal(v) => of_decimal(v),
            ValueRef::Date(v) => v.to_string().into(),
            ValueRef::Time(v) => v.to_string().into(),
            ValueRef::Timestamp(v) => v.to_string().replacen(' ', "T", 1).into(),
            ValueRef::TimestampTz(v) => v.to_string().replacen(' ', "T", 1).replacen("+00", "+00:00", 1).into(),
            ValueRef::Text(v) => v.into(),
            ValueRef::Bytes(v) => {
                let digits: String = v.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("\\x{digits}").into()
            }
            ValueRef::Uuid(v) => v.to_string().into(),
        }
    }
}

fn of_double(value: f64) -> Json {
    match Number::from_f64(value + 0.0) {
        Some(number) => Json::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// A number where one of JSON's is the same, or else the text.
fn of_decimal(decimal: Decimal) -> Json {
    let text = decimal.to_string();
    if decimal.scale() == 0 {
        if let Ok(whole) = text.parse::<i64>() {
            return whole.into();
        }
        if let Ok(whole) = text.parse::<u64>() {
            return whole.into();
        }
        return text.into();
    }
    let without_zeros = text.trim_end_matches('0').trim_end_matches('.');
    match text.parse::<f64>().ok().filter(|double| double.to_string() == without_zeros) {
        Some(double) => of_double(double),
        None => text.into(),
    }
}

/// Of any value; NULL is `null`.
impl<'a> FromValue<'a> for Json {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Ok(value.into())
    }
}

impl ToValue for Json {
    /// Of arrays, objects and numbers that no type holds NULL: they are bound by their text, see
    /// [`ToValue::owned_text`].
    fn to_value(&self) -> ValueRef<'_> {
        match self {
            Self::Null | Self::Array(_) | Self::Object(_) => ValueRef::Null,
            Self::Bool(v) => ValueRef::Boolean(*v),
            Self::Number(number) => of_number(number).unwrap_or(ValueRef::Null),
            Self::String(text) => ValueRef::Text(text),
        }
    }

    fn owned_text(&self) -> Option<String> {
        match self {
            Self::Array(_) | Self::Object(_) => Some(self.to_string()),
            Self::Number(number) if of_number(number).is_none() => Some(number.to_string()),
            _ => None,
        }
    }
}

/// None for a number that is neither an integer of 64 bits nor a double: with `arbitrary_precision` of `serde_json` it
/// may be any.
fn of_number(number: &Number) -> Option<ValueRef<'static>> {
    if let Some(whole) = number.as_i64() {
        return Some(ValueRef::BigInt(whole));
    }
    if let Some(Ok(whole)) = number.as_u64().map(|whole| Decimal::new(whole.into(), 0)) {
        return Some(ValueRef::Decimal(whole));
    }
    number.as_f64().filter(|double| is_written(*double, &number.to_string())).map(ValueRef::Double)
}

/// Whether `text`, a number of JSON, is `double`, by the fewest digits that are it, and not one next to it.
fn is_written(double: f64, text: &str) -> bool {
    let digits = |text: &str| {
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = number.trim_start_matches('-');
        let (whole, behind) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let exponent = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(behind.len()).ok()?)?;
        let digits = [whole, behind].concat();
        let figures = digits.trim_end_matches('0');
        let zeros = i64::try_from(digits.len() - figures.len()).ok()?;
        let figures = figures.trim_start_matches('0').to_owned();
        // A zero is one however it is written.
        let exponent = if figures.is_empty() { 0 } else { exponent.checked_add(zeros)? };
        Some((number.starts_with('-'), figures, exponent))
    };
    double.is_finite() && digits(text).is_some_and(|written| digits(&format!("{double:e}")) == Some(written))
}

#[cfg(test)]
mod tests;
