//! Which type a text is of, and which one a column of texts.
//!
//! A text is taken for a value in one plain form alone: truth values as `true` and `t`, numbers in digits, dates,
//! times and timestamps as ISO 8601 has them. What a cast would take besides, `yes` or `tomorrow`, stays a text.

use mainstem_postgres::types::days_from_civil;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use super::Field;

/// Digits of the decimals that are taken for such: those that fit 64 bits.
const DECIMAL_DIGITS: u8 = 18;
/// Digits behind their points. What has more was measured or computed, and is a float.
const SCALE_MAX: u8 = 6;
/// Digits of the longest whole numbers that are no floats.
const WHOLE_DIGITS_MAX: u8 = 38;

/// What a text may be a value of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Boolean,
    /// A whole number of 32 bits, of 64 bits, or a longer one.
    Integer,
    BigInt,
    Whole {
        digits: u8,
    },
    /// A number with a point.
    Decimal {
        whole: u8,
        scale: u8,
    },
    /// A number with an exponent, or one with too many digits, or none.
    Double,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
}

impl ValueType {
    /// That of `text`; none for a text that is nothing else.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let first = *text.first()?;
        if let Some(number) = number(text) {
            return Some(number);
        }
        if text.len() == 36 && is_uuid(text) {
            return Some(Self::Uuid);
        }
        if first.is_ascii_digit() {
            return datetime(text);
        }
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
        if is(&["true", "false", "t", "f"]) {
            return Some(Self::Boolean);
        }
        is(&["nan", "inf", "infinity", "-inf", "-infinity"]).then_some(Self::Double)
    }
}

/// The types that all texts of a column may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnTypes {
    /// Whether there was a text at all.
    any: bool,
    is_text: bool,
    kind: Option<Kind>,
    /// Digits of numbers in front of the point, and behind it.
    whole: u8,
    scale: u8,
    /// Whether there was a number that does not fit 32 bits, or 64.
    beyond_integer: bool,
    beyond_bigint: bool,
    has_exponent: bool,
    /// Whether all timestamps were dates.
    only_dates: bool,
}

impl Default for ColumnTypes {
    fn default() -> Self {
        Self {
            any: false,
            is_text: false,
            kind: None,
            whole: 0,
            scale: 0,
            beyond_integer: false,
            beyond_bigint: false,
            has_exponent: false,
            only_dates: true,
        }
    }
}

/// What the values of a column have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    Number,
    Day,
    Time,
    TimestampTz,
    Uuid,
}

impl ColumnTypes {
    /// One more field, of which `null` means NULL.
    pub(super) fn add_field(&mut self, field: &Field, null: &str) {
        if !field.is_null(null) {
            self.add(&field.text);
        }
    }

    /// One more text.
    pub(super) fn add(&mut self, text: &[u8]) {
        self.any = true;
        if self.is_text {
            return;
        }
        let Some(value) = ValueType::of(text) else {
            self.is_text = true;
            return;
        };
        let kind = match value {
            ValueType::Boolean => Kind::Boolean,
            ValueType::Date | ValueType::Timestamp => Kind::Day,
            ValueType::Time => Kind::Time,
            ValueType::TimestampTz => Kind::TimestampTz,
            ValueType::Uuid => Kind::Uuid,
            _ => Kind::Number,
        };
        self.is_text |= *self.kind.get_or_insert(kind) != kind;
        match value {
            ValueType::BigInt => {
                self.beyond_integer = true;
                self.whole = self.whole.max(integer_digits(text));
            }
            ValueType::Whole { digits } => {
                (self.beyond_integer, self.beyond_bigint) = (true, true);
                self.whole = self.whole.max(digits);
            }
            ValueType::Integer => self.whole = self.whole.max(integer_digits(text)),
            ValueType::Decimal { whole, scale } => {
                self.whole = self.whole.max(whole);
                self.scale = self.scale.max(scale);
            }
            ValueType::Double => self.has_exponent = true,
            ValueType::Timestamp => self.only_dates = false,
            _ => {}
        }
    }

    /// The types of all that `self` and `other` were of.
    pub(super) fn merge(&mut self, other: &Self) {
        let kinds_differ = matches!((self.kind, other.kind), (Some(one), Some(two)) if one != two);
        *self = Self {
            any: self.any || other.any,
            is_text: self.is_text || other.is_text || kinds_differ,
            kind: self.kind.or(other.kind),
            whole: self.whole.max(other.whole),
            scale: self.scale.max(other.scale),
            beyond_integer: self.beyond_integer || other.beyond_integer,
            beyond_bigint: self.beyond_bigint || other.beyond_bigint,
            has_exponent: self.has_exponent || other.has_exponent,
            only_dates: self.only_dates && other.only_dates,
        };
    }

    /// Whether the column is of another type than TEXT.
    pub(super) fn is_typed(&self) -> bool {
        self.any && !self.is_text
    }

    /// Whether `text` is of the type of the column, or makes it one of another type than TEXT.
    pub(super) fn takes(&self, text: &[u8]) -> bool {
        let mut with = *self;
        with.add(text);
        with.is_typed()
    }

    /// The first type that all texts may be of.
    pub(super) fn data_type(&self) -> DataType {
        let kind = match self.kind {
            Some(kind) if self.is_typed() => kind,
            _ => return DataType::Text { max_chars: None },
        };
        match kind {
            Kind::Boolean => DataType::Boolean,
            Kind::Day if self.only_dates => DataType::Date,
            Kind::Day => DataType::Timestamp,
            Kind::Time => DataType::Time,
            Kind::TimestampTz => DataType::TimestampTz,
            Kind::Uuid => DataType::Uuid,
            Kind::Number => self.number(),
        }
    }

    fn number(&self) -> DataType {
        if self.has_exponent {
            return DataType::Double;
        }
        if self.scale > 0 {
            let fits = self.scale <= SCALE_MAX && self.whole + self.scale <= DECIMAL_DIGITS && !self.beyond_bigint;
            let scale = self.scale as i8;
            return if fits { DataType::Decimal { precision: DECIMAL_DIGITS, scale } } else { DataType::Double };
        }
        match (self.beyond_bigint, self.beyond_integer) {
            (true, _) if self.whole <= WHOLE_DIGITS_MAX => DataType::Decimal { precision: WHOLE_DIGITS_MAX, scale: 0 },
            (true, _) => DataType::Double,
            (false, true) => DataType::BigInt,
            (false, false) => DataType::Integer,
        }
    }
}

/// Digits of a whole number, without the zeros in front.
fn integer_digits(text: &[u8]) -> u8 {
    let digits = text.iter().skip_while(|byte| !(b'1'..=b'9').contains(*byte)).count();
    u8::try_from(digits).unwrap_or(u8::MAX)
}

/// The type of the number that `text` spells.
fn number(text: &[u8]) -> Option<ValueType> {
    let digits = match text {
        [b'-' | b'+', digits @ ..] => digits,
        digits => digits,
    };
    // What has zeros in front is a code of some kind, which would be another one without them.
    let is_number = digits.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !is_number || matches!(digits, [b'0', b'0'..=b'9', ..]) {
        return None;
    }
    let is_whole = digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok()?;
    if is_whole {
        let significant = integer_digits(digits);
        return Some(match text.parse::<i64>() {
            Ok(value) if i32::try_from(value).is_ok() => ValueType::Integer,
            Ok(_) => ValueType::BigInt,
            Err(_) if significant <= WHOLE_DIGITS_MAX => ValueType::Whole { digits: significant },
            Err(_) => return is_float(text).then_some(ValueType::Double),
        });
    }
    let point = digits.iter().position(|byte| *byte == b'.');
    let is_fixed = digits.iter().filter(|byte| !byte.is_ascii_digit()).count() == 1;
    if let (Some(point), true) = (point, is_fixed) {
        let (whole, fraction) = digits.split_at_checked(point)?;
        let scale = fraction.len() - 1;
        if whole.is_empty() && scale == 0 {
            return None;
        }
        let whole = integer_digits(whole);
        return match u8::try_from(scale) {
            Ok(scale @ 1..=SCALE_MAX) if whole + scale <= DECIMAL_DIGITS => Some(ValueType::Decimal { whole, scale }),
            _ => is_float(text).then_some(ValueType::Double),
        };
    }
    let is_plain = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    (digits.iter().all(is_plain) && is_float(text)).then_some(ValueType::Double)
}

/// Whether a float comes near the number that `text` spells.
fn is_float(text: &str) -> bool {
    let is_zero = || text.bytes().take_while(|byte| !b"eE".contains(byte)).all(|byte| b"+-0.".contains(&byte));
    text.parse::<f64>().is_ok_and(|value| value.is_finite() && (value != 0.0 || is_zero()))
}

fn is_uuid(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// The type of the date, time or timestamp that `text` spells.
fn datetime(text: &[u8]) -> Option<ValueType> {
    if text.get(2) == Some(&b':') {
        return (time(text)?.is_empty()).then_some(ValueType::Time);
    }
    let rest = date(text)?;
    let Some((mark, rest)) = rest.split_first() else { return Some(ValueType::Date) };
    if !matches!(mark, b' ' | b'T') {
        return None;
    }
    match time(rest)? {
        [] => Some(ValueType::Timestamp),
        [b'Z'] => Some(ValueType::TimestampTz),
        [b'+' | b'-', zone @ ..] => is_zone(zone).then_some(ValueType::TimestampTz),
        _ => None,
    }
}

/// Two digits, and what stands behind them.
fn pair(text: &[u8]) -> Option<(u32, &[u8])> {
    let [tens, ones, rest @ ..] = text else { return None };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    Some((10 * digit(*tens)? + digit(*ones)?, rest))
}

/// What stands behind a date.
fn date(text: &[u8]) -> Option<&[u8]> {
    let (century, rest) = pair(text)?;
    let (year, rest) = pair(rest)?;
    let (month, rest) = pair(rest.strip_prefix(b"-")?)?;
    let (day, rest) = pair(rest.strip_prefix(b"-")?)?;
    let year = i64::from(100 * century + year);
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let is_month = year > 0 && (1..=12).contains(&month);
    let days = || days_from_civil(next_year, i64::from(next_month), 1) - days_from_civil(year, i64::from(month), 1);
    (is_month && day > 0 && i64::from(day) <= days()).then_some(rest)
}

/// What stands behind a time: `12:30:00`, with up to six digits of a second.
fn time(text: &[u8]) -> Option<&[u8]> {
    let (hour, rest) = pair(text)?;
    let (minute, rest) = pair(rest.strip_prefix(b":")?)?;
    let (second, rest) = pair(rest.strip_prefix(b":")?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let Some(fraction) = rest.strip_prefix(b".") else { return Some(rest) };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if (1..=6).contains(&digits) { fraction.get(digits..) } else { None }
}

/// Whether `text`, behind its sign, is the distance of a time zone: `02`, `02:00` or `0200`.
fn is_zone(text: &[u8]) -> bool {
    let Some((hours, rest)) = pair(text) else { return false };
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let minutes = if rest.is_empty() { Some((0, rest)) } else { pair(rest) };
    hours <= 14 && minutes.is_some_and(|(minutes, rest)| minutes < 60 && rest.is_empty())
}

/// Fails if one of `texts` is not of `data_type` in the plain form: it was found in other texts, and may be the type of
/// these by a cast alone, which would round them or take them for something else.
///
/// # Errors
/// 22P02.
pub(crate) fn check_fits<'t>(texts: impl Iterator<Item = Option<&'t str>>, data_type: DataType) -> Result<()> {
    if matches!(data_type, DataType::Text { .. }) {
        return Ok(());
    }
    let wrong = texts.flatten().find(|text| !fits(text, data_type));
    let Some(text) = wrong else { return Ok(()) };
    let shown: String = text.chars().take(100).collect();
    Err(Error::invalid(sqlstate::INVALID_TEXT, format!("\"{shown}\" is no {data_type} in its plain form")))
}

fn fits(text: &str, data_type: DataType) -> bool {
    let Some(value) = ValueType::of(text.as_bytes()) else { return false };
    match (value, data_type) {
        (ValueType::Boolean, DataType::Boolean)
        | (ValueType::Integer, DataType::Integer | DataType::BigInt)
        | (ValueType::BigInt, DataType::BigInt)
        | (ValueType::Date, DataType::Date | DataType::Timestamp)
        | (ValueType::Time, DataType::Time)
        | (ValueType::Timestamp, DataType::Timestamp)
        | (ValueType::TimestampTz, DataType::TimestampTz)
        | (ValueType::Uuid, DataType::Uuid) => true,
        (ValueType::Integer | ValueType::BigInt, DataType::Decimal { precision, scale }) => {
            i16::from(integer_digits(text.as_bytes())) + i16::from(scale) <= i16::from(precision)
        }
        (ValueType::Whole { digits }, DataType::Decimal { precision, scale }) => {
            i16::from(digits) + i16::from(scale) <= i16::from(precision)
        }
        (ValueType::Decimal { whole, scale: digits }, DataType::Decimal { precision, scale }) => {
            i16::from(digits) <= i16::from(scale) && i16::from(whole) + i16::from(scale) <= i16::from(precision)
        }
        (
            ValueType::Integer
            | ValueType::BigInt
            | ValueType::Whole { .. }
            | ValueType::Decimal { .. }
            | ValueType::Double,
            DataType::Double,
        ) => true,
        _ => false,
    }
}

/// The type that values of `one` and of `two` are both of: of files that are read as one.
pub(crate) fn common_type(one: DataType, two: DataType) -> DataType {
    use DataType as T;
    let text = T::Text { max_chars: None };
    match (one, two) {
        (one, two) if one == two => one,
        (T::Integer, T::BigInt) | (T::BigInt, T::Integer) => T::BigInt,
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => T::Timestamp,
        (T::Decimal { scale: one, precision: p }, T::Decimal { scale: two, precision: q }) if p == q => {
            T::Decimal { precision: p, scale: one.max(two) }
        }
        (T::Integer, of @ T::Decimal { .. }) | (of @ T::Decimal { .. }, T::Integer) => of,
        (T::BigInt, T::Decimal { scale: 0, precision }) | (T::Decimal { scale: 0, precision }, T::BigInt) => {
            T::Decimal { precision, scale: 0 }
        }
        (
            T::Integer | T::BigInt | T::Decimal { .. } | T::Double,
            T::Integer | T::BigInt | T::Decimal { .. } | T::Double,
        ) => T::Double,
        _ => text,
    }
}
