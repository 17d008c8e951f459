//! Options, whose values come as texts mostly.

use adbc_core::error::{Error, Result, Status};
use adbc_core::options::OptionValue;

use crate::errors::misuse;

/// What options of our own begin with.
pub(crate) const PREFIX: &str = "mainstem.";
/// The option for texts and bytes as views.
pub(crate) const VIEWS: &str = "mainstem.result_views";

/// What option `key` is set to, as text.
///
/// # Errors
/// InvalidArguments for bytes.
pub(crate) fn text(key: &str, value: OptionValue) -> Result<String> {
    match value {
        OptionValue::String(text) => Ok(text),
        OptionValue::Int(number) => Ok(number.to_string()),
        OptionValue::Double(number) => Ok(number.to_string()),
        _ => Err(misuse(Status::InvalidArguments, format!("option {key} is a text"))),
    }
}

/// What option `key` is set to, as a truth value.
///
/// # Errors
/// InvalidArguments for other texts than `true` and `false`.
pub(crate) fn truth(key: &str, value: OptionValue) -> Result<bool> {
    match text(key, value)?.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(misuse(Status::InvalidArguments, format!("option {key} is true or false, not {other}"))),
    }
}

/// A truth value as options give it.
pub(crate) fn shown(value: bool) -> String {
    if value { "true" } else { "false" }.to_owned()
}

/// What is said of an option that is not there.
pub(crate) fn unknown(key: &str) -> Error {
    misuse(Status::NotImplemented, format!("there is no option {key}"))
}

/// What is said when an option that is not there is asked for.
pub(crate) fn not_found(key: &str) -> Error {
    misuse(Status::NotFound, format!("there is no option {key}"))
}

/// What the getters of types that no option has answer.
macro_rules! no_other_types {
    () => {
        fn get_option_bytes(&self, key: Self::Option) -> adbc_core::error::Result<Vec<u8>> {
            Err($crate::options::not_found(key.as_ref()))
        }

        fn get_option_int(&self, key: Self::Option) -> adbc_core::error::Result<i64> {
            Err($crate::options::not_found(key.as_ref()))
        }
    };
}
pub(crate) use no_other_types;
