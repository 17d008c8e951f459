//! Dates and times of `chrono` as values: `mainstem_postgres::types` says which type each is.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use mainstem_storage::Result;

use crate::value::{Date, FromValue, Time, Timestamp, TimestampTz, ToValue, ValueRef};

impl ToValue for NaiveDate {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Date((*self).into())
    }
}

impl ToValue for NaiveTime {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Time((*self).into())
    }
}

impl ToValue for NaiveDateTime {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Timestamp((*self).into())
    }
}

impl<Tz: TimeZone> ToValue for DateTime<Tz> {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::TimestampTz(TimestampTz::from_micros(self.timestamp_micros()))
    }
}

impl<'a> FromValue<'a> for NaiveDate {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Date::from_value(value)?.try_into()
    }
}

impl<'a> FromValue<'a> for NaiveTime {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Time::from_value(value).map(Self::from)
    }
}

impl<'a> FromValue<'a> for NaiveDateTime {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Timestamp::from_value(value)?.try_into()
    }
}

impl<'a> FromValue<'a> for DateTime<Utc> {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        TimestampTz::from_value(value)?.try_into()
    }
}

impl<'a> FromValue<'a> for DateTime<FixedOffset> {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        TimestampTz::from_value(value)?.try_into()
    }
}
