//! Types of arithmetic, and operators that check: which function an operator becomes.
//!
//! 1. While SQL becomes a plan, and before types are coerced: this changes types. Divisions of decimals, and products
//!    that may need more than 38 digits, become functions with enough digits behind the point ([`DecimalOperators`]).
//!    Roundings of them become functions whose type stays ([`rounded_decimals`]). A REAL beside an exact number becomes
//!    a double ([`RealOperators`]).
//! 2. After types are coerced ([`checked_arithmetic`]) operators become functions that check: integers, decimals, and
//!    floats, of which none becomes infinite or minus zero. No constant is folded before.
//!
//! It does not own: what the functions compute (`mainstem_postgres::operator`).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use mainstem_postgres::function::decimal_rounding;
use mainstem_postgres::operator::checked::{CheckedFunction, Op as Checked};
use mainstem_postgres::operator::scaled::{Op, operation, operation_of};
use mainstem_postgres::operator::{product_scale, quotient_scale};

use crate::analyze::plan_walk::rewrite_plan;

/// Operators become functions that check: the rule behind type coercion.
pub(crate) fn checked_arithmetic(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &checked)
}

/// The type of `expr`. A function of ours knows its type, or has that of its first argument: a long sum would be
/// walked once a level.
fn type_of(mut expr: &Expr, schema: &dyn ExprSchema) -> Result<DataType> {
    while let Expr::ScalarFunction(call) = expr {
        let Some(function) = CheckedFunction::of(&call.func) else { break };
        match (function.result(), call.args.first()) {
            (Some(result), _) => return Ok(result.clone()),
            (None, Some(first)) => expr = first,
            _ => break,
        }
    }
    expr.get_type(schema)
}

fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let call = |kind, result, args| {
        let function = Arc::new(CheckedFunction::udf(kind, result));
        Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let kind = match op {
                Operator::Plus => Checked::Add,
                Operator::Minus => Checked::Subtract,
                Operator::Multiply => Checked::Multiply,
                Operator::Divide => Checked::Divide,
                Operator::Modulo => Checked::Modulo,
                _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            };
            let types = (type_of(&left, schema)?, type_of(&right, schema)?);
            Ok(match types {
                (of_left, of_right)
                    if of_left == of_right && (of_left.is_integer() && is_ours(kind) || is_float(&of_left)) =>
                {
                    call(kind, None, vec![*left, *right])
                }
                (of_left @ DataType::Decimal128(..), of_right @ DataType::Decimal128(..)) if is_ours(kind) => {
                    let result = BinaryTypeCoercer::new(&of_left, &op, &of_right).get_result_type()?;
                    call(kind, Some(result), vec![*left, *right])
                }
                _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            })
        }
        Expr::Negative(inner) => {
            let of = inner.get_type(schema)?;
            Ok(match of.is_signed_integer() || is_float(&of) {
                true => call(Checked::Negate, None, vec![*inner]),
                false => Transformed::no(Expr::Negative(inner)),
            })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Whether the operator of integers and decimals is checked by us: DataFusion's fails where it has to.
fn is_ours(kind: Checked) -> bool {
    !matches!(kind, Checked::Divide | Checked::Modulo)
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// The rule, and the planner of expressions.
#[derive(Debug)]
pub(crate) struct DecimalOperators;

impl ExprPlanner for DecimalOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Divide => Op::Divide,
            BinaryOperator::Multiply => Op::Multiply,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        Ok(match scale_for(op, &expr.left, &expr.right, schema) {
            Some(scale) => PlannerResult::Planned(operation(op, expr.left, expr.right, scale)),
            None => PlannerResult::Original(expr),
        })
    }
}

/// The rule.
pub(crate) fn decimal_operators(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &|expr, schema| {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return Ok(Transformed::no(expr)) };
        let ours = match op {
            Operator::Divide => Some(Op::Divide),
            Operator::Multiply => Some(Op::Multiply),
            _ => None,
        };
        let scaled = ours.and_then(|ours| Some((ours, scale_for(ours, &left, &right, schema)?)));
        Ok(match scaled {
            Some((ours, scale)) => Transformed::yes(operation(ours, *left, *right, scale)),
            None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        })
    })
}

/// An operation that was planned on decimals, with an operand that has turned out to be a float since: `n / coalesce(f,
/// 1.5)`.
///
/// # Errors
/// Internal, for an operand that has no type.
pub(super) fn as_float_operation(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some((op, left, right)) = operation_of(expr) else { return Ok(None) };
    if !left.get_type(schema)?.is_floating() && !right.get_type(schema)?.is_floating() {
        return Ok(None);
    }
    let double = |expr: &Expr| expr.clone().cast_to(&DataType::Float64, schema);
    let op = match op {
        Op::Divide => Operator::Divide,
        Op::Multiply => Operator::Multiply,
    };
    Ok(Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(double(left)?), op, Box::new(double(right)?)))))
}

/// The scale of `left op right`, if that is not for DataFusion's operator to say.
fn scale_for(op: Op, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<i8> {
    let (left, right) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    match op {
        Op::Divide => quotient_scale(&left, &right),
        Op::Multiply => product_scale(&left, &right),
    }
}

/// `round(x, n)` and `trunc(x, n)` of decimals, whose type would change while the plan is made: the rule.
pub(crate) fn rounded_decimals(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &|expr, schema| {
        let Expr::ScalarFunction(call) = expr else { return Ok(Transformed::no(expr)) };
        let up = match call.func.name() {
            "round" => true,
            "trunc" => false,
            _ => return Ok(Transformed::no(Expr::ScalarFunction(call))),
        };
        let function = match call.args.as_slice() {
            [number, digits] => decimal_rounding(&number.get_type(schema)?, digits, up)?,
            _ => None,
        };
        let Some(function) = function else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
        let function = Arc::new(function);
        Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, call.args))))
    })
}

/// `+`, `-`, `*`, `/` and `%` of a REAL and an integer or decimal are of DOUBLE PRECISION: a REAL has seven digits.
#[derive(Debug)]
pub(crate) struct RealOperators;

impl ExprPlanner for RealOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
        let RawBinaryExpr { op, left, right } = expr;
        if matches!(op, Plus | Minus | Multiply | Divide | Modulo)
            && let (Ok(of_left), Ok(of_right)) = (left.get_type(schema), right.get_type(schema))
            && (of_left == DataType::Float32 && is_exact(&of_right)
                || is_exact(&of_left) && of_right == DataType::Float32)
        {
            let double = |side: Expr| Expr::Cast(Cast::new(Box::new(side), DataType::Float64));
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left: double(left), right: double(right) }));
        }
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

fn is_exact(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_decimal()
}
