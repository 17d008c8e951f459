//! `date_bin(stride, timestamp, origin)`: the beginning of the stride that the timestamp is in, counted from the
//! origin.
//!
//! In microseconds, as PostgreSQL computes it (`timestamp.c`): DataFusion counts in nanoseconds, which reach from 1677
//! to 2262. Strides of months are 0A000, those that are not positive 22008. Without an origin strides count from
//! 1970-01-01.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType,
};
use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;

use crate::error::external;
use crate::evaluate::over_rows;
use crate::operator::datetime::{micros_of, out_of_range};
use crate::sqlstate;
use crate::types::{INTERVAL, TIMESTAMP, common_datetime};

/// The function.
pub fn date_bin() -> ScalarUDF {
    ScalarUDF::new_from_impl(Bin { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bin {
    signature: Signature,
}

/// Microseconds of `stride`.
fn length(stride: IntervalMonthDayNano) -> Result<i128> {
    if stride.months != 0 {
        let what = "timestamps cannot be binned into intervals containing months or years";
        return Err(external(Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, what)));
    }
    let micros = micros_of(stride);
    if micros <= 0 {
        return Err(external(Error::invalid(sqlstate::DATETIME_OVERFLOW, "stride must be greater than zero")));
    }
    Ok(micros)
}

fn bin(stride: IntervalMonthDayNano, datetime: i64, origin: i64) -> Result<i64> {
    let (stride, origin) = (length(stride)?, i128::from(origin));
    let begin = origin + (i128::from(datetime) - origin).div_euclid(stride) * stride;
    i64::try_from(begin).map_err(|_| out_of_range("timestamp"))
}

fn bins(arrays: &[ArrayRef]) -> Result<TimestampMicrosecondArray> {
    let Some((strides, datetimes)) = arrays.split_first() else {
        return Err(DataFusionError::Internal("date_bin without arguments".into()));
    };
    let strides = cast(strides, &INTERVAL)?;
    let datetimes = datetimes.iter().map(|array| cast(array, &TIMESTAMP)).collect::<Result<Vec<_>, _>>()?;
    let micros =
        |at: usize| -> Option<&PrimitiveArray<TimestampMicrosecondType>> { datetimes.get(at)?.as_primitive_opt() };
    let Some(sources) = micros(0) else { return Err(DataFusionError::Internal("date_bin of nothing".into())) };
    let origins = micros(1);
    let rows = strides.as_primitive::<IntervalMonthDayNanoType>().iter().zip(sources).enumerate();
    let bins = rows.map(|(row, (stride, datetime))| {
        let origin = match origins {
            Some(origins) => origins.is_valid(row).then(|| origins.value(row)),
            None => Some(0),
        };
        match (stride, datetime, origin) {
            (Some(stride), Some(datetime), Some(origin)) => bin(stride, datetime, origin).map(Some),
            _ => Ok(None),
        }
    });
    bins.collect()
}

impl ScalarUDFImpl for Bin {
    fn name(&self) -> &'static str {
        "date_bin"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_span = |of: &DataType| matches!(of, DataType::Interval(_)) || of.is_string() || of.is_null();
        if let [stride, datetimes @ ..] = types
            && is_span(stride)
            && (1..=2).contains(&datetimes.len())
            && let Some(of) = common_datetime(datetimes.iter())
        {
            let of = if of == DataType::Date32 { SqlType::TimestampTz.arrow() } else { of };
            return Ok([vec![INTERVAL], vec![of; datetimes.len()]].concat());
        }
        if let [stride, datetimes @ ..] = types
            && is_span(stride)
            && (1..=2).contains(&datetimes.len())
            && datetimes.iter().all(|of| of.is_string() || of.is_null())
        {
            return Ok([vec![INTERVAL], vec![TIMESTAMP; datetimes.len()]].concat());
        }
        plan_err!("No function matches the given name and argument types 'date_bin'")
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.get(1).cloned().unwrap_or(TIMESTAMP))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        let is_one = |of: &ExprProperties| of.sort_properties == SortProperties::Singleton;
        Ok(match input {
            [stride, datetime] if is_one(stride) => datetime.sort_properties,
            [stride, datetime, origin] if is_one(stride) && is_one(origin) => datetime.sort_properties,
            _ => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let of = args.return_field.data_type().clone();
        over_rows(&args, |arrays, _| Ok(Arc::new(bins(arrays)?.with_data_type(of))))
    }
}
