//! `round(x, n)` and `trunc(x, n)` of decimals: `n` digits behind the point, halves away from zero.
//!
//! DataFusion's `round` has as many digits there as `n` says where it is a literal at the moment, and those of `x`
//! where it is not: an `n` that becomes one while the plan is made changes the type of a comparison's side after both
//! were given one. Its `trunc` always has those of `x`. So
//!
//! 1. before types are coerced a call whose `n` is written as a number becomes a function of ours
//!    ([`decimal_rounding`]), whose type does not change;
//! 2. others never have their type by it ([`unsettled`]): they keep the digits of `x`.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Decimal128Array};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::operator::{fitting, overflow};

/// `round` (`up`) or `trunc` of numbers of the type `of` to `digits`; none where that is no literal, or `of` no
/// decimal.
///
/// # Errors
/// Internal.
pub fn decimal_rounding(of: &DataType, digits: &Expr, up: bool) -> Result<Option<ScalarUDF>> {
    let (Some(digits), DataType::Decimal128(..)) = (digits_behind(digits), of) else { return Ok(None) };
    let function = Rounding { digits, up, signature: Signature::any(2, Volatility::Immutable) };
    function.result(of)?;
    Ok(Some(ScalarUDF::new_from_impl(function)))
}

/// The number that `expr` is, if that is written there.
fn digits_behind(expr: &Expr) -> Option<i8> {
    let Expr::Literal(digits, _) = expr else { return None };
    let digits = match digits {
        ScalarValue::Int64(digits) => (*digits)?,
        ScalarValue::Int32(digits) => i64::from((*digits)?),
        ScalarValue::Int16(digits) => i64::from((*digits)?),
        _ => return None,
    };
    // Whatever has more digits than any number is the same.
    i8::try_from(digits.clamp(-i64::from(DECIMAL128_MAX_PRECISION), i64::from(DECIMAL128_MAX_PRECISION))).ok()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounding {
    /// Behind the point; in front of it where negative.
    digits: i8,
    /// Halves go away from zero, or everything goes towards it.
    up: bool,
    signature: Signature,
}

impl Rounding {
    /// The type for numbers of the type `of`.
    fn result(&self, of: &DataType) -> Result<DataType> {
        let DataType::Decimal128(precision, scale) = of else {
            return Err(DataFusionError::Internal(format!("{} of {of}", self.name())));
        };
        // As many in front as there were, and the one that 9.9 becomes 10 by.
        let front = i16::from(*precision) - i16::from(*scale) + 1;
        let most = i16::from(DECIMAL128_MAX_PRECISION);
        let behind = i16::from(self.digits).clamp(0, (most - front).max(i16::from(*scale)).max(0)).min(most);
        let precision = (front + behind).clamp(1, most);
        Ok(DataType::Decimal128(precision.unsigned_abs() as u8, behind as i8))
    }

    /// `number`, of `from` digits behind the point, with `to`.
    fn rounded(&self, number: i128, from: i8, to: i8) -> std::result::Result<i128, ArrowError> {
        let power = |digits: i16| 10_i128.checked_pow(u32::try_from(digits).ok()?);
        let (from, to, wanted) = (i16::from(from), i16::from(to), i16::from(self.digits));
        let (kept, behind) = if wanted < from {
            // More than 38 digits are dropped: nothing is left.
            let Some(unit) = power(from - wanted) else { return Ok(0) };
            let (kept, rest) = (number / unit, number % unit);
            let away = self.up && rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
            (if away { kept + number.signum() } else { kept }, wanted)
        } else {
            (number, from)
        };
        match kept {
            0 => Ok(0),
            _ => fitting(power(to - behind).and_then(|factor| kept.checked_mul(factor)).ok_or_else(overflow)?),
        }
    }
}

/// The type of DataFusion's `round(x, n)` and `trunc(x, n)` for `x` of the type `of`: by an `n` that is written as a
/// number, which [`decimal_rounding`] will see, and otherwise that of any `n`. None for what is no decimal.
pub(super) fn unsettled(of: &DataType, digits: Option<&ScalarValue>) -> Result<Option<DataType>> {
    if !matches!(of, DataType::Decimal128(..)) {
        return Ok(None);
    }
    // Type coercion makes other types of other numbers than those that are written.
    let written = digits.filter(|digits| matches!(digits, ScalarValue::Int64(_)));
    let digits = match written.cloned().map(|digits| Expr::Literal(digits, None)).as_ref().and_then(digits_behind) {
        Some(digits) => digits,
        None => return Ok(Some(of.clone())),
    };
    Rounding { digits, up: true, signature: Signature::any(2, Volatility::Immutable) }.result(of).map(Some)
}

impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &str {
        if self.up { "round" } else { "trunc" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.result(types.first().unwrap_or(&DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.first().is_none_or(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mismatch = || DataFusionError::Internal(format!("{} of other than decimals", self.name()));
        let number = args.args.first().ok_or_else(mismatch)?;
        let rows = if matches!(number, ColumnarValue::Scalar(_)) { 1 } else { args.number_rows };
        let numbers = number.to_array(rows)?;
        let to = self.result(numbers.data_type())?;
        let (DataType::Decimal128(_, behind), Some(numbers)) = (&to, numbers.as_primitive_opt::<Decimal128Type>())
        else {
            return Err(mismatch());
        };
        let from = numbers.scale();
        let results: Decimal128Array = numbers.try_unary(|number| self.rounded(number, from, *behind))?;
        let results = results.with_data_type(to);
        Ok(match number {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(results)),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn rounding(digits: i8, up: bool) -> Rounding {
        Rounding { digits, up, signature: Signature::any(2, Volatility::Immutable) }
    }

    #[test]
    fn halves_go_away_from_zero_and_the_rest_towards_it() {
        for (number, digits, rounded, truncated) in [
            (155, 1, 16, 15),
            (-155, 1, -16, -15),
            (154, 1, 15, 15),
            (-4, 1, 0, 0),
            (-5, 1, -1, 0),
            (9_999, 1, 1_000, 999),
            (15_055, -1, 150, 150),
            (15_500, -1, 160, 150),
            (99, -3, 0, 0),
            (150, 3, 1_500, 1_500),
        ] {
            let to = digits.max(0);
            assert_eq!(rounding(digits, true).rounded(number, 2, to).unwrap(), rounded, "{number} {digits}");
            assert_eq!(rounding(digits, false).rounded(number, 2, to).unwrap(), truncated, "{number} {digits}");
        }
        assert_eq!(rounding(-38, true).rounded(10_i128.pow(38) - 1, 2, 0).unwrap(), 0);
        assert!(rounding(0, true).rounded(10_i128.pow(38) - 1, 0, 1).is_err());
    }

    #[test]
    fn types_have_room() {
        let of =
            |digits, precision, scale| rounding(digits, true).result(&DataType::Decimal128(precision, scale)).unwrap();
        assert_eq!(of(1, 8, 2), DataType::Decimal128(8, 1));
        assert_eq!(of(4, 8, 2), DataType::Decimal128(11, 4));
        assert_eq!(of(-2, 8, 2), DataType::Decimal128(7, 0));
        assert_eq!(of(3, 38, 2), DataType::Decimal128(38, 2));
        assert_eq!(of(2, 38, 16), DataType::Decimal128(25, 2));
        assert_eq!(of(30, 38, 16), DataType::Decimal128(38, 16));
        assert_eq!(of(0, 38, 38), DataType::Decimal128(1, 0));
    }
}
