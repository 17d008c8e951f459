//! Conditions that keep rows away from a subquery.
//!
//! A query that is computed for all outer rows at once would fail for those that never ask for it: `CASE WHEN x <> 0
//! THEN (SELECT 1 / x ...) END`.
//!
//! Comes in: an expression. Goes out: its subqueries, those within first, each with what is true of the rows that ask
//! for it: of CASE the conditions on the way to it, of COALESCE that what stands before is NULL, of AND and OR that
//! their left sides do not decide. Conditions with subqueries of their own, or with random values, are left out: more
//! rows than ask for a query do no harm, but for errors. It does not own: what is made of a query (`rule`).

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, lit, when};
use mainstem_postgres::registry::{self, Fails};

use super::outer_columns::query_of;

/// Stack that one level of an expression may take, and what is added when there is less.
const STACK_LEVEL: usize = 128 << 10;
const STACK_MORE: usize = 2 << 20;

/// What takes the place of a subquery, of which the conditions are true where it is asked for.
pub(super) type Replace<'f> = dyn FnMut(Expr, &[Expr]) -> Result<Transformed<Expr>> + 'f;

/// Puts what `replace` makes of each subquery in its place.
pub(super) fn replace_queries(
    expr: Expr,
    guards: &mut Vec<Expr>,
    replace: &mut Replace<'_>,
) -> Result<Transformed<Expr>> {
    if !holds_query(&expr) {
        return Ok(Transformed::no(expr));
    }
    let before = guards.len();
    let replaced = stacker::maybe_grow(STACK_LEVEL, STACK_MORE, || match expr {
        Expr::Case(case) => in_case(case, guards, replace),
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "coalesce" => {
            let mut changed = false;
            let mut parts = Vec::with_capacity(args.len());
            for arg in args {
                let is_missing = arg.clone().is_null();
                parts.push(part(arg, guards, replace, &mut changed)?);
                guard(is_missing, guards);
            }
            let call = ScalarFunction { func, args: parts };
            Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let is_open = holds_query(&right).then(|| match op {
                Operator::And => left.clone().is_not_false(),
                _ => left.clone().is_not_true(),
            });
            let mut changed = false;
            let left = Box::new(part(*left, guards, replace, &mut changed)?);
            // What says something of rows further around stays out of the queries beside it: CASE alone has to hold.
            is_open.into_iter().filter(|open| !open.contains_outer()).for_each(|open| guard(open, guards));
            let right = Box::new(part(*right, guards, replace, &mut changed)?);
            Ok(Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed))
        }
        other => other.map_children(|child| replace_queries(child, guards, replace))?.transform_data(|expr| {
            if query_of(&expr).is_some() { replace(expr, guards) } else { Ok(Transformed::no(expr)) }
        }),
    });
    guards.truncate(before);
    replaced
}

fn in_case(case: Case, guards: &mut Vec<Expr>, replace: &mut Replace<'_>) -> Result<Transformed<Expr>> {
    let Case { expr: operand, when_then_expr, else_expr } = case;
    let compared = operand.clone();
    let mut changed = false;
    let operand = operand.map(|operand| part(*operand, guards, replace, &mut changed)).transpose()?;
    let mut branches = Vec::with_capacity(when_then_expr.len());
    for (condition, value) in when_then_expr {
        let is_met = match &compared {
            Some(compared) => (**compared).clone().eq((*condition).clone()),
            None => (*condition).clone(),
        };
        let condition = part(*condition, guards, replace, &mut changed)?;
        let before = guards.len();
        guard(is_met.clone().is_true(), guards);
        let value = part(*value, guards, replace, &mut changed)?;
        guards.truncate(before);
        guard(is_met.is_not_true(), guards);
        branches.push((Box::new(condition), Box::new(value)));
    }
    let otherwise = else_expr.map(|value| part(*value, guards, replace, &mut changed)).transpose()?;
    let case = Case { expr: operand.map(Box::new), when_then_expr: branches, else_expr: otherwise.map(Box::new) };
    Ok(Transformed::new_transformed(Expr::Case(case), changed))
}

fn part(expr: Expr, guards: &mut Vec<Expr>, replace: &mut Replace<'_>, changed: &mut bool) -> Result<Expr> {
    let part = replace_queries(expr, guards, replace)?;
    *changed |= part.transformed;
    Ok(part.data)
}

fn guard(condition: Expr, guards: &mut Vec<Expr>) {
    if !condition.is_volatile() && !holds_query(&condition) {
        guards.push(condition);
    }
}

/// Whether `expr` is a subquery, or has one.
pub(super) fn holds_query(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(query_of(expr).is_some())).unwrap_or(true)
}

/// `guards` as a condition that evaluates each one only where those before are true.
///
/// # Errors
/// Those of types.
pub(super) fn all_of(guards: &[Expr]) -> Result<Option<Expr>> {
    let Some((last, before)) = guards.split_last() else { return Ok(None) };
    let mut all = last.clone();
    for guard in before.iter().rev() {
        // Of booleans the optimizer makes ANDs.
        all = when(guard.clone(), when(all, lit(1_i64)).end()?).end()?.is_not_null();
    }
    Ok(Some(all))
}

/// Whether nothing in `query` can fail, whatever its values are.
///
/// # Errors
/// Those of types.
pub(super) fn is_total(query: &LogicalPlan) -> Result<bool> {
    let mut is_total = true;
    query.apply_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        plan.apply_expressions(|expr| {
            is_total &= !expr.exists(|expr| can_fail(expr, &schema))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_total)
}

/// Whether `expr`, apart from what is in it, can fail.
///
/// # Errors
/// Those of types.
pub(super) fn can_fail(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            !matches!(op, And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
        }
        Expr::ScalarFunction(call) => registry::fails(&call.func) != Fails::Never,
        Expr::AggregateFunction(call) => registry::aggregate_fails(call.func.name()) != Fails::Never,
        Expr::Cast(Cast { expr, field }) => {
            let (from, to) = (expr.get_type(schema)?, field.data_type());
            let is_wider = from.is_integer() && to.is_integer() && from.primitive_width() <= to.primitive_width();
            from != *to && !is_wider
        }
        Expr::Alias(_) | Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Literal(..) => false,
        Expr::Not(_) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::Exists(_) | Expr::InSubquery(_) => false,
        Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::IsUnknown(_) => false,
        Expr::IsNotTrue(_) | Expr::IsNotFalse(_) | Expr::IsNotUnknown(_) => false,
        Expr::Case(_) | Expr::Between(_) | Expr::InList(_) => false,
        _ => true,
    })
}
