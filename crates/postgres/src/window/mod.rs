//! Window functions, and aggregates over frames that move.

mod moving;
mod ranking;
mod shift;

pub use moving::moving;
pub use ranking::whole_numbers;
pub use shift::shifts;
