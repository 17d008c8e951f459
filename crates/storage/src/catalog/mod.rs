//! Immutable versions of the set of tables.
//!
//! Comes in: namespaces, table schemas, views. Goes out: look-ups by name and id. A DDL statement makes a new
//! [`Catalog`] beside the old one; old snapshots keep theirs (contract 1). Invariant: names are unique, ids are never
//! reused. It does not own: rows, SQL text, or when a version becomes current (that is `commit`).

mod change;
pub mod format;

use std::sync::Arc;

use crate::error::{Error, Result, sqlstate};
use crate::ids::{ColumnId, KeyId, SchemaVersion, TableId};
use crate::row::Value;
use crate::schema::{
    Check, Column, DataType, Identity, Layout, PUBLIC, RelationName, TableOptions, TableSchema, UniqueKey, View,
    primary_key_name,
};
use crate::shared_map::SharedMap;

pub use change::TableChange;

#[cfg(test)]
mod tests;

/// The namespaces, tables and views of one moment. A clone costs three pointers, a change a logarithm of what there is:
/// DDL makes one under the commit lock.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// But for the one that always exists.
    namespaces: SharedMap<Arc<str>, ()>,
    relations: SharedMap<Arc<RelationName>, Relation>,
    by_id: SharedMap<TableId, Arc<TableSchema>>,
}

/// What stands in FROM: tables and views share their names.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table(Arc<TableSchema>),
    /// A view.
    View(Arc<View>),
}

/// A column as CREATE TABLE names it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name, as SQL folds it.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether NULL is allowed; PRIMARY KEY columns never are.
    pub nullable: bool,
    /// See [`Column::default`].
    pub default: Option<Arc<str>>,
    /// See [`Column::identity`].
    pub identity: Option<Identity>,
}

impl ColumnDefinition {
    /// A column called `name`, without a default.
    #[must_use]
    pub fn new(name: impl Into<String>, data_type: DataType, nullable: bool) -> Self {
        Self { name: name.into(), data_type, nullable, default: None, identity: None }
    }
}

/// UNIQUE as CREATE TABLE says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueDefinition {
    /// Its name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
}

/// What CREATE TABLE says.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// How it is called.
    pub name: RelationName,
    /// Its columns.
    pub columns: Vec<ColumnDefinition>,
    /// Names of the PRIMARY KEY columns; empty without one.
    pub primary_key: Vec<String>,
    /// What it is called; `None` means the table's name with `_pkey` behind.
    pub primary_key_name: Option<String>,
    /// UNIQUE constraints.
    pub unique_keys: Vec<UniqueDefinition>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Names of the ORDER BY columns; `None` means the primary key.
    pub sort_key: Option<Vec<String>>,
    /// The layout asked for; `None` means `sorted` with a sort key and `insertion` without one.
    pub layout: Option<Layout>,
    /// Options.
    pub options: TableOptions,
}

impl TableDefinition {
    /// A table called `name` in the namespace that always exists, without keys.
    #[must_use]
    pub fn new(name: impl Into<String>, columns: Vec<ColumnDefinition>) -> Self {
        Self {
            name: RelationName::public(name),
            columns,
            primary_key: Vec::new(),
            primary_key_name: None,
            unique_keys: Vec::new(),
            checks: Vec::new(),
            sort_key: None,
            layout: None,
            options: TableOptions::default(),
        }
    }

    /// Checks the definition and gives it ids.
    ///
    /// # Errors
    /// Invalid: unknown or repeated columns (42703, 42701), a layout without the key it needs or with one it has no use
    /// for (42P16).
    pub fn into_schema(self, id: TableId) -> Result<TableSchema> {
        let mut columns: Vec<Column> = Vec::with_capacity(self.columns.len());
        for (position, column) in self.columns.into_iter().enumerate() {
            if columns.iter().any(|c| c.name == column.name) {
                return Err(Error::invalid(
                    sqlstate::DUPLICATE_COLUMN,
                    format!("column \"{}\" specified more than once", column.name),
                ));
            }
            columns.push(Column {
                id: ColumnId(position as u32),
                name: column.name,
                data_type: column.data_type,
                nullable: column.nullable,
                missing_value: Value::Null,
                default: column.default,
                identity: column.identity,
            });
        }
        let primary_key = key_columns(&columns, &self.primary_key)?;
        for column in &mut columns {
            if primary_key.contains(&column.id) {
                column.nullable = false;
            }
        }
        let mut unique_keys = Vec::with_capacity(self.unique_keys.len());
        let mut next_key = KeyId(KeyId::PRIMARY.0 + 1);
        for key in self.unique_keys {
            unique_keys.push(UniqueKey { id: next_key, columns: key_columns(&columns, &key.columns)?, name: key.name });
            next_key.0 += 1;
        }
        let sort_key = match &self.sort_key {
            Some(names) => key_columns(&columns, names)?,
            None => primary_key.clone(),
        };
        let layout = match self.layout {
            Some(Layout::Sorted) if sort_key.is_empty() => {
                return Err(Error::invalid(
                    sqlstate::INVALID_TABLE,
                    "layout 'sorted' needs a PRIMARY KEY or ORDER BY (...)",
                ));
            }
            Some(Layout::Insertion) if self.sort_key.is_some() => {
                return Err(Error::invalid(sqlstate::INVALID_TABLE, "layout 'insertion' has no ORDER BY (...)"));
            }
            Some(layout) => layout,
            None if sort_key.is_empty() => Layout::Insertion,
            None => Layout::Sorted,
        };
        let sort_key = if layout == Layout::Insertion { Vec::new() } else { sort_key };
        // The name stays when the table gets another one.
        let named = self.primary_key_name.unwrap_or_else(|| primary_key_name(&self.name.name));
        Ok(TableSchema {
            id,
            version: SchemaVersion(1),
            namespace: self.name.namespace,
            name: self.name.name,
            next_column: ColumnId(columns.len() as u32),
            columns,
            next_key,
            primary_key_name: (!primary_key.is_empty()).then_some(named),
            primary_key,
            unique_keys,
            checks: self.checks,
            sort_key,
            layout,
            options: self.options,
        })
    }
}

/// Ids of the columns called `names`, in that order.
fn key_columns(columns: &[Column], names: &[String]) -> Result<Vec<ColumnId>> {
    let mut key = Vec::with_capacity(names.len());
    for name in names {
        let column = columns.iter().find(|c| &c.name == name).ok_or_else(|| {
            Error::invalid(sqlstate::UNDEFINED_COLUMN, format!("column \"{name}\" named in key does not exist"))
        })?;
        if key.contains(&column.id) {
            return Err(Error::invalid(
                sqlstate::DUPLICATE_COLUMN,
                format!("column \"{name}\" appears twice in a key"),
            ));
        }
        key.push(column.id);
    }
    Ok(key)
}

impl Catalog {
    /// Whether there is a namespace called `name`.
    #[must_use]
    pub fn has_namespace(&self, name: &str) -> bool {
        name == PUBLIC || self.namespaces.contains_key(name)
    }

    /// All namespaces but the one that always exists, by name.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.keys().map(|name| &**name)
    }

    /// What is called `name`.
    #[must_use]
    pub fn relation(&self, name: &RelationName) -> Option<&Relation> {
        self.relations.get(name)
    }

    /// The table called `name`.
    #[must_use]
    pub fn table_called(&self, name: &RelationName) -> Option<&Arc<TableSchema>> {
        match self.relations.get(name)? {
            Relation::Table(table) => Some(table),
            Relation::View(_) => None,
        }
    }

    /// The view called `name`.
    #[must_use]
    pub fn view_called(&self, name: &RelationName) -> Option<&Arc<View>> {
        match self.relations.get(name)? {
            Relation::View(view) => Some(view),
            Relation::Table(_) => None,
        }
    }

    /// The table called `name` in the namespace that always exists.
    #[must_use]
    pub fn table_named(&self, name: &str) -> Option<&Arc<TableSchema>> {
        self.table_called(&RelationName::public(name))
    }

    /// The table with id `id`.
    #[must_use]
    pub fn table(&self, id: TableId) -> Option<&Arc<TableSchema>> {
        self.by_id.get(&id)
    }

    /// All tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.relations.values().filter_map(|relation| match relation {
            Relation::Table(table) => Some(table),
            Relation::View(_) => None,
        })
    }

    /// All views, by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.relations.values().filter_map(|relation| match relation {
            Relation::View(view) => Some(view),
            Relation::Table(_) => None,
        })
    }

    /// This catalog and `table`.
    ///
    /// # Errors
    /// Invalid (42P07) when the name is taken, (3F000) when there is no such namespace.
    pub fn with_table(&self, table: Arc<TableSchema>) -> Result<Self> {
        let mut next = self.clone();
        next.add(table.relation_name(), Relation::Table(table.clone()))?;
        next.by_id.insert(table.id, table);
        Ok(next)
    }

    /// This catalog without table `id`.
    ///
    /// # Errors
    /// NotFound (42P01) when there is none.
    pub fn without_table(&self, id: TableId) -> Result<Self> {
        let mut next = self.clone();
        let table = next.by_id.remove(&id).ok_or_else(|| not_found("table"))?;
        next.relations.remove(&table.relation_name());
        Ok(next)
    }

    /// This catalog with `table`, a newer version, in the place of the one with its id.
    ///
    /// # Errors
    /// NotFound (42P01) when there is none; as [`Catalog::with_table`] for a new name.
    pub fn with_version(&self, table: Arc<TableSchema>) -> Result<Self> {
        self.without_table(table.id)?.with_table(table)
    }

    /// This catalog and `view`.
    ///
    /// # Errors
    /// As [`Catalog::with_table`].
    pub fn with_view(&self, view: Arc<View>) -> Result<Self> {
        let mut next = self.clone();
        next.add(view.name.clone(), Relation::View(view))?;
        Ok(next)
    }

    /// This catalog without the view called `name`.
    ///
    /// # Errors
    /// NotFound (42P01) when there is none.
    pub fn without_view(&self, name: &RelationName) -> Result<Self> {
        let mut next = self.clone();
        match next.relations.remove(name) {
            Some(Relation::View(_)) => Ok(next),
            _ => Err(not_found("view")),
        }
    }

    /// This catalog and the namespace `name`.
    ///
    /// # Errors
    /// Invalid (42P06) when there is one.
    pub fn with_namespace(&self, name: &str) -> Result<Self> {
        if self.has_namespace(name) {
            return Err(Error::invalid(sqlstate::DUPLICATE_SCHEMA, format!("schema \"{name}\" already exists")));
        }
        let mut next = self.clone();
        next.namespaces.insert(name.into(), ());
        Ok(next)
    }

    /// This catalog without the namespace `name`.
    ///
    /// # Errors
    /// Invalid: there is none (3F000), or something stands in it (2BP01).
    pub fn without_namespace(&self, name: &str) -> Result<Self> {
        let mut next = self.clone();
        if next.namespaces.remove(name).is_none() {
            return Err(no_namespace(name));
        }
        // Names are ordered by namespace first.
        let first = self.relations.first_from(&RelationName::new(name, "")).map(|(first, _)| first);
        if let Some(inside) = first.filter(|first| first.namespace == name) {
            let message = format!("cannot drop schema \"{name}\": \"{inside}\" stands in it; drop that first");
            return Err(Error::invalid(sqlstate::DEPENDENT_OBJECTS, message));
        }
        Ok(next)
    }

    fn add(&mut self, name: RelationName, relation: Relation) -> Result<()> {
        if !self.has_namespace(&name.namespace) {
            return Err(no_namespace(&name.namespace));
        }
        if self.relations.contains_key(&name) {
            let message = format!("relation \"{name}\" already exists");
            return Err(Error::invalid(sqlstate::DUPLICATE_TABLE, message));
        }
        self.relations.insert(name.into(), relation);
        Ok(())
    }
}

fn not_found(what: &str) -> Error {
    Error::new(crate::ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, format!("the {what} does not exist"))
}

fn no_namespace(name: &str) -> Error {
    Error::invalid(sqlstate::UNDEFINED_SCHEMA, format!("schema \"{name}\" does not exist"))
}
