//! Window functions, and aggregates over frames that move.

mod moving;
mod ranking;

pub use moving::moving;
pub use ranking::whole_numbers;
