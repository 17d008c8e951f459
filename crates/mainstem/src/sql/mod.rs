//! SQL text into statements.
//!
//! Comes in: text. Goes out: [`Statement`]s that say what to do, with sqlparser's tree kept where a query or an expression
//! is meant for DataFusion. Steps: tokenise, split at semicolons, parse each part (COPY and CHECKPOINT by grammar of our
//! own, the rest by sqlparser), refuse what is not understood in full. Invariant: no clause is ever ignored; every field of
//! a parsed statement is used or refused with 0A000. It does not own: names and types of the catalog, or running anything.

mod dialect;
mod split;
mod parse;
mod refuse;
mod ddl;
mod dml;
mod transaction;
mod copy;
mod settings;
mod stored;
mod types;

pub(crate) use copy::{
    CopyFormat, CopyOptions, CopyPlace, CopySource, CopyStatement, CsvOptions, ForcedColumns, Header, TextOptions,
};
pub use copy::{CopyStream, copy_stream};
pub(crate) use ddl::{
    AlterAction, AlterTable, CreateSchema, CreateTable, CreateTableAs, CreateView, Drop, Dropped, NewColumn, OnCommit,
    Truncate, expand_wildcards, item_names, qualify, query_text, read_by, stored_query,
};
pub(crate) use dml::{
    ASSIGNED_TO, Assignments, ConflictAction, ConflictTarget, DefaultCells, Delete, EXCLUDED, Insert, Lock, OnConflict,
    Overriding, ROW_REF, TARGET_SCHEMA, Target, Update, any_row_of, ast_type, query_of, select_of, select_over,
};
pub(crate) use parse::{Maintenance, PreparedStatement, Script, Statement, Template, parse, parse_template};
pub(crate) use refuse::{RELATIONS_MAX, check_query, check_tables};
pub(crate) use settings::SettingStatement;
pub use split::split_statements;
pub(crate) use stored::{columns_in, expression_of, has_query, is_default, renamed_in, with_stored};
pub(crate) use transaction::Begin;
pub(crate) use types::{CastTypes, is_by_bytes, sql_name};

use std::fmt;

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::{Column, TableSchema};
use mainstem_storage::{Error, ErrorKind, Result};

use crate::error::{did_you_mean, similar};

/// SQLSTATEs that only SQL needs.
pub(crate) mod state {
    /// invalid_recursion
    pub(crate) const INVALID_RECURSION: &str = "42P19";
    /// invalid_schema_name
    pub(crate) const UNDEFINED_SCHEMA: &str = "3F000";
    /// insufficient_privilege
    pub(crate) const READ_ONLY_TABLE: &str = "42501";
    /// undefined_object
    pub(crate) const UNDEFINED_OBJECT: &str = "42704";
    /// duplicate_object
    pub(crate) const DUPLICATE_OBJECT: &str = "42710";
    /// undefined_function
    pub(crate) const UNDEFINED_FUNCTION: &str = "42883";
    /// undefined_parameter
    pub(crate) const UNDEFINED_PARAMETER: &str = "42P02";
    /// protocol_violation: parameters and values differ in number
    pub(crate) const PARAMETER_COUNT: &str = "08P01";
    /// invalid_sql_statement_name
    pub(crate) const UNDEFINED_STATEMENT: &str = "26000";
    /// duplicate_prepared_statement
    pub(crate) const DUPLICATE_STATEMENT: &str = "42P05";
    /// ambiguous_column
    pub(crate) const AMBIGUOUS_COLUMN: &str = "42702";
    /// ambiguous_alias
    pub(crate) const AMBIGUOUS_ALIAS: &str = "42P09";
    /// grouping_error
    pub(crate) const GROUPING: &str = "42803";
    /// duplicate_alias
    pub(crate) const DUPLICATE_ALIAS: &str = "42712";
    /// invalid_savepoint_specification
    pub(crate) const UNDEFINED_SAVEPOINT: &str = "3B001";
    /// windowing_error
    pub(crate) const WINDOWING: &str = "42P20";
    /// invalid_column_reference: no key on the columns that ON CONFLICT names
    pub(crate) const NO_SUCH_KEY: &str = "42P10";
    /// A position behind the last select item.
    pub(crate) const INVALID_REFERENCE: &str = "42P10";
    /// LIMIT below 0.
    pub(crate) const NEGATIVE_LIMIT: &str = "2201W";
    /// OFFSET below 0.
    pub(crate) const NEGATIVE_OFFSET: &str = "2201X";
    /// invalid_regular_expression
    pub(crate) const INVALID_REGEX: &str = "2201B";
    /// statement_too_complex
    pub(crate) const TOO_COMPLEX: &str = "54001";
    /// windowing_error
    pub(crate) const WINDOW: &str = "42P20";
    /// A rule of SQL is broken and no code of its own exists: syntax_error_or_access_rule_violation
    pub(crate) const RULE_VIOLATION: &str = "42000";
}

/// The schema of the system tables.
pub(crate) const SYSTEM: &str = "mainstem";
/// The schema that SQL has for tables about tables.
pub(crate) const INFORMATION: &str = "information_schema";

/// An identifier as SQL folds it: lower case unless quoted.
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    }
}

/// A table or view as a statement calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    /// The schema, if it says one.
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
}

impl TableName {
    /// `name`, wherever the search path finds it.
    pub(crate) fn bare(name: impl Into<String>) -> Self {
        Self { schema: None, name: name.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The name of a user's table: `t`, `schema.t` or `mainstem.schema.t`.
///
/// # Errors
/// 42501 for a system table, 42601 for anything else.
pub(crate) fn table_name(name: &ObjectName) -> Result<TableName> {
    let mut parts = Vec::with_capacity(2);
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(ident) => parts.push(fold(ident)),
            ObjectNamePart::Function(_) => return Err(Error::unsupported(format_args!("the table name {name}"))),
        }
    }
    let (schema, name) = match parts.as_mut_slice() {
        [table] => (None, std::mem::take(table)),
        [schema, table] => (Some(std::mem::take(schema)), std::mem::take(table)),
        [catalog, schema, table] if catalog == SYSTEM => (Some(std::mem::take(schema)), std::mem::take(table)),
        [_, _, _] => return Err(Error::unsupported(format_args!("the table {name} of another database"))),
        _ => return Err(Error::invalid(sqlstate::SYNTAX, format!("\"{name}\" is not the name of a table"))),
    };
    match schema {
        Some(schema) if schema == SYSTEM || schema == INFORMATION => Err(Error::invalid(
            state::READ_ONLY_TABLE,
            format!("{schema}.{name} is a system table and cannot be changed"),
        )),
        schema => Ok(TableName { schema, name }),
    }
}

/// The column `name` of `table`.
///
/// # Errors
/// 42703.
pub(crate) fn existing_column<'t>(table: &'t TableSchema, name: &str) -> Result<&'t Column> {
    table.column_named(name).ok_or_else(|| {
        let near = did_you_mean(&similar(name, table.columns.iter().map(|column| &*column.name)));
        let message = format!("column \"{name}\" of relation \"{}\" does not exist{near}", table.name);
        Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message)
            .with_object(NamedObject::new(ObjectKind::Column, [name]))
    })
}

/// The name of a column, unqualified.
pub(crate) fn column_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Ok(fold(ident)),
        _ => Err(Error::unsupported(format_args!("the column name {name}"))),
    }
}

#[cfg(test)]
mod tests;
