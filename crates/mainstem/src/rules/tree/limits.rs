//! LIMIT and OFFSET of texts that spell numbers, and of numbers with digits behind the point: PostgreSQL reads the first as BIGINT and rounds
//! the others. What spells no number stays, and is refused when the statement is planned.

use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Query, Value, ValueWithSpan};

/// Writes whole numbers in LIMIT and OFFSET of `query`.
pub(super) fn read(query: &mut Query) {
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
    let Expr::Value(ValueWithSpan { value, .. }) = expr else { return };
    let number = match value {
        Value::SingleQuotedString(text) => text.trim().parse::<i64>().ok().filter(|number| *number >= 0),
        Value::Number(text, _) => rounded(text),
        _ => None,
    };
    if let Some(number) = number {
        *value = Value::Number(number.to_string(), false);
    }
}

/// `text`, digits with a point, as a whole number; halves go up.
fn rounded(text: &str) -> Option<i64> {
    let (before, behind) = text.split_once('.')?;
    let before: i64 = if before.is_empty() { 0 } else { before.parse().ok()? };
    let is_number = behind.bytes().all(|b| b.is_ascii_digit());
    let up = behind.bytes().next().is_some_and(|b| b >= b'5');
    is_number.then(|| before.saturating_add(i64::from(up)))
}
