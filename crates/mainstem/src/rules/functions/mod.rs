//! Functions that PostgreSQL has and DataFusion lacks, or has under another meaning: what a session knows of itself, `pg_typeof`,
//! `to_char`, arithmetic with TIME, UUIDs by chance.

mod bytes;
mod random;
mod session;
mod times;
mod to_char;
mod types;

pub(crate) use bytes::of_bytes;
pub(crate) use random::random_uuid;
pub(crate) use session::SessionCatalog;
pub(super) use times::{TimeOp, time_operation};

use datafusion::logical_expr::ScalarUDF;

/// All of them that have a name.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = session::functions();
    functions.push(types::pg_typeof());
    functions.push(to_char::to_char());
    functions
}
