//! Errors about names that mean nothing, or too much.
//!
//! Comes in: what DataFusion says of columns, tables and functions. Goes out: PostgreSQL's words for it, names that may
//! be meant, and the name itself, by which its place in the statement is found. It does not own: which functions there
//! are.

use std::collections::HashSet;

use datafusion::common::{Column, SchemaError, Span, Spans, TableReference};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::{Error, ErrorKind};

use crate::names::without_mark;
use crate::names::{did_you_mean, similar};
use crate::sql::{ROW_REF, state};

/// What is wrong with a column.
pub(super) fn schema_error(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } if is_ambiguous(field, valid_fields) => {
            let message = format!("column reference \"{}\" is ambiguous", flat_name(field));
            Error::invalid(state::AMBIGUOUS_COLUMN, message).with_object(object_of(field))
        }
        SchemaError::FieldNotFound { field, valid_fields } => {
            let near = did_you_mean(&near_columns(field, valid_fields));
            let message = format!("column \"{}\" does not exist{near}", flat_name(field));
            Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message).with_object(object_of(field))
        }
        SchemaError::AmbiguousReference { field } => {
            let message = format!("column reference \"{}\" is ambiguous", flat_name(field));
            Error::invalid(state::AMBIGUOUS_COLUMN, message).with_object(object_of(field))
        }
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            Error::invalid(sqlstate::DUPLICATE_COLUMN, format!("column \"{name}\" occurs more than once"))
        }
    }
}

/// Whether `field` is the name of items of a query that have others there, because several have it
/// (`analyze::names::duplicate_names`).
fn is_ambiguous(field: &Column, valid: &[Column]) -> bool {
    let table = |column: &Column| column.relation.as_ref().map(|relation| without_mark(relation.table()).to_owned());
    valid.iter().any(|column| {
        without_mark(&column.name) == field.name
            && column.name != field.name
            && (field.relation.is_none() || table(field) == table(column))
    })
}

/// 42883 for a function that is there with no types of arguments.
pub(super) fn undefined_function_called(name: &str) -> Error {
    Error::invalid(state::UNDEFINED_FUNCTION, format!("function {name} does not exist"))
        .with_object(NamedObject::new(ObjectKind::Function, name.split('.')))
}

/// 42P01 for the table in front of a column or a `*`.
pub(super) fn missing_from_clause_entry(table: &str) -> Error {
    let table = without_mark(table);
    let message = format!("missing FROM-clause entry for table \"{table}\"");
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, message)
        .with_object(NamedObject::new(ObjectKind::Qualifier, table.split('.')))
}

/// `error`, whose name the planner read at `span`.
pub(super) fn read_at(error: Error, span: Option<Span>) -> Error {
    match (error.object(), span) {
        (Some(object), Some(span)) if object.location.is_none() => {
            let object = NamedObject { location: Some((span.start.line, span.start.column)), ..object.clone() };
            error.with_object(object)
        }
        _ => error,
    }
}

fn object_of(column: &Column) -> NamedObject {
    let relation = column.relation.as_ref().map(parts).unwrap_or_default();
    let name = relation.into_iter().chain([column.name.clone()]);
    let span = Spans::first(column.spans());
    let location = span.map(|span| (span.start.line, span.start.column));
    NamedObject { location, ..NamedObject::new(ObjectKind::Column, name) }
}

/// The names in front of a column's, as the statement has them.
fn parts(relation: &TableReference) -> Vec<String> {
    let parts = [relation.catalog(), relation.schema(), Some(relation.table())];
    parts.into_iter().flatten().map(|part| without_mark(part).to_owned()).collect()
}

/// A column as the statement calls it.
fn flat_name(column: &Column) -> String {
    column
        .relation
        .as_ref()
        .map_or_else(Vec::new, parts)
        .into_iter()
        .chain([column.name.clone()])
        .collect::<Vec<_>>()
        .join(".")
}

/// How a statement would name a column with its table.
fn qualified_name(column: &Column) -> String {
    let names = column.relation.as_ref().map_or_else(Vec::new, parts).into_iter().chain([column.name.clone()]);
    let plain = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let names = names.map(|name| if plain(&name) { name } else { format!("\"{}\"", name.replace('"', "\"\"")) });
    names.collect::<Vec<_>>().join(".")
}

/// The columns among `valid`, those of the tables in scope, that `field` may be a misspelling of.
fn near_columns(field: &Column, valid: &[Column]) -> Vec<String> {
    let mut seen = HashSet::new();
    // DataFusion may have one twice.
    let valid: Vec<&Column> = valid
        .iter()
        .filter(|column| column.name != ROW_REF && without_mark(&column.name) == column.name && seen.insert(*column))
        .collect();
    let Some(relation) = &field.relation else {
        let near = similar(&field.name, valid.iter().map(|column| column.name.as_str()));
        let offered = near.into_iter().flat_map(|name| {
            let found: Vec<&&Column> = valid.iter().filter(|column| column.name == name).collect();
            match found.as_slice() {
                // Alone it would be ambiguous.
                [_, _, ..] => found.into_iter().map(|column| qualified_name(column)).collect(),
                _ => vec![name.to_owned()],
            }
        });
        return offered.collect();
    };
    let table = without_mark(relation.table());
    let is_of_table =
        |column: &&&Column| column.relation.as_ref().is_some_and(|relation| without_mark(relation.table()) == table);
    let of_table: Vec<&Column> = valid.iter().filter(is_of_table).copied().collect();
    let named = |names: Vec<&str>, columns: &[&Column]| {
        let found = columns.iter().filter(|column| names.contains(&column.name.as_str()));
        found.map(|column| qualified_name(column)).collect::<Vec<_>>()
    };
    if !of_table.is_empty() {
        return named(similar(&field.name, of_table.iter().map(|column| column.name.as_str())), &of_table);
    }
    // There is no such table: a column of that name, of a table that is called nearly so.
    let namesakes: Vec<&Column> = valid.iter().filter(|column| column.name == field.name).copied().collect();
    let tables =
        namesakes.iter().filter_map(|column| column.relation.as_ref()).map(|relation| without_mark(relation.table()));
    let near = similar(table, tables);
    let is_near = |column: &&&Column| {
        near.is_empty()
            || column.relation.as_ref().is_some_and(|relation| near.contains(&without_mark(relation.table())))
    };
    namesakes.iter().filter(is_near).map(|column| qualified_name(column)).take(3).collect()
}
