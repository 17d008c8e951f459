//! AND and OR whose right side may fail: `x = 0 OR 100 / x > 20`.
//!
//! DataFusion evaluates both sides for all rows of a batch, unless the left one decides most of them: whether a query
//! ends with 22012 would depend on how many rows lie side by side. SQL promises no order, but everybody writes such
//! guards, and row by row, from left to right, they hold. So the right side is only asked about the rows that the left
//! one leaves open, which is what CASE does.
//!
//! Comes in: an optimised plan, or an expression, that is evaluated next. Goes out: the same, where of each chain of
//! AND or OR
//!
//! - operands that cannot fail stand together in front, up to the first that can ([`may_fail`]: quotients, casts,
//!   patterns of the row, some functions);
//! - those behind them stand in branches of a CASE, each asked about what those before leave open.
//!
//! Where only truth counts, in a filter, a join's condition, a CASE's, NULL is as good as false: `a AND b` becomes
//! `CASE WHEN a THEN b ELSE false END`, and operands of AND that cannot fail go in front of those that can. Elsewhere
//! the rows that no branch decides are asked for the chain as it was, because one of its operands may have been NULL.
//! It comes last: filters have gone where they belong, common expressions are found, and nobody simplifies it away.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Alias, Case};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator, lit};
use mainstem_postgres::registry::may_fail;

use crate::analyze::plan_walk::{rewrite_nodes, rewrite_whole};

/// Operands of a chain that get branches of their own: so deep may CASEs stand in one another.
const BRANCHES_MAX: usize = 64;
/// Nodes of a chain that is written twice.
const TWICE_NODES_MAX: usize = 500;

/// What of an expression's value counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Whether it is true.
    Truth,
    /// All of it, NULL too.
    Value,
}

/// `plan` with guards in the expressions of all its nodes.
///
/// # Errors
/// Internal.
pub(crate) fn short_circuit_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_nodes(plan, |node| match node {
        // What the store takes of a filter it takes for itself.
        LogicalPlan::TableScan(_) => Ok(Transformed::no(node)),
        LogicalPlan::Filter(_) => guard_node(node, Counts::Truth),
        // Of its keys, which are compared, the values count.
        LogicalPlan::Join(mut join) => {
            let filter = join.filter.take();
            let schema = join.left.schema().join(join.right.schema())?;
            let filter = filter.map(|filter| guard(filter, &schema, Counts::Truth)).transpose()?;
            let (filter, is_new) = filter.map_or((None, false), |filter| (Some(filter.data), filter.transformed));
            let node = guard_node(LogicalPlan::Join(join), Counts::Value)?;
            Ok(Transformed::new_transformed(
                match node.data {
                    LogicalPlan::Join(join) => LogicalPlan::Join(Join { filter, ..join }),
                    other => other,
                },
                node.transformed || is_new,
            ))
        }
        node => guard_node(node, Counts::Value),
    })
}

fn guard_node(node: LogicalPlan, counts: Counts) -> Result<Transformed<LogicalPlan>> {
    rewrite_whole(node, &|expr, schema| guard(expr, schema, counts))
}

fn guard(expr: Expr, schema: &DFSchema, counts: Counts) -> Result<Transformed<Expr>> {
    if is_chained(&expr, schema) { guarded(expr, schema, counts) } else { Ok(Transformed::no(expr)) }
}

/// `expr` over rows of `schema` with guards.
///
/// # Errors
/// Internal.
pub(crate) fn short_circuit_expression(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    guard(expr, schema, Counts::Value).map(|guarded| guarded.data)
}

/// Whether there is anything to guard.
fn is_chained(expr: &Expr, schema: &DFSchema) -> bool {
    let is_chain = |e: &Expr| matches!(e, Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }));
    expr.exists(|e| Ok(is_chain(e))).unwrap_or_default() && may_fail(expr, schema)
}

fn guarded(expr: Expr, schema: &DFSchema, counts: Counts) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let mut operands = Vec::new();
            operands_of(expr, op, &mut operands);
            let mut changed = false;
            let operands = operands.into_iter().map(|operand| {
                let operand = guarded(operand, schema, counts)?;
                changed |= operand.transformed;
                Ok(operand.data)
            });
            let operands = operands.collect::<Result<Vec<_>>>()?;
            match branched(&operands, op, schema, counts)? {
                Some(branched) => Ok(Transformed::yes(branched)),
                None => Ok(Transformed::new_transformed(chain(&operands, op), changed)),
            }
        }
        Expr::Alias(Alias { expr, relation, name, metadata }) => {
            let inner = guarded(*expr, schema, counts)?;
            let alias = |inner| Expr::Alias(Alias { expr: Box::new(inner), relation, name, metadata });
            Ok(inner.update_data(alias))
        }
        Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
            let mut changed = false;
            let mut inner = |expr: Box<Expr>, counts| -> Result<Box<Expr>> {
                let inner = guarded(*expr, schema, counts)?;
                changed |= inner.transformed;
                Ok(Box::new(inner.data))
            };
            let branches = when_then_expr.into_iter();
            let branches = branches.map(|(when, then)| Ok((inner(when, Counts::Truth)?, inner(then, counts)?)));
            let when_then_expr = branches.collect::<Result<Vec<_>>>()?;
            let else_expr = else_expr.map(|expr| inner(expr, counts)).transpose()?;
            Ok(Transformed::new_transformed(Expr::Case(Case { expr: None, when_then_expr, else_expr }), changed))
        }
        Expr::IsTrue(inner) => Ok(guarded(*inner, schema, Counts::Truth)?.update_data(|e| Expr::IsTrue(Box::new(e)))),
        Expr::IsNotTrue(inner) => {
            Ok(guarded(*inner, schema, Counts::Truth)?.update_data(|e| Expr::IsNotTrue(Box::new(e))))
        }
        other => other.map_children(|child| guarded(child, schema, Counts::Value)),
    }
}

/// The operands of a chain of `op`, from left to right.
fn operands_of(expr: Expr, op: Operator, operands: &mut Vec<Expr>) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: inner, right }) if inner == op => {
                open.push(*right);
                open.push(*left);
            }
            operand => operands.push(operand),
        }
    }
}

/// The chain of `operands`, of which there is at least one, no deeper than it must be.
fn chain(operands: &[Expr], op: Operator) -> Expr {
    match operands {
        [] => lit(op == Operator::And),
        [operand] => operand.clone(),
        _ => {
            let (left, right) = operands.split_at(operands.len() / 2);
            Expr::BinaryExpr(BinaryExpr::new(Box::new(chain(left, op)), op, Box::new(chain(right, op))))
        }
    }
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    let branches = branches.into_iter().map(|(when, then)| (Box::new(when), Box::new(then)));
    Expr::Case(Case { expr: None, when_then_expr: branches.collect(), else_expr: Some(Box::new(otherwise)) })
}

/// The chain of `operands` as a CASE, if one behind the first may fail.
fn branched(operands: &[Expr], op: Operator, schema: &DFSchema, counts: Counts) -> Result<Option<Expr>> {
    let is_and = op == Operator::And;
    let mut operands = operands.iter().map(|operand| (may_fail(operand, schema), operand.clone())).collect::<Vec<_>>();
    if is_and && counts == Counts::Truth {
        operands.sort_by_key(|(may_fail, _)| *may_fail);
    }
    let Some(first) = operands.iter().skip(1).position(|(may_fail, _)| *may_fail) else { return Ok(None) };
    let operands = operands.into_iter().map(|(_, operand)| operand).collect::<Vec<_>>();
    let (lead, behind) = operands.split_at(first + 1);
    // Those beyond the bound share a branch.
    let (alone, rest) = behind.split_at(behind.len().min(BRANCHES_MAX) - 1);
    let asked = std::iter::once(chain(lead, op)).chain(alone.iter().cloned());
    let last = chain(rest, op);
    if is_and && counts == Counts::Truth {
        let nested = asked.rev().fold(last, |then, when| case(vec![(when, then)], lit(false)));
        return Ok(Some(nested));
    }
    let decided =
        |operand: Expr| if is_and { (Expr::Not(Box::new(operand)), lit(false)) } else { (operand, lit(true)) };
    let asked = asked.collect::<Vec<_>>();
    let mut otherwise = last;
    if counts == Counts::Value && asked.iter().map(|e| e.nullable(schema)).collect::<Result<Vec<_>>>()?.contains(&true)
    {
        // Once more, for the rows that nothing decides: an operand may be NULL.
        let whole = chain(&operands, op);
        let mut nodes = 0;
        whole.apply(|_| {
            nodes += 1;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if nodes > TWICE_NODES_MAX || whole.is_volatile() {
            return Ok(None);
        }
        otherwise = whole;
    }
    Ok(Some(case(asked.into_iter().map(decided).collect(), otherwise)))
}
