//! `generate_series(start, stop, step)` and `range` of dates and timestamps, as arrays, and the steps that
//! `generate_series` in FROM takes.
//!
//! In microseconds: DataFusion's count in nanoseconds, which end in 2262. Values are timestamps, of the bounds' type;
//! those of dates are TIMESTAMPTZ, as in PostgreSQL. Each is the one before and the step: from the 31st on, months lead
//! to the 29th, and stay there.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListArray, TimestampMicrosecondArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType,
};
use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature, Volatility};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;

use crate::error::external;
use crate::evaluate::over_rows;
use crate::function::adapter::{Change, adapt};
use crate::operator::datetime::{micros_of, moved, out_of_range};
use crate::sqlstate;
use crate::types::{INTERVAL, TIMESTAMP, common_datetime, is_datetime};

/// Values that memory is asked for at once: they are pushed into a vector that doubles.
const VALUES_AT_ONCE: usize = 1 << 16;
/// Values of all arrays together: offsets into them have 31 bits.
const VALUES_MAX: usize = i32::MAX as usize;

/// A series of timestamps.
#[derive(Clone, Copy, Debug)]
pub struct TimestampSeries {
    start: i64,
    stop: i64,
    step: IntervalMonthDayNano,
}

impl TimestampSeries {
    /// From `start` to `stop`, microseconds since 1970-01-01, with `step` between two.
    ///
    /// # Errors
    /// 22023 where `step` is nothing.
    pub fn new(start: i64, stop: i64, step: IntervalMonthDayNano) -> Result<Self> {
        if micros_of(step) == 0 {
            return Err(external(Error::invalid(sqlstate::INVALID_PARAMETER, "step size cannot equal zero")));
        }
        Ok(Self { start, stop, step })
    }

    /// The first value.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        self.within(self.start)
    }

    /// The value after `micros`; none where the series ends.
    ///
    /// # Errors
    /// 22008 where there is no such timestamp.
    pub fn after(&self, micros: i64) -> Result<Option<i64>> {
        moved(micros, self.step, false).map(|micros| self.within(micros)).ok_or_else(|| out_of_range("timestamp"))
    }

    fn within(&self, micros: i64) -> Option<i64> {
        let is_within = if micros_of(self.step) > 0 { micros <= self.stop } else { micros >= self.stop };
        is_within.then_some(micros)
    }
}

/// `function`, which is `generate_series` or `range` of arrays.
pub(crate) fn series(function: Arc<ScalarUDF>, pool: &Arc<dyn MemoryPool>) -> ScalarUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    adapt(function, OfTimestamps { signature, pool: pool.clone() })
}

#[derive(Debug)]
struct OfTimestamps {
    signature: Signature,
    pool: Arc<dyn MemoryPool>,
}

/// The type of the values of a series from and to values of `types`, if they are datetimes.
fn of_values(types: &[DataType]) -> Option<DataType> {
    let bounds = types.get(..2)?;
    if !bounds.iter().any(is_datetime) {
        return None;
    }
    let of = common_datetime(bounds.iter())?;
    Some(if of == DataType::Date32 { SqlType::TimestampTz.arrow() } else { of })
}

impl Change for OfTimestamps {
    fn signature<'a>(&'a self, _: &'a ScalarUDF) -> &'a Signature {
        &self.signature
    }

    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        if let Some(of) = of_values(types) {
            return match types {
                [_, _, step] if matches!(step, DataType::Interval(_)) || step.is_string() || step.is_null() => {
                    Ok(vec![of.clone(), of, INTERVAL])
                }
                _ => plan_err!("No function matches the given name and argument types '{}'", function.name()),
            };
        }
        let field = |of: &DataType| Arc::new(Field::new("", of.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        Ok(fields_with_udf(&fields, function)?.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, function: &ScalarUDF, types: &[DataType]) -> Result<DataType> {
        match of_values(types) {
            Some(of) => Ok(DataType::List(Arc::new(Field::new_list_field(of, true)))),
            None => function.inner().return_type(types),
        }
    }

    fn return_field(&self, function: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        match of_values(&types) {
            Some(_) => Ok(Arc::new(Field::new(function.name(), self.return_type(function, &types)?, true))),
            None => function.inner().return_field_from_args(args),
        }
    }

    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let Some(of) = of_values(&types) else { return function.inner().invoke_with_args(args) };
        let to_stop = function.name() == "generate_series";
        let reserved = MemoryConsumer::new(function.name()).register(&self.pool);
        over_rows(&args, |arrays, rows| Ok(Arc::new(arrays_of(arrays, rows, &of, to_stop, &reserved)?)))
    }
}

/// An array of a series for each of `rows` rows; with its last value where that is the stop, if `to_stop`.
///
/// # Errors
/// 22023, 22008; 54000 and 53200 for too many values.
fn arrays_of(
    arrays: &[ArrayRef],
    rows: usize,
    of: &DataType,
    to_stop: bool,
    reserved: &MemoryReservation,
) -> Result<ListArray> {
    let [starts, stops, steps] = arrays else {
        return Err(DataFusionError::Internal("a series without a step".into()));
    };
    let (starts, stops, steps) = (cast(starts, &TIMESTAMP)?, cast(stops, &TIMESTAMP)?, cast(steps, &INTERVAL)?);
    let starts = starts.as_primitive::<TimestampMicrosecondType>().iter();
    let stops = stops.as_primitive::<TimestampMicrosecondType>().iter();
    let steps = steps.as_primitive::<IntervalMonthDayNanoType>().iter();
    let (mut values, mut ends, mut is_known) = (Vec::new(), vec![0], Vec::with_capacity(rows));
    for ((start, stop), step) in starts.zip(stops).zip(steps) {
        if let (Some(start), Some(stop), Some(step)) = (start, stop, step) {
            let series = TimestampSeries::new(start, stop, step)?;
            let mut next = series.first();
            while let Some(value) = next.filter(|value| to_stop || *value != stop) {
                if values.len() % VALUES_AT_ONCE == 0 {
                    reserved.try_grow(2 * VALUES_AT_ONCE * size_of::<i64>())?;
                }
                if values.len() == VALUES_MAX {
                    let message = "a series has too many values for an array";
                    return Err(external(Error::invalid(sqlstate::LIMIT_EXCEEDED, message)));
                }
                values.push(value);
                next = series.after(value)?;
            }
        }
        is_known.push(start.is_some() && stop.is_some() && step.is_some());
        ends.push(i32::try_from(values.len()).unwrap_or(i32::MAX));
    }
    let values = TimestampMicrosecondArray::from(values).with_data_type(of.clone());
    let item = Arc::new(Field::new_list_field(of.clone(), true));
    Ok(ListArray::try_new(item, OffsetBuffer::new(ends.into()), Arc::new(values), Some(NullBuffer::from(is_known)))?)
}
