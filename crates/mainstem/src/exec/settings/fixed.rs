//! Settings that have but one value here.

use mainstem_storage::{Error, Result};

use super::unknown;

/// Settings of PostgreSQL that clients send, with the one value there is, and other words that mean it.
pub(super) const FIXED: &[(&str, &str, &[&str])] = &[
    ("bytea_output", "hex", &[]),
    ("check_function_bodies", "on", &["off", "false", "true"]),
    ("client_encoding", "UTF8", &["utf-8", "unicode"]),
    ("client_min_messages", "notice", &["warning", "log", "debug", "debug1", "debug2", "debug3", "debug4", "debug5"]),
    ("default_table_access_method", "heap", &[]),
    ("default_tablespace", "", &[]),
    ("datestyle", "ISO, MDY", &["iso", "iso,mdy", "iso, dmy", "iso, ymd", "iso,dmy", "iso,ymd"]),
    ("default_transaction_isolation", "repeatable read", &["read committed", "read uncommitted"]),
    ("extra_float_digits", "1", &["2", "3"]),
    ("idle_in_transaction_session_timeout", "0", &[]),
    ("intervalstyle", "postgres", &[]),
    ("lock_timeout", "0", &[]),
    ("row_security", "off", &["on"]),
    ("transaction_timeout", "0", &[]),
    ("xmloption", "content", &["document"]),
    ("standard_conforming_strings", "on", &["true", "yes", "1"]),
];

/// The one value of `name`, if it has but one.
pub(super) fn fixed(name: &str) -> Option<&'static str> {
    FIXED.iter().find(|(known, ..)| *known == name).map(|(_, value, _)| *value)
}

/// Sets a setting that has but one value.
pub(super) fn set_fixed(name: &str, given: Option<&str>) -> Result<()> {
    let Some((_, value, others)) = FIXED.iter().find(|(known, ..)| *known == name) else { return Err(unknown(name)) };
    let Some(given) = given else { return Ok(()) };
    let lower = given.trim().to_ascii_lowercase();
    if lower == value.to_ascii_lowercase() || others.contains(&lower.as_str()) {
        return Ok(());
    }
    Err(Error::unsupported(format_args!("{name} = \"{given}\" (it is always {value})")))
}
