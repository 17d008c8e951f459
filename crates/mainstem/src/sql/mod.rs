//! SQL text into statements.
//!
//! Comes in: text. Goes out: [`Statement`]s that say what to do, with sqlparser's tree kept where a query or an
//! expression is meant for DataFusion. Steps: tokenise, split at semicolons, parse each part (COPY and CHECKPOINT by
//! grammar of our own, the rest by sqlparser), refuse what is not understood in full. Invariant: no clause is ever
//! ignored; every field of a parsed statement is used or refused with 0A000. It does not own: names and types of the
//! catalog, or running anything.

mod dialect;
mod extensions;
mod parse;
mod refuse;
mod ddl;
mod dml;
mod transaction;
mod copy;
mod settings;
mod stored;
mod types;

pub use copy::CopyStream;
pub(crate) use copy::{
    Compression, CopyFormat, CopyOptions, CopyPlace, CopySource, CopyStatement, CsvOptions, TextOptions, Written,
};
pub(crate) use copy::{LineEnd, NO_QUOTE};
pub(crate) use copy::{ReadOptions, Rejects, RowLimit};
pub(crate) use ddl::{
    AlterAction, AlterTable, Constraints, CreateSchema, CreateSequence, CreateTable, CreateTableAs, CreateView, Draws,
    Drop, Dropped, NO_OWNERS, NewColumn, OnCommit, Passed, Sequence, SetPosition, Truncate, expand_wildcards,
    item_names, qualify, query_text, read_by, stored_query,
};
pub(crate) use dml::{
    Assignments, ConflictAction, ConflictTarget, DefaultCells, Delete, EXCLUDED, Insert, Lock, OnConflict, Overriding,
    ROW_REF, TARGET_SCHEMA, Target, Update, any_row_of, query_of, select_of, select_over,
};
pub(crate) use extensions::{
    CsvHints, FILES_SCHEMA, FileCompression, FileFunction, FileRequest, reads_files, refuse_files,
};
pub(crate) use mainstem_postgres::sqlstate as state;
pub(crate) use parse::{
    Describe, ExportFormat, Maintenance, Parameterized, PreparedStatement, Script, Several, Statement, Template,
    Transfer, TransferOf, begins_transaction, is_of_values, may_be_several, may_have_query, parameterize, parse,
    parse_template, statement_texts,
};
pub use parse::{copy_stream, number_placeholders, split_statements};
pub(crate) use refuse::{RELATIONS_MAX, check_query, check_tables};
pub(crate) use settings::SettingStatement;
pub(crate) use stored::{columns_in, expression_of, has_query, is_default, renamed_in, with_stored};
pub(crate) use transaction::Begin;
pub(crate) use types::{CastTypes, ast_type, is_by_bytes};

use std::fmt;

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::{Column, TableSchema};
use mainstem_storage::{Error, ErrorKind, Result};

use crate::names::{did_you_mean, similar};

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
