//! Dates and times in any unit of Arrow's as columns have them: days and microseconds.
//!
//! What is finer is cut toward the past, also before 1970, where Arrow's own casts cut toward 1970. A moment is the
//! same in every time zone: that of columns takes the place of any other.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Date64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use crate::sqlstate::DATETIME_RANGE;

const MILLIS_OF_DAY: i64 = 86_400_000;

/// The type that columns have for dates and times of type `data_type`; other types as they are.
#[must_use]
pub fn own_unit(data_type: &ArrowType) -> ArrowType {
    match data_type {
        ArrowType::Date64 => DataType::Date.arrow(),
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time.arrow(),
        ArrowType::Timestamp(_, None) => DataType::Timestamp.arrow(),
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz.arrow(),
        other => other.clone(),
    }
}

/// `array` in the type of [`own_unit`].
///
/// # Errors
/// 22008 for what lies beyond the days or microseconds that there are.
pub fn in_own_unit(array: &ArrayRef) -> Result<ArrayRef> {
    let own = own_unit(array.data_type());
    if *array.data_type() == own {
        return Ok(array.clone());
    }
    match array.data_type() {
        ArrowType::Date64 => days(array),
        ArrowType::Time32(TimeUnit::Second) => {
            of_micros::<Time32SecondType, Time64MicrosecondType>(array, TimeUnit::Second, own)
        }
        ArrowType::Time32(_) => {
            of_micros::<Time32MillisecondType, Time64MicrosecondType>(array, TimeUnit::Millisecond, own)
        }
        ArrowType::Time64(_) => {
            of_micros::<Time64NanosecondType, Time64MicrosecondType>(array, TimeUnit::Nanosecond, own)
        }
        ArrowType::Timestamp(unit @ TimeUnit::Second, _) => {
            of_micros::<TimestampSecondType, TimestampMicrosecondType>(array, *unit, own)
        }
        ArrowType::Timestamp(unit @ TimeUnit::Millisecond, _) => {
            of_micros::<TimestampMillisecondType, TimestampMicrosecondType>(array, *unit, own)
        }
        ArrowType::Timestamp(unit @ TimeUnit::Nanosecond, _) => {
            of_micros::<TimestampNanosecondType, TimestampMicrosecondType>(array, *unit, own)
        }
        // In another time zone.
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(Arc::new(array.as_primitive::<TimestampMicrosecondType>().clone().with_data_type(own)))
        }
        _ => Ok(array.clone()),
    }
}

/// Milliseconds as the days that they are in.
fn days(array: &ArrayRef) -> Result<ArrayRef> {
    let day = |millis: i64| i32::try_from(millis.div_euclid(MILLIS_OF_DAY)).map_err(|_| out_of_range(DataType::Date));
    Ok(Arc::new(array.as_primitive::<Date64Type>().try_unary::<_, Date32Type, Error>(day)?))
}

/// Values of `unit` as microseconds, of type `own`.
fn of_micros<T, U>(array: &ArrayRef, unit: TimeUnit, own: ArrowType) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: Into<i64>>,
    U: ArrowPrimitiveType<Native = i64>,
{
    let micros = |value: T::Native| {
        let value: i64 = value.into();
        let micros = match unit {
            TimeUnit::Second => value.checked_mul(1_000_000),
            TimeUnit::Millisecond => value.checked_mul(1_000),
            TimeUnit::Microsecond => Some(value),
            TimeUnit::Nanosecond => Some(value.div_euclid(1_000)),
        };
        micros.ok_or_else(|| out_of_range(DataType::Timestamp))
    };
    Ok(Arc::new(array.as_primitive::<T>().try_unary::<_, U, Error>(micros)?.with_data_type(own)))
}

fn out_of_range(of: DataType) -> Error {
    let what = if of == DataType::Date { "date" } else { "timestamp" };
    Error::invalid(DATETIME_RANGE, format!("{what} out of range"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use arrow::array::{
        Array, Date64Array, Int32Array, Int64Array, Time32MillisecondArray, Time32SecondArray, Time64NanosecondArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
    };
    use arrow::compute::cast;

    use super::super::convert;
    use super::*;

    /// The days or microseconds of `array`, NULLs left out, or the SQLSTATE.
    fn own(array: impl Array + 'static) -> Result<Vec<i64>, &'static str> {
        let array: ArrayRef = Arc::new(array);
        let own = in_own_unit(&array).map_err(|e| e.sqlstate())?;
        assert_eq!(*own.data_type(), own_unit(array.data_type()));
        assert_eq!(own.null_count(), array.null_count());
        Ok(cast(&own, &ArrowType::Int64)
            .unwrap()
            .as_primitive::<arrow::datatypes::Int64Type>()
            .iter()
            .flatten()
            .collect())
    }

    #[test]
    fn what_is_finer_is_cut_toward_the_past() {
        let nanos =
            vec![Some(-1), None, Some(0), Some(999), Some(-1_000), Some(-1_001), Some(i64::MIN), Some(i64::MAX)];
        let micros = Ok(vec![-1, 0, 0, -1, -2, -9_223_372_036_854_776, 9_223_372_036_854_775]);
        let zone = |zone: &str| TimestampNanosecondArray::from(nanos.clone()).with_timezone(zone);
        assert_eq!(own(TimestampNanosecondArray::from(nanos.clone())), micros);
        assert_eq!(own(zone("UTC")), micros);
        assert_eq!(own(zone("Europe/Berlin")), micros, "moments are the same everywhere");
        assert_eq!(own(zone("No/Where")), micros);
        assert_eq!(own(TimestampMicrosecondArray::from(vec![-1, 5]).with_timezone("+02:00")), Ok(vec![-1, 5]));
        assert_eq!(
            own(Time64NanosecondArray::from(vec![0, 999, 1_000, 86_399_999_999_999])),
            Ok(vec![0, 0, 1, 86_399_999_999])
        );
        assert_eq!(own(Time32MillisecondArray::from(vec![1, 86_399_999])), Ok(vec![1_000, 86_399_999_000]));
        assert_eq!(own(Time32SecondArray::from(vec![1, 86_399])), Ok(vec![1_000_000, 86_399_000_000]));
        assert_eq!(
            own(Date64Array::from(vec![-1, 0, 86_399_999, -86_400_000, -86_400_001])),
            Ok(vec![-1, 0, 0, -1, -2])
        );
        assert_eq!(own(TimestampMillisecondArray::from(vec![-1, 2])), Ok(vec![-1_000, 2_000]));
        assert_eq!(own(TimestampSecondArray::from(vec![-1, 2])), Ok(vec![-1_000_000, 2_000_000]));
        assert_eq!((own(Int64Array::from(vec![7])), own(Int32Array::from(vec![7]))), (Ok(vec![7]), Ok(vec![7])));
    }

    #[test]
    fn what_lies_beyond_is_no_other_moment() {
        assert_eq!(own(TimestampSecondArray::from(vec![i64::MAX / 1_000_000 + 1])), Err("22008"));
        assert_eq!(own(TimestampMillisecondArray::from(vec![i64::MIN / 1_000 - 1])), Err("22008"));
        assert_eq!(own(Date64Array::from(vec![i64::MAX])), Err("22008"));
        // What stands where a NULL is means nothing.
        let hidden = TimestampSecondArray::new(vec![i64::MAX].into(), Some(vec![false].into()));
        assert_eq!(own(hidden), Ok(Vec::new()));
    }

    /// By whatever way values of other units come.
    #[test]
    fn conversions_begin_with_the_own_unit() {
        let text = |array: ArrayRef, to: DataType| {
            let to = convert(&array, to).unwrap();
            let texts = convert(&to, DataType::Text { max_chars: None }).unwrap();
            texts.as_string_view().value(0).to_owned()
        };
        let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1]));
        let zoned: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1]).with_timezone("Europe/Berlin"));
        for array in [nanos, zoned.clone()] {
            assert_eq!(text(array.clone(), DataType::Timestamp), "1969-12-31 23:59:59.999999");
            assert_eq!(text(array.clone(), DataType::TimestampTz), "1969-12-31 23:59:59.999999+00");
            assert_eq!(text(array.clone(), DataType::Date), "1969-12-31");
            assert_eq!(text(array, DataType::Time), "23:59:59.999999");
        }
        assert_eq!(text(zoned, DataType::Text { max_chars: None }), "1969-12-31 23:59:59.999999+00");
        let millis: ArrayRef = Arc::new(Date64Array::from(vec![-1]));
        assert_eq!(text(millis.clone(), DataType::Date), "1969-12-31");
        assert_eq!(text(millis.clone(), DataType::Timestamp), "1969-12-31 00:00:00");
        assert_eq!(text(millis, DataType::Text { max_chars: None }), "1969-12-31");
    }
}
