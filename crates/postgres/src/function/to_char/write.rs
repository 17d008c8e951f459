//! Days and times by a pattern, as PostgreSQL's `to_char` writes them.

use super::pattern::{DAYS, MONTHS, Part};
use crate::types::SECONDS_OF_DAY;

const MICROS_OF_SECOND: i64 = 1_000_000;

/// Fields that are written.
pub(super) const FIELDS: &[&str] = &[
    "A.M.", "AM", "D", "DAY", "DD", "DDD", "DY", "HH", "HH12", "HH24", "I", "ID", "IW", "IY", "IYY", "IYYY", "MI",
    "MM", "MON", "MONTH", "MS", "P.M.", "PM", "Q", "SS", "SSSS", "SSSSS", "TZ", "US", "WW", "Y", "YY", "YYY", "YYYY",
];

/// The instant `micros` microseconds after 1970-01-01, as `pattern` says; `zone` names its time zone, if it has one.
pub(super) fn written(pattern: &[Part], micros: i64, zone: Option<&str>) -> String {
    let datetime = DateTime::new(micros);
    let mut out = String::new();
    for part in pattern {
        match part {
            Part::Separator(c) | Part::Character(c) => out.push(*c),
            Part::Field { name, fill } => out.push_str(&datetime.field(name, *fill, zone)),
        }
    }
    out
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

    fn field(&self, name: &str, fill: bool, zone: Option<&str>) -> String {
        let number = |value: i64, width: usize| if fill { value.to_string() } else { format!("{value:0width$}") };
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
        let padded = |word: String| if fill { word } else { format!("{word:9}") };
        let short = |name: &str| cased(name.get(..3).unwrap_or_default());
        let one_of = |names: &[&'static str], at: i64| names.get(at as usize).copied().unwrap_or_default();
        let (month, day) = (one_of(&MONTHS, self.month - 1), one_of(&DAYS, self.week_day()));
        match name.to_ascii_uppercase().as_str() {
            "A.M." | "P.M." => cased(if hour >= 12 { "P.M." } else { "A.M." }),
            "AM" | "PM" => cased(if hour >= 12 { "PM" } else { "AM" }),
            "HH" | "HH12" => number(if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            "HH24" => number(hour, 2),
            "MI" => number(self.second_of_day / 60 % 60, 2),
            "SS" => number(self.second_of_day % 60, 2),
            // Fractions keep their zeros.
            "MS" => format!("{:03}", self.micros / 1_000),
            "US" => format!("{:06}", self.micros),
            "SSSS" | "SSSSS" => self.second_of_day.to_string(),
            "TZ" => zone.map(cased).unwrap_or_default(),
            "MONTH" => padded(cased(month)),
            "MON" => short(month),
            "MM" => number(self.month, 2),
            "DAY" => padded(cased(day)),
            "DY" => short(day),
            "DDD" => number(self.day_of_year(), 3),
            "DD" => number(self.day, 2),
            "D" => (self.week_day() + 1).to_string(),
            "ID" => self.iso_week_day().to_string(),
            "WW" => number((self.day_of_year() - 1) / 7 + 1, 2),
            "IW" => number((self.iso_year().1 - 1) / 7 + 1, 2),
            "Q" => ((self.month - 1) / 3 + 1).to_string(),
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
}
