//! Texts that spell intervals, read as PostgreSQL reads them.
//!
//! Comes in: a text, and the fields that the type names, if any: `interval '1-2' YEAR TO MONTH`. Goes out: months, days
//! and a time. Steps:
//!
//! 1. the text is cut into words, numbers, times of day and what has a sign ([`tokens`]);
//! 2. they are read from right to left, so that a unit is known before its number ([`Reader`]);
//! 3. what is smaller than the last field goes away.
//!
//! A fraction of a unit becomes days and time, of a year months. Invariant: parts are added with checks; a time has
//! room in nanoseconds. It does not own: how intervals are written (`value::time`).

use arrow::datatypes::IntervalMonthDayNano;
use mainstem_storage::{Error, Result};

use crate::sqlstate;

/// invalid_datetime_format
const MALFORMED: &str = "22007";
/// interval_field_overflow
const FIELD_OVERFLOW: &str = "22015";

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const DAYS_OF_MONTH: f64 = 30.0;
/// Tokens of one text.
const TOKENS_MAX: usize = 25;
/// Letters of a unit that count.
const UNIT_CHARS: usize = 10;

/// What an interval's type may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Years.
    Year,
    /// Months.
    Month,
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds, with their fraction.
    Second,
}

/// The first and the last field that an interval's type names.
pub type Fields = (Field, Field);

/// The interval that `text` spells.
///
/// # Errors
/// 22007 for a text that spells none, 22015 and 22008 for parts out of range.
pub fn interval_of(text: &str, fields: Option<Fields>) -> Result<IntervalMonthDayNano> {
    let parts = Reader::new(fields).read(text).map_err(|wrong| match wrong {
        Wrong::Malformed => Error::invalid(MALFORMED, format!("invalid input syntax for type interval: \"{text}\"")),
        Wrong::Overflow => Error::invalid(FIELD_OVERFLOW, format!("interval field value out of range: \"{text}\"")),
    })?;
    let months = i64::from(parts.years) * 12 + i64::from(parts.months);
    let (mut months, mut days, mut micros) = (months, parts.days, parts.micros);
    if let Some((_, last)) = fields {
        if last == Field::Year {
            months = months / 12 * 12;
        }
        if last < Field::Day {
            days = 0;
        }
        micros = match last {
            Field::Year | Field::Month | Field::Day => 0,
            Field::Hour => micros - micros % HOUR,
            Field::Minute => micros - micros % MINUTE,
            Field::Second => micros,
        };
    }
    let out_of_range = || Error::invalid(sqlstate::DATETIME_OVERFLOW, "interval out of range");
    let months = i32::try_from(months).map_err(|_| out_of_range())?;
    let nanos = micros.checked_mul(1_000).ok_or_else(out_of_range)?;
    Ok(IntervalMonthDayNano::new(months, days, nanos))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Malformed,
    Overflow,
}

type Read<T> = std::result::Result<T, Wrong>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    /// So many years.
    Years(i32),
}

impl Unit {
    fn of_field(field: Field) -> Self {
        match field {
            Field::Year => Self::Years(1),
            Field::Month => Self::Month,
            Field::Day => Self::Day,
            Field::Hour => Self::Hour,
            Field::Minute => Self::Minute,
            Field::Second => Self::Second,
        }
    }

    /// The unit that a word in small letters names.
    fn named(word: &str) -> Option<Self> {
        let word = word.char_indices().nth(UNIT_CHARS).and_then(|(end, _)| word.get(..end)).unwrap_or(word);
        Some(match word {
            "us" | "usec" | "usecs" | "useconds" | "microsecon" => Self::Microsecond,
            "ms" | "msec" | "msecs" | "mseconds" | "millisecon" => Self::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "w" | "week" | "weeks" => Self::Week,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Self::Years(1),
            "dec" | "decs" | "decade" | "decades" => Self::Years(10),
            "c" | "cent" | "century" | "centuries" => Self::Years(100),
            "mil" | "mils" | "millennia" | "millennium" => Self::Years(1_000),
            _ => return None,
        })
    }

    /// A bit for each unit; a text names none twice.
    fn mask(self) -> u16 {
        match self {
            Self::Microsecond => 1,
            Self::Millisecond => 1 << 1,
            Self::Second => 1 << 2,
            Self::Minute => 1 << 3,
            Self::Hour => 1 << 4,
            Self::Day => 1 << 5,
            Self::Week => 1 << 6,
            Self::Month => 1 << 7,
            Self::Years(1) => 1 << 8,
            Self::Years(10) => 1 << 9,
            Self::Years(100) => 1 << 10,
            Self::Years(_) => 1 << 11,
        }
    }
}

/// Seconds and their parts.
const SECONDS_MASK: u16 = 0b111;
/// A time of day.
const TIME_MASK: u16 = 0b1_1111;

#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

fn add_i32(to: &mut i32, number: i64, scale: i32) -> Read<()> {
    let number = i32::try_from(number).ok().and_then(|number| number.checked_mul(scale));
    *to = number.and_then(|number| to.checked_add(number)).ok_or(Wrong::Overflow)?;
    Ok(())
}

impl Parts {
    /// Adds `number` and `fraction`, which is below one, of `unit`.
    fn add(&mut self, number: i64, fraction: f64, unit: Unit) -> Read<()> {
        match unit {
            Unit::Microsecond => self.add_micros(number, fraction, 1),
            Unit::Millisecond => self.add_micros(number, fraction, 1_000),
            Unit::Second => self.add_micros(number, fraction, SECOND),
            Unit::Minute => self.add_micros(number, fraction, MINUTE),
            Unit::Hour => self.add_micros(number, fraction, HOUR),
            Unit::Day => {
                add_i32(&mut self.days, number, 1)?;
                self.add_micros(0, fraction, DAY)
            }
            Unit::Week => {
                add_i32(&mut self.days, number, 7)?;
                self.add_days(fraction * 7.0)
            }
            Unit::Month => {
                add_i32(&mut self.months, number, 1)?;
                self.add_days(fraction * DAYS_OF_MONTH)
            }
            Unit::Years(years) => {
                add_i32(&mut self.years, number, years)?;
                let months = (fraction * f64::from(years) * 12.0).round_ties_even();
                add_i32(&mut self.months, months as i64, 1)
            }
        }
    }

    fn add_micros(&mut self, number: i64, fraction: f64, scale: i64) -> Read<()> {
        let fraction = fraction * scale as f64;
        let whole = fraction.trunc();
        let rest = fraction - whole;
        let up = i64::from(rest > 0.5) - i64::from(rest < -0.5);
        let micros = number.checked_mul(scale).and_then(|micros| micros.checked_add(whole as i64 + up));
        self.micros = micros.and_then(|micros| self.micros.checked_add(micros)).ok_or(Wrong::Overflow)?;
        Ok(())
    }

    /// Adds days that are not whole.
    fn add_days(&mut self, days: f64) -> Read<()> {
        add_i32(&mut self.days, days.trunc() as i64, 1)?;
        self.add_micros(0, days.fract(), DAY)
    }

    fn negated(self) -> Read<Self> {
        let Self { years, months, days, micros } = self;
        let negated = || {
            Some(Self {
                years: years.checked_neg()?,
                months: months.checked_neg()?,
                days: days.checked_neg()?,
                micros: micros.checked_neg()?,
            })
        };
        negated().ok_or(Wrong::Overflow)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// In small letters.
    Word(String),
    /// Digits with a colon in them.
    Time(String),
    /// Digits, perhaps with a point or other separators in them.
    Number(String),
    /// A sign, and digits with whatever separates them.
    Signed(String),
}

/// Words that may stand in front of a digit without a blank.
const BEFORE_DIGITS: &[&str] = &["d", "dec", "h", "m", "mon", "s", "y"];

/// Cuts `text`; other punctuation separates, and means nothing.
fn tokens(text: &str) -> Read<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let take = |rest: &mut &str, wanted: &dyn Fn(char) -> bool| {
        let end = rest.find(|c: char| !wanted(c)).unwrap_or(rest.len());
        let (taken, behind) = rest.split_at(end);
        *rest = behind;
        taken.to_ascii_lowercase()
    };
    let digit = |c: char| c.is_ascii_digit();
    while let Some(first) = rest.chars().next() {
        let token = if first.is_ascii_digit() {
            let mut number = take(&mut rest, &digit);
            match rest.chars().next() {
                Some(':') => Token::Time(number + &take(&mut rest, &|c| digit(c) || c == ':' || c == '.')),
                Some(between @ ('-' | '/' | '.')) => {
                    rest = rest.get(1..).unwrap_or_default();
                    number.push(between);
                    let behind = take(&mut rest, &digit);
                    let more = match behind.is_empty() {
                        true => take(&mut rest, &|c| c.is_ascii_alphanumeric() || c == between),
                        false if rest.starts_with(between) => take(&mut rest, &|c| digit(c) || c == between),
                        false => String::new(),
                    };
                    Token::Number(number + &behind + &more)
                }
                _ => Token::Number(number),
            }
        } else if first == '.' {
            rest = rest.get(1..).unwrap_or_default();
            Token::Number(".".to_owned() + &take(&mut rest, &digit))
        } else if first.is_ascii_alphabetic() {
            let word = take(&mut rest, &|c| c.is_ascii_alphabetic());
            let next = rest.chars().next();
            let goes_on = matches!(next, Some('-' | '/' | '.'))
                || next.is_some_and(|c| c == '+' || digit(c)) && !BEFORE_DIGITS.contains(&word.as_str());
            if goes_on {
                return Err(Wrong::Malformed);
            }
            Token::Word(word)
        } else if matches!(first, '+' | '-') {
            rest = rest.get(1..).unwrap_or_default().trim_ascii_start();
            match rest.chars().next() {
                Some(c) if digit(c) || c == '.' => {
                    let more = |c| digit(c) || matches!(c, ':' | '.' | '-');
                    Token::Signed(first.to_string() + &take(&mut rest, &more))
                }
                Some(c) if c.is_ascii_alphabetic() => Token::Word(take(&mut rest, &|c| c.is_ascii_alphabetic())),
                _ => return Err(Wrong::Malformed),
            }
        } else if first.is_ascii_whitespace() || first == '\u{b}' || first.is_ascii_punctuation() {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        } else {
            return Err(Wrong::Malformed);
        };
        tokens.push(token);
    }
    if tokens.len() > TOKENS_MAX { Err(Wrong::Malformed) } else { Ok(tokens) }
}

/// Reads tokens from right to left.
struct Reader {
    fields: Option<Fields>,
    parts: Parts,
    /// Units that were there.
    seen: u16,
    next: Next,
}

/// What is known of the unit of the next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It follows from the type.
    Open,
    Unit(Unit),
    /// `ago` stands behind it, which is no unit.
    Ago,
}

impl Reader {
    fn new(fields: Option<Fields>) -> Self {
        Self { fields, parts: Parts::default(), seen: 0, next: Next::Open }
    }

    fn read(mut self, text: &str) -> Read<Parts> {
        let mut is_before = false;
        for token in tokens(text)?.into_iter().rev() {
            match token {
                Token::Word(word) if word == "ago" => {
                    is_before = true;
                    self.next = Next::Ago;
                }
                Token::Word(word) => self.next = Next::Unit(Unit::named(&word).ok_or(Wrong::Malformed)?),
                Token::Time(time) => self.time(&time, false)?,
                Token::Signed(signed) => {
                    let (sign, rest) = signed.split_at(1);
                    let is_time = rest.contains(':') && self.time_of(rest).is_ok();
                    if is_time { self.time(rest, sign == "-")? } else { self.number(&signed)? }
                }
                Token::Number(number) => self.number(&number)?,
            }
        }
        match self.seen {
            0 => Err(Wrong::Malformed),
            _ if is_before => self.parts.negated(),
            _ => Ok(self.parts),
        }
    }

    fn note(&mut self, mask: u16) -> Read<()> {
        if self.seen & mask != 0 {
            return Err(Wrong::Malformed);
        }
        self.seen |= mask;
        Ok(())
    }

    fn time(&mut self, time: &str, negative: bool) -> Read<()> {
        let micros = self.time_of(time)?;
        self.parts.micros = if negative { -micros } else { micros };
        self.next = Next::Unit(Unit::Day);
        self.note(TIME_MASK)
    }

    /// Microseconds of `h:m`, `m:s.f`, `h:m:s` and `h:m:s.f`; hours may be many.
    fn time_of(&self, time: &str) -> Read<i64> {
        let (whole, fraction) = match time.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (time, None),
        };
        let numbers = whole.split(':').map(|digits| {
            // Nothing is zero, as a C library reads it.
            let number = if digits.is_empty() { Ok(0) } else { digits.parse::<i64>() };
            number.map_err(|_| Wrong::Overflow)
        });
        let numbers = numbers.collect::<Read<Vec<i64>>>()?;
        let is_minutes = fraction.is_some() || self.fields == Some((Field::Minute, Field::Second));
        let (hours, minutes, seconds) = match *numbers.as_slice() {
            [minutes, seconds] if is_minutes => (0, minutes, seconds),
            [hours, minutes] => (hours, minutes, 0),
            [hours, minutes, seconds] => (hours, minutes, seconds),
            _ => return Err(Wrong::Malformed),
        };
        let fraction = fraction_of(fraction.unwrap_or_default())?;
        if !(0..60).contains(&minutes) || !(0..=60).contains(&seconds) {
            return Err(Wrong::Overflow);
        }
        let micros = minutes * MINUTE + seconds * SECOND + (fraction * SECOND as f64).round_ties_even() as i64;
        hours.checked_mul(HOUR).and_then(|hours| hours.checked_add(micros)).ok_or(Wrong::Overflow)
    }

    /// A number of the unit behind it, or of that which the type says; `years-months`.
    fn number(&mut self, text: &str) -> Read<()> {
        let negative = text.starts_with('-');
        let unsigned = text.trim_start_matches(['+', '-']);
        let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
        let (digits, rest) = unsigned.split_at(end);
        let number: i64 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| Wrong::Overflow)? };
        let signed = |number: i64| if negative { -number } else { number };
        if let Some(months) = rest.strip_prefix('-') {
            let months: i64 = match months {
                "" => 0,
                digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| Wrong::Overflow)?,
                _ => return Err(Wrong::Malformed),
            };
            if months > 11 {
                return Err(Wrong::Overflow);
            }
            let months = number.checked_mul(12).and_then(|years| years.checked_add(months)).ok_or(Wrong::Overflow)?;
            self.next = Next::Unit(Unit::Month);
            self.parts.add(signed(months), 0.0, Unit::Month)?;
            return self.note(Unit::Month.mask());
        }
        let unit = match self.next {
            Next::Unit(unit) => unit,
            Next::Open => Unit::of_field(self.fields.map_or(Field::Second, |(_, last)| last)),
            Next::Ago => return Err(Wrong::Malformed),
        };
        let fraction = match rest.strip_prefix('.') {
            Some(fraction) => fraction_of(fraction)?,
            None if rest.is_empty() => 0.0,
            None => return Err(Wrong::Malformed),
        };
        self.parts.add(signed(number), if negative { -fraction } else { fraction }, unit)?;
        // A number in front of hours is one of days.
        self.next = Next::Unit(if unit == Unit::Hour { Unit::Day } else { unit });
        self.note(if unit == Unit::Second && fraction != 0.0 { SECONDS_MASK } else { unit.mask() })
    }
}

/// What digits behind a point are.
fn fraction_of(digits: &str) -> Read<f64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Wrong::Malformed);
    }
    format!("0.{digits}0").parse().map_err(|_| Wrong::Malformed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::{Field, interval_of};
    use crate::types::interval_text;

    fn shown(text: &str, fields: Option<(Field, Field)>) -> String {
        match interval_of(text, fields) {
            Ok(span) => interval_text(span.months, span.days, span.nanoseconds / 1_000),
            Err(error) => error.sqlstate().to_owned(),
        }
    }

    /// Answers are PostgreSQL's; `slt/intervals.slt` has more of them.
    #[test]
    fn intervals_are_read_as_postgresql_reads_them() {
        for (text, expected) in [
            ("1 day 04:05:06", "1 day 04:05:06"),
            ("-1-2 +3 -4:05:06", "-1 years -2 mons +3 days -04:05:06"),
            ("@ 1 minute ago", "-00:01:00"),
            ("04:05 1.5 days", "1 day 04:05:00"),
            ("P1Y2M", "22007"),
            ("1day2hours", "22007"),
            ("1.5 sec 3 ms", "22007"),
            ("5-13", "22015"),
            ("2562048 hours", "22008"),
        ] {
            assert_eq!(shown(text, None), expected, "{text}");
        }
    }

    #[test]
    fn fields_of_the_type_say_what_numbers_are_and_cut() {
        use Field::{Day, Hour, Minute, Month, Second, Year};
        for (text, fields, expected) in [
            ("1", (Year, Year), "1 year"),
            ("1", (Day, Minute), "00:01:00"),
            ("1-2", (Year, Year), "1 year"),
            ("1 day 04:05:06", (Day, Hour), "1 day 04:00:00"),
            ("1 day 04:05:06", (Year, Month), "00:00:00"),
            ("4:05", (Minute, Second), "00:04:05"),
        ] {
            assert_eq!(shown(text, Some(fields)), expected, "{text} {fields:?}");
        }
    }
}
