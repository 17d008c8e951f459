//! A DATE beside a TIMESTAMP that is known, as `date '1998-12-01' - interval '90 days'` is.
//!
//! The DATE is taken for its midnight, so a comparison is one with a whole day: `day <= '1998-09-02 12:00'` holds where
//! `day <= '1998-09-02'` does. Said so, it prunes segments, and no column is made of the dates as timestamps.

use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Cast, Expr, Operator};
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::Value;
use mainstem_storage::schema::{Column, DataType, TableSchema};

use super::operators::{column, compare_op, flipped};

const MICROSECONDS: i64 = 86_400_000_000;

/// The predicate that `left op right` is, if one of the two is a DATE as a TIMESTAMP, and the other one is known.
pub(super) fn compare(left: &Expr, op: Operator, right: &Expr, schema: &TableSchema) -> Option<Predicate> {
    let op = compare_op(op)?;
    if let (Some(column), Some(datetime)) = (day(left, schema), datetime(right)) {
        return Some(with_day(column, op, datetime));
    }
    Some(with_day(day(right, schema)?, flipped(op), datetime(left)?))
}

/// The column of a DATE that `expr` takes for a TIMESTAMP.
fn day<'s>(expr: &Expr, schema: &'s TableSchema) -> Option<&'s Column> {
    let Expr::Cast(Cast { expr, field }) = expr else { return None };
    let column = column(expr, schema).filter(|column| column.data_type == DataType::Date)?;
    matches!(field.data_type(), ArrowType::Timestamp(TimeUnit::Microsecond, None)).then_some(column)
}

/// Microseconds since 1970.
fn datetime(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::TimestampMicrosecond(datetime, None), _) => *datetime,
        _ => None,
    }
}

/// `column op datetime`.
fn with_day(column: &Column, op: CompareOp, datetime: i64) -> Predicate {
    let (day, midnight) = (datetime.div_euclid(MICROSECONDS), datetime.rem_euclid(MICROSECONDS) == 0);
    let op = match op {
        // Between two midnights.
        CompareOp::Eq if !midnight => return Predicate::In { column: column.id, values: Vec::new() },
        CompareOp::NotEq if !midnight => return Predicate::IsNotNull { column: column.id },
        CompareOp::Lt if !midnight => CompareOp::LtEq,
        CompareOp::GtEq if !midnight => CompareOp::Gt,
        op => op,
    };
    Predicate::Compare { column: column.id, op, value: Value::Int(day) }
}
