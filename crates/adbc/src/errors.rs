//! Errors of the engine as ADBC's.

use std::ffi::c_char;

use adbc_core::error::{Error, Status};
use mainstem::ErrorKind;
use mainstem::arrow::error::ArrowError;

/// The error of ADBC for an error of the engine: its SQLSTATE, and where it stands in the statement as a detail.
pub(crate) fn adbc(error: &mainstem::Error) -> Error {
    let mut details = Vec::new();
    if let Some(position) = error.position() {
        details.push(("mainstem.position".to_owned(), position.to_string().into_bytes()));
    }
    if let Some(object) = error.object() {
        details.push(("mainstem.object".to_owned(), object.name.join(".").into_bytes()));
    }
    Error {
        message: error.message().to_owned(),
        status: status(error),
        vendor_code: 0,
        sqlstate: code(error.sqlstate()),
        details: (!details.is_empty()).then_some(details),
    }
}

/// An error of the use of the driver itself.
pub(crate) fn misuse(status: Status, message: impl Into<String>) -> Error {
    Error::with_message_and_status(message, status)
}

/// An error of the use of the driver that has a SQLSTATE.
pub(crate) fn refused(status: Status, sqlstate: &str, message: impl Into<String>) -> Error {
    let mut error = misuse(status, message);
    error.sqlstate = code(sqlstate);
    error
}

/// What a stream that the program has bound fails with.
pub(crate) fn of_stream(error: &ArrowError) -> Error {
    refused(Status::InvalidData, "38000", format!("the stream that is bound has failed: {error}"))
}

fn code(sqlstate: &str) -> [c_char; 5] {
    let mut code = [0; 5];
    for (to, from) in code.iter_mut().zip(sqlstate.bytes()) {
        *to = c_char::try_from(from).unwrap_or_default();
    }
    code
}

/// As an error of a stream of Arrow, which has a text and nothing else: the SQLSTATE stands in front of the message.
pub(crate) fn in_stream(error: &Error) -> ArrowError {
    let code: String = error.sqlstate.iter().filter_map(|char| u8::try_from(*char).ok()).map(char::from).collect();
    ArrowError::ExternalError(format!("{code}: {}", error.message).into())
}

fn status(error: &mainstem::Error) -> Status {
    match error.sqlstate() {
        "57014" => return Status::Cancelled,
        "0A000" => return Status::NotImplemented,
        "42P01" | "42703" | "42883" | "42704" | "3F000" | "02000" | "26000" => return Status::NotFound,
        "42P07" | "42P06" | "42710" | "42701" => return Status::AlreadyExists,
        "40001" => return Status::IO,
        _ => {}
    }
    match error.sqlstate().get(..2) {
        Some("22" | "21") => return Status::InvalidData,
        Some("23") => return Status::Integrity,
        Some("08" | "25" | "34" | "55") => return Status::InvalidState,
        Some("42") => return Status::InvalidArguments,
        _ => {}
    }
    match error.kind() {
        ErrorKind::Invalid => Status::InvalidArguments,
        ErrorKind::NotFound => Status::NotFound,
        ErrorKind::Constraint => Status::Integrity,
        ErrorKind::Conflict | ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::Full => Status::IO,
        ErrorKind::Closed => Status::InvalidState,
        _ => Status::Internal,
    }
}
