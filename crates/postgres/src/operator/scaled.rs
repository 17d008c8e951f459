//! Operators on decimals whose results have digits behind the point of their own: `/` (`division`), `*` where it is
//! rounded (`product`) and `div` (`quotient`).
//!
//! Comes in: an operator and the digits that its results have. Goes out: a call of a function, which computes pair by
//! pair; of integers as decimals without digits behind the point. It does not own: how many digits those are, which the
//! operators' modules say.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{division, product};
use crate::evaluate::over_rows;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `/`.
    Divide,
    /// `*`.
    Multiply,
}

/// `left op right` with `scale` digits behind the point.
pub fn operation(op: Op, left: Expr, right: Expr, scale: i8) -> Expr {
    let function = Scaled { op, scale, signature: Signature::any(2, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![left, right]))
}

/// What `expr` computes, if it is a call of [`operation`].
pub fn operation_of(expr: &Expr) -> Option<(Op, &Expr, &Expr)> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let function = func.inner().downcast_ref::<Scaled>()?;
    match args.as_slice() {
        [left, right] => Some((function.op, left, right)),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Scaled {
    op: Op,
    scale: i8,
    signature: Signature,
}

impl Scaled {
    fn result(&self) -> DataType {
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, self.scale)
    }
}

impl ScalarUDFImpl for Scaled {
    fn name(&self) -> &str {
        match self.op {
            Op::Divide => "divide",
            Op::Multiply => "multiply",
        }
    }

    /// The name the operator's column would have had.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let symbol = match self.op {
            Op::Divide => '/',
            Op::Multiply => '*',
        };
        Ok(match args {
            [left, right] => format!("{} {symbol} {}", left.schema_name(), right.schema_name()),
            _ => self.name().to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.result(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over_rows(&args, |arrays, _| {
            let (left, right) = operands(arrays)?;
            match self.op {
                Op::Divide => {
                    // What the dividend is multiplied with, so that the quotient of the digits has the scale that is
                    // wanted.
                    let power = i32::from(self.scale) - i32::from(left.scale()) + i32::from(right.scale());
                    pair_by_pair(&left, &right, &self.result(), |left, right| division::rounded(left, power, right))
                }
                Op::Multiply => {
                    let surplus = i16::from(left.scale()) + i16::from(right.scale()) - i16::from(self.scale);
                    let surplus = u8::try_from(surplus).map_err(|_| division::overflow())?;
                    pair_by_pair(&left, &right, &self.result(), |left, right| product::rounded(left, right, surplus))
                }
            }
        })
    }
}

/// The two operands as decimals.
pub(crate) fn operands(arrays: &[ArrayRef]) -> Result<(Decimal128Array, Decimal128Array)> {
    match arrays {
        [left, right] => Ok((decimals(left)?, decimals(right)?)),
        _ => Err(DataFusionError::Internal(format!("an operator on decimals with {} operands", arrays.len()))),
    }
}

fn decimals(numbers: &ArrayRef) -> Result<Decimal128Array> {
    let array = match division::digits_of(numbers.data_type()) {
        Some((digits, 0)) if numbers.data_type().is_integer() => cast(numbers, &DataType::Decimal128(digits, 0))?,
        _ => numbers.clone(),
    };
    let decimals = array.as_primitive_opt::<Decimal128Type>();
    decimals.cloned().ok_or_else(|| DataFusionError::Internal(format!("decimals of type {}", array.data_type())))
}

/// What `compute` makes of the digits of each pair, as decimals of type `result`; NULL where one is.
pub(crate) fn pair_by_pair(
    left: &Decimal128Array,
    right: &Decimal128Array,
    result: &DataType,
    compute: impl Fn(i128, i128) -> Result<i128, ArrowError>,
) -> Result<ArrayRef> {
    let pairs = left.iter().zip(right).map(|pair| match pair {
        (Some(left), Some(right)) => compute(left, right).map(Some),
        _ => Ok(None),
    });
    let results = pairs.collect::<Result<Decimal128Array, ArrowError>>()?;
    Ok(Arc::new(results.with_data_type(result.clone())))
}
