//! Functions that PostgreSQL has and DataFusion lacks, or has under another meaning.
//!
//! Those of DataFusion that only check more, or have other types, are [`adapter`]s around them.

mod adapter;
mod coalesce;
mod datetime;
mod float;
mod pg_typeof;
mod rounding;
mod session;
mod string;
mod to_char;
mod uuid;

pub use coalesce::coalesce;
pub use datetime::{extract, interval_from_text};
pub use float::of_floats;
pub use rounding::decimal_rounding;
pub use session::{CURRENT_SETTING, Carried, Named, SETTING_VALUE, SearchPath, SessionSearchPath};
pub use string::{bounded, of_bytes};
pub use uuid::random_uuid;

use datafusion_expr::ScalarUDF;

use crate::operator;

/// All of them that have a name of their own.
#[must_use]
pub fn functions() -> Vec<ScalarUDF> {
    let mut functions = session::functions();
    functions.extend(string::functions());
    functions.extend(datetime::functions());
    functions.extend([operator::div(), operator::bitwise_not(), pg_typeof::pg_typeof()]);
    functions.extend([to_char::to_char(), to_char::to_date(), to_char::to_timestamp()]);
    functions
}
