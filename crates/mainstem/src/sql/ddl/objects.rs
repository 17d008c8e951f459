//! CREATE SCHEMA, CREATE VIEW, and DROP of whatever has a name.

use datafusion::sql::sqlparser::ast::{
    CreateTableOptions, CreateView as AstCreateView, Ident, ObjectName, ObjectType, Query, SchemaName,
    Statement as Ast, ViewColumnDef,
};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::super::refuse::is_write;
use super::super::{TableName, check_query, column_name, fold, table_name};

/// CREATE SCHEMA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreateSchema {
    pub(crate) name: String,
    pub(crate) if_not_exists: bool,
}

/// CREATE VIEW.
#[derive(Clone, Debug)]
pub(crate) struct CreateView {
    pub(crate) name: TableName,
    pub(crate) or_replace: bool,
    /// Names of its first columns.
    pub(crate) columns: Vec<String>,
    pub(crate) query: Box<Query>,
}

/// DROP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drop {
    pub(crate) what: Dropped,
    pub(crate) if_exists: bool,
    /// With everything that depends on it.
    pub(crate) cascade: bool,
}

/// What is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    Tables(Vec<TableName>),
    Views(Vec<TableName>),
    Schemas(Vec<String>),
}

/// Reads a CREATE SCHEMA.
pub(in super::super) fn create_schema(statement: Ast) -> Result<CreateSchema> {
    let Ast::CreateSchema { schema_name, if_not_exists, with, options, default_collate_spec, clone } = statement else {
        return Err(Error::internal("not a CREATE SCHEMA"));
    };
    if with.is_some() || options.is_some() || default_collate_spec.is_some() || clone.is_some() {
        return Err(Error::unsupported("a clause of another database's CREATE SCHEMA"));
    }
    match schema_name {
        SchemaName::Simple(name) => Ok(CreateSchema { name: column_name(&name)?, if_not_exists }),
        SchemaName::UnnamedAuthorization(_) | SchemaName::NamedAuthorization(..) => {
            Err(Error::unsupported("CREATE SCHEMA ... AUTHORIZATION"))
        }
    }
}

/// Reads a CREATE VIEW.
pub(in super::super) fn create_view(view: AstCreateView) -> Result<CreateView> {
    let AstCreateView {
        or_alter,
        or_replace,
        materialized,
        secure,
        name,
        name_before_not_exists: _,
        columns,
        query,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists,
        temporary,
        copy_grants,
        to,
        params,
    } = view;
    let refusals = [
        (materialized, "a materialized view"),
        (temporary, "a temporary view"),
        (if_not_exists, "CREATE VIEW IF NOT EXISTS (use OR REPLACE)"),
        (options != CreateTableOptions::None, "options of a view"),
        (
            or_alter
                || secure
                || !cluster_by.is_empty()
                || comment.is_some()
                || with_no_schema_binding
                || copy_grants
                || to.is_some()
                || params.is_some(),
            "a clause of another database's CREATE VIEW",
        ),
    ];
    if let Some((_, what)) = refusals.iter().find(|(present, _)| *present) {
        return Err(Error::unsupported(what));
    }
    if is_write(&query) {
        return Err(Error::invalid(sqlstate::SYNTAX, "syntax error: CREATE VIEW takes a query"));
    }
    check_query(&query)?;
    Ok(CreateView { name: table_name(&name)?, or_replace, columns: names_of(&columns)?, query })
}

fn names_of(columns: &[ViewColumnDef]) -> Result<Vec<String>> {
    let name = |ViewColumnDef { name, data_type, options }: &ViewColumnDef| -> Result<String> {
        if data_type.is_some() || options.is_some() {
            return Err(Error::unsupported("a type or an option of a view's column"));
        }
        Ok(fold(name))
    };
    columns.iter().map(name).collect()
}

/// Reads a DROP.
pub(in super::super) fn drop_of(statement: Ast) -> Result<Drop> {
    let Ast::Drop { object_type, if_exists, names, cascade, restrict: _, purge, temporary, table } = statement else {
        return Err(Error::internal("not a DROP"));
    };
    if purge || temporary || table.is_some() {
        return Err(Error::unsupported("DROP with PURGE, TEMPORARY or ON"));
    }
    let tables = |names: &[ObjectName]| names.iter().map(table_name).collect::<Result<Vec<_>>>();
    let what = match object_type {
        ObjectType::Table => Dropped::Tables(tables(&names)?),
        ObjectType::View => Dropped::Views(tables(&names)?),
        ObjectType::Schema => Dropped::Schemas(names.iter().map(column_name).collect::<Result<_>>()?),
        other => return Err(Error::unsupported(format_args!("DROP {other}"))),
    };
    Ok(Drop { what, if_exists, cascade })
}

/// `name` in quotes.
pub(super) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
