//! Comparisons of rows, `(a, b) < (x, y)`, as comparisons of their parts.
//!
//! DataFusion makes structs of rows and takes NULLs in them for values. SQL compares parts from left to right; a NULL
//! before the first two that differ makes the comparison NULL:
//!
//! - `=` is that of all parts, `<>` its opposite, IN an OR of `=`; IS NULL and IS NOT NULL say it of all parts;
//! - `(a, b) < (x, y)` is `a < x OR a = x AND b < y`, with `a <= x` in front: it says nothing new, but by it a store
//!   can leave rows unread. So says IN that `a` is among the first parts.
//!
//! Comes in: a statement's tree. Goes out: the same without comparisons of rows with rows. Invariant: both are NULL for
//! the same rows. It does not own: rows beside queries, and rows as values.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Statement, UnaryOperator};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::expr::{bare, binary, called};
use crate::walk::walk_expressions;

/// Checks that rows that are compared in `statement` have as many parts.
///
/// # Errors
/// 42601, 0A000 for rows without parts.
pub(crate) fn check_rows(statement: &Statement) -> Result<()> {
    let checked = walk_expressions(statement, |expr| {
        let check = |left: &Expr, right: &Expr| match (parts(left), parts(right)) {
            (Some(left), Some(right)) if left.len() != right.len() => {
                ControlFlow::Break(Error::invalid(sqlstate::SYNTAX, "unequal number of entries in row expressions"))
            }
            (Some(left), Some(_)) if left.is_empty() => ControlFlow::Break(Error::invalid(
                sqlstate::FEATURE_NOT_SUPPORTED,
                "cannot compare rows of zero length",
            )),
            _ => ControlFlow::Continue(()),
        };
        match expr {
            Expr::BinaryOp { left, op, right } if compares(op) => check(left, right),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => check(left, right),
            Expr::InList { expr, list, .. } => list.iter().try_for_each(|item| check(expr, item)),
            Expr::Between { expr, low, high, .. } => {
                check(expr, low)?;
                check(expr, high)
            }
            _ => ControlFlow::Continue(()),
        }
    });
    checked.break_value().map_or(Ok(()), Err)
}

/// See the module; other expressions stay.
pub(crate) fn compare_by_fields(expr: &mut Expr) {
    let compared = match expr {
        Expr::BinaryOp { left, op, right } if compares(op) => compared(left, op, right),
        Expr::IsDistinctFrom(left, right) => distinct(left, right, true),
        Expr::IsNotDistinctFrom(left, right) => distinct(left, right, false),
        Expr::InList { expr, list, negated } => {
            member(expr, list).map(|member| if *negated { not(member) } else { member })
        }
        Expr::Between { expr, negated, low, high } => {
            let low = compared(expr, &BinaryOperator::GtEq, low);
            let high = compared(expr, &BinaryOperator::LtEq, high);
            let both = low.zip(high).map(|(low, high)| binary(low, BinaryOperator::And, high));
            both.map(|both| if *negated { not(both) } else { both })
        }
        Expr::IsNull(row) => each(row, |part| Expr::IsNull(Box::new(part))),
        Expr::IsNotNull(row) => each(row, |part| Expr::IsNotNull(Box::new(part))),
        _ => None,
    };
    if let Some(compared) = compared {
        *expr = Expr::Nested(Box::new(compared));
    }
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The parts of a row.
fn parts(expr: &Expr) -> Option<Vec<&Expr>> {
    match bare(expr) {
        Expr::Tuple(parts) => Some(parts.iter().collect()),
        call @ Expr::Function(_) => called(call).filter(|(name, _)| name == "row").map(|(_, parts)| parts),
        _ => None,
    }
}

/// The pairs of parts of two rows that are as long.
fn pairs<'e>(left: &'e Expr, right: &'e Expr) -> Option<Vec<(&'e Expr, &'e Expr)>> {
    let (left, right) = (parts(left)?, parts(right)?);
    (left.len() == right.len() && !left.is_empty()).then(|| left.into_iter().zip(right).collect())
}

fn compared(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let pairs = pairs(left, right)?;
    let joined = |op: &BinaryOperator, by: BinaryOperator| {
        let parts = pairs.iter().map(|(left, right)| pair(left, op.clone(), right));
        parts.reduce(|left, right| binary(left, by.clone(), right))
    };
    let (strict, loose) = match op {
        Eq => return joined(&Eq, And),
        NotEq => return joined(&NotEq, Or),
        Lt | LtEq => (Lt, LtEq),
        _ => (Gt, GtEq),
    };
    let mut backwards = pairs.iter().rev();
    let (left, right) = backwards.next()?;
    let mut ordered = pair(left, op.clone(), right);
    for (left, right) in backwards {
        let here = pair(left, strict.clone(), right);
        let behind = binary(pair(left, Eq, right), And, nested(ordered));
        ordered = binary(here, Or, nested(behind));
    }
    let (left, right) = pairs.first().filter(|_| pairs.len() > 1)?;
    Some(binary(pair(left, loose, right), And, nested(ordered)))
}

fn distinct(left: &Expr, right: &Expr, are: bool) -> Option<Expr> {
    let one = |(left, right): (&Expr, &Expr)| {
        let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
        if are { Expr::IsDistinctFrom(left, right) } else { Expr::IsNotDistinctFrom(left, right) }
    };
    let by = if are { BinaryOperator::Or } else { BinaryOperator::And };
    pairs(left, right)?.into_iter().map(one).reduce(|left, right| binary(left, by.clone(), right))
}

/// `row IN (list)`.
fn member(row: &Expr, list: &[Expr]) -> Option<Expr> {
    let equal = list.iter().map(|item| compared(row, &BinaryOperator::Eq, item).map(nested));
    let any =
        equal.collect::<Option<Vec<_>>>()?.into_iter().reduce(|left, right| binary(left, BinaryOperator::Or, right))?;
    let first = *parts(row)?.first()?;
    let firsts = list.iter().map(|item| parts(item)?.first().map(|part| (*part).clone()));
    let firsts = firsts.collect::<Option<Vec<_>>>()?;
    if parts(first).is_some() {
        return Some(any);
    }
    let among = Expr::InList { expr: Box::new(first.clone()), list: firsts, negated: false };
    Some(binary(among, BinaryOperator::And, nested(any)))
}

/// `test` of all parts of `row`.
fn each(row: &Expr, test: impl Fn(Expr) -> Expr) -> Option<Expr> {
    let tests = parts(row)?.into_iter().map(|part| test(part.clone()));
    tests.reduce(|left, right| binary(left, BinaryOperator::And, right))
}

/// `left op right` of two parts. Rows among them are values of their own: NULLs in them are equal to one another.
fn pair(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    binary(left.clone(), op, right.clone())
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expr)) }
}
