//! DataFusion's errors as Mainstem's: every one gets a kind and a SQLSTATE, and internal wording is left out.

use std::error::Error as StdError;
use std::io;

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use mainstem_postgres::operator::BITWISE_NOT;
use mainstem_postgres::types::sql_words;
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::{Error, ErrorKind};

use self::names::{missing_from_clause_entry, read_at, schema_error, undefined_function_called};
use self::words::{first_line, mismatch, readable, tree_name, undefined_function};
use crate::names::without_marks;
use crate::sql::state;

pub(crate) use self::resources::Refused;

mod names;
mod resources;
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
                    _ => foreign_error(&e.to_string()),
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
    if let Some(error) = well_known(first_line(message)) {
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
                _ => foreign_error(&e.to_string()),
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
    resources::of_file(error)
}

/// An error of a library below DataFusion.
fn foreign_error(message: &str) -> Error {
    if message.contains("regex parse error") {
        let what = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
        return Error::invalid(state::INVALID_REGEX, format!("invalid regular expression: {what}"));
    }
    Error::internal(message)
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

/// Messages that PostgreSQL has in another form.
fn well_known(message: &str) -> Option<Error> {
    let between = |from: &str, to: &str| {
        let (_, behind) = message.split_once(from)?;
        behind.split_once(to).map(|(text, _)| text)
    };
    let has = |part: &str| message.contains(part);
    if has("For SELECT DISTINCT, ORDER BY expressions") {
        let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
        return Some(Error::invalid(state::INVALID_REFERENCE, message));
    }
    if has("SELECT DISTINCT ON expressions must match") {
        return Some(Error::invalid(state::INVALID_REFERENCE, message));
    }
    if let Some(column) = between("While expanding wildcard, column \"", "\" must appear") {
        let message =
            format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function");
        return Some(Error::invalid(state::GROUPING, message));
    }
    if let Some((_, data_type)) =
        message.split_once("with non-boolean predicate").and_then(|(_, m)| m.rsplit_once(" returning "))
    {
        let message = format!("argument of WHERE must be type boolean, not type {}", sql_words(data_type));
        return Some(Error::invalid(sqlstate::TYPE_MISMATCH, message));
    }
    for clause in ["LIMIT", "OFFSET"] {
        if let Some((_, data_type)) =
            message.split_once(&format!("Expected {clause} to be an integer or null, but got "))
        {
            let data_type = sql_words(data_type).to_lowercase();
            let message = format!("argument of {clause} must be type bigint, not type {data_type}");
            return Some(Error::invalid(sqlstate::TYPE_MISMATCH, message));
        }
    }
    if has("There is only support Literal types for field at idx") {
        return Some(Error::unsupported(
            "an offset of lag or lead, or a number of ntile or nth_value, that is no constant",
        ));
    }
    if let Some(name) = between("Invalid function '", "'") {
        return Some(undefined_function_called(name));
    }
    if has("The subquery should only return one column") {
        return Some(Error::invalid(sqlstate::SYNTAX, "subquery must return only one column"));
    }
    if has("In/Exist/SetComparison subquery can only be used in") {
        return Some(Error::unsupported(
            "EXISTS, IN, ANY or ALL of a query anywhere but in WHERE (join, or compare a count)",
        ));
    }
    if let Some(name) = between("The window ", " is not defined") {
        let object = NamedObject::new(ObjectKind::Other, [name]);
        let message = format!("window \"{name}\" does not exist");
        return Some(Error::invalid(state::UNDEFINED_OBJECT, message).with_object(object));
    }
    if has("WITH query name") && has("more than once") {
        return Some(Error::invalid(state::DUPLICATE_ALIAS, message));
    }
    if let Some((_, name)) = message.split_once("Invalid qualifier ") {
        return Some(missing_from_clause_entry(name));
    }
    if has("Cannot access field") {
        return Some(Error::invalid(
            sqlstate::WRONG_OBJECT_TYPE,
            "a field of a value that has none: there are no composite types",
        ));
    }
    if has("logical expression WindowFunction") {
        let message = "window functions stand in the select list and in ORDER BY only";
        return Some(Error::invalid(state::WINDOWING, message));
    }
    None
}

/// DataFusion has one error for whatever is wrong with a statement; its wording tells which rule is broken.
fn plan_error(message: &str) -> Error {
    let message = without_marks(message);
    let message = message.as_str();
    if let Some(call) = undefined_function(message) {
        return no_function(&call);
    }
    let message = first_line(message);
    if let Some(error) = well_known(message) {
        return error;
    }
    let lower = message.to_lowercase();
    let has = |part: &str| lower.contains(part);
    let code = if has("order by index") || has("order by column out of bounds") || has("find column with position") {
        state::INVALID_REFERENCE
    } else if has("limit must be >=") {
        state::NEGATIVE_LIMIT
    } else if has("offset must be >=") {
        state::NEGATIVE_OFFSET
    } else if has("non-boolean predicate") || has("requires a boolean expression") {
        sqlstate::TYPE_MISMATCH
    } else if has("table ") && has("not found") {
        return Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, message);
    } else if has("invalid function") || has("no function matches") || has("does not support") && has("function") {
        state::UNDEFINED_FUNCTION
    } else if has("group by") || has("aggregate") && (has("not allowed") || has("cannot")) {
        state::GROUPING
    } else if has("correlated scalar subquery must be aggregated") {
        return Error::unsupported(
            "a scalar subquery that refers to the outer query without an aggregate (use max, or a join)",
        );
    } else if has("correlated scalar subquery can only be used") {
        return Error::unsupported("a scalar subquery that refers to the outer query in ORDER BY or ON");
    } else if has("more than one row") || has("must return") {
        sqlstate::ROW_TWICE
    } else if has("inconsistent data length")
        || has("as column alias")
        || has("different number of columns")
        || has("unequal number")
    {
        sqlstate::SYNTAX
    } else if has("coerc")
        || has("cannot infer common")
        || has("incompatible")
        || has("unsupported cast")
        || has("type")
    {
        sqlstate::TYPE_MISMATCH
    } else if has("not supported") || has("unsupported") || has("not implemented") {
        return not_implemented(message);
    } else if has("invalid window frame") {
        state::WINDOW
    } else if has("duplicate") || has("unique expression names") {
        sqlstate::DUPLICATE_COLUMN
    } else {
        state::RULE_VIOLATION
    };
    Error::invalid(code, readable(message))
}

fn execution_error(message: &str) -> Error {
    if let Some(call) = undefined_function(message) {
        return no_function(&call);
    }
    if let Some(error) = well_known(first_line(message)) {
        return error;
    }
    let lower = message.to_lowercase();
    let has = |part: &str| lower.contains(part);
    if has("more than one row") {
        return Error::invalid(sqlstate::ROW_TWICE, "more than one row returned by a subquery used as an expression");
    }
    if has("divide by zero") || has("division by zero") {
        return Error::invalid(sqlstate::DIVISION_BY_ZERO, "division by zero");
    }
    let code = if has("overflow") || has("out of range") || has("too large") {
        sqlstate::OUT_OF_RANGE
    } else if has("parse") || has("invalid") || has("cannot cast") {
        sqlstate::INVALID_TEXT
    } else if has("not supported") || has("unsupported") || has("not implemented") {
        sqlstate::FEATURE_NOT_SUPPORTED
    } else {
        sqlstate::INVALID_PARAMETER
    };
    Error::invalid(code, readable(message))
}

/// DataFusion calls some mistakes of users internal.
fn internal_error(message: &str) -> Error {
    if let Some(call) = undefined_function(message) {
        return no_function(&call);
    }
    if resources::is_out_of_memory(message) {
        return resources::out_of_memory(message);
    }
    let message = first_line(message);
    if let Some(error) = well_known(message) {
        return error;
    }
    let lower = message.to_lowercase();
    if lower.contains("physical plan does not support logical expression") || lower.contains("not supported") {
        return not_implemented(message);
    }
    if TYPE_ERRORS.iter().any(|part| lower.contains(part)) {
        return Error::invalid(sqlstate::TYPE_MISMATCH, readable(message));
    }
    Error::internal(readable(message))
}

/// What DataFusion says when it finds, internally, that types do not go together.
const TYPE_ERRORS: &[&str] =
    &["failed to coerce types", "cannot run range queries on datatype", "non-list or struct type is not supported"];

/// What a panic said.
pub(crate) fn from_panic(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".into());
    Error::internal(format!("the statement failed inside the engine: {text}"))
}
