//! Arithmetic on decimals that come in 64 bits.
//!
//! Comes in: an expression, over rows of which some decimals are narrow. Goes out: the columns that it needs as they
//! were ([`Needs`]), or the same expression over narrow operands ([`narrowed`]).
//!
//! A sum, a difference or a product of narrow operands is narrow itself where the types say that it has at most 18
//! digits. A literal has as many digits as its value, whatever its type: `1 - l_discount` is of 16 digits, though the
//! type of 1 as a BIGINT has 20.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL64_MAX_PRECISION, DataType, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use mainstem_postgres::operator::checked::{CheckedFunction, Op};

type Expr = Arc<dyn PhysicalExpr>;

/// The columns that expressions need in the type that the plan gives them.
#[derive(Debug, Default)]
pub(super) struct Needs(HashSet<usize>);

impl Needs {
    /// Adds those of `expr`. `takes_narrow` says whether who takes its value takes decimals of 64 bits.
    pub(super) fn add(&mut self, expr: &Expr, takes_narrow: bool) {
        if expr.is::<Column>() && takes_narrow {
            return;
        }
        match arithmetic(expr) {
            Some((call, _)) => call.args().iter().for_each(|operand| self.add(operand, true)),
            None => self.0.extend(collect_columns(expr).iter().map(Column::index)),
        }
    }

    /// Adds column `at`.
    pub(super) fn add_column(&mut self, at: usize) {
        self.0.insert(at);
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.0.contains(&at)
    }
}

/// `expr` as an operator on decimals that takes narrow ones, with its operator.
fn arithmetic(expr: &Expr) -> Option<(&ScalarFunctionExpr, Op)> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let function = CheckedFunction::of(call.fun())?;
    let is_ours = matches!(function.op(), Op::Add | Op::Subtract | Op::Multiply)
        && matches!(function.result(), Some(DataType::Decimal128(..)));
    is_ours.then(|| (call, function.op()))
}

/// `expr` over rows of `schema`. Its value has the type that it had, or 64 bits if `may_be_narrow`.
///
/// # Errors
/// Internal.
pub(super) fn narrowed(expr: &Expr, schema: &Schema, may_be_narrow: bool) -> Result<Expr> {
    let Some((call, op)) = arithmetic(expr) else { return Ok(expr.clone()) };
    let [of_left, of_right] = call.args() else { return Ok(expr.clone()) };
    let (left, right) = (operand(of_left, schema)?, operand(of_right, schema)?);
    // A literal beside wide digits is as good as it is, and so are wide columns.
    let is_as_good =
        |side: &Operand, was: &Expr| side.is_literal || side.digits.is_none() && Arc::ptr_eq(&side.expr, was);
    if is_as_good(&left, of_left) && is_as_good(&right, of_right) {
        return Ok(expr.clone());
    }
    let digits = left.digits.zip(right.digits).and_then(|(left, right)| left.result(op, right));
    let result = match (digits, call.return_type()) {
        (Some(Digits { precision, scale }), DataType::Decimal128(_, declared))
            if may_be_narrow && scale == *declared =>
        {
            DataType::Decimal64(precision, scale)
        }
        (_, declared) => declared.clone(),
    };
    let field = call.return_field(schema)?.as_ref().clone().with_data_type(result.clone());
    let function: Arc<ScalarUDF> = Arc::new(CheckedFunction::udf(op, Some(result)));
    let options = Arc::new(call.config_options().clone());
    let operands = vec![left.expr, right.expr];
    Ok(Arc::new(ScalarFunctionExpr::new(call.name(), function, operands, Arc::new(field), options)))
}

/// An operand, and the digits that it has at most, if it is narrow.
struct Operand {
    expr: Expr,
    digits: Option<Digits>,
    is_literal: bool,
}

fn operand(expr: &Expr, schema: &Schema) -> Result<Operand> {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        let narrow = narrow_literal(literal.value());
        let digits = narrow.as_ref().and_then(|value| Digits::of(&value.data_type()));
        let expr = narrow.map_or_else(|| expr.clone(), |value| Arc::new(Literal::new(value)));
        return Ok(Operand { expr, digits, is_literal: true });
    }
    let expr = narrowed(expr, schema, true)?;
    let digits = Digits::of(&expr.data_type(schema)?);
    Ok(Operand { expr, digits, is_literal: false })
}

/// `value`, a decimal, in 64 bits, with as many digits as it has.
fn narrow_literal(value: &ScalarValue) -> Option<ScalarValue> {
    let ScalarValue::Decimal128(Some(value), _, scale) = value else { return None };
    let digits = value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    let precision = u8::try_from(digits).ok()?.max(u8::try_from(*scale).ok()?);
    let is_narrow = precision <= DECIMAL64_MAX_PRECISION;
    is_narrow.then(|| Some(ScalarValue::Decimal64(Some(i64::try_from(*value).ok()?), precision, *scale)))?
}

/// How many digits a narrow decimal has at most, and how many of them behind the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digits {
    precision: u8,
    scale: i8,
}

impl Digits {
    fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Decimal64(precision, scale) if *scale >= 0 => Some(Self { precision: *precision, scale: *scale }),
            _ => None,
        }
    }

    /// Those of `self op right`; `None` if they may be too many.
    fn result(self, op: Op, right: Self) -> Option<Self> {
        let before = |side: Self| i16::from(side.precision) - i16::from(side.scale);
        let (precision, scale) = match op {
            Op::Add | Op::Subtract => {
                let scale = self.scale.max(right.scale);
                (before(self).max(before(right)) + i16::from(scale) + 1, scale)
            }
            Op::Multiply => {
                let digits = i16::from(self.precision) + i16::from(right.precision);
                (digits, self.scale.checked_add(right.scale)?)
            }
            Op::Divide | Op::Modulo | Op::Negate => return None,
        };
        let precision = u8::try_from(precision).ok().filter(|precision| *precision <= DECIMAL64_MAX_PRECISION)?;
        Some(Self { precision, scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(precision: u8, scale: i8) -> Digits {
        Digits { precision, scale }
    }

    #[test]
    fn results_have_room_for_the_greatest_operands() {
        for (left, right) in [((15, 2), (1, 0)), ((9, 9), (9, 0)), ((4, 1), (6, 3)), ((1, 0), (1, 0)), ((8, 8), (8, 8))]
        {
            let (left, right) = (digits(left.0, left.1), digits(right.0, right.1));
            let most = |side: Digits| 10_i128.pow(side.precision.into()) - 1;
            for op in [Op::Add, Op::Subtract, Op::Multiply] {
                let Some(result) = left.result(op, right) else {
                    assert!(op != Op::Multiply && left.scale == 9, "9 digits on each side of the point, and one more");
                    continue;
                };
                let raised = |side: Digits| 10_i128.pow((result.scale - side.scale).try_into().unwrap()) * most(side);
                let greatest = match op {
                    Op::Multiply => most(left) * most(right),
                    _ => raised(left) + raised(right),
                };
                assert!(greatest <= most(result), "{left:?} {op:?} {right:?} {result:?}");
            }
        }
        assert_eq!(digits(15, 2).result(Op::Subtract, digits(1, 0)), Some(digits(16, 2)));
        assert_eq!(digits(15, 2).result(Op::Multiply, digits(16, 2)), None);
        assert_eq!(digits(18, 0).result(Op::Add, digits(18, 0)), None);
    }

    #[test]
    fn literals_have_the_digits_of_their_values() {
        let narrow = |value, precision, scale| narrow_literal(&ScalarValue::Decimal128(Some(value), precision, scale));
        assert_eq!(narrow(1, 20, 0), Some(ScalarValue::Decimal64(Some(1), 1, 0)));
        assert_eq!(narrow(0, 38, 2), Some(ScalarValue::Decimal64(Some(0), 2, 2)));
        assert_eq!(narrow(-100, 38, 2), Some(ScalarValue::Decimal64(Some(-100), 3, 2)));
        let most = 10_i128.pow(18) - 1;
        assert_eq!(narrow(most, 38, 0), Some(ScalarValue::Decimal64(Some(999_999_999_999_999_999), 18, 0)));
        assert_eq!(narrow(most + 1, 38, 0), None);
        assert_eq!(narrow(1, 38, 19), None);
        assert_eq!(narrow_literal(&ScalarValue::Decimal128(None, 20, 0)), None);
    }
}
