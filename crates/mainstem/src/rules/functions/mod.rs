//! Functions that PostgreSQL has and DataFusion lacks, or has under another meaning: what a session knows of itself, `pg_typeof`,
//! `to_char`, `to_date` and `to_timestamp`, LOCALTIME, texts in quotes and patterns of SIMILAR TO, `format`, moments and ages, `current_setting`, `regexp_split_to_array`, `mode` and `percentile_disc`, `coalesce` of TIME and UUID, UUIDs by chance, texts
//! of bounded length.

mod around;
mod carried;
mod configured;
mod format;
mod local;
mod moments;
mod ordered;
mod quoted;
mod random;
mod session;
mod splits;
mod to_char;
mod types;

pub(in crate::rules) use around::{Change, around};
pub(crate) use around::{bounded, coalesce, of_bytes, of_decimals};
pub(crate) use carried::{Carried, Named};
pub(crate) use configured::with_settings;
pub(crate) use ordered::ordered_sets;
pub(crate) use random::random_uuid;
pub(crate) use session::SessionCatalog;

use datafusion::logical_expr::ScalarUDF;

/// All of them that have a name.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = session::functions();
    functions.extend(local::functions());
    functions.extend(quoted::functions());
    functions.extend(moments::functions());
    functions.extend(configured::functions());
    functions.extend([format::format(), super::numbers::div(), super::numbers::bitwise_not()]);
    functions.extend([types::pg_typeof(), super::twins::told()]);
    functions.push(splits::regexp_split_to_array());
    functions.extend([to_char::to_char(), to_char::to_date(), to_char::to_timestamp()]);
    functions.extend([super::moments::timezone(), super::moments::date_part(), super::moments::date_trunc()]);
    functions
}
