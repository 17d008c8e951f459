//! Errors of Arrow's kernels as ours, and ours as DataFusion carries them.

use arrow::error::ArrowError;
use datafusion_common::DataFusionError;
use mainstem_storage::Error;

use crate::sqlstate;
use crate::types::sql_words;

/// `error` where DataFusion's errors are asked for.
#[must_use]
pub fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Turns an error of an Arrow kernel into ours.
#[must_use]
pub fn from_arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::DivideByZero => Error::invalid(sqlstate::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(m) => Error::invalid(sqlstate::OUT_OF_RANGE, format!("out of range: {m}")),
        ArrowError::CastError(m) | ArrowError::ParseError(m) | ArrowError::InvalidArgumentError(m) => value_error(m),
        ArrowError::NotYetImplemented(m) => Error::unsupported(sql_words(m)),
        ArrowError::ExternalError(e) => match e.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => Error::internal(e.to_string()),
        },
        other => Error::internal(other.to_string()),
    }
}

/// A value that could not be converted.
fn value_error(message: &str) -> Error {
    let lower = message.to_lowercase();
    let code = if lower.contains("invalid input syntax for type interval") {
        sqlstate::BAD_DATETIME
    } else if lower.contains("too large to store")
        || lower.contains("too small to store")
        || lower.contains("can't cast value")
        || lower.contains("out of range")
        || lower.contains("overflow")
        || is_integer_out_of_range(message)
    {
        sqlstate::OUT_OF_RANGE
    } else {
        sqlstate::INVALID_TEXT
    };
    // As PostgreSQL says it where a number does not fit.
    let narrowed = message.strip_prefix("Can't cast value ").and_then(|rest| rest.rsplit_once(" to type "));
    match narrowed {
        Some((value, to)) => Error::invalid(code, format!("{} out of range: {value}", sql_words(to))),
        None => Error::invalid(code, sql_words(message)),
    }
}

/// Whether `message` says that digits are no integer: there are too many of them.
fn is_integer_out_of_range(message: &str) -> bool {
    let Some((_, behind)) = message.split_once("Cannot cast string '") else { return false };
    let Some((text, behind)) = behind.split_once("' to value of ") else { return false };
    let digits = text.trim().trim_start_matches(['+', '-']);
    (behind.starts_with("Int") || behind.starts_with("UInt"))
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
}
