//! Names of tables and schemas that have to mean something: errors for those that do not, with the names that may be
//! meant.

use std::sync::Arc;

use mainstem_storage::catalog::{Catalog, Relation};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::{PUBLIC, RelationName, TableSchema};
use mainstem_storage::{Error, ErrorKind, Result};

use super::names::{Names, TEMPORARY};
use super::system::SystemTables;
use crate::names::{did_you_mean, similar};
use crate::sql::{INFORMATION, SYSTEM, TableName, state};

/// What a statement wants that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A table, or a view that is read like one.
    Table,
    /// A view.
    View,
}

impl Names {
    /// The table that `name` means.
    ///
    /// # Errors
    /// 42P01, 42809 for a view.
    pub(crate) fn table(&self, catalog: &Catalog, name: &TableName) -> Result<Arc<TableSchema>> {
        match self.find(catalog, name) {
            Some((_, Relation::Table(table))) => Ok(table),
            Some((_, Relation::View(_))) => {
                Err(Error::invalid(sqlstate::WRONG_OBJECT_TYPE, format!("\"{}\" is a view, not a table", name.name)))
            }
            None => Err(undefined_table(self, catalog, name, Wanted::Table, &[])),
        }
    }

    /// What a new relation called `name` is called in full.
    ///
    /// # Errors
    /// 3F000 when there is no schema for it, 42501 for one of our own.
    pub(crate) fn new_relation(&self, catalog: &Catalog, name: &TableName) -> Result<RelationName> {
        let schema = match &name.schema {
            Some(schema) => self.real(schema),
            None => {
                // Temporary tables say so.
                let found = self.path.iter().filter(|name| *name != TEMPORARY).find(|name| catalog.has_namespace(name));
                found.map(String::as_str).ok_or_else(|| {
                    Error::invalid(state::UNDEFINED_SCHEMA, "no schema has been selected to create in")
                })?
            }
        };
        if catalog.has_namespace(schema) && self.sees(schema) {
            return Ok(RelationName::new(schema, &name.name));
        }
        if schema == SYSTEM || schema == INFORMATION {
            return Err(Error::invalid(
                state::READ_ONLY_TABLE,
                format!("schema \"{schema}\" holds system tables and cannot be changed"),
            ));
        }
        Err(undefined_schema(catalog, schema))
    }
}

/// 42P01 for `name`, with what is called like it: relations that the name could mean, and `others`, queries of WITH and
/// functions.
pub(crate) fn undefined_table(
    names: &Names,
    catalog: &Catalog,
    name: &TableName,
    wanted: Wanted,
    others: &[String],
) -> Error {
    let kind = if wanted == Wanted::View { "view" } else { "table" };
    let near = did_you_mean(&near_relations(names, catalog, name, wanted, others));
    let parts = name.schema.iter().chain([&name.name]);
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, format!("{kind} \"{name}\" does not exist{near}"))
        .with_object(NamedObject::new(ObjectKind::Table, parts))
}

/// 3F000, with the schemas of `catalog` that are called like it.
pub(crate) fn undefined_schema(catalog: &Catalog, name: &str) -> Error {
    let known = [PUBLIC, SYSTEM, INFORMATION].into_iter().chain(catalog.namespaces());
    let near = did_you_mean(&similar(name, known));
    Error::new(ErrorKind::NotFound, state::UNDEFINED_SCHEMA, format!("schema \"{name}\" does not exist{near}"))
        .with_object(NamedObject::new(ObjectKind::Schema, [name]))
}

/// The names of relations that `name` may be a misspelling of. Without a schema they are first those that need none.
fn near_relations(
    names: &Names,
    catalog: &Catalog,
    name: &TableName,
    wanted: Wanted,
    others: &[String],
) -> Vec<String> {
    let tables = catalog.tables().filter(|_| wanted == Wanted::Table).map(|table| table.relation_name());
    let views = catalog.views().map(|view| view.name.clone());
    let visible: Vec<RelationName> = tables.chain(views).filter(|full| names.sees(&full.namespace)).collect();
    let full = |full: &RelationName| format!("{}.{}", full.namespace, full.name);
    let system = |schema: &'static str| SystemTables::names(schema).into_iter().map(move |name| (schema, name));
    let system: Vec<(&str, &str)> = match wanted {
        Wanted::Table => system(SYSTEM).chain(system(INFORMATION)).collect(),
        Wanted::View => Vec::new(),
    };
    if name.schema.is_some() {
        let known: Vec<String> =
            visible.iter().map(full).chain(system.iter().map(|(schema, name)| format!("{schema}.{name}"))).collect();
        let near = similar(&name.to_string(), known.iter().map(String::as_str));
        return near.into_iter().map(str::to_owned).collect();
    }
    let found_alone = |known: &&RelationName| names.find(catalog, &TableName::bare(&known.name)).is_some();
    let alone = visible.iter().filter(found_alone).map(|known| known.name.as_str());
    let near = similar(&name.name, alone.chain(others.iter().map(String::as_str)));
    if !near.is_empty() {
        return near.into_iter().map(str::to_owned).collect();
    }
    // What the search path does not find has to be named with its schema, and only what is called just so is worth it.
    let elsewhere = visible.iter().filter(|known| known.name.eq_ignore_ascii_case(&name.name)).map(full);
    let of_system =
        system.iter().filter(|(_, known)| *known == name.name).map(|(schema, name)| format!("{schema}.{name}"));
    elsewhere.chain(of_system).take(3).collect()
}
