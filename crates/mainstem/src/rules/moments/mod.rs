//! Dates, times, timestamps and intervals beside one another, as PostgreSQL has them.
//!
//! DataFusion knows one type for a text, a DATE or another timestamp beside a TIMESTAMP: nanoseconds, which end in 2262. It adds an interval
//! to a DATE by days alone, and has no `interval * number`. So
//!
//! 1. while SQL becomes a plan ([`planned`]), the operands of `+`, `-`, `*` and `/` get the types that PostgreSQL's operators have, or the
//!    operator becomes a function of ours (`arithmetic`); `AT TIME ZONE`, which is `timezone(zone, moment)`, is one (`zones`), `extract` and `date_part` are others (`parts`), so is `date_trunc` (`truncated`), and `generate_series` of
//!    moments is a table function of ours (`series`);
//! 2. before that, literals of intervals are read, and written in words that DataFusion reads ([`reworded`]);
//! 3. before type coercion, moments that are to be of one type become microseconds (`coerced`, which asks [`common_moment`]), and intervals that are
//!    compared the lengths that they have ([`measure`]).
//!
//! It does not own: texts of moments (`value`), their formats (`functions`).

mod arithmetic;
mod parts;
mod series;
mod totals;
mod truncated;
mod written;
mod zones;

pub(crate) use parts::PlannedParts;
pub(super) use parts::date_part;
pub(crate) use series::Series;
pub(super) use totals::{OfSpans, by_length, measured, of_spans};
pub(super) use truncated::date_trunc;
pub(super) use written::{read, reworded};
pub(super) use zones::timezone;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;

use self::arithmetic::{INTERVAL, Op, length, operation};

const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

fn ours(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

pub(super) fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

/// The type of values of the types `given`, if they are moments, texts that spell them and NULLs: a TIMESTAMPTZ beside others, a TIMESTAMP beside
/// dates, a DATE beside texts.
pub(super) fn common_moment<'t>(given: impl Iterator<Item = &'t DataType>) -> Option<DataType> {
    let mut found = None;
    for data_type in given {
        let rank = match data_type {
            DataType::Date32 => SqlType::Date,
            DataType::Timestamp(_, None) if found != Some(SqlType::TimestampTz) => SqlType::Timestamp,
            DataType::Timestamp(..) => SqlType::TimestampTz,
            other if other.is_string() || other.is_null() => continue,
            _ => return None,
        };
        if found.is_none() || rank != SqlType::Date {
            found = Some(rank);
        }
    }
    found.map(SqlType::arrow)
}

fn as_type(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type))
}

/// What an operand is to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A string literal, or a parameter: its type follows from what stands beside it.
    Unknown,
    Null,
    Day,
    Timestamp,
    Time,
    Interval,
    Whole,
    Number,
    Other,
}

fn kind(expr: &Expr, schema: &DFSchema) -> Kind {
    match expr.get_type(schema) {
        Ok(t) if t.is_string() && matches!(expr, Expr::Literal(..) | Expr::Placeholder(_)) => Kind::Unknown,
        // A parameter of which nothing is known yet.
        Ok(DataType::Null) | Err(_) if matches!(expr, Expr::Placeholder(_)) => Kind::Unknown,
        Ok(DataType::Null) => Kind::Null,
        Ok(DataType::Date32) => Kind::Day,
        Ok(DataType::Timestamp(..)) => Kind::Timestamp,
        Ok(DataType::Time64(_)) => Kind::Time,
        Ok(DataType::Interval(_) | DataType::Duration(_)) => Kind::Interval,
        Ok(t) if t.is_integer() => Kind::Whole,
        Ok(t) if t.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}

/// `left op right` where moments and intervals are among them: what it means, or operands for DataFusion's operator.
pub(super) enum Planned {
    Operation(Expr),
    Operands(Expr, Expr),
}

/// See the module.
pub(super) fn planned(op: &BinaryOperator, left: Expr, right: Expr, schema: &DFSchema) -> Planned {
    use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Multiply, NotEq, Plus};
    use Kind::{Day, Interval, Null, Number, Time, Timestamp, Unknown, Whole};
    let compares = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
    if !compares && !matches!(op, Plus | Minus | Multiply | Divide) {
        return Planned::Operands(left, right);
    }
    let call = |op, first, second| Planned::Operation(operation(op, first, second));
    match (op, kind(&left, schema), kind(&right, schema)) {
        (_, Interval, Unknown) if compares => Planned::Operands(left, as_type(right, INTERVAL)),
        (_, Unknown, Interval) if compares => Planned::Operands(as_type(left, INTERVAL), right),
        _ if compares => Planned::Operands(left, right),
        (Plus, Time, Interval) => call(Op::TimeLater, left, right),
        (Plus, Interval, Time) => call(Op::TimeLater, right, left),
        (Minus, Time, Interval) => call(Op::TimeEarlier, left, right),
        (Minus, Time, Time) => call(Op::BetweenTimes, left, right),
        (Plus, Day, Time) => call(Op::At, left, right),
        (Plus, Time, Day) => call(Op::At, right, left),
        (Plus | Minus, Day, Interval) => Planned::Operands(as_type(left, TIMESTAMP), right),
        (Plus, Interval, Day) => Planned::Operands(left, as_type(right, TIMESTAMP)),
        (Plus, Day, Whole) => call(Op::DaysLater, left, right),
        (Plus, Whole, Day) => call(Op::DaysLater, right, left),
        (Minus, Day, Whole) => call(Op::DaysEarlier, left, right),
        (Plus | Minus, Interval, Unknown) | (Plus, Timestamp, Unknown) => {
            Planned::Operands(left, as_type(right, INTERVAL))
        }
        (Plus | Minus, Unknown, Interval) | (Plus, Unknown, Timestamp) => {
            Planned::Operands(as_type(left, INTERVAL), right)
        }
        (Minus, Day, Unknown) => Planned::Operands(left, as_type(right, DataType::Date32)),
        (Minus, Unknown, Day) => Planned::Operands(as_type(left, DataType::Date32), right),
        (Minus, Timestamp, Day | Timestamp | Unknown) | (Minus, Day | Unknown, Timestamp) => {
            let types = [&left, &right].map(|side| side.get_type(schema).unwrap_or(DataType::Null));
            match common_moment(types.iter()) {
                Some(common) => call(Op::Between, as_type(left, common.clone()), as_type(right, common)),
                None => Planned::Operands(left, right),
            }
        }
        (Multiply, Interval, Whole | Number | Unknown | Null) => {
            call(Op::Times, left, as_type(right, DataType::Float64))
        }
        (Multiply, Whole | Number | Unknown | Null, Interval) => {
            call(Op::Times, right, as_type(left, DataType::Float64))
        }
        (Divide, Interval, Whole | Number | Unknown | Null) => {
            call(Op::DividedBy, left, as_type(right, DataType::Float64))
        }
        _ => Planned::Operands(left, right),
    }
}

/// Makes numbers of the intervals among `compared`, and of the texts beside them, if they are nothing else: DataFusion compares months, days
/// and time one after another. False if there are none.
pub(super) fn measure(compared: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let kinds: Vec<Kind> = compared.iter().map(|expr| kind(expr, schema)).collect();
    if !kinds.contains(&Kind::Interval) || !kinds.iter().all(|kind| matches!(kind, Kind::Interval | Kind::Unknown)) {
        return false;
    }
    for (expr, kind) in compared.iter_mut().zip(kinds) {
        let span = std::mem::take(*expr);
        **expr = length(if kind == Kind::Unknown { as_type(span, INTERVAL) } else { span });
    }
    true
}
