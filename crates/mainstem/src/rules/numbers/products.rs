//! Products of decimals whose operands have many digits behind the point.
//!
//! In PostgreSQL a product has the digits of both operands behind the point, and as many before it as it takes. With 38 altogether that leaves
//! six before the point for a product of two quotients (sixteen digits behind the point each), and nothing for one of three. So products that
//! may need more than 38 digits, more than [`EXACT_SCALE_MAX`] of them behind the point, have as many there as a quotient, or more where
//! the digits before it leave room; they are computed in 256 bits and rounded. Others are exact (`operators`). What does not fit
//! before the point is an error.

use std::sync::Arc;

use arrow::array::Decimal128Array;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, i256};
use arrow::error::ArrowError;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::division::{SCALE, decimals, digits_of, fitting, overflow};

/// Digits behind the point that an exact product may have whatever stands before it: a price times an average has eighteen.
const EXACT_SCALE_MAX: i8 = 20;

/// The scale of `left * right`, if they are decimals, or one beside an integer, whose product is not to be computed exactly.
pub(super) fn product(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<i8> {
    let (left, right) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    if !matches!(left, DataType::Decimal128(..)) && !matches!(right, DataType::Decimal128(..)) {
        return None;
    }
    let ((left_digits, left_scale), (right_digits, right_scale)) = (digits_of(&left)?, digits_of(&right)?);
    scale_of(left_digits, left_scale, right_digits, right_scale)
}

fn scale_of(left_digits: u8, left_scale: i8, right_digits: u8, right_scale: i8) -> Option<i8> {
    let exact = i16::from(left_scale) + i16::from(right_scale);
    let digits = i16::from(left_digits) + i16::from(right_digits);
    let fits = digits < i16::from(DECIMAL128_MAX_PRECISION) || exact <= i16::from(EXACT_SCALE_MAX);
    if fits || left_scale < 0 || right_scale < 0 {
        return None;
    }
    let room = i16::from(DECIMAL128_MAX_PRECISION) - (digits - exact);
    i8::try_from(room.clamp(i16::from(SCALE), exact)).ok()
}

/// `left * right` with `scale` digits behind the point.
pub(super) fn multiply(left: Expr, right: Expr, scale: i8) -> Expr {
    let function = Multiply { scale, signature: Signature::any(2, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![left, right]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Multiply {
    scale: i8,
    signature: Signature,
}

impl Multiply {
    fn result(&self) -> DataType {
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, self.scale)
    }
}

impl ScalarUDFImpl for Multiply {
    fn name(&self) -> &str {
        "multiply"
    }

    /// The name the operator's column would have had.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [left, right] => format!("{} * {}", left.schema_name(), right.schema_name()),
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
        let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("a multiplication of other than two".into()));
        };
        let (left, right) = (decimals(left, rows)?, decimals(right, rows)?);
        let surplus = i16::from(left.scale()) + i16::from(right.scale()) - i16::from(self.scale);
        let surplus = u8::try_from(surplus).map_err(|_| overflow())?;
        let products: Decimal128Array = left
            .iter()
            .zip(&right)
            .map(|pair| match pair {
                (Some(left), Some(right)) => rounded(left, right, surplus).map(Some),
                _ => Ok(None),
            })
            .collect::<Result<_, ArrowError>>()?;
        let products = products.with_data_type(self.result());
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&products, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(products)))
    }
}

/// `left * right` without the last `surplus` digits, halves away from zero; 38 digits at most.
fn rounded(left: i128, right: i128, surplus: u8) -> Result<i128, ArrowError> {
    // Below 10^76, which has room in 256 bits.
    let product = i256::from_i128(left).checked_mul(i256::from_i128(right)).ok_or_else(overflow)?;
    let divisor = i256::from_i128(10).checked_pow(u32::from(surplus)).ok_or_else(overflow)?;
    let quotient = product.checked_div(divisor).ok_or_else(overflow)?;
    let rest = product.wrapping_sub(quotient.wrapping_mul(divisor)).wrapping_abs();
    let up = rest >= divisor.wrapping_sub(rest);
    let away = if (left < 0) == (right < 0) { i256::ONE } else { i256::MINUS_ONE };
    let quotient = if up { quotient.wrapping_add(away) } else { quotient };
    fitting(quotient.to_i128().ok_or_else(overflow)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn products_that_fit_are_left_to_others() {
        assert_eq!(scale_of(10, 2, 10, 2), None);
        assert_eq!(scale_of(18, 9, 19, 12), None);
        assert_eq!(scale_of(38, 2, 38, 2), None);
        assert_eq!(scale_of(38, 16, 10, 2), None);
        assert_eq!(scale_of(38, 16, 38, 16), Some(16));
        assert_eq!(scale_of(38, 20, 38, 16), Some(16));
        assert_eq!(scale_of(20, 18, 20, 18), Some(34));
        assert_eq!(scale_of(38, 38, 38, 38), Some(38));
    }

    #[test]
    fn digits_that_go_are_rounded() {
        assert_eq!(rounded(15, 1, 1).unwrap(), 2);
        assert_eq!(rounded(-15, 1, 1).unwrap(), -2);
        assert_eq!(rounded(14, 1, 1).unwrap(), 1);
        assert_eq!(rounded(5, -1, 1).unwrap(), -1);
        assert_eq!(rounded(7, 3, 0).unwrap(), 21);
        let most = 10_i128.pow(38) - 1;
        assert_eq!(rounded(most, most, 38).unwrap(), most - 1);
        assert!(rounded(most, most, 37).is_err());
    }
}
