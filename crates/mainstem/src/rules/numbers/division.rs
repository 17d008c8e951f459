//! Division of decimals, and where products become functions (`products`).
//!
//! Arrow's has four digits more than the dividend, cut off. PostgreSQL's has at least sixteen significant ones, rounded, which depend on the values; here
//! they depend on the types: sixteen digits behind the point (more if an operand has more), fewer where the digits before the
//! point need the place, at most 38 altogether.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, i256};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::super::walk::rewrite_plan;
use super::products::{multiply, product};

/// Digits behind the point that a quotient has where there is room.
pub(super) const SCALE: i8 = 16;
/// Digits behind the point that it has at least.
const SCALE_MIN: i8 = 6;
const DIGITS: u8 = 38;

/// The scale of a result with `before` digits in front of the point, of operands with scales up to `scale`.
pub(super) fn scale_of(before: i16, scale: i8) -> i8 {
    let room = (i16::from(DIGITS) - before).clamp(0, i16::from(SCALE.max(scale))) as i8;
    room.max(scale).max(SCALE_MIN)
}

/// The rule, and the planner of expressions.
#[derive(Debug)]
pub(crate) struct Divisions;

impl ExprPlanner for Divisions {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        match expr.op {
            BinaryOperator::Divide => {
                if let Some(to) = quotient(&expr.left, &expr.right, schema) {
                    return Ok(PlannerResult::Planned(divide(expr.left, expr.right, to)));
                }
            }
            BinaryOperator::Multiply => {
                if let Some(to) = product(&expr.left, &expr.right, schema) {
                    return Ok(PlannerResult::Planned(multiply(expr.left, expr.right, to)));
                }
            }
            _ => {}
        }
        Ok(PlannerResult::Original(expr))
    }
}

impl AnalyzerRule for Divisions {
    fn name(&self) -> &str {
        "divisions"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_plan(plan, &|expr, schema| match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) => {
                Ok(match quotient(&left, &right, schema) {
                    Some(to) => Transformed::yes(divide(*left, *right, to)),
                    None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right })),
                })
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Multiply, right }) => {
                Ok(match product(&left, &right, schema) {
                    Some(to) => Transformed::yes(multiply(*left, *right, to)),
                    None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Multiply, right })),
                })
            }
            other => Ok(Transformed::no(other)),
        })
    }
}

fn divide(left: Expr, right: Expr, to: i8) -> Expr {
    let function = Divide { scale: to, signature: Signature::any(2, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![left, right]))
}

/// The scale of `left / right`, if one of them is a decimal and the other too, or an integer.
fn quotient(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<i8> {
    let (left, right) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    let decimals = matches!(left, DataType::Decimal128(..)) || matches!(right, DataType::Decimal128(..));
    let ((digits, scale), (_, right_scale)) = (digits_of(&left)?, digits_of(&right)?);
    let before = i16::from(digits) - i16::from(scale) + i16::from(right_scale);
    (decimals && scale >= 0 && right_scale >= 0).then(|| scale_of(before, scale.max(right_scale)))
}

/// Digits, and those behind the point, of a type of exact numbers.
pub(super) fn digits_of(data_type: &DataType) -> Option<(u8, i8)> {
    Some(match data_type {
        DataType::Decimal128(digits, scale) => (*digits, *scale),
        DataType::Int8 => (3, 0),
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (19, 0),
        _ => return None,
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Divide {
    scale: i8,
    signature: Signature,
}

impl Divide {
    fn result(&self) -> DataType {
        DataType::Decimal128(DIGITS, self.scale)
    }
}

impl ScalarUDFImpl for Divide {
    fn name(&self) -> &str {
        "divide"
    }

    /// The name the operator's column would have had.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [left, right] => format!("{} / {}", left.schema_name(), right.schema_name()),
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
            return Err(DataFusionError::Internal("a division of other than two".into()));
        };
        let (left, right) = (decimals(left, rows)?, decimals(right, rows)?);
        // What the dividend is multiplied with, so that the quotient of the digits has the scale that is wanted.
        let power = i32::from(self.scale) - i32::from(left.scale()) + i32::from(right.scale());
        let quotients: Decimal128Array = left
            .iter()
            .zip(&right)
            .map(|pair| match pair {
                (Some(left), Some(right)) => rounded(left, power, right).map(Some),
                _ => Ok(None),
            })
            .collect::<Result<_, ArrowError>>()?;
        let quotients = quotients.with_data_type(self.result());
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&quotients, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(quotients)))
    }
}

pub(super) fn decimals(value: &ColumnarValue, rows: usize) -> Result<Decimal128Array> {
    let array: ArrayRef = value.to_array(rows)?;
    let array = match digits_of(array.data_type()) {
        Some((digits, 0)) if array.data_type().is_integer() => cast(&array, &DataType::Decimal128(digits, 0))?,
        _ => array,
    };
    let decimals = array.as_primitive_opt::<Decimal128Type>();
    decimals.cloned().ok_or_else(|| DataFusionError::Internal(format!("a division of {}", array.data_type())))
}

pub(super) fn overflow() -> ArrowError {
    ArrowError::ArithmeticOverflow("a number has more than 38 digits".into())
}

/// `left * 10^power / right`, halves away from zero; 38 digits at most.
pub(super) fn rounded(left: i128, power: i32, right: i128) -> Result<i128, ArrowError> {
    if right == 0 {
        return Err(ArrowError::DivideByZero);
    }
    let factor = u32::try_from(power).ok().and_then(|power| 10_i128.checked_pow(power));
    if let Some(dividend) = factor.and_then(|factor| left.checked_mul(factor)) {
        let (quotient, rest) = (dividend / right, dividend % right);
        // Of magnitudes: -2^127 has none among signed numbers.
        let up = rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs();
        let away = if (dividend < 0) == (right < 0) { 1 } else { -1 };
        return fitting(if up { quotient + away } else { quotient });
    }
    let power = u8::try_from(power).map_err(|_| overflow())?;
    let factor = i256::from_i128(10).checked_pow(u32::from(power)).ok_or_else(overflow)?;
    let dividend = i256::from_i128(left).checked_mul(factor).ok_or_else(overflow)?;
    let divisor = i256::from_i128(right);
    let quotient = dividend.checked_div(divisor).ok_or_else(overflow)?;
    let rest = dividend.wrapping_sub(quotient.wrapping_mul(divisor)).wrapping_abs();
    let up = rest >= divisor.wrapping_abs().wrapping_sub(rest);
    let away = if (left < 0) == (right < 0) { i256::ONE } else { i256::MINUS_ONE };
    let quotient = if up { quotient.wrapping_add(away) } else { quotient };
    fitting(quotient.to_i128().ok_or_else(overflow)?)
}

/// `value`, if it has at most 38 digits.
pub(super) fn fitting(value: i128) -> Result<i128, ArrowError> {
    const MOST: u128 = 10_u128.pow(DIGITS as u32);
    if value.unsigned_abs() < MOST { Ok(value) } else { Err(overflow()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero() {
        for (left, right, expected) in
            [(1, 3, 33), (2, 3, 67), (1, 8, 13), (-1, 8, -13), (1, -8, -13), (-1, -8, 13), (0, 5, 0)]
        {
            assert_eq!(rounded(left, 2, right).ok(), Some(expected), "{left} / {right}");
        }
        assert!(matches!(rounded(1, 2, 0), Err(ArrowError::DivideByZero)));
    }

    #[test]
    fn dividends_of_more_than_128_bits() {
        let large = 10_i128.pow(37);
        assert_eq!(rounded(large, 10, 10_i128.pow(20)).ok(), Some(10_i128.pow(27)));
        assert_eq!(rounded(-large, 10, 3 * 10_i128.pow(20)).ok(), Some(-333_333_333_333_333_333_333_333_333));
        assert_eq!(
            rounded(large, 16, 3 * 10_i128.pow(16)).ok(),
            Some(3_333_333_333_333_333_333_333_333_333_333_333_333)
        );
        assert_eq!(
            rounded(2 * large, 16, 3 * 10_i128.pow(16)).ok(),
            Some(6_666_666_666_666_666_666_666_666_666_666_666_667)
        );
        assert!(rounded(large, 20, 1).is_err());
        assert!(rounded(large, 1, 1).is_err(), "39 digits");
    }

    #[test]
    fn scales_leave_room_for_digits_before_the_point() {
        assert_eq!(scale_of(2, 2), 16);
        assert_eq!(scale_of(2, 20), 20);
        assert_eq!(scale_of(30, 2), 8);
        assert_eq!(scale_of(38, 2), 6);
        assert_eq!(scale_of(50, 10), 10);
    }
}
