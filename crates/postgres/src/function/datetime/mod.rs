//! Functions of dates, times, timestamps and intervals.

mod age;
mod date_bin;
mod date_trunc;
mod extract;
mod interval;
mod now;
mod precision;
mod series;
mod timezone;

pub use extract::extract;
pub use interval::interval_from_text;
pub use precision::ROUNDED_SECONDS;
pub use series::TimestampSeries;

pub(crate) use age::of_calendar;
pub(crate) use date_bin::date_bin;
pub(crate) use date_trunc::date_trunc;
pub(crate) use extract::date_part;
pub(crate) use now::beginning;
pub(crate) use precision::rounded_seconds;
pub(crate) use series::series;
pub(crate) use timezone::timezone;
