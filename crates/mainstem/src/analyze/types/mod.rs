//! Types of expressions, as SQL has them: rules over plans, and what they ask of a statement's tree.

mod arithmetic;
mod bpchar;
mod casts;
mod coercion;
mod column_types;
mod datetime_operators;
mod window_frames;

pub(crate) use arithmetic::{CheckedArithmetic, DecimalOperators, DecimalRounding, RealOperators};
pub(crate) use bpchar::{Bpchar, padded};
pub(crate) use casts::{SqlCasts, TypedLiterals, decimal_of};
pub(crate) use coercion::{TypeResolution, resolve_types, type_literals};
pub(crate) use datetime_operators::ExtractPlanner;
pub(crate) use window_frames::WindowFrames;
