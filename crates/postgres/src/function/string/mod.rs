//! Functions of texts.

mod bytes;
mod format;
mod length;
mod quote;
mod regexp_split;

pub use bytes::of_bytes;
pub use length::bounded;

use datafusion_expr::ScalarUDF;

/// Those that have a name of their own.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut functions = quote::functions();
    functions.extend([format::format(), regexp_split::regexp_split_to_array()]);
    functions
}
