//! What DataFusion's plans lack to mean what SQL means: integer arithmetic that overflows is an error (22003) where DataFusion wraps
//! silently, types that it coerces otherwise, types and functions that it has not got.
//!
//! Comes in: analysed logical plans, and the function registry. Goes out: plans whose integer arithmetic calls functions of
//! ours, a `sum` of ours, casts of TIME and UUID, the blanks of CHAR(n), texts of bounded length, doubles beside decimals, VALUES of
//! one type a column, scalar subqueries that may be NULL, shallow trees, names for select items that repeat, full names of tables
//! where columns have them, frames of windows over types that have no distance, and functions that DataFusion lacks. It does not own:
//! overflow of casts and decimals, which DataFusion checks.

mod arithmetic;
mod balance;
mod blanks;
mod coerced;
mod frames;
mod functions;
mod lengths;
mod qualified;
mod spelled;
mod subquery;
mod twins;
mod walk;

pub(crate) use arithmetic::CheckedArithmetic;
pub(crate) use balance::balance;
pub(crate) use blanks::{Blanks, padded};
pub(crate) use coerced::{CoercedTypes, type_literals};
pub(crate) use frames::Frames;
pub(crate) use functions::{SessionCatalog, checked_sum, functions, random_uuid};
pub(crate) use lengths::bounded;
pub(crate) use qualified::tell_tables_apart;
pub(crate) use spelled::{SpelledCasts, TypedLiterals};
pub(crate) use subquery::NullableSubqueries;
pub(crate) use twins::name_twins;
