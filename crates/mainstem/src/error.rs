//! DataFusion's errors as Mainstem's: every one gets a kind and a SQLSTATE, and internal wording is left out.

use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::parquet::errors::ParquetError;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, ErrorKind};

use crate::sql::state;

/// Turns an error of planning or execution into ours.
pub(crate) fn from_datafusion(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::External(e) => match e.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => match e.downcast_ref::<DataFusionError>() {
                Some(inner) => from_datafusion(inner),
                None => match e.downcast_ref::<ArrowError>() {
                    Some(inner) => from_arrow(inner),
                    None => foreign_error(&e.to_string()),
                },
            },
        },
        DataFusionError::ArrowError(e, _) => from_arrow(e),
        DataFusionError::ParquetError(e) => from_parquet(e),
        DataFusionError::IoError(e) => {
            Error::io("use a file for", "spilling", std::io::Error::new(e.kind(), e.to_string()))
        }
        DataFusionError::SQL(e, _) => Error::invalid(sqlstate::SYNTAX, format!("syntax error: {e}")),
        DataFusionError::NotImplemented(m) => not_there(m),
        DataFusionError::Plan(m) | DataFusionError::Configuration(m) => plan_error(m),
        DataFusionError::SchemaError(e, _) => schema_error(e),
        DataFusionError::Execution(m) => execution_error(m),
        DataFusionError::ResourcesExhausted(m) => {
            Error::new(ErrorKind::Full, sqlstate::OUT_OF_MEMORY, format!("out of query memory: {}", first_line(m)))
        }
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_datafusion(inner),
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

/// What DataFusion says that it does not do. Subqueries that it cannot make joins of it meets as expressions.
fn not_there(message: &str) -> Error {
    let what = message.split_once("does not support logical expression ").map_or("", |(_, what)| what);
    if what.starts_with("ScalarSubquery") {
        return Error::unsupported(
            "a scalar subquery that refers to the outer query by anything but = (use a join, or a window function)",
        );
    }
    if ["Exists", "InSubquery", "SetComparison"].iter().any(|kind| what.starts_with(kind)) {
        return Error::unsupported("EXISTS, IN, ANY or ALL of a query anywhere but in WHERE");
    }
    if what.starts_with("OuterReferenceColumn") {
        return Error::unsupported(
            "a LATERAL or correlated query that refers to the tables around it by anything but = (use a join)",
        );
    }
    Error::unsupported(message)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Turns an error of an Arrow kernel into ours.
pub(crate) fn from_arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::DivideByZero => Error::invalid(sqlstate::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(m) => Error::invalid(sqlstate::OUT_OF_RANGE, format!("out of range: {m}")),
        ArrowError::CastError(m) | ArrowError::ParseError(m) | ArrowError::InvalidArgumentError(m) => value_error(m),
        ArrowError::MemoryError(m) => Error::new(ErrorKind::Full, sqlstate::OUT_OF_MEMORY, m.clone()),
        ArrowError::NotYetImplemented(m) => Error::unsupported(m),
        ArrowError::ComputeError(m) => execution_error(m),
        ArrowError::ExternalError(e) => match e.downcast_ref::<DataFusionError>() {
            Some(inner) => from_datafusion(inner),
            None => match e.downcast_ref::<Error>() {
                Some(ours) => ours.clone(),
                None => foreign_error(&e.to_string()),
            },
        },
        other => Error::internal(other.to_string()),
    }
}

/// An error of a library below DataFusion.
fn foreign_error(message: &str) -> Error {
    if message.contains("regex parse error") {
        return Error::invalid(state::INVALID_REGEX, message);
    }
    Error::internal(message)
}

/// A value that could not be converted.
fn value_error(message: &str) -> Error {
    let lower = message.to_lowercase();
    let code = if lower.contains("too large to store")
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

/// `message` with the names of Arrow's types as SQL has them.
fn sql_words(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, word) = rest.split_at(start);
        text.push_str(before);
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        text.push_str(match word {
            "Int8" | "Int16" => "smallint",
            "Int32" => "integer",
            "Int64" => "bigint",
            "Float32" => "real",
            "Float64" => "double precision",
            "Utf8" | "Utf8View" | "LargeUtf8" => "text",
            "Binary" | "BinaryView" | "LargeBinary" => "bytea",
            "Date32" => "date",
            "Decimal128" => "decimal",
            word => word,
        });
        rest = behind;
    }
    text.push_str(rest);
    text
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

/// Turns an error of the Parquet reader or writer into ours.
pub(crate) fn from_parquet(error: &ParquetError) -> Error {
    match error {
        ParquetError::NYI(m) => Error::unsupported(m),
        ParquetError::External(e) => match e.downcast_ref::<std::io::Error>() {
            Some(io) => Error::io("use", "a Parquet file", std::io::Error::new(io.kind(), io.to_string())),
            None => Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("Parquet: {e}")),
        },
        other => Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("not a readable Parquet file: {other}")),
    }
}

fn schema_error(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut message = format!("column \"{}\" does not exist", field.flat_name());
            let near: Vec<String> = valid_fields
                .iter()
                .filter(|c| c.name.eq_ignore_ascii_case(&field.name))
                .map(datafusion::common::Column::quoted_flat_name)
                .collect();
            if !near.is_empty() {
                message.push_str(&format!("; perhaps {} is meant", near.join(" or ")));
            }
            Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message)
        }
        SchemaError::AmbiguousReference { field } => {
            Error::invalid(state::AMBIGUOUS_COLUMN, format!("column reference \"{}\" is ambiguous", field.flat_name()))
        }
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            Error::invalid(sqlstate::DUPLICATE_COLUMN, format!("column \"{name}\" occurs more than once"))
        }
    }
}

/// DataFusion has one error for whatever is wrong with a statement; its wording tells which rule is broken.
fn plan_error(message: &str) -> Error {
    let message = first_line(message);
    let lower = message.to_lowercase();
    let has = |part: &str| lower.contains(part);
    let code = if has("order by index") || has("order by column out of bounds") || has("find column with position") {
        state::INVALID_REFERENCE
    } else if has("limit must be >=") {
        state::NEGATIVE_LIMIT
    } else if has("offset must be >=") {
        state::NEGATIVE_OFFSET
    } else if (has("expected limit") || has("expected offset")) && has("utf8") {
        sqlstate::INVALID_TEXT
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
        return Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, message);
    } else if has("invalid window frame") {
        state::WINDOW
    } else if has("duplicate") || has("unique expression names") {
        sqlstate::DUPLICATE_COLUMN
    } else {
        state::RULE_VIOLATION
    };
    Error::invalid(code, sql_words(message))
}

fn execution_error(message: &str) -> Error {
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
    Error::invalid(code, message)
}

/// DataFusion calls some mistakes of users internal.
fn internal_error(message: &str) -> Error {
    let message = first_line(message);
    let lower = message.to_lowercase();
    if lower.contains("physical plan does not support logical expression") || lower.contains("not supported") {
        return not_there(message);
    }
    if TYPE_ERRORS.iter().any(|part| lower.contains(part)) {
        return Error::invalid(sqlstate::TYPE_MISMATCH, message);
    }
    Error::internal(message)
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
