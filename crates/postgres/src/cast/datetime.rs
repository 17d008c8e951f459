//! The text of dates and timestamps, as PostgreSQL writes them.

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use arrow::datatypes::{DataType, Date32Type, TimestampMicrosecondType};
use mainstem_storage::{Error, Result};

use super::in_own_unit;
use crate::types::{Date, Timestamp, TimestampTz};

/// Whether `data_type` is an interval, or what DataFusion makes of two timestamps.
pub fn is_span(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

/// The text of each value of `array`, which are datetimes.
///
/// # Errors
/// 22008 for values beyond microseconds, Internal for other types.
pub fn datetime_text(array: &ArrayRef) -> Result<StringViewArray> {
    fn write<T>(values: impl ExactSizeIterator<Item = Option<T>>, text: impl Fn(T) -> String) -> StringViewArray {
        let mut out = StringViewBuilder::with_capacity(values.len());
        for value in values {
            out.append_option(value.map(&text));
        }
        out.finish()
    }
    let array = in_own_unit(array)?;
    Ok(match array.data_type() {
        DataType::Date32 => write(array.as_primitive::<Date32Type>().iter(), |days| Date::from_days(days).to_string()),
        DataType::Timestamp(_, zone) => {
            let values = array.as_primitive::<TimestampMicrosecondType>().iter();
            match zone {
                None => write(values, |micros| Timestamp::from_micros(micros).to_string()),
                Some(_) => write(values, |micros| TimestampTz::from_micros(micros).to_string()),
            }
        }
        other => return Err(Error::internal(format!("moments of type {other}"))),
    })
}
