//! Days and instants, as storage counts them: days and microseconds since 1970-01-01.

use std::fmt;
use std::time::{Duration, SystemTime};

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// A day of the (proleptic) Gregorian calendar.
///
/// ```
/// let day = mainstem::Date::new(2024, 2, 29)?;
/// assert_eq!(day.days(), 19_782);
/// assert_eq!(day.to_string(), "2024-02-29");
/// assert_eq!(mainstem::Date::new(2023, 2, 29).unwrap_err().sqlstate(), "22008");
/// # Ok::<(), mainstem::Error>(())
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

/// A date and time of day, of no time zone: microseconds since 1970-01-01 00:00:00.
///
/// ```
/// let noon = mainstem::Timestamp::from_micros(12 * 3_600 * 1_000_000);
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
        write_time(f, self.0)
    }
}

/// An instant: microseconds since 1970-01-01 00:00:00 UTC. [`SystemTime`] can be bound in its place and made of it.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// let instant = mainstem::TimestampTz::from_micros(1_500_000);
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
        write_time(f, self.0)?;
        f.write_str("+00")
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
    let (year, month, day) = civil_from_days(days);
    // There is no year 0: the year before 1 is 1 BC.
    if year > 0 {
        write!(f, "{year:04}-{month:02}-{day:02}")
    } else {
        write!(f, "{:04}-{month:02}-{day:02} BC", 1 - year)
    }
}

fn write_time(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    let (days, of_day) = (micros.div_euclid(MICROS_OF_DAY), micros.rem_euclid(MICROS_OF_DAY));
    write_day(f, days)?;
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    write!(f, " {:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
    if fraction == 0 {
        return Ok(());
    }
    let digits = format!("{fraction:06}");
    write!(f, ".{}", digits.trim_end_matches('0'))
}

/// Days since 1970-01-01 of a day that may not exist, which then falls on another one (Hinnant, "chrono-compatible
/// low-level date algorithms", `days_from_civil`). Years count from March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse (the same, `civil_from_days`).
fn civil_from_days(days: i64) -> (i64, u32, u32) {
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
