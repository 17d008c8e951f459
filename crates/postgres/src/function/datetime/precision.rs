//! The precision of TIMESTAMP(p), TIMESTAMP(p) WITH TIME ZONE and TIME(p): so many digits behind the point of seconds.
//!
//! As PostgreSQL rounds (`AdjustTimestampForTypmod`): halves away from 2000-01-01, of a time of day up. Casts to such
//! types, and CURRENT_TIMESTAMP(p) and the like, become calls of the function (`analyze` of the SQL crate).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, Time64MicrosecondType, TimestampMicrosecondType};
use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_expr::{ScalarUDF, Signature, Volatility};
use mainstem_storage::Error;

use crate::error::external;
use crate::evaluate::simple::Simple;
use crate::operator::datetime::out_of_range;
use crate::sqlstate;
use crate::types::{MICROS_OF_DAY, TIMESTAMP};

/// The name of the function: of a datetime and a number of digits.
pub const ROUNDED_SECONDS: &str = "rounded_seconds";

/// Microseconds from 1970 to 2000.
const MILLENNIUM: i64 = 946_684_800_000_000;
/// Digits of a microsecond.
const DIGITS_MAX: i64 = 6;

/// The function.
pub(crate) fn rounded_seconds(name: &'static str) -> ScalarUDF {
    let signature = Signature::any(2, Volatility::Immutable);
    Simple::new(name, signature, TIMESTAMP, |arrays, _| rounded(arrays)).giving(of_first).udf()
}

fn of_first(types: &[DataType]) -> Result<DataType> {
    match types {
        [of @ (DataType::Timestamp(..) | DataType::Time64(_)), digits] if digits.is_integer() || digits.is_null() => {
            Ok(of.clone())
        }
        _ => plan_err!("No function matches the given name and argument types '{ROUNDED_SECONDS}'"),
    }
}

/// Microseconds of the last digit that is kept.
fn unit(digits: i64) -> Result<i64> {
    match u32::try_from(DIGITS_MAX - digits) {
        Ok(dropped) if digits >= 0 => Ok(10_i64.pow(dropped)),
        _ => {
            let message = format!("precision {digits} must be between 0 and {DIGITS_MAX}");
            Err(external(Error::invalid(sqlstate::INVALID_PARAMETER, message)))
        }
    }
}

fn timestamp(micros: i64, unit: i64) -> Option<i64> {
    let since = micros.checked_sub(MILLENNIUM)?;
    let units = since.unsigned_abs().checked_add(unit.unsigned_abs() / 2)? / unit.unsigned_abs();
    let since = i64::try_from(units).ok()?.checked_mul(unit)?.checked_mul(since.signum())?;
    since.checked_add(MILLENNIUM)
}

fn time(micros: i64, unit: i64) -> Option<i64> {
    Some((micros + unit / 2) / unit * unit).filter(|micros| *micros < MICROS_OF_DAY)
}

fn each<T: ArrowPrimitiveType<Native = i64>>(
    values: &ArrayRef,
    digits: &Int64Array,
    what: &str,
    round: fn(i64, i64) -> Option<i64>,
) -> Result<ArrayRef> {
    let rounded = values.as_primitive::<T>().iter().zip(digits).map(|(micros, digits)| match (micros, digits) {
        (Some(micros), Some(digits)) => round(micros, unit(digits)?).map(Some).ok_or_else(|| out_of_range(what)),
        _ => Ok(None),
    });
    let rounded = rounded.collect::<Result<PrimitiveArray<T>>>()?;
    Ok(Arc::new(rounded.with_data_type(values.data_type().clone())))
}

fn rounded(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [values, digits] = arrays else {
        return Err(DataFusionError::Internal(format!("{ROUNDED_SECONDS} with {} arguments", arrays.len())));
    };
    let digits = cast(digits, &DataType::Int64)?;
    let digits = digits.as_primitive::<Int64Type>();
    match values.data_type() {
        DataType::Time64(_) => each::<Time64MicrosecondType>(values, digits, "time", time),
        _ => each::<TimestampMicrosecondType>(values, digits, "timestamp", timestamp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_2000() {
        let second = 1_000_000;
        for (micros, unit, expected) in [
            (MILLENNIUM + second / 2, second, MILLENNIUM + second),
            (MILLENNIUM - second / 2, second, MILLENNIUM - second),
            (MILLENNIUM - second / 2 + 1, second, MILLENNIUM),
            (MILLENNIUM + 499_999, second, MILLENNIUM),
            (123_456, 10_000, 120_000),
            (-1, 10, 0),
            (7, 1, 7),
        ] {
            assert_eq!(timestamp(micros, unit), Some(expected), "{micros} {unit}");
        }
        assert_eq!(timestamp(i64::MAX, second), None);
        assert_eq!(time(MICROS_OF_DAY - 1, second), None);
        assert_eq!(time(36_000_600_000, second), Some(36_001_000_000));
    }
}
