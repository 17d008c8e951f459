//! Arithmetic as SQL has it: what does not fit is an error, never another number.
//!
//! 1. While SQL becomes a plan, and before types are coerced, divisions of decimals, and products that may need more than 38 digits, become functions whose results have enough
//!    digits behind the point ([`Divisions`], [`products`]), roundings of them functions whose type stays ([`Roundings`]), and a REAL beside an exact
//!    number becomes a double ([`Reals`]): this changes types.
//! 2. After types are coerced ([`CheckedArithmetic`]) operators become functions that check: integers, decimals, and floats, of which none
//!    becomes infinite.
//! 3. `~` gives an integer of its operand's type ([`bitwise_not`]).
//! 4. [`checked_sum`] and [`average`] add integers and decimals exactly; [`of_floats`] checks the results of functions on floats.

mod bits;
mod decimals;
mod division;
mod functions;
mod operators;
mod products;
mod quotients;
mod reals;
mod roundings;
mod scaled;
mod totals;

pub(crate) use bits::BITWISE_NOT;
pub(in crate::rules) use bits::bitwise_not;
pub(crate) use division::Divisions;
pub(in crate::rules) use division::of_doubles;
pub(crate) use functions::of_floats;
pub(crate) use operators::CheckedArithmetic;
pub(in crate::rules) use quotients::div;
pub(crate) use reals::Reals;
pub(crate) use roundings::Roundings;
pub(crate) use totals::{average, checked_sum};
