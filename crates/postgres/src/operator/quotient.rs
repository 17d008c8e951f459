//! `div`: the whole part of a quotient of integers or decimals, towards zero; a decimal without digits behind the
//! point.

use arrow::array::ArrayRef;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, i256};
use arrow::error::ArrowError;
use datafusion_common::{Result, plan_err};
use datafusion_expr::{ScalarUDF, Signature, Volatility};

use super::division::{digits_of, fitting, overflow};
use super::scaled::{operands, pair_by_pair};
use crate::evaluate::simple::Simple;

const RESULT: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// The function.
pub(crate) fn div(name: &'static str) -> ScalarUDF {
    let coerce = move |types: &[DataType]| {
        let exact = |data_type: &DataType| match data_type {
            DataType::Null => Some(RESULT),
            exact => digits_of(exact).is_some().then(|| exact.clone()),
        };
        match types.iter().map(exact).collect::<Option<Vec<_>>>() {
            Some(types) if types.len() == 2 => Ok(types),
            _ => plan_err!("No function matches the given name and argument types '{name}'"),
        }
    };
    let quotients = |arrays: &[ArrayRef], _: usize| {
        let (left, right) = operands(arrays)?;
        let scale = i16::from(right.scale()) - i16::from(left.scale());
        pair_by_pair(&left, &right, &RESULT, |left, right| whole(left, right, scale))
    };
    Simple::new(name, Signature::any(2, Volatility::Immutable), RESULT, quotients).coerced(coerce).udf()
}

/// `left * 10^scale / right`, cut off.
fn whole(left: i128, right: i128, scale: i16) -> Result<i128, ArrowError> {
    if right == 0 {
        return Err(ArrowError::DivideByZero);
    }
    let power = i256::from_i128(10).checked_pow(u32::from(scale.unsigned_abs())).ok_or_else(overflow)?;
    let (left, right) = (i256::from_i128(left), i256::from_i128(right));
    let (left, right) =
        if scale < 0 { (Some(left), right.checked_mul(power)) } else { (left.checked_mul(power), Some(right)) };
    let quotient = left.zip(right).and_then(|(left, right)| left.checked_div(right)).ok_or_else(overflow)?;
    fitting(quotient.to_i128().ok_or_else(overflow)?)
}
