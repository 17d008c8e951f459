//! Dates and times of `chrono`: `NaiveDate` is DATE, `NaiveTime` TIME, `NaiveDateTime` TIMESTAMP, and `DateTime` of any
//! zone TIMESTAMP WITH TIME ZONE, which is an instant: the offset is not kept. SQL has more years than they have; those
//! are 22008.

use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike, Utc};
use mainstem_storage::{Error, Result};

use crate::sqlstate;
use crate::types::{Date, Time, Timestamp, TimestampTz};

/// Days from 0001-01-01, which is day 1 of the Common Era, to 1970-01-01.
const EPOCH_FROM_CE: i32 = 719_163;

fn out_of_range(what: &str, shown: impl std::fmt::Display) -> Error {
    Error::invalid(sqlstate::DATETIME_OVERFLOW, format!("{shown} is out of range for {what}"))
}

impl From<NaiveDate> for Date {
    fn from(date: NaiveDate) -> Self {
        Self::from_days(date.num_days_from_ce() - EPOCH_FROM_CE)
    }
}

/// 22008 for years that chrono has not.
impl TryFrom<Date> for NaiveDate {
    type Error = Error;

    fn try_from(date: Date) -> Result<Self> {
        let from_ce = date.days().checked_add(EPOCH_FROM_CE);
        from_ce.and_then(Self::from_num_days_from_ce_opt).ok_or_else(|| out_of_range("chrono::NaiveDate", date))
    }
}

/// Cut to whole microseconds. A leap second is the next minute's first, or at the end of the day its last microsecond.
impl From<NaiveTime> for Time {
    fn from(time: NaiveTime) -> Self {
        let seconds = i64::from(time.num_seconds_from_midnight());
        let micros = seconds * 1_000_000 + i64::from(time.nanosecond() / 1_000);
        Self::of_day(micros)
    }
}

impl From<Time> for NaiveTime {
    fn from(time: Time) -> Self {
        let (seconds, micros) = (time.micros() / 1_000_000, time.micros() % 1_000_000);
        let part = |part: i64| u32::try_from(part).unwrap_or_default();
        Self::from_num_seconds_from_midnight_opt(part(seconds), part(micros) * 1_000).unwrap_or_default()
    }
}

/// Cut to whole microseconds.
impl From<NaiveDateTime> for Timestamp {
    fn from(time: NaiveDateTime) -> Self {
        Self::from_micros(time.and_utc().timestamp_micros())
    }
}

/// 22008 for years that chrono has not.
impl TryFrom<Timestamp> for NaiveDateTime {
    type Error = Error;

    fn try_from(time: Timestamp) -> Result<Self> {
        let utc = DateTime::from_timestamp_micros(time.micros());
        utc.map(|utc| utc.naive_utc()).ok_or_else(|| out_of_range("chrono::NaiveDateTime", time))
    }
}

/// Cut to whole microseconds.
impl<Tz: TimeZone> From<DateTime<Tz>> for TimestampTz {
    fn from(time: DateTime<Tz>) -> Self {
        Self::from_micros(time.timestamp_micros())
    }
}

/// 22008 for years that chrono has not.
impl TryFrom<TimestampTz> for DateTime<Utc> {
    type Error = Error;

    fn try_from(time: TimestampTz) -> Result<Self> {
        Self::from_timestamp_micros(time.micros()).ok_or_else(|| out_of_range("chrono::DateTime", time))
    }
}

/// With the offset of UTC. 22008 for years that chrono has not.
impl TryFrom<TimestampTz> for DateTime<FixedOffset> {
    type Error = Error;

    fn try_from(time: TimestampTz) -> Result<Self> {
        DateTime::<Utc>::try_from(time).map(|time| time.fixed_offset())
    }
}
