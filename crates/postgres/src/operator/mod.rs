//! Arithmetic as SQL has it: what does not fit is an error, never another number.

mod bitwise;
pub mod checked;
pub mod datetime;
mod decimal;
mod division;
mod operand;
mod product;
mod quotient;
pub mod scaled;

pub use bitwise::BITWISE_NOT;
pub use division::quotient_scale;
pub use product::product_scale;

pub(crate) use bitwise::bitwise_not;
pub(crate) use division::{digits_of, fitting, overflow, rounded, scale_of};
pub(crate) use quotient::div;
