//! The rows of functions that the planner makes calls of: operators, casts, and what subqueries become. No statement
//! can call them, but for `~`.

use datafusion_expr::Volatility::Stable;

use super::Fails::{Divisor, Never, Overflow, Value};
use super::Function;
use super::Kernel::{OfOperator, Own};
use crate::function::{datetime, session};
use crate::operator;

/// The rows.
pub(super) const CALLS: &[Function] = &[
    Function::new(&["bitwise_not"], "~ integer", Never, Own(operator::bitwise_not)),
    Function::new(&["checked_add"], "number + number", Overflow, OfOperator),
    Function::new(&["checked_divide"], "number / number", Divisor(1), OfOperator),
    Function::new(&["checked_modulo"], "double % double", Never, OfOperator),
    Function::new(&["checked_multiply"], "number * number", Overflow, OfOperator),
    Function::new(&["checked_negate"], "- number", Overflow, OfOperator),
    Function::new(&["checked_subtract"], "number - number", Overflow, OfOperator),
    Function::new(&["divide"], "numeric / numeric", Divisor(1), OfOperator),
    Function::new(&["multiply"], "numeric * numeric", Overflow, OfOperator),
    Function::new(&["days_later"], "date + integer", Overflow, OfOperator),
    Function::new(&["days_earlier"], "date - integer", Overflow, OfOperator),
    Function::new(&["day_at"], "date + time", Overflow, OfOperator),
    Function::new(&["span_later"], "timestamp + interval", Overflow, OfOperator),
    Function::new(&["span_earlier"], "timestamp - interval", Overflow, OfOperator),
    Function::new(&["span_between"], "timestamp - timestamp", Overflow, OfOperator),
    Function::new(&["span_times"], "interval * number", Overflow, OfOperator),
    Function::new(&["span_divided_by"], "interval / number", Divisor(1), OfOperator),
    Function::new(&["span_length"], "the length of an interval, which comparisons compare", Never, OfOperator),
    Function::new(&["time_later"], "time + interval", Never, OfOperator),
    Function::new(&["time_earlier"], "time - interval", Never, OfOperator),
    Function::new(&["time_between"], "time - time", Never, OfOperator),
    Function::new(&["interval_of"], "text::interval", Value, OfOperator),
    Function::new(&["boolean_of"], "::boolean", Value, OfOperator),
    Function::new(&["smallint_of"], "::smallint", Value, OfOperator),
    Function::new(&["integer_of"], "::integer", Value, OfOperator),
    Function::new(&["bigint_of"], "::bigint", Value, OfOperator),
    Function::new(&["real_of"], "::real", Value, OfOperator),
    Function::new(&["double_of"], "::double precision", Value, OfOperator),
    Function::new(&["decimal_of"], "::numeric", Value, OfOperator),
    Function::new(&["date_of"], "::date", Value, OfOperator),
    Function::new(&["time_of"], "::time", Value, OfOperator),
    Function::new(&["time_of_or_null"], "::time of a text that a column is compared with", Never, OfOperator),
    Function::new(&["timestamp_of"], "::timestamp", Value, OfOperator),
    Function::new(&["timestamptz_of"], "::timestamptz", Value, OfOperator),
    Function::new(&["text_of"], "::text", Never, OfOperator),
    Function::new(&["char_of"], "::char(n)", Never, OfOperator),
    Function::new(&["padded"], "a char(n) as it is shown", Never, OfOperator),
    Function::new(&["text_of_char"], "char(n)::text", Never, OfOperator),
    Function::new(&["bytea_of"], "::bytea", Value, OfOperator),
    Function::new(&["uuid_of"], "::uuid", Value, OfOperator),
    Function::new(&["uuid_of_or_null"], "::uuid of a text that a column is compared with", Never, OfOperator),
    Function::new(
        &["rounded_seconds"],
        "::timestamp(p), ::timestamptz(p), ::time(p)",
        Value,
        Own(datetime::rounded_seconds),
    ),
    Function::new(&["cast to"], "a cast with the name that its column has", Never, OfOperator),
    Function::new(&["assigned to"], "a value as a column takes it", Value, OfOperator),
    Function::new(&["only_row"], "the value of a subquery of one row", Value, OfOperator),
    Function::new(&["may_be_null"], "a value whose column may be NULL", Never, OfOperator),
    Function::new(&["setting_value"], "current_setting(name)", Never, Own(session::setting)).volatility(Stable),
];
