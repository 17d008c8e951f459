//! Functions that PostgreSQL has and DataFusion lacks, or has under another meaning. `registry` lists them.
//!
//! Those of DataFusion that only check more, or have other types, are adapters around them (`adapter`).

mod adapter;
pub(crate) mod coalesce;
pub(crate) mod datetime;
pub(crate) mod float;
pub(crate) mod pg_typeof;
mod rounding;
pub(crate) mod session;
pub(crate) mod string;
pub(crate) mod to_char;
pub(crate) mod uuid;

pub use datetime::{ROUNDED_SECONDS, TimestampSeries, extract, interval_from_text};
pub use rounding::decimal_rounding;
pub use session::{CURRENT_SETTING, Carried, Named, SETTING_VALUE, SearchPath, SessionSearchPath};
