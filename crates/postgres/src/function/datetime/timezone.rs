//! `datetime AT TIME ZONE zone`, which is `timezone(zone, datetime)`: an instant as the local time of a zone, a local
//! time as an instant.
//!
//! A zone is named as in the IANA database (`Europe/Berlin`, in any case of letters), or by an abbreviation, which is
//! an offset without summer time (`CET`). Or it is an offset in POSIX's sense (`+02` is west of Greenwich). A local
//! time that there is twice is the one of winter, one that there is not is counted on from before the change.
//!
//! The database's tables end before 2100. Years after that follow the rules of its last years: they take the offset of
//! a year between 2040 and 2067, which have all the calendars that there are.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, PrimitiveArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, TimeUnit, TimestampMicrosecondType};
use arrow::temporal_conversions::as_datetime_with_timezone;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{ScalarUDF, Signature, Volatility};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;

use crate::cast::convert;
use crate::error::external;
use crate::evaluate::simple::Simple;
use crate::sqlstate;
use crate::types::{INTERVAL, MICROS_OF_DAY, TIMESTAMP, civil_from_days, days_from_civil};

const MICROS_OF_MINUTE: i64 = 60_000_000;
/// The first of the years that stand for those after them, which all calendars are among.
const TYPICAL_YEARS: std::ops::RangeInclusive<i64> = 2040..=2067;

/// Abbreviations, with minutes east of Greenwich.
const ABBREVIATIONS: &[(&str, i64)] = &[
    ("aedt", 660),
    ("aest", 600),
    ("akdt", -480),
    ("akst", -540),
    ("ast", -240),
    ("awst", 480),
    ("bst", 60),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("cst", -360),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("est", -300),
    ("gmt", 0),
    ("hkt", 480),
    ("hst", -600),
    ("jst", 540),
    ("kst", 540),
    ("mdt", -360),
    ("mest", 120),
    ("mesz", 120),
    ("met", 60),
    ("mez", 60),
    ("mst", -420),
    ("nzdt", 780),
    ("nzst", 720),
    ("pdt", -420),
    ("pst", -480),
    ("sast", 120),
    ("uct", 0),
    ("ut", 0),
    ("utc", 0),
    ("wet", 0),
    ("z", 0),
    ("zulu", 0),
];

#[derive(Clone, Copy, Debug)]
enum Zone {
    /// Microseconds east of Greenwich.
    Offset(i64),
    Named(Tz),
}

impl Zone {
    fn of(name: &str) -> Result<Self> {
        let lower = name.trim().to_lowercase();
        if let Some((_, minutes)) = ABBREVIATIONS.iter().find(|(known, _)| *known == lower) {
            return Ok(Self::Offset(minutes * MICROS_OF_MINUTE));
        }
        if let Some(seconds) = posix_offset(&lower) {
            return Ok(Self::Offset(-seconds * 1_000_000));
        }
        let named = [name.trim().to_owned(), capitalised(&lower), lower.to_uppercase()];
        let is_name = lower.starts_with(|c: char| c.is_ascii_alphabetic());
        let found = named.iter().filter(|_| is_name).find_map(|name| name.parse::<Tz>().ok());
        found.map(Self::Named).ok_or_else(|| {
            external(Error::invalid(sqlstate::INVALID_PARAMETER, format!("time zone \"{name}\" not recognized")))
        })
    }

    /// Microseconds east of Greenwich, at the instant `micros`.
    fn offset_at(self, micros: i64) -> Option<i64> {
        match self {
            Self::Offset(offset) => Some(offset),
            Self::Named(zone) => {
                let typical = typical(micros);
                let local = as_datetime_with_timezone::<TimestampMicrosecondType>(typical, zone)?.naive_local();
                local.and_utc().timestamp_micros().checked_sub(typical)
            }
        }
    }

    fn local(self, instant: i64) -> Option<i64> {
        instant.checked_add(self.offset_at(instant)?)
    }

    /// As PostgreSQL decides it, by the offsets of a day before and after.
    fn instant(self, local: i64) -> Option<i64> {
        let before = self.offset_at(local.checked_sub(MICROS_OF_DAY)?)?;
        let after = self.offset_at(local.checked_add(MICROS_OF_DAY)?)?;
        let (by_before, by_after) = (local.checked_sub(before)?, local.checked_sub(after)?);
        let (is_before, is_after) = (self.offset_at(by_before)? == before, self.offset_at(by_after)? == after);
        Some(match (is_before, is_after) {
            (true, false) => by_before,
            (false, true) => by_after,
            _ => by_before.max(by_after),
        })
    }
}

/// An instant of a year of [`TYPICAL_YEARS`], if that of `micros` is after them: of one with the same calendar.
fn typical(micros: i64) -> i64 {
    let (days, of_day) = (micros.div_euclid(MICROS_OF_DAY), micros.rem_euclid(MICROS_OF_DAY));
    let (year, ..) = civil_from_days(days);
    if year <= *TYPICAL_YEARS.end() {
        return micros;
    }
    let calendar = |year: i64| {
        let (first, next) = (days_from_civil(year, 1, 1), days_from_civil(year + 1, 1, 1));
        (first.rem_euclid(7), next - first)
    };
    let wanted = calendar(year);
    let alike = TYPICAL_YEARS.clone().find(|year| calendar(*year) == wanted).unwrap_or(*TYPICAL_YEARS.end());
    (days - days_from_civil(year, 1, 1) + days_from_civil(alike, 1, 1)) * MICROS_OF_DAY + of_day
}

/// Seconds of `+02`, `-03:30`, `2`, `+02:00:30`, perhaps with letters before that name it.
fn posix_offset(text: &str) -> Option<i64> {
    let name = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let (name, offset) = text.split_at_checked(name)?;
    if !(name.is_empty() || name.len() >= 3) {
        return None;
    }
    let (sign, digits) = match offset.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let mut seconds = 0;
    let mut unit = 3_600;
    for part in digits.split(':') {
        if unit == 0 || part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: i64 = part.parse().ok()?;
        if unit < 3_600 && number > 59 {
            return None;
        }
        seconds += number * unit;
        unit /= 60;
    }
    (seconds <= 167 * 3_600).then_some(sign * seconds)
}

/// `europe/isle_of_man` as `Europe/Isle_of_Man`.
fn capitalised(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for part in name.split_inclusive(['/', '_', '-']) {
        let mut chars = part.chars();
        if matches!(part, "of_" | "es_" | "au-" | "in_") {
            out.push_str(part);
        } else if let Some(first) = chars.next() {
            out.extend(first.to_uppercase());
            out.push_str(chars.as_str());
        }
    }
    out
}

/// The function.
pub(crate) fn timezone(name: &'static str) -> ScalarUDF {
    let signature = Signature::any(2, Volatility::Immutable);
    Simple::new(name, signature, TIMESTAMP, |arrays, _| moved(arrays)).giving(result).udf()
}

fn result(types: &[DataType]) -> Result<DataType> {
    match types {
        [zone, _] if !(zone.is_string() || zone.is_null() || matches!(zone, DataType::Interval(_))) => {
            Err(undefined(zone))
        }
        [_, DataType::Timestamp(_, None)] => Ok(SqlType::TimestampTz.arrow()),
        [_, DataType::Timestamp(_, Some(_)) | DataType::Date32 | DataType::Null] => Ok(TIMESTAMP),
        [_, text] if text.is_string() => Ok(TIMESTAMP),
        [_, other] => Err(undefined(other)),
        _ => Err(undefined(&DataType::Null)),
    }
}

fn moved(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [zones, datetimes] = arrays else { return Err(undefined(&DataType::Null)) };
    let to_instant = matches!(datetimes.data_type(), DataType::Timestamp(_, None));
    let datetimes = match datetimes.data_type() {
        DataType::Timestamp(..) => cast(datetimes, &TIMESTAMP)?,
        // The session's zone is UTC.
        _ => cast(&convert(datetimes, SqlType::TimestampTz).map_err(external)?, &TIMESTAMP)?,
    };
    let datetimes = datetimes.as_primitive::<TimestampMicrosecondType>();
    let zones = zones_of(zones)?;
    let moved = datetimes.iter().enumerate().map(|(row, datetime)| {
        let (Some(datetime), Some(zone)) = (datetime, zones.of(row)) else { return Ok(None) };
        let moved = if to_instant { zone.instant(datetime) } else { zone.local(datetime) };
        moved.map(Some).ok_or_else(|| external(Error::invalid(sqlstate::DATETIME_OVERFLOW, "timestamp out of range")))
    });
    let moved: TimestampMicrosecondArray = moved.collect::<Result<_>>()?;
    Ok(if to_instant { Arc::new(moved.with_timezone_opt(zone_of(&SqlType::TimestampTz))) } else { Arc::new(moved) })
}

fn zone_of(data_type: &SqlType) -> Option<Arc<str>> {
    match data_type.arrow() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) => zone,
        _ => None,
    }
}

/// The zone of each row.
struct Zones(Vec<Option<Zone>>);

impl Zones {
    fn of(&self, row: usize) -> Option<Zone> {
        self.0.get(row).copied().flatten()
    }
}

fn zones_of(array: &ArrayRef) -> Result<Zones> {
    if matches!(array.data_type(), DataType::Interval(_)) {
        let spans = cast(array, &INTERVAL)?;
        let spans: &PrimitiveArray<IntervalMonthDayNanoType> = spans.as_primitive();
        let zone = spans.iter().map(|span| match span {
            Some(span) if span.months != 0 || span.days != 0 => {
                let message = "an interval as a time zone must not have months or days";
                Err(external(Error::invalid(sqlstate::INVALID_PARAMETER, message)))
            }
            span => Ok(span.map(|span| Zone::Offset(span.nanoseconds / 1_000))),
        });
        return Ok(Zones(zone.collect::<Result<_>>()?));
    }
    let names = cast(array, &DataType::Utf8View)?;
    let mut known: HashMap<&str, Zone> = HashMap::new();
    let zones = names.as_string_view().iter().map(|name| {
        let Some(name) = name else { return Ok(None) };
        if let Some(zone) = known.get(name) {
            return Ok(Some(*zone));
        }
        let zone = Zone::of(name)?;
        known.insert(name, zone);
        Ok(Some(zone))
    });
    Ok(Zones(zones.collect::<Result<_>>()?))
}

fn undefined(data_type: &DataType) -> DataFusionError {
    let message = format!("function timezone does not exist for the type {data_type}");
    external(Error::invalid(crate::sqlstate::UNDEFINED_FUNCTION, message))
}
