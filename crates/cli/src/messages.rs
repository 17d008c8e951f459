//! What the program says on standard error, beside its results.

use std::io::{self, Write};

use mainstem::Error;

/// Says on standard error what went wrong.
pub fn report(error: &Error, place: Option<&str>) {
    let place = place.map_or_else(String::new, |place| format!("{place}: "));
    say(&format!("{place}ERROR {}: {}", error.sqlstate(), error.message()));
}

/// A line on standard error; that nobody reads it is no reason to fail.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
