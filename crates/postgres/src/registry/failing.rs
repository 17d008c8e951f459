//! Which expressions may end in an error.
//!
//! Comes in: an expression over rows of a schema. Goes out: whether some values of the row end it in an error. Rules
//! that change which rows an expression is evaluated for ask this first: they guard what may fail, or leave it where it
//! stands.

use datafusion_common::tree_node::TreeNode;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{Like, ScalarFunction};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::{Fails, fails};

/// Whether evaluating `expr` may end in an error that other rows' values do not show: a quotient, a cast, a pattern of
/// the row, a function of some numbers or texts only. Sums and products that overflow are not counted.
#[must_use]
pub fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let fails = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => !is_divisor(right),
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) => takes_pattern(*op) && !is_constant(right),
        Expr::Like(Like { pattern, .. }) | Expr::SimilarTo(Like { pattern, .. }) => !is_constant(pattern),
        Expr::ScalarFunction(ScalarFunction { func, args }) => match fails(func) {
            // They are everywhere, and nobody guards them.
            Fails::Never | Fails::Overflow => false,
            Fails::Divisor(at) => args.get(at).is_none_or(|divisor| !is_divisor(divisor)),
            Fails::Value => true,
        },
        Expr::Cast(cast) => {
            let is_text = |expr: &Expr| expr.get_type(schema).map_or(true, |data_type| data_type.is_string());
            !cast.field.data_type().is_string() && is_text(&cast.expr)
        }
        _ => false,
    };
    expr.exists(|e| Ok(fails(e))).unwrap_or(true)
}

/// Whether the right side of `op` is a pattern, which some texts are not.
fn takes_pattern(op: Operator) -> bool {
    matches!(
        op,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
            | Operator::LikeMatch
            | Operator::ILikeMatch
            | Operator::NotLikeMatch
            | Operator::NotILikeMatch
    )
}

/// Whether `expr` is made of literals and parameters: what is wrong with it is wrong for all rows.
fn is_constant(expr: &Expr) -> bool {
    let is_of_row = |expr: &Expr| {
        !matches!(
            expr,
            Expr::Literal(..) | Expr::Placeholder(_) | Expr::Cast(_) | Expr::BinaryExpr(_) | Expr::ScalarFunction(_)
        )
    };
    expr.exists(|expr| Ok(is_of_row(expr))).is_ok_and(|of_row| !of_row)
}

/// A literal that is not zero.
fn is_divisor(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(scalar, _) => {
            !scalar.is_null() && ScalarValue::new_zero(&scalar.data_type()).is_ok_and(|zero| zero != *scalar)
        }
        Expr::Cast(cast) => is_divisor(&cast.expr),
        _ => false,
    }
}
