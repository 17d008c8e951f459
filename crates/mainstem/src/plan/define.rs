//! CREATE TABLE and DROP TABLE in a transaction.

use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::RelationName;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, ErrorKind, Result};

use crate::session::{Notice, Settings};
use crate::sql::{CreateTable, DropTable};

/// Makes a table.
///
/// # Errors
/// 42P07 when the name is taken, 42P16 and others for a bad definition.
pub(crate) fn create_table(
    transaction: &mut Transaction,
    settings: &Settings,
    create: &CreateTable,
) -> Result<Vec<Notice>> {
    if transaction.catalog().table_named(&create.name).is_some() {
        let message = format!("table \"{}\" already exists", create.name);
        if create.if_not_exists {
            return Ok(vec![Notice::new(sqlstate::DUPLICATE_TABLE, format!("{message}, skipping"))]);
        }
        return Err(Error::invalid(sqlstate::DUPLICATE_TABLE, message));
    }
    let definition = TableDefinition {
        name: RelationName::public(&create.name),
        columns: create
            .columns
            .iter()
            .map(|c| ColumnDefinition::new(c.name.clone(), c.data_type, c.nullable))
            .collect(),
        primary_key: create.primary_key.clone(),
        unique_keys: Vec::new(),
        checks: Vec::new(),
        sort_key: create.sort_key.clone(),
        layout: create.layout,
        options: settings.table_options(create.segment_rows, create.delta_rows)?,
    };
    transaction.create_table(definition)?;
    Ok(Vec::new())
}

/// Drops tables, all or none.
///
/// # Errors
/// 42P01.
pub(crate) fn drop_table(transaction: &mut Transaction, drop: &DropTable) -> Result<Vec<Notice>> {
    let catalog = transaction.catalog();
    let (mut tables, mut notices) = (Vec::new(), Vec::new());
    for name in &drop.names {
        match catalog.table_named(name) {
            Some(table) if tables.contains(&table.id) => {}
            Some(table) => tables.push(table.id),
            None if drop.if_exists => {
                notices.push(Notice::new("00000", format!("table \"{name}\" does not exist, skipping")));
            }
            None => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    sqlstate::UNDEFINED_TABLE,
                    format!("table \"{name}\" does not exist"),
                ));
            }
        }
    }
    for table in tables {
        transaction.drop_table(table)?;
    }
    Ok(notices)
}
