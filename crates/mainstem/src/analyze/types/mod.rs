//! Types of expressions, as SQL has them: rules over plans, and what they ask of a statement's tree.

mod arithmetic;
mod bpchar;
mod casts;
mod coercion;
mod column_types;
mod datetime_operators;
mod shared_type;
mod window_frames;

pub(crate) use arithmetic::{DecimalOperators, RealOperators, checked_arithmetic, decimal_operators, rounded_decimals};
pub(crate) use bpchar::{bpchar, padded};
pub(crate) use casts::{TypedLiterals, in_range, sql_casts, typed_literals};
pub(crate) use coercion::{coerced_types, resolve_types, type_literals};
pub(crate) use datetime_operators::ExtractPlanner;
pub(crate) use shared_type::decimal_of;
pub(crate) use window_frames::window_frames;
