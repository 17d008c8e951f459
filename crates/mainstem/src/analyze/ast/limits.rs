//! LIMIT and OFFSET are BIGINT in PostgreSQL: numbers with digits behind the point are rounded, texts that spell
//! numbers are read, and what is a condition is refused. DataFusion takes integers alone.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, LimitClause, Query, Statement, UnaryOperator, Value, ValueWithSpan,
    Visit, Visitor,
};
use mainstem_postgres::types::without_exponent;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::expr::bare;

/// Refuses literals in LIMIT and OFFSET of `statement` that are no BIGINT.
///
/// # Errors
/// 22P02 for a text that spells none, 22003 for one out of range.
pub(crate) fn check_limits(statement: &Statement) -> Result<()> {
    struct Check;
    impl Visitor for Check {
        type Break = Error;

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
            match parts(&query.limit_clause).into_iter().flatten().find_map(|part| literal(part)?.err()) {
                Some(error) => ControlFlow::Break(error),
                None => ControlFlow::Continue(()),
            }
        }
    }
    match Visit::visit(statement, &mut Check) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// LIMIT and OFFSET, of those that are there.
fn parts(clause: &Option<LimitClause>) -> [Option<&Expr>; 2] {
    match clause {
        Some(LimitClause::LimitOffset { limit, offset, limit_by: _ }) => {
            [limit.as_ref(), offset.as_ref().map(|offset| &offset.value)]
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => [Some(limit), Some(offset)],
        None => [None, None],
    }
}

/// Writes whole numbers in LIMIT and OFFSET of `query`, or casts to them.
pub(crate) fn read(query: &mut Query) {
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, limit_by: _ }) => {
            limit.iter_mut().for_each(whole);
            offset.iter_mut().for_each(|offset| whole(&mut offset.value));
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            whole(offset);
            whole(limit);
        }
        None => {}
    }
}

fn whole(expr: &mut Expr) {
    match literal(expr) {
        Some(Ok(number)) => *expr = integer(number),
        Some(Err(_)) => {}
        None if is_number(expr) => {
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(std::mem::replace(expr, Expr::value(Value::Null))),
                data_type: DataType::BigInt(None),
                array: false,
                format: None,
            };
        }
        None => {}
    }
}

/// The BIGINT that a number, or a text, is; None for other expressions.
fn literal(expr: &Expr) -> Option<Result<i64>> {
    let Expr::Value(ValueWithSpan { value, .. }) = bare(expr) else { return None };
    let out_of_range = |text: &str| {
        Error::invalid(sqlstate::OUT_OF_RANGE, format!("value \"{text}\" is out of range for type bigint"))
    };
    match value {
        Value::Number(text, _) => Some(rounded(text).ok_or_else(|| out_of_range(text))),
        Value::SingleQuotedString(text) => {
            let is_integer = {
                let digits = text.trim().strip_prefix(['+', '-']).unwrap_or(text.trim());
                !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
            };
            Some(text.trim().parse().map_err(|_| match is_integer {
                true => out_of_range(text),
                false => {
                    Error::invalid(sqlstate::INVALID_TEXT, format!("invalid input syntax for type bigint: \"{text}\""))
                }
            }))
        }
        _ => None,
    }
}

/// Whether `expr` may be computed as a number, by its form.
fn is_number(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Modulo
        ),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, .. } => true,
        Expr::Cast { data_type, .. } => !matches!(data_type, DataType::Boolean | DataType::Bool),
        _ => false,
    }
}

fn integer(number: i64) -> Expr {
    let digits = Expr::value(Value::Number(number.unsigned_abs().to_string(), false));
    if number < 0 { Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(digits) } } else { digits }
}

/// `text`, digits perhaps with a point or an exponent, as a whole number; halves go up. None for one that is no BIGINT.
fn rounded(text: &str) -> Option<i64> {
    let plain = without_exponent(text);
    let plain = plain.as_deref().unwrap_or(text);
    let (before, behind) = plain.split_once('.').unwrap_or((plain, ""));
    let before: i64 = if before.is_empty() { 0 } else { before.parse().ok()? };
    let is_number = behind.bytes().all(|b| b.is_ascii_digit());
    let up = behind.bytes().next().is_some_and(|b| b >= b'5');
    is_number.then(|| before.checked_add(i64::from(up))).flatten()
}
