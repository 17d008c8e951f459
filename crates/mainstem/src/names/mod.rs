//! Names as statements spell them: what a wrong one may have been, and marks behind those that planning has changed.

mod marks;
mod similar;

pub(crate) use marks::{MARK, without_mark, without_marks};
pub(crate) use similar::{did_you_mean, similar};
