//! Days and times by a pattern, as PostgreSQL's `to_char` writes them.
//!
//! Comes in: a pattern, and microseconds since 1970-01-01. Goes out: text. Read are PostgreSQL's fields, with FM in
//! front and TH behind; not TM, SP and FX, which are refused. Other characters stand for themselves, as does text in
//! double quotes.

use mainstem_storage::{Error, Result};

use super::{Literal, literal, ordinal};
use crate::types::{JULIAN_OF_EPOCH, SECONDS_OF_DAY};

const MICROS_OF_SECOND: i64 = 1_000_000;
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub(super) const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// Fields, longer ones before those that they begin with.
pub(super) const FIELDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3",
    "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM",
    "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ",
    "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am", "b.c.", "bc", "cc", "day", "ddd",
    "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx", "hh24", "hh12", "hh", "iddd", "id", "iw", "iyyy",
    "iyy", "iy", "i", "j", "mi", "mm", "month", "mon", "ms", "of", "p.m.", "pm", "q", "rm", "sssss", "ssss", "ss",
    "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy", "yyy", "yy", "y",
];

#[derive(Clone, Debug)]
enum Part {
    Field {
        name: &'static str,
        fill: bool,
        /// TH, or th (false).
        ordinal: Option<bool>,
    },
    Text(String),
}

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(super) struct DateTimePattern(Vec<Part>);

impl DateTimePattern {
    /// Reads `text`.
    ///
    /// # Errors
    /// 0A000 for what is not read.
    pub(super) fn read(text: &str) -> Result<Self> {
        let unsupported = |what: &str| Error::unsupported(format_args!("\"{what}\" in the pattern of to_char"));
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let mut fill = false;
            let mut field = rest;
            while let Some(head @ ("FM" | "fm" | "TM" | "tm")) = field.get(..2) {
                if head.eq_ignore_ascii_case("TM") {
                    return Err(unsupported(head));
                }
                fill = true;
                field = field.get(2..).unwrap_or_default();
            }
            let Some(name) = FIELDS.iter().find(|name| field.starts_with(**name)) else {
                // FM in front of what is no field says nothing.
                if fill && field.is_empty() {
                    break;
                }
                let Literal { text, behind } = literal(field);
                parts.push(Part::Text(text));
                rest = behind;
                continue;
            };
            if name.eq_ignore_ascii_case("FX") {
                return Err(unsupported(name));
            }
            rest = field.get(name.len()..).unwrap_or_default();
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(true),
                Some("th") => Some(false),
                Some(head @ ("SP" | "sp")) => return Err(unsupported(head)),
                _ => None,
            };
            if ordinal.is_some() {
                rest = rest.get(2..).unwrap_or_default();
            }
            parts.push(Part::Field { name, fill, ordinal });
        }
        Ok(Self(parts))
    }

    /// Writes the instant `micros` microseconds after 1970-01-01; `zone` names its time zone, if it has one.
    pub(super) fn write(&self, micros: i64, zone: Option<&str>) -> String {
        let datetime = DateTime::new(micros);
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field { name, fill, ordinal: suffix } => {
                    let (text, number) = datetime.field(name, *fill, zone);
                    out.push_str(&text);
                    if let Some(upper) = suffix
                        && number
                    {
                        out.push_str(ordinal(&text, *upper));
                    }
                }
            }
        }
        out
    }
}

/// An instant in fields.
struct DateTime {
    days: i64,
    second_of_day: i64,
    micros: i64,
    year: i64,
    month: i64,
    day: i64,
}

impl DateTime {
    fn new(micros: i64) -> Self {
        let seconds = micros.div_euclid(MICROS_OF_SECOND);
        let days = seconds.div_euclid(SECONDS_OF_DAY);
        let (year, month, day) = crate::types::civil_from_days(days);
        Self {
            days,
            second_of_day: seconds.rem_euclid(SECONDS_OF_DAY),
            micros: micros.rem_euclid(MICROS_OF_SECOND),
            year,
            month: month.into(),
            day: day.into(),
        }
    }

    /// 0 for Sunday.
    fn week_day(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// 1 for Monday.
    fn iso_week_day(&self) -> i64 {
        if self.week_day() == 0 { 7 } else { self.week_day() }
    }

    fn day_of_year(&self) -> i64 {
        self.days - crate::types::days_from_civil(self.year, 1, 1) + 1
    }

    /// ISO 8601's year, and the day of it.
    fn iso_year(&self) -> (i64, i64) {
        // The year of the week's Thursday; its first day is the Monday of the week of 4 January.
        let thursday = self.days - self.iso_week_day() + 4;
        let (year, ..) = crate::types::civil_from_days(thursday);
        let fourth = crate::types::days_from_civil(year, 1, 4);
        let first = fourth - (fourth + 3).rem_euclid(7);
        (year, self.days - first + 1)
    }

    /// A field's text, and whether it is a number that TH may stand behind.
    fn field(&self, name: &str, fill: bool, zone: Option<&str>) -> (String, bool) {
        let number =
            |value: i64, width: usize| (if fill { value.to_string() } else { format!("{value:0width$}") }, true);
        let text = |text: &str| (text.to_owned(), false);
        let hour = self.second_of_day / 3_600;
        let shown = |year: i64| if year <= 0 { 1 - year } else { year };
        let lower = name.chars().all(|c| !c.is_ascii_uppercase());
        let cased = |word: &str| {
            if lower {
                word.to_ascii_lowercase()
            } else if name.chars().any(|c| c.is_ascii_lowercase()) {
                word.to_owned()
            } else {
                word.to_ascii_uppercase()
            }
        };
        let padded = |word: String, width: usize| (if fill { word } else { format!("{word:width$}") }, false);
        let month = usize::try_from(self.month - 1).unwrap_or_default();
        let month_name = MONTHS.get(month).copied().unwrap_or_default();
        let day_name = usize::try_from(self.week_day()).ok().and_then(|day| DAYS.get(day)).copied().unwrap_or_default();
        let short = |name: &str| name.get(..3).unwrap_or_default().to_owned();
        match name.to_ascii_uppercase().as_str() {
            "A.M." | "P.M." => text(&cased(if hour >= 12 { "P.M." } else { "A.M." })),
            "AM" | "PM" => text(&cased(if hour >= 12 { "PM" } else { "AM" })),
            "A.D." | "B.C." => text(&cased(if self.year <= 0 { "B.C." } else { "A.D." })),
            "AD" | "BC" => text(&cased(if self.year <= 0 { "BC" } else { "AD" })),
            "HH" | "HH12" => number(if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            "HH24" => number(hour, 2),
            "MI" => number(self.second_of_day / 60 % 60, 2),
            "SS" => number(self.second_of_day % 60, 2),
            // Fractions keep their zeros.
            "FF1" => (format!("{:01}", self.micros / 100_000), true),
            "FF2" => (format!("{:02}", self.micros / 10_000), true),
            "FF3" | "MS" => (format!("{:03}", self.micros / 1_000), true),
            "FF4" => (format!("{:04}", self.micros / 100), true),
            "FF5" => (format!("{:05}", self.micros / 10), true),
            "FF6" | "US" => (format!("{:06}", self.micros), true),
            "SSSS" | "SSSSS" => (self.second_of_day.to_string(), true),
            "TZ" => text(&zone.map(cased).unwrap_or_default()),
            "OF" | "TZH" => text(if fill && name.eq_ignore_ascii_case("OF") { "+0" } else { "+00" }),
            "TZM" => text("00"),
            "MONTH" => padded(cased(month_name), 9),
            "MON" => text(&cased(&short(month_name))),
            "MM" => number(self.month, 2),
            "DAY" => padded(cased(day_name), 9),
            "DY" => text(&cased(&short(day_name))),
            "DDD" => number(self.day_of_year(), 3),
            "IDDD" => number(self.iso_year().1, 3),
            "DD" => number(self.day, 2),
            "D" => (format!("{}", self.week_day() + 1), true),
            "ID" => (format!("{}", self.iso_week_day()), true),
            "WW" => number((self.day_of_year() - 1) / 7 + 1, 2),
            "IW" => number((self.iso_year().1 - 1) / 7 + 1, 2),
            "W" => (((self.day - 1) / 7 + 1).to_string(), true),
            "Q" => (((self.month - 1) / 3 + 1).to_string(), true),
            "CC" => self.century(fill),
            "J" => ((self.days + JULIAN_OF_EPOCH).to_string(), true),
            "RM" => padded(cased(ROMAN.get(month).copied().unwrap_or_default()), 4),
            "Y,YYY" => (format!("{},{:03}", shown(self.year) / 1_000, shown(self.year) % 1_000), true),
            field => {
                let year = shown(if field.starts_with('I') { self.iso_year().0 } else { self.year });
                match field.len() {
                    4 => number(year, 4),
                    3 => number(year % 1_000, 3),
                    2 => number(year % 100, 2),
                    _ => number(year % 10, 1),
                }
            }
        }
    }

    fn century(&self, fill: bool) -> (String, bool) {
        let century = if self.year > 0 { (self.year - 1) / 100 + 1 } else { self.year / 100 - 1 };
        let width = if century < 0 { 3 } else { 2 };
        (if fill { century.to_string() } else { format!("{century:0width$}") }, true)
    }
}
