//! Days and times out of texts by a pattern, as PostgreSQL's `to_date` and `to_timestamp` read them (`formatting.c`).
//!
//! Comes in: a text, and a pattern with the fields of `to_char`. Goes out: microseconds since 1970-01-01, in UTC.
//!
//! 1. The pattern becomes fields, separators and other characters ([`ParsePattern::read`]). Fields that are not in
//!    [`READ`] are refused (0A000): zones, weeks, centuries, quarters, Julian days, Roman numerals, FX, TM and SP.
//! 2. Each takes characters of the text until either ends. A field takes as many digits as there are if no digit may
//!    stand behind it, else as many as it is wide; blanks in front of fields are passed over, and a separator stands
//!    for any other, or for none.
//! 3. What was read is put together: days of years, 12-hour clocks. A field that is not there
//!    is that of the first day of its year. What is no day or time is 22008, what is no field 22007.

use mainstem_storage::{Error, Result};

use super::datetime::{DAYS, FIELDS, MONTHS};
use crate::sqlstate;
use crate::sqlstate::BAD_DATETIME;
use crate::types::{SECONDS_OF_DAY, civil_from_days, days_from_civil};

const MICROS_OF_SECOND: i64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Field {
        name: &'static str,
        /// It takes as many digits as there are.
        greedy: bool,
        /// TH stands behind it.
        ordinal: bool,
    },
    /// A blank, or a character that is neither letter nor digit.
    Separator,
    /// Any other character, or one in quotes.
    Character(char),
}

/// Fields that are read; the others of `to_char` are refused.
const READ: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "DAY", "DD", "DDD", "DY", "HH", "HH12", "HH24", "MI", "MM", "MON",
    "MONTH", "MS", "P.M.", "PM", "SS", "US", "Y", "YY", "YYY", "YYYY",
];

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(super) struct ParsePattern(Vec<Part>);

/// Whether a field is written in digits.
fn is_number(name: &str) -> bool {
    !matches!(name, "A.D." | "A.M." | "AD" | "AM" | "B.C." | "BC" | "DAY" | "DY" | "MONTH" | "MON" | "P.M." | "PM")
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_punctuation()
}

impl ParsePattern {
    /// Reads `text`.
    ///
    /// # Errors
    /// 0A000 for what is not read.
    pub(super) fn read(text: &str) -> Result<Self> {
        let unsupported =
            |what: &str| Error::unsupported(format_args!("\"{what}\" in a pattern of to_date or to_timestamp"));
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(c) = rest.chars().next() {
            let mut fill = false;
            let mut field = rest;
            while let Some(head @ ("FM" | "fm" | "TM" | "tm")) = field.get(..2) {
                if head.eq_ignore_ascii_case("TM") {
                    return Err(unsupported(head));
                }
                fill = true;
                field = field.get(2..).unwrap_or_default();
            }
            if let Some(name) = FIELDS.iter().find(|name| field.starts_with(**name)) {
                if !READ.contains(&name.to_ascii_uppercase().as_str()) {
                    return Err(unsupported(name));
                }
                rest = field.get(name.len()..).unwrap_or_default();
                let suffix = rest.get(..2).unwrap_or_default();
                let ordinal = suffix.eq_ignore_ascii_case("TH");
                if suffix.eq_ignore_ascii_case("SP") {
                    return Err(unsupported(suffix));
                }
                if ordinal {
                    rest = rest.get(2..).unwrap_or_default();
                }
                parts.push(Part::Field { name, greedy: fill || ordinal, ordinal });
                continue;
            }
            if fill {
                rest = field;
                continue;
            }
            if c == '"' {
                let mut chars = rest.chars();
                chars.next();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => parts.extend(chars.next().map(Part::Character)),
                        c => parts.push(Part::Character(c)),
                    }
                }
                rest = chars.as_str();
                continue;
            }
            parts.push(if is_separator(c) { Part::Separator } else { Part::Character(c) });
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
        // A digit may follow only where another number stands behind, or a digit.
        for at in 0..parts.len() {
            let before_digit = match parts.get(at + 1) {
                Some(Part::Field { name, .. }) => is_number(&name.to_ascii_uppercase()),
                Some(Part::Character(c)) => c.is_ascii_digit(),
                Some(Part::Separator) | None => false,
            };
            if let Some(Part::Field { greedy, .. }) = parts.get_mut(at) {
                *greedy |= !before_digit;
            }
        }
        Ok(Self(parts))
    }

    /// The instant that `text` spells, in microseconds since 1970-01-01.
    ///
    /// # Errors
    /// 22007, 22008.
    pub(super) fn instant(&self, text: &str) -> Result<i64> {
        self.fields(text)?.instant().map_err(|wrong| wrong.into_error(text))
    }

    /// The day that `text` spells, counted from 1970-01-01, in UTC.
    ///
    /// # Errors
    /// As [`ParsePattern::instant`].
    pub(super) fn day(&self, text: &str) -> Result<i64> {
        let instant = self.fields(text)?.instant().map_err(|wrong| wrong.into_error(text))?;
        Ok(instant.div_euclid(SECONDS_OF_DAY * MICROS_OF_SECOND))
    }

    fn fields(&self, text: &str) -> Result<Read> {
        let mut source = Source { rest: text, passed: 0, field: "" };
        let mut read = Read::default();
        for (number, part) in self.0.iter().enumerate() {
            if source.rest.is_empty() {
                break;
            }
            if number == 0 || matches!(part, Part::Field { .. }) {
                source.pass_blanks();
            }
            match part {
                Part::Separator => {
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
                Part::Field { name, greedy, ordinal } => {
                    source.field = name;
                    read.field(&name.to_ascii_uppercase(), &mut source, *greedy)?;
                    if *ordinal {
                        source.skip();
                        source.skip();
                    }
                    source.passed = 0;
                    source.pass_blanks();
                }
            }
        }
        Ok(read)
    }
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

    fn pass_blanks(&mut self) {
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
    bc: bool,
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
            "AM" | "PM" => source.word(&["am", "pm"]).map(|at| {
                self.twelve_hours = true;
                self.pm = at == 1;
            }),
            "A.M." | "P.M." => source.word(&["a.m.", "p.m."]).map(|at| {
                self.twelve_hours = true;
                self.pm = at == 1;
            }),
            "AD" | "BC" => source.word(&["ad", "bc"]).map(|at| self.bc = at == 1),
            "A.D." | "B.C." => source.word(&["a.d.", "b.c."]).map(|at| self.bc = at == 1),
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
        // The year 0 is 1 BC; before it they are counted without one.
        let signed = self.year.filter(|year| *year != 0).map(|year| if self.bc { -year } else { year });
        let year = signed.map_or(0, |year| if year < 0 { year + 1 } else { year });
        let given = |part: Option<i64>| part.filter(|part| *part != 0).unwrap_or(1);
        let (mut month, mut day) = (given(self.month), given(self.day));
        if let Some(number) = self.day_of_year.filter(|day| *day != 0)
            && (month <= 1 || day <= 1)
        {
            if year == 0 && !self.bc {
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
