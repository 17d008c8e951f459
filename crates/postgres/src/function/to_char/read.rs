//! Days and times out of texts by a pattern, as PostgreSQL's `to_date` and `to_timestamp` read them (`formatting.c`).
//!
//! Comes in: a text, and a pattern in parts. Goes out: microseconds since 1970-01-01, in UTC.
//!
//! 1. Each part takes characters of the text until either ends. A field takes as many digits as there are if no digit
//!    may stand behind it, else as many as it is wide; blanks in front of fields are passed over, and a separator
//!    stands for any other, or for none.
//! 2. What was read is put together: days of years, 12-hour clocks. A field that is not there
//!    is that of the first day of its year. What is no day or time is 22008, what is no field 22007.

use mainstem_storage::{Error, Result};

use super::pattern::{DAYS, MONTHS, Part, is_separator};
use crate::sqlstate;
use crate::sqlstate::BAD_DATETIME;
use crate::types::{SECONDS_OF_DAY, civil_from_days, days_from_civil};

const MICROS_OF_SECOND: i64 = 1_000_000;

/// Fields that are read.
pub(super) const FIELDS: &[&str] = &[
    "A.M.", "AM", "DAY", "DD", "DDD", "DY", "HH", "HH12", "HH24", "MI", "MM", "MON", "MONTH", "MS", "P.M.", "PM", "SS",
    "US", "Y", "YY", "YYY", "YYYY",
];

/// Whether a field is written in digits.
fn is_number(name: &str) -> bool {
    !matches!(name, "A.M." | "AM" | "DAY" | "DY" | "MONTH" | "MON" | "P.M." | "PM")
}

/// The instant that `text` spells by `pattern`, in microseconds since 1970-01-01.
///
/// # Errors
/// 22007, 22008.
pub(super) fn instant(pattern: &[Part], text: &str) -> Result<i64> {
    let mut source = Source { rest: text, passed: 0, field: "" };
    let mut read = Read::default();
    for (number, part) in pattern.iter().enumerate() {
        if source.rest.is_empty() {
            break;
        }
        if number == 0 || matches!(part, Part::Field { .. }) {
            source.skip_spaces();
        }
        match part {
            Part::Separator(_) => {
                source.passed -= 1;
                if source.rest.starts_with(is_separator) {
                    source.skip();
                    source.passed += 1;
                }
            }
            Part::Character(_) => {
                if source.passed > 0 {
                    source.passed -= 1;
                } else {
                    source.skip();
                }
            }
            Part::Field { name, fill } => {
                // A digit may follow only where another number stands behind, or a digit.
                let before_digit = match pattern.get(number + 1) {
                    Some(Part::Field { name, .. }) => is_number(&name.to_ascii_uppercase()),
                    Some(Part::Character(c)) => c.is_ascii_digit(),
                    Some(Part::Separator(_)) | None => false,
                };
                source.field = name;
                read.field(&name.to_ascii_uppercase(), &mut source, *fill || !before_digit)?;
                source.passed = 0;
                source.skip_spaces();
            }
        }
    }
    read.instant().map_err(|wrong| wrong.into_error(text))
}

/// What is left of a text.
struct Source<'t> {
    rest: &'t str,
    /// Characters that were passed over beside those of the pattern.
    passed: i32,
    /// The field that is read, as the pattern has it.
    field: &'static str,
}

fn bad(message: String) -> Error {
    Error::invalid(BAD_DATETIME, message)
}

impl<'t> Source<'t> {
    fn skip(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }

    fn skip_spaces(&mut self) {
        while self.rest.starts_with(char::is_whitespace) {
            self.skip();
            self.passed += 1;
        }
    }

    /// The next number, of at most `width` digits unless it is `greedy`, and how many characters it has.
    fn number(&mut self, width: usize, greedy: bool) -> Result<(i64, usize)> {
        let name = self.field;
        self.rest = self.rest.trim_start();
        let piece = match greedy {
            true => self.rest,
            false => self
                .rest
                .char_indices()
                .nth(width)
                .map_or(self.rest, |(end, _)| self.rest.get(..end).unwrap_or_default()),
        };
        if !greedy && piece.chars().count() < width {
            return Err(bad(format!("source string too short for \"{name}\" formatting field")));
        }
        let sign = usize::from(piece.starts_with(['-', '+']));
        let digits = piece.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
        let length = if digits == 0 { 0 } else { sign + digits };
        let shown: String = self.rest.chars().take(width).collect();
        if length == 0 || !greedy && length < width {
            return Err(bad(format!("invalid value \"{shown}\" for \"{name}\"")));
        }
        let number = piece.get(..length).and_then(|number| number.trim_start_matches('+').parse::<i32>().ok());
        let number = number.ok_or_else(|| {
            Error::invalid(
                sqlstate::DATETIME_OVERFLOW,
                format!("value for \"{name}\" in source string is out of range"),
            )
        })?;
        self.rest = self.rest.get(length..).unwrap_or_default();
        Ok((number.into(), length))
    }

    /// Which of `words` comes next, in letters of either case.
    fn word(&mut self, words: &[&str]) -> Result<usize> {
        let name = self.field;
        let found = words
            .iter()
            .position(|word| self.rest.get(..word.len()).is_some_and(|next| next.eq_ignore_ascii_case(word)));
        match found {
            Some(at) => {
                self.rest = self.rest.get(words.get(at).map_or(0, |word| word.len())..).unwrap_or_default();
                Ok(at)
            }
            None => {
                let shown = self.rest.split_whitespace().next().unwrap_or_default();
                Err(bad(format!("invalid value \"{shown}\" for \"{name}\"")))
            }
        }
    }
}

/// What is no day or time.
enum Wrong {
    Range,
    Other(Error),
}

impl Wrong {
    fn into_error(self, text: &str) -> Error {
        match self {
            Self::Range => {
                Error::invalid(sqlstate::DATETIME_OVERFLOW, format!("date/time field value out of range: \"{text}\""))
            }
            Self::Other(error) => error,
        }
    }
}

/// The fields that were read.
#[derive(Default)]
struct Read {
    pm: bool,
    twelve_hours: bool,
    /// Thousandths and millionths of a second, which are added up.
    millis: Option<i64>,
    micros: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
}

/// A year of fewer than four digits: the one that is nearest to 2020.
fn near_2020(year: i64, digits: usize) -> i64 {
    match (digits, year) {
        (4.., _) => year,
        (_, 0..70) => year + 2000,
        (_, 70..100) => year + 1900,
        (_, 100..520) => year + 2000,
        (_, 520..1000) => year + 1000,
        _ => year,
    }
}

/// `number`, written in `digits`, as that of units of which 10^`places` are a second: `25` are 25 hundredths. More
/// digits are as they are.
fn raised(number: i64, digits: usize, places: usize) -> i64 {
    let missing = places.saturating_sub(digits);
    number * 10_i64.pow(u32::try_from(missing).unwrap_or(0))
}

impl Read {
    fn field(&mut self, name: &str, source: &mut Source<'_>, greedy: bool) -> Result<()> {
        let shown = source.field;
        let set = |slot: &mut Option<i64>, value: i64| match *slot {
            Some(before) if before != value && before != 0 => {
                Err(bad(format!("conflicting values for \"{shown}\" field in formatting string")))
            }
            _ => {
                *slot = Some(value);
                Ok(())
            }
        };
        let mut plain = |slot: &mut Option<i64>, width: usize| set(slot, source.number(width, greedy)?.0);
        match name {
            "HH" | "HH12" => {
                self.twelve_hours = true;
                plain(&mut self.hour, 2)
            }
            "HH24" => plain(&mut self.hour, 2),
            "MI" => plain(&mut self.minute, 2),
            "SS" => plain(&mut self.second, 2),
            "MM" => plain(&mut self.month, 2),
            "DD" => plain(&mut self.day, 2),
            "DDD" => plain(&mut self.day_of_year, 3),
            "MS" => {
                let (number, digits) = source.number(3, greedy)?;
                set(&mut self.millis, number)?;
                self.millis = Some(raised(number, digits, 3));
                Ok(())
            }
            "US" => {
                let (number, digits) = source.number(6, greedy)?;
                set(&mut self.micros, number)?;
                self.micros = Some(raised(number, digits, 6));
                Ok(())
            }
            "AM" | "PM" | "A.M." | "P.M." => {
                let words = if name.len() == 2 { ["am", "pm"] } else { ["a.m.", "p.m."] };
                self.twelve_hours = true;
                self.pm = source.word(&words)? == 1;
                Ok(())
            }
            "MONTH" => set(&mut self.month, source.word(&MONTHS)? as i64 + 1),
            "MON" => {
                let short: Vec<&str> = MONTHS.iter().filter_map(|month| month.get(..3)).collect();
                set(&mut self.month, source.word(&short)? as i64 + 1)
            }
            // Which day of the week it is follows from the date.
            "DAY" => source.word(&DAYS).map(drop),
            "DY" => {
                let short: Vec<&str> = DAYS.iter().filter_map(|day| day.get(..3)).collect();
                source.word(&short).map(drop)
            }
            "YYYY" | "YYY" | "YY" | "Y" => {
                let (year, digits) = source.number(name.len(), greedy)?;
                set(&mut self.year, if name.len() < 4 { near_2020(year, digits) } else { year })
            }
            other => Err(Error::unsupported(format_args!("\"{other}\" in a pattern of to_date or to_timestamp"))),
        }
    }

    /// The fields as an instant.
    fn instant(&self) -> Result<i64, Wrong> {
        let days = self.days()?;
        let seconds = self.seconds()?;
        let micros = self.millis.unwrap_or(0) * 1_000 + self.micros.unwrap_or(0);
        if !(0..MICROS_OF_SECOND).contains(&micros) {
            return Err(Wrong::Range);
        }
        let instant =
            (days * SECONDS_OF_DAY + seconds).checked_mul(MICROS_OF_SECOND).and_then(|whole| whole.checked_add(micros));
        instant.ok_or(Wrong::Range)
    }

    fn seconds(&self) -> Result<i64, Wrong> {
        let mut hour = self.hour.unwrap_or(0);
        let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
        if self.twelve_hours {
            if !(1..=12).contains(&hour) {
                let message = format!(
                    "hour \"{hour}\" is invalid for the 12-hour clock; use the 24-hour clock, or give an hour between 1 and 12"
                );
                return Err(Wrong::Other(bad(message)));
            }
            hour = hour % 12 + if self.pm { 12 } else { 0 };
        }
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return Err(Wrong::Range);
        }
        Ok(hour * 3_600 + minute * 60 + second)
    }

    /// Days since 1970-01-01.
    fn days(&self) -> Result<i64, Wrong> {
        // The year -1 is 1 BC, and counted as 0.
        let year = self.year.map_or(0, |year| if year < 0 { year + 1 } else { year });
        let given = |part: Option<i64>| part.filter(|part| *part != 0).unwrap_or(1);
        let (mut month, mut day) = (given(self.month), given(self.day));
        if let Some(number) = self.day_of_year.filter(|day| *day != 0)
            && (month <= 1 || day <= 1)
        {
            if year == 0 {
                return Err(Wrong::Other(bad("cannot calculate day of year without year information".into())));
            }
            let there = fields(days_from_civil(year, 1, 1) + number - 1);
            if number < 1 || there.0 != year {
                return Err(Wrong::Range);
            }
            // Each of the two alone, where it was not given.
            month = if month <= 1 { there.1 } else { month };
            day = if day <= 1 { there.2 } else { day };
        }
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(-4_712..=294_276).contains(&year) {
            return Err(Wrong::Range);
        }
        let days = days_from_civil(year, month, day);
        if fields(days) == (year, month, day) { Ok(days) } else { Err(Wrong::Range) }
    }
}

fn fields(days: i64) -> (i64, i64, i64) {
    let (year, month, day) = civil_from_days(days);
    (year, month.into(), day.into())
}
