//! `date_trunc(unit, datetime)` of timestamps, dates, times and intervals, as PostgreSQL computes it (`timestamp.c`).
//!
//! A DATE is a TIMESTAMPTZ there, and a TIME an interval. Words that are no unit are 22023, units that the type has not
//! 0A000, when the plan is made if they are constants; what is none is 0A000 when it runs.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, PrimitiveArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use mainstem_storage::Error;

use super::extract::{MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, Of, Part, no_constant, text};
use crate::error::external;
use crate::evaluate::over_one;
use crate::sqlstate;
use crate::types::{INTERVAL, MICROS_OF_DAY, civil_from_days, days_from_civil, sql_type};

/// The function.
pub fn date_trunc() -> ScalarUDF {
    ScalarUDF::new_from_impl(Truncate { signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Truncate {
    signature: Signature,
}

/// What `data_type` is cut off as.
fn of(data_type: &DataType) -> Result<Of> {
    match Of::new(data_type) {
        Some(Of::Day) => Ok(Of::TimestampTz),
        Some(Of::Time) => Ok(Of::Interval),
        Some(of) => Ok(of),
        None => {
            let given = sql_type(data_type).map_or_else(|| data_type.to_string(), |known| known.to_string());
            let message = format!(
                "function date_trunc(unknown, {given}) does not exist; cast it to a timestamp, date or interval"
            );
            Err(external(Error::invalid(sqlstate::UNDEFINED_FUNCTION, message)))
        }
    }
}

/// The unit that `word` names.
fn unit(word: &str, of: Of) -> Result<Part> {
    use Part::{DayOfYear, Epoch, IsoWeekDay, IsoYear, Unread, Week, WeekDay};
    let (code, not) = match Part::named(word) {
        None | Some(DayOfYear | Epoch | IsoWeekDay | IsoYear | WeekDay) => (sqlstate::INVALID_PARAMETER, "recognized"),
        Some(Unread) => (sqlstate::FEATURE_NOT_SUPPORTED, "supported"),
        Some(Week) if of == Of::Interval => (sqlstate::FEATURE_NOT_SUPPORTED, "supported"),
        Some(unit) => return Ok(unit),
    };
    let message = format!("unit \"{}\" not {not} for type {}", word.to_ascii_lowercase(), of.name());
    Err(external(Error::invalid(code, message)))
}

/// Microseconds of a unit of fixed length.
fn length(unit: Part) -> Option<i64> {
    Some(match unit {
        Part::Microsecond => 1,
        Part::Millisecond => 1_000,
        Part::Second => MICROS_OF_SECOND,
        Part::Minute => MICROS_OF_MINUTE,
        Part::Hour => MICROS_OF_HOUR,
        Part::Day => MICROS_OF_DAY,
        _ => return None,
    })
}

/// The beginning of the unit that the day is in.
fn first_day(days: i64, unit: Part) -> i64 {
    let (year, month, _) = civil_from_days(days);
    let month = i64::from(month);
    match unit {
        Part::Week => days - (days + 3).rem_euclid(7),
        Part::Month => days_from_civil(year, month, 1),
        Part::Quarter => days_from_civil(year, (month - 1) / 3 * 3 + 1, 1),
        Part::Year => days_from_civil(year, 1, 1),
        _ => days,
    }
}

fn datetimes(datetimes: &PrimitiveArray<TimestampMicrosecondType>, unit: Part) -> Result<TimestampMicrosecondArray> {
    let out_of_range = || external(Error::invalid(sqlstate::DATETIME_OVERFLOW, "timestamp out of range"));
    Ok(match length(unit) {
        Some(length) => datetimes.unary_opt(|micros| micros.checked_sub(micros.rem_euclid(length))),
        None => datetimes.try_unary(|micros| {
            let days = first_day(micros.div_euclid(MICROS_OF_DAY), unit);
            days.checked_mul(MICROS_OF_DAY).ok_or_else(out_of_range)
        })?,
    })
}

fn span(span: IntervalMonthDayNano, unit: Part) -> IntervalMonthDayNano {
    let IntervalMonthDayNano { months, days, nanoseconds } = span;
    let to = |months_of: i32| IntervalMonthDayNano::new(months / months_of * months_of, 0, 0);
    match unit {
        Part::Month => to(1),
        Part::Quarter => to(3),
        Part::Year => to(12),
        Part::Day => IntervalMonthDayNano::new(months, days, 0),
        unit => {
            let nanos = length(unit).unwrap_or(1) * 1_000;
            IntervalMonthDayNano::new(months, days, nanoseconds / nanos * nanos)
        }
    }
}

fn cut(values: &ArrayRef, unit: Part, of: Of) -> Result<ArrayRef> {
    let values = match of {
        // By way of an interval's time.
        Of::Interval if matches!(values.data_type(), DataType::Time32(_) | DataType::Time64(_)) => {
            let times = cast(values, &DataType::Time64(TimeUnit::Nanosecond))?;
            let times = times.as_primitive::<arrow::datatypes::Time64NanosecondType>();
            let spans: IntervalMonthDayNanoArray = times.unary(|nanos| IntervalMonthDayNano::new(0, 0, nanos));
            Arc::new(spans)
        }
        of => cast(values, &of.arrow())?,
    };
    Ok(match values.as_primitive_opt::<IntervalMonthDayNanoType>() {
        Some(spans) => Arc::new(spans.unary::<_, IntervalMonthDayNanoType>(|one| span(one, unit))),
        None => {
            let cut = datetimes(values.as_primitive::<TimestampMicrosecondType>(), unit)?;
            Arc::new(cut.with_data_type(of.arrow()))
        }
    })
}

impl ScalarUDFImpl for Truncate {
    fn name(&self) -> &'static str {
        "date_trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.get(1).map_or(Ok(INTERVAL), |data_type| Ok(of(data_type)?.arrow()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let ([word_field, datetime], [word, _]) = (args.arg_fields, args.scalar_arguments) else {
            return Err(DataFusionError::Internal("date_trunc without its arguments".into()));
        };
        let of = of(datetime.data_type())?;
        if let Some(word) = word.and_then(text) {
            unit(word, of)?;
        }
        let nullable = word_field.is_nullable() || datetime.is_nullable();
        Ok(Arc::new(Field::new(self.name(), of.arrow(), nullable)))
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        Ok(match input {
            [unit, datetime] if unit.sort_properties == SortProperties::Singleton => {
                let is_span = matches!(Of::new(&datetime.range.data_type()), Some(Of::Interval) | None);
                if is_span { SortProperties::Unordered } else { datetime.sort_properties }
            }
            _ => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [word, datetime] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("date_trunc without its arguments".into()));
        };
        let of = of(&datetime.data_type())?;
        let ColumnarValue::Scalar(word) = word else { return Err(no_constant(self.name())) };
        let unit = text(word).map(|word| unit(word, of)).transpose()?;
        over_one(datetime, |values| match unit {
            Some(unit) => cut(values, unit, of),
            None => Ok(new_null_array(&of.arrow(), values.len())),
        })
    }
}
