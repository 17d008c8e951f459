//! Functions of dates, times, timestamps and intervals.

mod age;
mod date_trunc;
mod extract;
mod interval;
mod now;
mod timezone;

pub use extract::extract;
pub use interval::interval_from_text;

use datafusion_expr::ScalarUDF;

/// Those that have a name of their own.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut functions = now::functions();
    functions.extend(age::functions());
    functions.extend([timezone::timezone(), extract::date_part(), date_trunc::date_trunc()]);
    functions
}
