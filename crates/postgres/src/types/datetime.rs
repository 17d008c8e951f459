//! Days, times of day and instants, as storage counts them: days and microseconds since 1970-01-01, microseconds of a
//! day.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use mainstem_storage::{Error, Result};

use crate::sqlstate;
use crate::types::MICROS_OF_DAY;

/// A day of the (proleptic) Gregorian calendar.
///
/// ```
/// let day = mainstem_postgres::types::Date::new(2024, 2, 29)?;
/// assert_eq!(day.days(), 19_782);
/// assert_eq!(day.to_string(), "2024-02-29");
/// assert_eq!(mainstem_postgres::types::Date::new(2023, 2, 29).unwrap_err().sqlstate(), "22008");
/// # Ok::<(), mainstem_storage::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i32);

impl Date {
    /// The day `days` after 1970-01-01, or before it if negative.
    #[must_use]
    pub fn from_days(days: i32) -> Self {
        Self(days)
    }

    /// A day by year, month and day of the month, each as people count them.
    ///
    /// # Errors
    /// 22008 when there is no such day.
    pub fn new(year: i32, month: u32, day: u32) -> Result<Self> {
        let days = days_from_civil(year.into(), month.into(), day.into());
        let date = i32::try_from(days).ok().map(Self);
        match date.filter(|date| date.ymd() == (i64::from(year), month, day)) {
            Some(date) => Ok(date),
            None => Err(Error::invalid(
                sqlstate::DATETIME_OVERFLOW,
                format!("there is no day {day} of month {month} in the year {year}"),
            )),
        }
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub fn days(self) -> i32 {
        self.0
    }

    /// Year, month and day of the month.
    #[must_use]
    pub fn ymd(self) -> (i64, u32, u32) {
        civil_from_days(self.0.into())
    }
}

/// `2024-02-29`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_day(f, self.0.into())
    }
}

/// A time of day, from 00:00:00 to 23:59:59.999999: microseconds since midnight.
///
/// ```
/// let time: mainstem_postgres::types::Time = "13:30:15.50".parse()?;
/// assert_eq!(time.to_string(), "13:30:15.5");
/// assert_eq!(mainstem_postgres::types::Time::from_micros(time.micros())?, time);
/// assert_eq!("24:00:00".parse::<mainstem_postgres::types::Time>().unwrap_err().sqlstate(), "22008");
/// # Ok::<(), mainstem_storage::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The time `micros` microseconds after midnight.
    ///
    /// # Errors
    /// 22008 when the day has no such time. PostgreSQL's 24:00:00 is none here.
    pub fn from_micros(micros: i64) -> Result<Self> {
        if (0..MICROS_OF_DAY).contains(&micros) {
            return Ok(Self(micros));
        }
        Err(Error::invalid(sqlstate::DATETIME_OVERFLOW, format!("a day has no microsecond {micros}")))
    }

    /// The time `micros` microseconds after midnight, held within the day. For conversions, not for programs.
    #[doc(hidden)]
    #[must_use]
    pub fn of_day(micros: i64) -> Self {
        Self(micros.clamp(0, MICROS_OF_DAY - 1))
    }

    /// Microseconds since midnight.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }
}

/// `12:30:00.5`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_of_day(f, self.0)
    }
}

/// As PostgreSQL reads it: `12:30`, `12:30:15.25`, perhaps with an offset from UTC, which is ignored. 22007 for
/// anything else, 22008 for fields out of range.
impl FromStr for Time {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || Error::invalid("22007", format!("invalid input syntax for type time: \"{text}\""));
        let overflow =
            || Error::invalid(sqlstate::DATETIME_OVERFLOW, format!("date/time field value out of range: \"{text}\""));
        let (hour, minute, micros) = clock_fields(without_offset(text.trim())).ok_or_else(malformed)?;
        // A second 60 is the next minute's first.
        if hour > 23 || minute > 59 || micros >= 61_000_000 {
            return Err(overflow());
        }
        Self::from_micros((hour * 60 + minute) * 60_000_000 + micros).map_err(|_| overflow())
    }
}

/// `text` without an offset from UTC: `Z`, `+02`, `-03:30`, `+0200`.
fn without_offset(text: &str) -> &str {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return clock.trim_end();
    }
    let Some((clock, offset)) = text.rfind(['+', '-']).and_then(|at| text.split_at_checked(at)) else { return text };
    let digits =
        |part: &str, lengths: &[usize]| lengths.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let right = match offset.get(1..).unwrap_or_default().split_once(':') {
        Some((hours, minutes)) => digits(hours, &[1, 2]) && digits(minutes, &[2]),
        None => digits(offset.get(1..).unwrap_or_default(), &[1, 2, 4]),
    };
    if right { clock.trim_end() } else { text }
}

/// Hour, minute, and microseconds of the minute; `None` if that is no clock.
fn clock_fields(clock: &str) -> Option<(i64, i64, i64)> {
    let field = |text: &str| {
        let right = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if right { text.parse::<i64>().ok() } else { None }
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute, seconds) = (field(parts.next()?)?, field(parts.next()?)?, parts.next());
    let Some(seconds) = seconds else { return Some((hour, minute, 0)) };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((hour, minute, field(whole)? * 1_000_000 + micros_of_fraction(fraction)))
}

/// The microseconds that `digits` behind the point of seconds are, rounded as PostgreSQL rounds them.
pub(crate) fn micros_of_fraction(digits: &str) -> i64 {
    let fraction = format!("0.{digits}").parse::<f64>().unwrap_or_default();
    (fraction * 1e6).round_ties_even() as i64
}

/// A date and time of day, of no time zone: microseconds since 1970-01-01 00:00:00.
///
/// ```
/// let noon = mainstem_postgres::types::Timestamp::from_micros(12 * 3_600 * 1_000_000);
/// assert_eq!(noon.to_string(), "1970-01-01 12:00:00");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time `micros` microseconds after 1970-01-01 00:00:00.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01 00:00:00.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }
}

/// `2024-02-29 12:30:00.5`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_time(f, self.0, "")
    }
}

/// An instant: microseconds since 1970-01-01 00:00:00 UTC. [`SystemTime`] can be bound in its place and made of it.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// let instant = mainstem_postgres::types::TimestampTz::from_micros(1_500_000);
/// assert_eq!(instant.to_string(), "1970-01-01 00:00:01.5+00");
/// assert_eq!(SystemTime::from(instant), SystemTime::UNIX_EPOCH + Duration::from_millis(1_500));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampTz(i64);

impl TimestampTz {
    /// The instant `micros` microseconds after 1970-01-01 00:00:00 UTC.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01 00:00:00 UTC.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }
}

/// `2024-02-29 12:30:00.5+00`.
impl fmt::Display for TimestampTz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_time(f, self.0, "+00")
    }
}

/// Cut to whole microseconds; times that 64 bits of them do not reach become the last ones that are.
impl From<SystemTime> for TimestampTz {
    fn from(time: SystemTime) -> Self {
        let micros = |d: Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
        Self(match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => micros(after),
            Err(before) => micros(before.duration()).saturating_neg(),
        })
    }
}

impl From<TimestampTz> for SystemTime {
    fn from(time: TimestampTz) -> Self {
        let distance = Duration::from_micros(time.0.unsigned_abs());
        if time.0 < 0 { Self::UNIX_EPOCH - distance } else { Self::UNIX_EPOCH + distance }
    }
}

fn write_day(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    write_day_of_era(f, days)?;
    write_era(f, days)
}

/// There is no year 0: the year before 1 is 1 BC.
fn write_day_of_era(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    let (year, month, day) = civil_from_days(days);
    let year = if year > 0 { year } else { 1 - year };
    write!(f, "{year:04}-{month:02}-{day:02}")
}

/// The era stands last, behind a time of day and its zone.
fn write_era(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    if civil_from_days(days).0 > 0 { Ok(()) } else { f.write_str(" BC") }
}

fn write_time(f: &mut fmt::Formatter<'_>, micros: i64, zone: &str) -> fmt::Result {
    let (days, of_day) = (micros.div_euclid(MICROS_OF_DAY), micros.rem_euclid(MICROS_OF_DAY));
    write_day_of_era(f, days)?;
    f.write_str(" ")?;
    write_of_day(f, of_day)?;
    f.write_str(zone)?;
    write_era(f, days)
}

fn write_of_day(f: &mut fmt::Formatter<'_>, of_day: i64) -> fmt::Result {
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    write!(f, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
    if fraction == 0 {
        return Ok(());
    }
    let digits = format!("{fraction:06}");
    write!(f, ".{}", digits.trim_end_matches('0'))
}

/// Days since 1970-01-01 of a day that may not exist, which then falls on another one (Hinnant, "chrono-compatible
/// low-level date algorithms", `days_from_civil`). Years count from March, so that the leap day is the last.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse (the same, `civil_from_days`).
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or_default(), u32::try_from(day).unwrap_or_default())
}

/// An interval as PostgreSQL writes it: `1 year 2 mons -3 days +04:05:06.5`.
pub fn interval_text(months: i32, days: i32, micros: i64) -> String {
    let mut text = String::new();
    // Whether the part in front is negative: a positive one behind it has a sign.
    let mut negative = false;
    let parts = [(i64::from(months) / 12, "year"), (i64::from(months) % 12, "mon"), (i64::from(days), "day")];
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number != 0) {
        let blank = if text.is_empty() { "" } else { " " };
        let sign = if negative && number > 0 { "+" } else { "" };
        let plural = if number == 1 { "" } else { "s" };
        text.push_str(&format!("{blank}{sign}{number} {unit}{plural}"));
        negative = number < 0;
    }
    if micros == 0 && !text.is_empty() {
        return text;
    }
    let blank = if text.is_empty() { "" } else { " " };
    let sign = if micros < 0 {
        "-"
    } else if negative {
        "+"
    } else {
        ""
    };
    let of_day = micros.unsigned_abs();
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    text.push_str(&format!("{blank}{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        text.push('.');
        text.push_str(format!("{fraction:06}").trim_end_matches('0'));
    }
    text
}
