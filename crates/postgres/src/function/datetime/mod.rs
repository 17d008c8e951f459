//! Functions of dates, times, timestamps and intervals.

mod age;
mod date_trunc;
mod extract;
mod interval;
mod now;
mod timezone;

pub use extract::extract;
pub use interval::interval_from_text;

pub(crate) use age::of_calendar;
pub(crate) use date_trunc::date_trunc;
pub(crate) use extract::date_part;
pub(crate) use now::beginning;
pub(crate) use timezone::timezone;
