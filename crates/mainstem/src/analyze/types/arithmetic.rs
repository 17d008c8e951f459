//! Types of arithmetic, and operators that check: which function an operator becomes.
//!
//! 1. While SQL becomes a plan, and before types are coerced: this changes types. Divisions of decimals, and products
//!    that may need more than 38 digits, become functions with enough digits behind the point ([`DecimalOperators`]).
//!    Roundings of them become functions whose type stays ([`DecimalRounding`]). A REAL beside an exact number becomes
//!    a double ([`RealOperators`]).
//! 2. After types are coerced ([`CheckedArithmetic`]) operators become functions that check: integers, decimals, and
//!    floats, of which none becomes infinite. No constant is folded before.
//!
//! It does not own: what the functions compute (`mainstem_postgres::operator`).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use mainstem_postgres::function::decimal_rounding;
use mainstem_postgres::operator::checked::{CheckedFunction, Op as Checked};
use mainstem_postgres::operator::scaled::{Op, operation, operation_of};
use mainstem_postgres::operator::{product_scale, quotient_scale};

use crate::analyze::plan_walk::rewrite_plan;

/// Operators become functions that check: the rule behind type coercion.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic {
    add: Arc<ScalarUDF>,
    subtract: Arc<ScalarUDF>,
    multiply: Arc<ScalarUDF>,
    divide: Arc<ScalarUDF>,
    negate: Arc<ScalarUDF>,
}

impl CheckedArithmetic {
    pub(crate) fn new() -> Self {
        let function = |op| Arc::new(CheckedFunction::udf(op, None));
        Self {
            add: function(Checked::Add),
            subtract: function(Checked::Subtract),
            multiply: function(Checked::Multiply),
            divide: function(Checked::Divide),
            negate: function(Checked::Negate),
        }
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

    fn rewrite_expr(&self, expr: Expr, schema: &dyn ExprSchema) -> Result<Transformed<Expr>> {
        let call = |function: &Arc<ScalarUDF>, args| {
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function.clone(), args)))
        };
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (kind, function) = match op {
                    Operator::Plus => (Checked::Add, &self.add),
                    Operator::Minus => (Checked::Subtract, &self.subtract),
                    Operator::Multiply => (Checked::Multiply, &self.multiply),
                    Operator::Divide => (Checked::Divide, &self.divide),
                    _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
                };
                let types = (Self::type_of(&left, schema)?, Self::type_of(&right, schema)?);
                Ok(match types {
                    (of_left, of_right)
                        if of_left == of_right
                            && (of_left.is_integer() && kind != Checked::Divide || is_float(&of_left)) =>
                    {
                        call(function, vec![*left, *right])
                    }
                    (of_left @ DataType::Decimal128(..), of_right @ DataType::Decimal128(..))
                        if kind != Checked::Divide =>
                    {
                        let result = BinaryTypeCoercer::new(&of_left, &op, &of_right).get_result_type()?;
                        let function = CheckedFunction::udf(kind, Some(result));
                        call(&Arc::new(function), vec![*left, *right])
                    }
                    _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
                })
            }
            Expr::Negative(inner) if inner.get_type(schema)?.is_signed_integer() => {
                Ok(call(&self.negate, vec![*inner]))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_plan(plan, &|expr, schema| self.rewrite_expr(expr, schema))
    }
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

impl AnalyzerRule for DecimalOperators {
    fn name(&self) -> &str {
        "decimal_operators"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
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
#[derive(Debug)]
pub(crate) struct DecimalRounding;

impl AnalyzerRule for DecimalRounding {
    fn name(&self) -> &str {
        "decimal_rounding"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
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
