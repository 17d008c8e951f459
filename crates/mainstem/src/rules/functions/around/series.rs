//! `generate_series` of decimals, as an array: DataFusion's is of whole numbers and moments.
//!
//! Its values have the digits behind the point that the start or the step has. (In select items and FROM it is unnested: `tree::sets`.)

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Builder, ListBuilder};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, exec_err, internal_err};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature, Volatility};
use mainstem_storage::Error;
use mainstem_storage::error::sqlstate;

use super::{Change, around};
use crate::rules::rows::over_rows;

/// Most values of the series of one batch of rows: they are in memory at once.
const VALUES_MAX: usize = 1 << 24;
/// program_limit_exceeded
const TOO_MANY: &str = "54000";

/// `function`, for decimals too, if it is `generate_series`; others are returned as they are.
pub(crate) fn of_decimals(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    if function.name() != "generate_series" {
        return function;
    }
    Arc::new(around(function, OfDecimals { signature: Signature::user_defined(Volatility::Immutable) }))
}

#[derive(Debug)]
struct OfDecimals {
    signature: Signature,
}

fn ours(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The types of the arguments as decimals, if one of them is one and the others are exact numbers or NULL.
fn decimals(types: &[DataType]) -> Option<Vec<DataType>> {
    let is_decimal = |data_type: &DataType| matches!(data_type, DataType::Decimal128(..));
    if !matches!(types.len(), 2 | 3) || !types.iter().any(is_decimal) {
        return None;
    }
    let decimal = |data_type: &DataType| match data_type {
        decimal if is_decimal(decimal) => Some(decimal.clone()),
        DataType::Null => Some(DataType::Decimal128(1, 0)),
        whole if whole.is_integer() => Some(DataType::Decimal128(20, 0)),
        _ => None,
    };
    types.iter().map(decimal).collect()
}

fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

/// The type of the values of a series of arguments of `types`.
fn value_type(types: &[DataType]) -> DataType {
    let scale = types.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, t)| scale_of(t)).max();
    DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale.unwrap_or(0))
}

impl Change for OfDecimals {
    fn signature<'a>(&'a self, _: &'a ScalarUDF) -> &'a Signature {
        &self.signature
    }

    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        if let Some(decimals) = decimals(types) {
            return Ok(decimals);
        }
        let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        Ok(fields_with_udf(&fields, function)?.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, function: &ScalarUDF, types: &[DataType]) -> Result<DataType> {
        match decimals(types) {
            Some(types) => Ok(DataType::List(Arc::new(Field::new_list_field(value_type(&types), true)))),
            None => function.inner().return_type(types),
        }
    }

    fn return_field(&self, function: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        match decimals(&types) {
            Some(_) => Ok(Arc::new(Field::new(function.name(), self.return_type(function, &types)?, true))),
            None => function.inner().return_field_from_args(args),
        }
    }

    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        if decimals(&types).is_none() {
            return function.inner().invoke_with_args(args);
        }
        over_rows(&args, |arrays, rows| series(arrays, rows, &value_type(&types)))
    }
}

/// An array for each row.
fn series(arrays: &[ArrayRef], rows: usize, of_values: &DataType) -> Result<ArrayRef> {
    let scale = arrays.iter().map(|array| scale_of(array.data_type())).max().unwrap_or(0);
    let finer = power(scale - scale_of(of_values))?;
    let values = Decimal128Builder::new().with_data_type(of_values.clone());
    let mut lists = ListBuilder::new(values).with_field(Field::new_list_field(of_values.clone(), true));
    let mut count = 0;
    for row in 0..rows {
        let number = |array: &ArrayRef| -> Result<Option<i128>> {
            let Some(numbers) = array.as_primitive_opt::<Decimal128Type>() else {
                return internal_err!("generate_series of {}", array.data_type());
            };
            if numbers.is_null(row) {
                return Ok(None);
            }
            let factor = power(scale - scale_of(array.data_type()))?;
            numbers.value(row).checked_mul(factor).map(Some).ok_or_else(out_of_range)
        };
        let bounds = match arrays {
            [start, stop] => number(start)?.zip(number(stop)?).zip(Some(power(scale)?)),
            [start, stop, step] => number(start)?.zip(number(stop)?).zip(number(step)?),
            _ => return exec_err!("generate_series takes two or three arguments"),
        };
        let Some(((start, stop), step)) = bounds else {
            lists.append_null();
            continue;
        };
        if step == 0 {
            return Err(ours(Error::invalid(sqlstate::INVALID_PARAMETER, "step size cannot equal zero")));
        }
        let mut next = Some(start);
        while let Some(value) = next.filter(|value| if step > 0 { *value <= stop } else { *value >= stop }) {
            count += 1;
            if count > VALUES_MAX {
                let message = format!("generate_series of decimals gives more than {VALUES_MAX} values at once");
                return Err(ours(Error::invalid(TOO_MANY, message)));
            }
            lists.values().append_value(value / finer);
            next = value.checked_add(step);
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

fn power(exponent: i8) -> Result<i128> {
    let power = u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
    power.ok_or_else(out_of_range)
}

fn out_of_range() -> DataFusionError {
    ours(Error::invalid(sqlstate::OUT_OF_RANGE, "value out of range in generate_series"))
}
