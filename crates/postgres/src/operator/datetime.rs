//! `date ± integer`, `timestamp ± interval`, `timestamp - timestamp`, `interval * number`, `interval / number`; `time ±
//! interval`, `time - time`, `date + time`.
//!
//! An interval is months, days and time, each of its own: multiplied by a fraction, what is left of the months becomes
//! days (30 to a month), and what is left of the days becomes time, as in PostgreSQL. A time of day turns over at
//! midnight; months and days of an interval say nothing to it. Results that have no place in their type are 22008.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Date32Array, Decimal128Array, IntervalMonthDayNanoArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{Expr, Signature, Volatility};
use mainstem_storage::Error;

use crate::error::external;
use crate::evaluate::simple::Simple;
use crate::sqlstate;
use crate::types::{INTERVAL, MICROS_OF_DAY, TIME, TIMESTAMP, civil_from_days, days_from_civil};

/// The days since 1970-01-01 that PostgreSQL knows: from 4714-11-24 BC on.
const DAYS: Range<i64> = -2_440_588..2_145_042_906;
const LENGTH: DataType = DataType::Decimal128(38, 0);
const SECONDS_OF_DAY: f64 = 86_400.0;
const DAYS_OF_MONTH: f64 = 30.0;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// DATE + whole number.
    DaysLater,
    /// DATE - whole number.
    DaysEarlier,
    /// TIMESTAMP + INTERVAL.
    Later,
    /// TIMESTAMP - INTERVAL.
    Earlier,
    /// TIMESTAMP - TIMESTAMP, of the same type: days and time.
    Between,
    /// INTERVAL * number.
    Times,
    /// INTERVAL / number.
    DividedBy,
    /// TIME + INTERVAL.
    TimeLater,
    /// TIME - INTERVAL.
    TimeEarlier,
    /// TIME - TIME.
    BetweenTimes,
    /// DATE + TIME.
    At,
}

/// How long the interval `span` is, a number by which it is compared: `1 day` is `24 hours`, a month has 30 days.
#[must_use]
pub fn length(span: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    Simple::new("span_length", signature, LENGTH, |arrays, _| lengths(arrays)).udf().call(vec![span])
}

/// Microseconds as [`length`] counts them.
#[must_use]
pub fn micros_of(span: IntervalMonthDayNano) -> i128 {
    let days = i128::from(span.months) * 30 + i128::from(span.days);
    days * i128::from(MICROS_OF_DAY) + i128::from(span.nanoseconds / 1_000)
}

/// `left` and `right`, in the order of [`Op`]'s words.
#[must_use]
pub fn operation(op: Op, left: Expr, right: Expr) -> Expr {
    let (name, result) = match op {
        Op::DaysLater => ("days_later", DataType::Date32),
        Op::DaysEarlier => ("days_earlier", DataType::Date32),
        Op::Later => ("span_later", TIMESTAMP),
        Op::Earlier => ("span_earlier", TIMESTAMP),
        Op::Between => ("span_between", INTERVAL),
        Op::Times => ("span_times", INTERVAL),
        Op::DividedBy => ("span_divided_by", INTERVAL),
        Op::TimeLater => ("time_later", TIME),
        Op::TimeEarlier => ("time_earlier", TIME),
        Op::BetweenTimes => ("time_between", INTERVAL),
        Op::At => ("day_at", TIMESTAMP),
    };
    let compute = move |arrays: &[ArrayRef], _: usize| match arrays {
        [left, right] => op.compute(left, right),
        _ => Err(DataFusionError::Internal(format!("{name} with {} arguments", arrays.len()))),
    };
    let signature = Signature::any(2, Volatility::Immutable);
    let function = Simple::new(name, signature, result, compute);
    let function = match op {
        Op::Later | Op::Earlier => function.giving(|types| {
            let zone = types.first().and_then(zone_of);
            Ok(DataType::Timestamp(TimeUnit::Microsecond, zone))
        }),
        _ => function,
    };
    function.udf().call(vec![left, right])
}

fn zone_of(data_type: &DataType) -> Option<Arc<str>> {
    match data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

/// 22008 of a value of the type `what`.
#[must_use]
pub fn out_of_range(what: &str) -> DataFusionError {
    external(Error::invalid(sqlstate::DATETIME_OVERFLOW, format!("{what} out of range")))
}

impl Op {
    fn compute(self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self {
            Op::DaysLater | Op::DaysEarlier => {
                let (days, numbers) = (cast(left, &DataType::Date32)?, cast(right, &DataType::Int64)?);
                let days = days.as_primitive::<Date32Type>().iter();
                let moved = days.zip(numbers.as_primitive::<Int64Type>()).map(|(day, number)| {
                    let (Some(day), Some(number)) = (day, number) else { return Ok(None) };
                    let moved = match self {
                        Op::DaysLater => i64::from(day).checked_add(number),
                        _ => i64::from(day).checked_sub(number),
                    };
                    let day = moved.filter(|day| DAYS.contains(day)).and_then(|day| i32::try_from(day).ok());
                    day.map(Some).ok_or_else(|| out_of_range("date"))
                });
                Arc::new(moved.collect::<Result<Date32Array>>()?)
            }
            Op::Later | Op::Earlier => Arc::new(all_moved(left, right, self == Op::Earlier)?),
            Op::Between => {
                let micros = |side: &ArrayRef| cast(side, &TIMESTAMP);
                let (left, right) = (micros(left)?, micros(right)?);
                let left = left.as_primitive::<TimestampMicrosecondType>().iter();
                let spans = left.zip(right.as_primitive::<TimestampMicrosecondType>()).map(|(left, right)| {
                    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                    let micros = left.checked_sub(right).ok_or_else(|| out_of_range("interval"))?;
                    let days = i32::try_from(micros / MICROS_OF_DAY).map_err(|_| out_of_range("interval"))?;
                    Ok(Some(IntervalMonthDayNano::new(0, days, micros % MICROS_OF_DAY * 1_000)))
                });
                Arc::new(spans.collect::<Result<IntervalMonthDayNanoArray>>()?)
            }
            Op::Times | Op::DividedBy => {
                let (spans, numbers) = (cast(left, &INTERVAL)?, cast(right, &DataType::Float64)?);
                let spans = spans.as_primitive::<IntervalMonthDayNanoType>().iter();
                let spans = spans.zip(numbers.as_primitive::<Float64Type>()).map(|(span, number)| {
                    let (Some(span), Some(number)) = (span, number) else { return Ok(None) };
                    if self == Op::Times {
                        return scaled(span, |part| part * number).map(Some);
                    }
                    if number == 0.0 {
                        return Err(external(Error::invalid(sqlstate::DIVISION_BY_ZERO, "division by zero")));
                    }
                    scaled(span, |part| part / number).map(Some)
                });
                Arc::new(spans.collect::<Result<IntervalMonthDayNanoArray>>()?)
            }
            Op::TimeLater | Op::TimeEarlier => {
                let (times, spans) = (cast(left, &TIME)?, cast(right, &INTERVAL)?);
                let spans = spans.as_primitive::<IntervalMonthDayNanoType>();
                let times = times.as_primitive::<Time64MicrosecondType>();
                let moved = times.iter().zip(spans).map(|(time, span)| {
                    let micros = span?.nanoseconds / 1_000 % MICROS_OF_DAY;
                    let micros = if self == Op::TimeLater { micros } else { -micros };
                    Some((time? + micros).rem_euclid(MICROS_OF_DAY))
                });
                Arc::new(Time64MicrosecondArray::from_iter(moved))
            }
            Op::BetweenTimes => {
                let (left, right) = (cast(left, &TIME)?, cast(right, &TIME)?);
                let left = left.as_primitive::<Time64MicrosecondType>().iter();
                let spans = left
                    .zip(right.as_primitive::<Time64MicrosecondType>())
                    .map(|(left, right)| Some(IntervalMonthDayNano::new(0, 0, (left? - right?) * 1_000)));
                Arc::new(IntervalMonthDayNanoArray::from_iter(spans))
            }
            Op::At => Arc::new(date_at_time(left, right)?),
        })
    }
}

/// TIMESTAMP + INTERVAL, or - INTERVAL.
fn all_moved(datetimes: &ArrayRef, spans: &ArrayRef, back: bool) -> Result<TimestampMicrosecondArray> {
    let zone = zone_of(datetimes.data_type());
    let (datetimes, spans) = (cast(datetimes, &TIMESTAMP)?, cast(spans, &INTERVAL)?);
    let datetimes = datetimes.as_primitive::<TimestampMicrosecondType>().iter();
    let moved = datetimes.zip(spans.as_primitive::<IntervalMonthDayNanoType>()).map(|(datetime, span)| {
        let (Some(datetime), Some(span)) = (datetime, span) else { return Ok(None) };
        moved(datetime, span, back).map(Some).ok_or_else(|| out_of_range("timestamp"))
    });
    Ok(moved.collect::<Result<TimestampMicrosecondArray>>()?.with_timezone_opt(zone))
}

/// `micros` since 1970-01-01 and `span`, or without it if it is `back`: first its months, which keep the day where the
/// month has it, then its days, then its time. None where there is no such timestamp.
#[must_use]
pub fn moved(micros: i64, span: IntervalMonthDayNano, back: bool) -> Option<i64> {
    let sign = if back { -1 } else { 1 };
    let (mut days, of_day) = (micros.div_euclid(MICROS_OF_DAY), micros.rem_euclid(MICROS_OF_DAY));
    if span.months != 0 {
        let (year, month, day) = civil_from_days(days);
        let months = year * 12 + i64::from(month) - 1 + sign * i64::from(span.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let (first, after) = (days_from_civil(year, month, 1), days_from_civil(next_year, next_month, 1));
        days = first + (i64::from(day) - 1).min(after - first - 1);
    }
    let days = days + sign * i64::from(span.days);
    let micros = days.checked_mul(MICROS_OF_DAY)?.checked_add(of_day)?;
    let micros = micros.checked_add(sign * (span.nanoseconds / 1_000))?;
    (micros >= DAYS.start * MICROS_OF_DAY).then_some(micros)
}

/// DATE + TIME.
fn date_at_time(days: &ArrayRef, times: &ArrayRef) -> Result<TimestampMicrosecondArray> {
    let (days, times) = (cast(days, &DataType::Date32)?, cast(times, &TIME)?);
    let times = times.as_primitive::<Time64MicrosecondType>();
    let timestamps = days.as_primitive::<Date32Type>().iter().zip(times).map(|(day, time)| {
        let (Some(day), Some(time)) = (day, time) else { return Ok(None) };
        let micros = i64::from(day).checked_mul(MICROS_OF_DAY).and_then(|day| day.checked_add(time));
        micros.map(Some).ok_or_else(|| out_of_range("timestamp"))
    });
    timestamps.collect()
}

/// To whole microseconds, of days or seconds: what is behind them is the error of floats.
fn tidy(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

fn whole_i32(value: f64) -> Result<i32> {
    let value = value.trunc();
    if value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX) {
        return Ok(value as i32);
    }
    Err(out_of_range("interval"))
}

/// `span` with each of its parts as `scale` makes it.
pub(crate) fn scaled(span: IntervalMonthDayNano, scale: impl Fn(f64) -> f64) -> Result<IntervalMonthDayNano> {
    let (of_months, of_days) = (scale(f64::from(span.months)), scale(f64::from(span.days)));
    let (months, mut days) = (whole_i32(of_months)?, whole_i32(of_days)?);
    let more_days = tidy((of_months - f64::from(months)) * DAYS_OF_MONTH);
    let whole_more = whole_i32(more_days)?;
    let mut seconds = tidy((of_days - f64::from(days) + more_days - f64::from(whole_more)) * SECONDS_OF_DAY);
    let add = |days: i32, more: i32| days.checked_add(more).ok_or_else(|| out_of_range("interval"));
    if seconds.abs() >= SECONDS_OF_DAY {
        let over = whole_i32(seconds / SECONDS_OF_DAY)?;
        days = add(days, over)?;
        seconds -= f64::from(over) * SECONDS_OF_DAY;
    }
    days = add(days, whole_more)?;
    let micros = (scale((span.nanoseconds / 1_000) as f64) + seconds * 1e6).round_ties_even();
    // Nanoseconds hold about 292 years. (What is no number has failed above.)
    let most = (i64::MAX / 1_000) as f64;
    if micros.abs() >= most {
        return Err(out_of_range("interval"));
    }
    Ok(IntervalMonthDayNano::new(months, days, micros as i64 * 1_000))
}

fn lengths(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [spans] = arrays else { return Err(DataFusionError::Internal("span_length of other than one".into())) };
    let spans = cast(spans, &INTERVAL)?;
    let spans = spans.as_primitive::<IntervalMonthDayNanoType>();
    let lengths: Decimal128Array = spans.iter().map(|span| span.map(micros_of)).collect();
    Ok(Arc::new(lengths.with_data_type(LENGTH)))
}
