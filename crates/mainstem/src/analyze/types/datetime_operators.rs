//! Operators with dates, times, timestamps and intervals among their operands: which types they get, and which function
//! they become.
//!
//! DataFusion knows one type for a text, a DATE or another timestamp beside a TIMESTAMP: nanoseconds, which end in
//! 2262. It adds an interval to a DATE by days alone, and to a TIMESTAMP up to the year 262142 only. It has no product
//! of an interval and a number, and compares intervals by months, then days, then time. So
//!
//! 1. while SQL becomes a plan ([`planned`]), the operands of `+`, `-`, `*` and `/` get the types that PostgreSQL's
//!    operators have, or the operator becomes a function; so does `extract` ([`ExtractPlanner`]);
//! 2. before type coercion, intervals that are compared become the lengths that they have ([`measure`]), and so do
//!    intervals by which rows are sorted ([`measured`]). There is no `min` and `max` of intervals ([`interval_order`]).
//!
//! It does not own: what the functions compute (`mainstem_postgres`).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use mainstem_postgres::error::external;
use mainstem_postgres::function::extract;
use mainstem_postgres::operator::datetime::{Op, length, operation};
use mainstem_postgres::types::{INTERVAL, TIMESTAMP, common_datetime};
use mainstem_storage::Error;

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

/// `left op right` where datetimes and intervals are among them: what it means, or operands for DataFusion's operator.
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
        (Plus, Timestamp, Interval) => call(Op::Later, left, right),
        (Plus, Interval, Timestamp) => call(Op::Later, right, left),
        (Minus, Timestamp, Interval) => call(Op::Earlier, left, right),
        (Plus, Day, Interval) => call(Op::Later, as_type(left, TIMESTAMP), right),
        (Plus, Interval, Day) => call(Op::Later, as_type(right, TIMESTAMP), left),
        (Minus, Day, Interval) => call(Op::Earlier, as_type(left, TIMESTAMP), right),
        (Plus, Timestamp, Unknown | Null) => call(Op::Later, left, as_type(right, INTERVAL)),
        (Plus, Unknown | Null, Timestamp) => call(Op::Later, right, as_type(left, INTERVAL)),
        (Plus, Day, Whole) => call(Op::DaysLater, left, right),
        (Plus, Whole, Day) => call(Op::DaysLater, right, left),
        (Minus, Day, Whole) => call(Op::DaysEarlier, left, right),
        (Plus | Minus, Interval, Unknown) => Planned::Operands(left, as_type(right, INTERVAL)),
        (Plus | Minus, Unknown, Interval) => Planned::Operands(as_type(left, INTERVAL), right),
        (Minus, Day, Unknown) => Planned::Operands(left, as_type(right, DataType::Date32)),
        (Minus, Unknown, Day) => Planned::Operands(as_type(left, DataType::Date32), right),
        (Minus, Timestamp, Day | Timestamp | Unknown) | (Minus, Day | Unknown, Timestamp) => {
            let types = [&left, &right].map(|side| side.get_type(schema).unwrap_or(DataType::Null));
            match common_datetime(types.iter()) {
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

/// Makes numbers of the intervals among `compared`, and of the texts beside them, if they are nothing else: DataFusion
/// compares months, days and time one after another. False if there are none.
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

/// Makes `expr`, by which rows are sorted, the length of the interval that it is; false for another type.
pub(super) fn measured(expr: &mut Expr, schema: &DFSchema) -> bool {
    let is_interval = is_interval(expr, schema);
    if is_interval {
        *expr = length(std::mem::take(expr));
    }
    is_interval
}

/// Windows in an order of intervals, by their lengths.
///
/// # Errors
/// 0A000 for `min` and `max` of intervals.
pub(super) fn interval_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let check = |name: &str, argument: Option<&Expr>| match name {
        "min" | "max" if argument.is_some_and(|argument| is_interval(argument, schema)) => {
            Err(external(Error::unsupported(format_args!("{name} of intervals (ORDER BY ... LIMIT 1 finds it)"))))
        }
        _ => Ok(()),
    };
    match expr {
        Expr::AggregateFunction(call) => {
            check(call.func.name(), call.params.args.first())?;
            Ok(Transformed::no(Expr::AggregateFunction(call)))
        }
        Expr::WindowFunction(mut window) => {
            check(window.fun.name(), window.params.args.first())?;
            let mut changed = false;
            for sort in &mut window.params.order_by {
                changed |= measured(&mut sort.expr, schema);
            }
            Ok(Transformed::new_transformed(Expr::WindowFunction(window), changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| matches!(data_type, DataType::Interval(_)))
}

/// `extract` becomes the function.
#[derive(Debug)]
pub(crate) struct ExtractPlanner;

impl ExprPlanner for ExtractPlanner {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(extract()), args))))
    }
}
