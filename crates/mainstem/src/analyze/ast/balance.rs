//! Long chains of AND, OR and `||` as trees that are as shallow as can be.
//!
//! The parser makes `a OR b OR c` one level deeper with each operand, and DataFusion's planning takes time that grows
//! with the operands times the depth: names and types of an expression are computed from those below it, at every
//! level. These three operators mean the same however they are grouped. Comes in: a statement's tree. Goes out: the
//! same, regrouped.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Statement, Value, VisitorMut};

use crate::walk::walk_mut;

/// Chains of fewer operands stay as they are written.
const OPERANDS_MIN: usize = 16;

/// Regroups the chains of `statement`.
pub(crate) fn balance(statement: &mut Statement) {
    let ControlFlow::Continue(()) = walk_mut(statement, &mut Chains);
}

struct Chains;

impl VisitorMut for Chains {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::BinaryOp { op, .. } = expr
            && matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::StringConcat)
        {
            let op = op.clone();
            if length(expr, &op) >= OPERANDS_MIN {
                let mut operands = Vec::new();
                take_operands(expr, &op, &mut operands);
                *expr = grouped(operands, &op);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Operands of the chain of `op` that leans to the left.
fn length(mut expr: &Expr, op: &BinaryOperator) -> usize {
    let mut operands = 1;
    while let Expr::BinaryOp { left, op: own, .. } = expr
        && own == op
    {
        operands += 1;
        expr = left;
    }
    operands
}

/// Moves the operands of such a chain to `operands`, in order.
fn take_operands(expr: &mut Expr, op: &BinaryOperator, operands: &mut Vec<Expr>) {
    let mut rest = std::mem::replace(expr, Expr::value(Value::Null));
    loop {
        match rest {
            Expr::BinaryOp { left, op: own, right } if own == *op => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
}

fn grouped(mut operands: Vec<Expr>, op: &BinaryOperator) -> Expr {
    let half = operands.len() / 2;
    let right = operands.split_off(half);
    let side = |mut operands: Vec<Expr>| match operands.len() {
        1 => operands.pop().unwrap_or_else(|| Expr::value(Value::Null)),
        _ => grouped(operands, op),
    };
    Expr::BinaryOp { left: Box::new(side(operands)), op: op.clone(), right: Box::new(side(right)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    fn balanced(sql: &str) -> (Statement, usize) {
        let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap().remove(0);
        balance(&mut statement);
        let Statement::Query(query) = &statement else { panic!() };
        let depth = depth(query.body.as_select().unwrap().selection.as_ref().unwrap());
        (statement, depth)
    }

    #[test]
    fn chains_keep_their_operands_in_order() {
        for (op, shallow) in [("OR", true), ("AND", true), ("||", true), ("+", false), ("-", false)] {
            let operands: Vec<String> = (0..1000).map(|i| format!("c{i}")).collect();
            let sql = format!("SELECT 1 WHERE {}", operands.join(&format!(" {op} ")));
            let (statement, depth) = balanced(&sql);
            assert_eq!(statement.to_string(), sql);
            assert_eq!(depth == 10, shallow, "{op}: {depth}");
        }
    }

    #[test]
    fn a_chain_of_two_kinds_is_regrouped_kind_by_kind() {
        let sql = "SELECT 1 WHERE a0".to_string() + &" AND b AND c OR d".repeat(100);
        let (statement, depth) = balanced(&sql);
        assert_eq!(statement.to_string(), sql);
        assert!(depth < 12, "{depth}");
        let (_, short) = balanced("SELECT 1 WHERE a OR b OR c OR d");
        assert_eq!(short, 3, "left as it is written");
    }
}
