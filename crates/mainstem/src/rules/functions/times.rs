//! Arithmetic with TIME: `time ± interval`, `time - time`, `date + time`.
//!
//! A time of day turns over at midnight; months and days of an interval say nothing to it, as in PostgreSQL.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use mainstem_storage::Error;
use mainstem_storage::error::sqlstate;

use crate::value::TIME;

const MICROS_OF_DAY: i64 = 86_400_000_000;
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum TimeOp {
    /// TIME + INTERVAL.
    Later,
    /// TIME - INTERVAL.
    Earlier,
    /// TIME - TIME.
    Between,
    /// DATE + TIME.
    At,
}

/// `left` and `right`, in the order of [`TimeOp`]'s words.
pub(in super::super) fn time_operation(op: TimeOp, left: Expr, right: Expr) -> Expr {
    let function = TimeFunction { op, signature: Signature::any(2, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![left, right]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeFunction {
    op: TimeOp,
    signature: Signature,
}

impl TimeFunction {
    fn compute(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self.op {
            TimeOp::Later | TimeOp::Earlier => {
                let (times, spans) = (cast(left, &TIME)?, cast(right, &INTERVAL)?);
                let spans = spans.as_primitive::<IntervalMonthDayNanoType>();
                let times = times.as_primitive::<Time64MicrosecondType>();
                let moved = times.iter().zip(spans).map(|(time, span)| {
                    let micros = span?.nanoseconds / 1_000 % MICROS_OF_DAY;
                    let micros = if self.op == TimeOp::Later { micros } else { -micros };
                    Some((time? + micros).rem_euclid(MICROS_OF_DAY))
                });
                Arc::new(Time64MicrosecondArray::from_iter(moved))
            }
            TimeOp::Between => {
                let (left, right) = (cast(left, &TIME)?, cast(right, &TIME)?);
                let right = right.as_primitive::<Time64MicrosecondType>();
                let spans = left
                    .as_primitive::<Time64MicrosecondType>()
                    .iter()
                    .zip(right)
                    .map(|(left, right)| Some(IntervalMonthDayNano::new(0, 0, (left? - right?) * 1_000)));
                Arc::new(IntervalMonthDayNanoArray::from_iter(spans))
            }
            TimeOp::At => {
                let (days, times) = (cast(left, &DataType::Date32)?, cast(right, &TIME)?);
                let times = times.as_primitive::<Time64MicrosecondType>();
                let moments = days.as_primitive::<Date32Type>().iter().zip(times).map(|(day, time)| {
                    let (Some(day), Some(time)) = (day, time) else { return Ok(None) };
                    i64::from(day)
                        .checked_mul(MICROS_OF_DAY)
                        .and_then(|day| day.checked_add(time))
                        .map(Some)
                        .ok_or_else(|| {
                            let error = Error::invalid(sqlstate::DATETIME_OVERFLOW, "timestamp out of range");
                            DataFusionError::External(Box::new(error))
                        })
                });
                Arc::new(moments.collect::<Result<TimestampMicrosecondArray>>()?)
            }
        })
    }
}

impl ScalarUDFImpl for TimeFunction {
    fn name(&self) -> &str {
        match self.op {
            TimeOp::Later => "time_later",
            TimeOp::Earlier => "time_earlier",
            TimeOp::Between => "time_between",
            TimeOp::At => "day_at",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.op {
            TimeOp::Later | TimeOp::Earlier => TIME,
            TimeOp::Between => INTERVAL,
            TimeOp::At => DataType::Timestamp(TimeUnit::Microsecond, None),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal(format!("{} with {} arguments", self.name(), args.args.len())));
        };
        let constant = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let result = self.compute(&left.clone().into_array(rows)?, &right.clone().into_array(rows)?)?;
        Ok(if constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}
