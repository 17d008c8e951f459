//! Windows where DataFusion's mean something else, or fail.
//!
//! 1. [`Frames`]: RANGE over types that have an order and no distance.
//! 2. [`whole_numbers`]: `row_number()` and the like count in BIGINT.
//! 3. [`moving`]: aggregates over a frame whose beginning moves are computed without taking values out of a total.
//!
//! It does not own: sums and averages of exact numbers, from which values can be taken out (`numbers`).

mod counts;
mod frames;
mod moving;

pub(crate) use counts::whole_numbers;
pub(crate) use frames::Frames;
pub(super) use moving::FloatTotal;
pub(crate) use moving::moving;
