//! DataFusion's errors as Mainstem's: every one gets a kind and a SQLSTATE, and internal wording is left out.

use std::error::Error as StdError;
use std::io;

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use mainstem_postgres::operator::BITWISE_NOT;
use mainstem_storage::Error;
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};

use self::names::{read_at, schema_error};
use self::texts::{Of, known};
use self::words::{first_line, mismatch, readable, tree_name};
use crate::names::without_marks;
use crate::sql::state;

pub(crate) use self::resources::Refused;

mod names;
mod resources;
mod texts;
mod words;

#[cfg(test)]
mod tests;

/// Turns an error of planning or execution into ours, with names of tables as the statement says them.
pub(crate) fn from_datafusion(error: &DataFusionError) -> Error {
    let error = ours(error);
    let message = without_marks(error.message());
    if message == error.message() { error } else { error.with_message(message) }
}

fn ours(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::External(e) => match e.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => match e.downcast_ref::<DataFusionError>() {
                Some(inner) => from_datafusion(inner),
                None => match (e.downcast_ref::<ArrowError>(), e.downcast_ref::<io::Error>()) {
                    (Some(inner), _) => from_arrow(inner),
                    (_, Some(inner)) => spilled(inner),
                    _ => foreign_error(e.as_ref()),
                },
            },
        },
        DataFusionError::ArrowError(e, _) => from_arrow(e),
        DataFusionError::ParquetError(e) => from_parquet(e),
        DataFusionError::IoError(e) => spilled(e),
        DataFusionError::SQL(e, _) => Error::invalid(sqlstate::SYNTAX, format!("syntax error: {e}")),
        DataFusionError::NotImplemented(m) => not_implemented(m),
        DataFusionError::Plan(m) | DataFusionError::Configuration(m) => plan_error(m),
        DataFusionError::SchemaError(e, _) => schema_error(e),
        DataFusionError::Execution(m) => execution_error(m),
        DataFusionError::ResourcesExhausted(m) => resources::out_of_memory(m),
        DataFusionError::Context(_, inner) => from_datafusion(inner),
        DataFusionError::Diagnostic(diagnostic, inner) => read_at(from_datafusion(inner), diagnostic.span),
        DataFusionError::Shared(inner) => from_datafusion(inner),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => from_datafusion(first),
            None => Error::internal("an empty collection of errors"),
        },
        DataFusionError::ExecutionJoin(e) => Error::internal(format!("a query task ended early: {e}")),
        DataFusionError::Internal(m) => internal_error(m),
        other => Error::internal(first_line(&other.to_string())),
    }
}

/// What is not there, by its name in SQL.
fn not_implemented(message: &str) -> Error {
    if let Some(error) = known(Of::Any, message) {
        return error;
    }
    if let Some(name) = tree_name(message) {
        return Error::unsupported(name);
    }
    if message.contains("Binary operator '") {
        return Error::unsupported("this operator");
    }
    let text = readable(message);
    let lower = text.to_lowercase();
    if ["support", "implemented", "not valid"].iter().any(|part| lower.contains(part)) {
        return Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, text);
    }
    Error::unsupported(text)
}

/// 42883.
fn no_function(call: &str) -> Error {
    if let Some(message) = mismatch(call) {
        return Error::invalid(sqlstate::TYPE_MISMATCH, message);
    }
    if let Some(operand) = call.strip_prefix(BITWISE_NOT).and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')')) {
        let operand = if operand.starts_with("decimal") { "numeric" } else { operand };
        return Error::invalid(state::UNDEFINED_FUNCTION, format!("operator does not exist: ~ {operand}"));
    }
    let message = format!("function {call} does not exist (perhaps with casts of its arguments)");
    let name = call.split_once('(').map_or(call, |(name, _)| name);
    Error::invalid(state::UNDEFINED_FUNCTION, message).with_object(NamedObject::new(ObjectKind::Function, [name]))
}

/// Turns an error of an Arrow kernel into ours.
pub(crate) fn from_arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::MemoryError(m) => resources::out_of_memory(m),
        ArrowError::IoError(_, e) => spilled(e),
        ArrowError::NotYetImplemented(m) => not_implemented(m),
        ArrowError::ComputeError(m) => execution_error(m),
        ArrowError::ExternalError(e) => match e.downcast_ref::<DataFusionError>() {
            Some(inner) => from_datafusion(inner),
            None => match (e.downcast_ref::<Error>(), e.downcast_ref::<io::Error>()) {
                (Some(ours), _) => ours.clone(),
                (_, Some(inner)) => spilled(inner),
                _ => foreign_error(e.as_ref()),
            },
        },
        kernel => mainstem_postgres::error::from_arrow(kernel),
    }
}

/// An error of a file of a query. Operators wrap what is behind it several times.
fn spilled(error: &io::Error) -> Error {
    let inner = error.get_ref().map(|inner| inner as &(dyn StdError + 'static));
    if let Some(inner) = inner {
        if let Some(inner) = inner.downcast_ref::<Error>() {
            return inner.clone();
        }
        if let Some(inner) = inner.downcast_ref::<DataFusionError>() {
            return from_datafusion(inner);
        }
        if let Some(inner) = inner.downcast_ref::<ArrowError>() {
            return from_arrow(inner);
        }
        if let Some(inner) = inner.downcast_ref::<io::Error>() {
            return spilled(inner);
        }
    }
    of_file(error)
}

/// An error of a file of a query: what it spills, where it is not said otherwise.
fn of_file(error: &io::Error) -> Error {
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return resources::disk_full(error);
    }
    let text = error.to_string();
    if let Some(error) = known(Of::Io, &text) {
        return error;
    }
    let file = format!("a temporary file of a query ({})", resources::WHERE_ASIDE);
    Error::io("use", file, io::Error::new(error.kind(), text))
}

/// An error of a library below DataFusion.
fn foreign_error(error: &(dyn StdError + Send + Sync + 'static)) -> Error {
    let text = error.to_string();
    if error.is::<regex::Error>() || error.is::<regex_syntax::Error>() {
        let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        return Error::invalid(state::INVALID_REGEX, format!("invalid regular expression: {what}"));
    }
    Error::internal(text)
}

/// Turns an error of the Parquet reader or writer into ours.
pub(crate) fn from_parquet(error: &ParquetError) -> Error {
    match error {
        ParquetError::NYI(m) => Error::unsupported(m),
        ParquetError::External(e) => match e.downcast_ref::<io::Error>() {
            Some(io) => Error::io("use", "a Parquet file", std::io::Error::new(io.kind(), io.to_string())),
            None => Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("Parquet: {e}")),
        },
        other => Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("not a readable Parquet file: {other}")),
    }
}

/// DataFusion has one error for whatever is wrong with a statement.
fn plan_error(message: &str) -> Error {
    let message = without_marks(message);
    known(Of::Plan, &message).unwrap_or_else(|| Error::invalid(state::RULE_VIOLATION, readable(first_line(&message))))
}

fn execution_error(message: &str) -> Error {
    known(Of::Execution, message).unwrap_or_else(|| Error::invalid(sqlstate::INVALID_PARAMETER, readable(message)))
}

/// DataFusion calls some mistakes of users internal.
fn internal_error(message: &str) -> Error {
    if resources::is_out_of_memory(message) {
        return resources::out_of_memory(message);
    }
    known(Of::Internal, message).unwrap_or_else(|| Error::internal(readable(first_line(message))))
}

/// What a panic said.
pub(crate) fn from_panic(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".into());
    Error::internal(format!("the statement failed inside the engine: {text}"))
}
