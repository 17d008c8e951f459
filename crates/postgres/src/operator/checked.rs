//! `+`, `-`, `*`, `/` and unary minus as functions that fail on overflow (22003), and `/` by zero (22012): on integers,
//! on decimals (`decimal`), on floats, which overflow where finite operands have an infinite result, or a product or
//! quotient that is not zero would become zero. Floats, of `%` too, are in their one form (`types`): `-x` of 0 is 0.
//!
//! Comes in: operands of one type. Division of integers and of decimals is not here (DataFusion's; `division`).

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::decimal::decimals;
use super::operand::Operand;
use crate::types::in_one_form;

pub use super::operand::Op;

/// An operator as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedFunction {
    op: Op,
    /// The type of results, if it is not that of the first argument.
    result: Option<DataType>,
    signature: Signature,
}

impl CheckedFunction {
    /// The function of `op`, whose results have the type `result`, or that of the first argument.
    #[must_use]
    pub fn udf(op: Op, result: Option<DataType>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self::new(op, result))
    }

    /// `function`, if it is one of these.
    #[must_use]
    pub fn of(function: &ScalarUDF) -> Option<&Self> {
        function.inner().downcast_ref::<Self>()
    }

    /// The operator.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The type of results, if it is not that of the first argument.
    #[must_use]
    pub fn result(&self) -> Option<&DataType> {
        self.result.as_ref()
    }

    fn new(op: Op, result: Option<DataType>) -> Self {
        let arguments = if op == Op::Negate { 1 } else { 2 };
        Self { op, result, signature: Signature::any(arguments, Volatility::Immutable) }
    }

    fn symbol(&self) -> &'static str {
        match self.op {
            Op::Add => "+",
            Op::Subtract | Op::Negate => "-",
            Op::Multiply => "*",
            Op::Divide => "/",
            Op::Modulo => "%",
        }
    }
}

impl ScalarUDFImpl for CheckedFunction {
    fn name(&self) -> &str {
        match self.op {
            Op::Add => "checked_add",
            Op::Subtract => "checked_subtract",
            Op::Multiply => "checked_multiply",
            Op::Divide => "checked_divide",
            Op::Modulo => "checked_modulo",
            Op::Negate => "checked_negate",
        }
    }

    /// The name the operator's column would have had.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [left, right] => format!("{} {} {}", left.schema_name(), self.symbol(), right.schema_name()),
            [inner] => format!("(- {})", inner.schema_name()),
            _ => self.name().to_string(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.result
            .as_ref()
            .or(arg_types.first())
            .cloned()
            .ok_or_else(|| DataFusionError::Internal(format!("{} without arguments", self.name())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut operands = Vec::with_capacity(2);
        for arg in &args.args {
            operands.push(match arg {
                ColumnarValue::Array(array) => Operand { array: array.clone(), scalar: false },
                ColumnarValue::Scalar(value) => Operand { array: value.to_array()?, scalar: true },
            });
        }
        let all_scalar = operands.iter().all(|o| o.scalar);
        let result = match (self.op, operands.as_slice()) {
            (op, [left, right]) if self.result.is_some() => decimals(op, left, right, self.result.as_ref())?,
            (Op::Add, [left, right]) => numeric::add(left, right)?,
            (Op::Subtract, [left, right]) => numeric::sub(left, right)?,
            (Op::Multiply, [left, right]) => numeric::mul(left, right)?,
            (Op::Divide, [left, right]) => numeric::div(left, right)?,
            (Op::Modulo, [left, right]) => numeric::rem(left, right)?,
            (Op::Negate, [inner]) => numeric::neg(&inner.array)?,
            _ => return Err(DataFusionError::Internal(format!("{} with {} arguments", self.name(), operands.len()))),
        };
        match (operands.as_slice(), result.data_type()) {
            ([left, right], DataType::Float64) => check_floats::<Float64Type>(self.op, left, right, &result)?,
            ([left, right], DataType::Float32) => check_floats::<Float32Type>(self.op, left, right, &result)?,
            _ => {}
        }
        let result = in_one_form(result);
        if all_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// Fails for results that PostgreSQL refuses.
fn check_floats<T: ArrowPrimitiveType<Native: Into<f64>>>(
    op: Op,
    left: &Operand,
    right: &Operand,
    result: &ArrayRef,
) -> std::result::Result<(), ArrowError> {
    let results = result.as_primitive::<T>();
    let can_vanish = matches!(op, Op::Multiply | Op::Divide);
    let suspect = |value: f64| !value.is_finite() || (can_vanish && value == 0.0);
    if !results.values().iter().any(|value| suspect((*value).into())) {
        return Ok(());
    }
    for (row, value) in results.iter().enumerate() {
        let (Some(value), Some(left), Some(right)) = (value, left.value::<T>(row), right.value::<T>(row)) else {
            continue;
        };
        let (value, left, right): (f64, f64, f64) = (value.into(), left.into(), right.into());
        if op == Op::Divide && right == 0.0 && !left.is_nan() {
            return Err(ArrowError::DivideByZero);
        }
        if value.is_infinite() && !left.is_infinite() && !right.is_infinite() {
            return Err(ArrowError::ArithmeticOverflow("value is too large for a floating-point number".into()));
        }
        if can_vanish
            && value == 0.0
            && left != 0.0
            && (op == Op::Multiply && right != 0.0 || op == Op::Divide && !right.is_infinite())
        {
            return Err(ArrowError::ArithmeticOverflow("value is too small for a floating-point number".into()));
        }
    }
    Ok(())
}
