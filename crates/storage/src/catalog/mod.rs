//! Immutable versions of the set of tables.
//!
//! Comes in: table schemas. Goes out: look-ups by name and id. A DDL statement makes a new [`Catalog`] beside the old one;
//! old snapshots keep theirs (contract 1). Invariant: names are unique, ids are never reused. It does not own: rows,
//! SQL text, or when a version becomes current (that is `commit`).

pub mod format;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result, sqlstate};
use crate::ids::{ColumnId, SchemaVersion, TableId};
use crate::row::Value;
use crate::schema::{Column, DataType, Layout, TableOptions, TableSchema};

#[cfg(test)]
mod tests;

/// The tables of one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    by_name: BTreeMap<String, Arc<TableSchema>>,
    by_id: BTreeMap<TableId, Arc<TableSchema>>,
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
}

/// What CREATE TABLE says.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnDefinition>,
    /// Names of the PRIMARY KEY columns; empty without one.
    pub primary_key: Vec<String>,
    /// Names of the ORDER BY columns; `None` means the primary key.
    pub sort_key: Option<Vec<String>>,
    /// The layout asked for; `None` means `sorted` with a sort key and `insertion` without one.
    pub layout: Option<Layout>,
    /// Options.
    pub options: TableOptions,
}

impl TableDefinition {
    /// Checks the definition and gives it ids.
    ///
    /// # Errors
    /// Invalid: unknown or repeated columns (42703, 42701), a layout without the key it needs or with one it has no use for
    /// (42P16).
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
            });
        }
        let primary_key = key_columns(&columns, &self.primary_key)?;
        for column in &mut columns {
            if primary_key.contains(&column.id) {
                column.nullable = false;
            }
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
        Ok(TableSchema {
            id,
            version: SchemaVersion(1),
            name: self.name,
            next_column: ColumnId(columns.len() as u32),
            columns,
            primary_key,
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
    /// The table called `name`.
    #[must_use]
    pub fn table_named(&self, name: &str) -> Option<&Arc<TableSchema>> {
        self.by_name.get(name)
    }

    /// The table with id `id`.
    #[must_use]
    pub fn table(&self, id: TableId) -> Option<&Arc<TableSchema>> {
        self.by_id.get(&id)
    }

    /// All tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.by_name.values()
    }

    /// This catalog and `table`.
    ///
    /// # Errors
    /// Invalid (42P07) when the name is taken.
    pub fn with_table(&self, table: Arc<TableSchema>) -> Result<Self> {
        if self.by_name.contains_key(&table.name) {
            return Err(Error::invalid(
                sqlstate::DUPLICATE_TABLE,
                format!("relation \"{}\" already exists", table.name),
            ));
        }
        let mut next = self.clone();
        next.by_id.insert(table.id, table.clone());
        next.by_name.insert(table.name.clone(), table);
        Ok(next)
    }

    /// This catalog without table `id`.
    ///
    /// # Errors
    /// NotFound (42P01) when there is none.
    pub fn without_table(&self, id: TableId) -> Result<Self> {
        let mut next = self.clone();
        let table = next.by_id.remove(&id).ok_or_else(|| {
            Error::new(crate::ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, "the table does not exist")
        })?;
        next.by_name.remove(&table.name);
        Ok(next)
    }
}
