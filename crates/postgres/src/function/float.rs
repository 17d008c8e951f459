//! Functions of DataFusion's on floats, with PostgreSQL's errors: where it has one (ln of zero, asin of 2, exp of 1000)
//! DataFusion's give infinity or NaN. `round` of a float rounds halves to even. The types of `round` and `trunc` of
//! decimals stay (`rounding`). Of a REAL they compute in DOUBLE PRECISION. Results are in the one form of floats
//! (`types`): `round(-0.3)` is 0, not minus zero.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature, Volatility};
use mainstem_storage::Error;

use super::adapter::{Change, adapt};
use super::rounding::unsettled;
use crate::sqlstate;
use crate::types::value_in_one_form;

/// invalid_argument_for_logarithm
const BAD_LOGARITHM: &str = "2201E";
/// invalid_argument_for_power_function
const BAD_POWER: &str = "2201F";

/// `function`, of floats, with checks.
pub(crate) fn checked(function: Arc<ScalarUDF>, _: &Arc<dyn MemoryPool>) -> ScalarUDF {
    let kind = match function.name() {
        "ln" | "log" | "log2" | "log10" => Kind::Logarithm,
        "power" => Kind::Power,
        "sqrt" => Kind::Root,
        "round" => Kind::Round,
        _ => Kind::Other,
    };
    adapt(function, OfFloats { kind, signature: Signature::user_defined(Volatility::Immutable) })
}

/// `function`, which is `trunc`.
pub(crate) fn truncation(function: Arc<ScalarUDF>, _: &Arc<dyn MemoryPool>) -> ScalarUDF {
    adapt(function, Truncation { signature: Signature::user_defined(Volatility::Immutable) })
}

/// `function`, whose results are floats, in their one form.
pub(crate) fn in_one_form(function: Arc<ScalarUDF>, _: &Arc<dyn MemoryPool>) -> ScalarUDF {
    adapt(function, Formed)
}

/// See [`in_one_form`].
#[derive(Debug)]
struct Formed;

impl Change for Formed {
    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        value_in_one_form(function.inner().invoke_with_args(args)?)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Logarithm,
    Power,
    Root,
    Round,
    Other,
}

#[derive(Debug)]
struct OfFloats {
    kind: Kind,
    signature: Signature,
}

fn refused(code: &'static str, message: &str) -> DataFusionError {
    DataFusionError::External(Box::new(Error::invalid(code, message)))
}

/// The numbers of `value`, as doubles; None for other values.
fn doubles(value: &ColumnarValue, rows: usize) -> Result<Option<Float64Array>> {
    if !value.data_type().is_numeric() {
        return Ok(None);
    }
    let array = cast(&value.to_array(rows)?, &DataType::Float64)?;
    Ok(array.as_primitive_opt::<Float64Type>().cloned())
}

impl OfFloats {
    /// Fails for results that PostgreSQL refuses.
    fn check(&self, args: &[ColumnarValue], result: &ColumnarValue, rows: usize) -> Result<()> {
        if !result.data_type().is_floating() {
            return Ok(());
        }
        let rows = if matches!(result, ColumnarValue::Scalar(_)) { 1 } else { rows };
        let Some(results) = doubles(result, rows)? else { return Ok(()) };
        if results.values().iter().all(|value| value.is_finite()) {
            return Ok(());
        }
        let args = args.iter().map(|arg| doubles(arg, rows)).collect::<Result<Vec<_>>>()?;
        for row in (0..results.len()).filter(|row| results.is_valid(*row) && !results.value(*row).is_finite()) {
            let given: Vec<f64> = args.iter().flatten().filter(|a| a.is_valid(row)).map(|a| a.value(row)).collect();
            if given.iter().all(|value| value.is_finite()) {
                return Err(self.error(&given, results.value(row)));
            }
        }
        Ok(())
    }

    fn error(&self, given: &[f64], result: f64) -> DataFusionError {
        match self.kind {
            Kind::Logarithm if given.contains(&0.0) => refused(BAD_LOGARITHM, "cannot take logarithm of zero"),
            Kind::Logarithm => refused(BAD_LOGARITHM, "cannot take logarithm of a negative number"),
            Kind::Power if given.first() == Some(&0.0) => {
                refused(BAD_POWER, "zero raised to a negative power is undefined")
            }
            Kind::Power if result.is_nan() => {
                refused(BAD_POWER, "a negative number raised to a non-integer power yields a complex result")
            }
            _ if result.is_nan() => refused(sqlstate::OUT_OF_RANGE, "input is out of range"),
            _ => refused(sqlstate::OUT_OF_RANGE, "value is too large for a floating-point number"),
        }
    }
}

/// Halves to even.
fn rounded(value: &ColumnarValue) -> Result<ColumnarValue> {
    let round = |array: &ArrayRef| -> ArrayRef {
        match array.as_primitive_opt::<Float64Type>() {
            Some(values) => Arc::new(values.unary::<_, Float64Type>(f64::round_ties_even)),
            None => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even)),
        }
    };
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(round(array)),
        ColumnarValue::Scalar(one) => ColumnarValue::Scalar(ScalarValue::try_from_array(&round(&one.to_array()?), 0)?),
    })
}

impl Change for OfFloats {
    fn signature<'a>(&'a self, _: &'a ScalarUDF) -> &'a Signature {
        &self.signature
    }

    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
        let fields = fields_with_udf(&double_fields(&fields), function)?;
        Ok(fields.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_field(&self, function: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        if let (Kind::Round, Some(field)) = (self.kind, decimal_field(function, &args)?) {
            return Ok(field);
        }
        function.inner().return_field_from_args(args)
    }

    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let (Kind::Round, [value]) = (self.kind, args.args.as_slice())
            && matches!(value.data_type(), DataType::Float32 | DataType::Float64)
        {
            return value_in_one_form(rounded(value)?);
        }
        let (given, rows) = (args.args.clone(), args.number_rows);
        if self.kind == Kind::Root
            && let Some(values) = given.first().map(|value| doubles(value, rows)).transpose()?.flatten()
            && values.iter().flatten().any(|value| value < 0.0)
        {
            return Err(refused(BAD_POWER, "cannot take square root of a negative number"));
        }
        let result = function.inner().invoke_with_args(args)?;
        self.check(&given, &result, rows)?;
        value_in_one_form(result)
    }
}

/// `trunc`, whose type is that of [`unsettled`].
#[derive(Debug)]
struct Truncation {
    signature: Signature,
}

impl Change for Truncation {
    fn signature<'a>(&'a self, _: &'a ScalarUDF) -> &'a Signature {
        &self.signature
    }

    /// A number that is written is 64 bits wide before its type is coerced, and no other is after it.
    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        let coerced = fields_with_udf(&double_fields(&fields), function)?;
        let narrow = |(at, field): (usize, FieldRef)| if at == 1 { DataType::Int32 } else { field.data_type().clone() };
        Ok(coerced.into_iter().enumerate().map(narrow).collect())
    }

    fn return_field(&self, function: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        match decimal_field(function, &args)? {
            Some(field) => Ok(field),
            None => function.inner().return_field_from_args(args),
        }
    }

    fn invoke(&self, function: &ScalarUDF, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(digits) = args.args.get_mut(1) {
            *digits = digits.cast_to(&DataType::Int64, None)?;
        }
        value_in_one_form(function.inner().invoke_with_args(args)?)
    }
}

/// What `function`, a rounding of `args`, gives, if they are a decimal and a number of digits.
fn decimal_field(function: &ScalarUDF, args: &ReturnFieldArgs) -> Result<Option<FieldRef>> {
    let [number, _] = args.arg_fields else { return Ok(None) };
    let of = unsettled(number.data_type(), args.scalar_arguments.get(1).copied().flatten())?;
    let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Ok(of.map(|of| Arc::new(Field::new(function.name(), of, nullable))))
}

/// `fields` with doubles in the place of REALs.
fn double_fields(fields: &[FieldRef]) -> Vec<FieldRef> {
    let double = |field: &FieldRef| match field.data_type() {
        DataType::Float32 => Arc::new(Field::clone(field).with_data_type(DataType::Float64)),
        _ => field.clone(),
    };
    fields.iter().map(double).collect()
}
