//! Datetimes: `make_date`, `make_timestamp`, `make_timestamptz`, `make_time`, `age`, `clock_timestamp`, `isfinite`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Float64Array, IntervalMonthDayNanoArray, PrimitiveArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int64Type, IntervalMonthDayNano, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_expr::{ScalarUDF, Signature, Volatility};
use mainstem_storage::Error;

use crate::error::external;
use crate::evaluate::simple::Simple;
use crate::sqlstate;
use crate::types::{INTERVAL, MICROS_OF_DAY, TIME, TIMESTAMP, civil_from_days, days_from_civil};

/// The function `name` of the module.
pub(crate) fn of_calendar(name: &'static str) -> ScalarUDF {
    let whole = |count| vec![DataType::Int64; count];
    let fields = |count| [whole(count), vec![DataType::Float64]].concat();
    let exact = |types| Signature::exact(types, Volatility::Immutable);
    let instant = || DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let (signature, result) = match name {
        // Of year, month, day, hour, minute, seconds.
        "make_timestamp" => (exact(fields(5)), TIMESTAMP),
        "make_timestamptz" => (exact(fields(5)), instant()),
        "make_time" => (exact(fields(2)), TIME),
        "make_date" => (exact(whole(3)), DataType::Date32),
        "clock_timestamp" => (Signature::nullary(Volatility::Volatile), instant()),
        "isfinite" => (Signature::any(1, Volatility::Immutable), DataType::Boolean),
        _ => (Signature::any(2, Volatility::Immutable), INTERVAL),
    };
    let function = Simple::new(name, signature, result, move |arrays, _| computed(name, arrays));
    match name {
        "age" | "isfinite" => function.coerced(move |types| coerced(name, types)).udf(),
        _ => function.udf(),
    }
}

fn coerced(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let is_datetime_type =
        |t: &DataType| matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Null) || t.is_string();
    match types {
        [DataType::Timestamp(..) | DataType::Date32 | DataType::Interval(_) | DataType::Duration(_)]
            if name == "isfinite" =>
        {
            Ok(types.to_vec())
        }
        [_, _] if name == "age" && types.iter().all(is_datetime_type) => Ok(vec![TIMESTAMP; 2]),
        _ => plan_err!("No function matches the given name and argument types '{name}'"),
    }
}

fn out_of_range(what: &str, fields: &str) -> DataFusionError {
    let message = format!("{what} field value out of range: {fields}");
    external(Error::invalid(sqlstate::DATETIME_OVERFLOW, message))
}

fn computed(name: &str, args: &[ArrayRef]) -> Result<ArrayRef> {
    match (name, args) {
        ("age", [later, earlier]) => ages(later, earlier),
        // No infinite datetimes are read.
        ("isfinite", [datetimes]) => {
            let known = (0..datetimes.len()).map(|row| datetimes.is_valid(row).then_some(true));
            Ok(Arc::new(BooleanArray::from_iter(known)))
        }
        ("clock_timestamp", []) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
            Ok(Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("+00:00")))
        }
        ("make_time", [hours, minutes, seconds]) => {
            let (hours, minutes, seconds) = (whole(hours)?, whole(minutes)?, doubles(seconds)?);
            let times = (0..hours.len()).map(|row| match (at(hours, row), at(minutes, row), at(seconds, row)) {
                (Some(hour), Some(minute), Some(second)) => {
                    let micros = of_day(hour, minute, second)?;
                    // TIME ends before 24:00:00.
                    let in_day = Some(micros).filter(|micros| *micros < MICROS_OF_DAY);
                    in_day.map(Some).ok_or_else(|| out_of_range("time", &format!("{hour}:{minute}:{second}")))
                }
                _ => Ok(None),
            });
            Ok(Arc::new(times.collect::<Result<Time64MicrosecondArray>>()?))
        }
        ("make_date", [years, months, days]) => {
            let (years, months, days) = (whole(years)?, whole(months)?, whole(days)?);
            let dates = (0..years.len()).map(|row| match (at(years, row), at(months, row), at(days, row)) {
                (Some(year), Some(month), Some(day)) => Ok(i32::try_from(day_of(year, month, day)?).ok()),
                _ => Ok(None),
            });
            Ok(Arc::new(dates.collect::<Result<Date32Array>>()?))
        }
        (_, [years, months, days, hours, minutes, seconds]) => {
            let (years, months, days) = (whole(years)?, whole(months)?, whole(days)?);
            let (hours, minutes, seconds) = (whole(hours)?, whole(minutes)?, doubles(seconds)?);
            let datetimes = (0..years.len()).map(|row| {
                let date = (at(years, row), at(months, row), at(days, row));
                match (date, at(hours, row), at(minutes, row), at(seconds, row)) {
                    ((Some(year), Some(month), Some(day)), Some(hour), Some(minute), Some(second)) => {
                        let time = of_day(hour, minute, second)?;
                        Ok(Some(day_of(year, month, day)? * MICROS_OF_DAY + time))
                    }
                    _ => Ok(None),
                }
            });
            let datetimes = datetimes.collect::<Result<TimestampMicrosecondArray>>()?;
            Ok(if name == "make_timestamptz" {
                Arc::new(datetimes.with_timezone("+00:00"))
            } else {
                Arc::new(datetimes)
            })
        }
        _ => Err(wrong_arguments(name)),
    }
}

fn wrong_arguments(name: &str) -> DataFusionError {
    DataFusionError::Internal(format!("{name} with arguments it does not take"))
}

fn whole(array: &ArrayRef) -> Result<&PrimitiveArray<Int64Type>> {
    array.as_primitive_opt().ok_or_else(|| wrong_arguments("a moment"))
}

fn doubles(array: &ArrayRef) -> Result<&Float64Array> {
    array.as_primitive_opt::<Float64Type>().ok_or_else(|| wrong_arguments("a moment"))
}

fn at<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    array.is_valid(row).then(|| array.value(row))
}

/// Days since 1970 of a date that there is, in years of four digits.
fn day_of(year: i64, month: i64, day: i64) -> Result<i64> {
    let wrong = || out_of_range("date", &format!("{year}-{month:02}-{day:02}"));
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(wrong());
    }
    let days = days_from_civil(year, month, day);
    let (_, same_month, _) = civil_from_days(days);
    if i64::from(same_month) == month { Ok(days) } else { Err(wrong()) }
}

/// Microseconds since midnight. 60 seconds are those of the next minute, and 24:00:00 is the day's end, as in
/// PostgreSQL.
fn of_day(hour: i64, minute: i64, second: f64) -> Result<i64> {
    let micros = (second * 1e6).round_ties_even();
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60e6).contains(&micros)
        || hour == 24 && minute == 0 && micros == 0.0;
    if !is_time {
        return Err(out_of_range("time", &format!("{hour}:{minute:02}:{second:02}")));
    }
    Ok((hour * 60 + minute) * 60_000_000 + micros as i64)
}

fn ages(later: &ArrayRef, earlier: &ArrayRef) -> Result<ArrayRef> {
    let (later, earlier) = (cast(later, &TIMESTAMP)?, cast(earlier, &TIMESTAMP)?);
    let pairs =
        later.as_primitive::<TimestampMicrosecondType>().iter().zip(earlier.as_primitive::<TimestampMicrosecondType>());
    let ages = pairs.map(|(later, earlier)| Some(age(later?, earlier?)));
    Ok(Arc::new(IntervalMonthDayNanoArray::from_iter(ages)))
}

/// From `earlier` to `later`, field by field. A day that is lent is one of the month in which the earlier of both lies.
fn age(later: i64, earlier: i64) -> IntervalMonthDayNano {
    if later < earlier {
        let IntervalMonthDayNano { months, days, nanoseconds } = age(earlier, later);
        return IntervalMonthDayNano::new(-months, -days, -nanoseconds);
    }
    let fields = |micros: i64| {
        let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_OF_DAY));
        (year * 12 + i64::from(month) - 1, i64::from(day), micros.rem_euclid(MICROS_OF_DAY))
    };
    let ((months, days, time), (from_months, from_days, from_time)) = (fields(later), fields(earlier));
    let (mut months, mut days, mut time) = (months - from_months, days - from_days, time - from_time);
    if time < 0 {
        time += MICROS_OF_DAY;
        days -= 1;
    }
    while days < 0 {
        let (year, month) = (from_months.div_euclid(12), from_months.rem_euclid(12) + 1);
        days += days_from_civil(year, month + 1, 1) - days_from_civil(year, month, 1);
        months -= 1;
    }
    let small = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
    IntervalMonthDayNano::new(small(months), small(days), time * 1_000)
}
