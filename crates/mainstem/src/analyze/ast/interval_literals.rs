//! Literals of intervals: read here, as PostgreSQL reads them, and written again in the plain words that DataFusion's
//! planner reads.
//!
//! What cannot be read becomes a cast of the text, which fails where it is computed.

use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, DateTimeField, Expr as SqlExpr, Interval, Value, ValueWithSpan,
};
use mainstem_postgres::types::{IntervalField, IntervalFields, interval_of};

use super::expr::cast;

/// `interval` in syntax that DataFusion reads; None for one that is no text, or of another precision than microseconds.
pub(crate) fn plain_interval(interval: &Interval) -> Option<SqlExpr> {
    let Interval { value, leading_field, leading_precision: None, last_field, fractional_seconds_precision: None } =
        interval
    else {
        return None;
    };
    let SqlExpr::Value(ValueWithSpan {
        value: Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::NationalStringLiteral(text),
        span,
    }) = &**value
    else {
        return None;
    };
    let first = leading_field.as_ref().map(field).map_or(Some(None), |field| field.map(Some))?;
    let last = last_field.as_ref().map(field).map_or(Some(None), |field| field.map(Some))?;
    let fields: Option<IntervalFields> = first.map(|first| (first, last.unwrap_or(first)));
    // Months and days do not go together.
    let is_range =
        |(first, last)| first == last || first < last && (first >= IntervalField::Day || last <= IntervalField::Month);
    if fields.is_some_and(|fields| !is_range(fields)) {
        return None;
    }
    let words = match interval_of(text, fields) {
        Ok(span) => format!("{} months {} days {} microseconds", span.months, span.days, span.nanoseconds / 1_000),
        Err(_) => {
            let unit = last_field.as_ref().or(leading_field.as_ref());
            let text = unit.map_or_else(|| text.clone(), |unit| format!("{text} {unit}"));
            let text = SqlExpr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), span: *span });
            return Some(cast(text, SqlType::Interval { fields: None, precision: None }));
        }
    };
    let value = Box::new(SqlExpr::Value(ValueWithSpan { value: Value::SingleQuotedString(words), span: *span }));
    Some(SqlExpr::Interval(Interval { value, leading_field: None, last_field: None, ..interval.clone() }))
}

fn field(field: &DateTimeField) -> Option<IntervalField> {
    Some(match field {
        DateTimeField::Year => IntervalField::Year,
        DateTimeField::Month => IntervalField::Month,
        DateTimeField::Day => IntervalField::Day,
        DateTimeField::Hour => IntervalField::Hour,
        DateTimeField::Minute => IntervalField::Minute,
        DateTimeField::Second => IntervalField::Second,
        _ => return None,
    })
}
