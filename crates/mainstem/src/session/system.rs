//! Rows of the system tables.

use mainstem_storage::catalog::Catalog;
use mainstem_storage::database::Database;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::row::Value;
use mainstem_storage::schema::{Layout, TableSchema};

use super::settings::Settings;
use crate::provider::Cell;
use crate::sql::sql_name;

/// The rows of system table `name`.
pub(super) fn rows(name: &str, storage: &Database, catalog: &Catalog, settings: &Settings) -> Vec<Vec<Cell>> {
    match name {
        "tables" => catalog.tables().map(|table| table_row(table)).collect(),
        "columns" => catalog.tables().flat_map(|table| column_rows(table)).collect(),
        "containers" => containers(storage),
        "merges" => merges(storage),
        "wal" => wal(storage),
        "settings" => settings
            .all()
            .into_iter()
            .map(|(name, value, description)| vec![name.into(), value.into(), description.into()])
            .collect(),
        _ => Vec::new(),
    }
}

fn names(table: &TableSchema, columns: &[ColumnId]) -> Cell {
    let names: Vec<&str> = columns.iter().filter_map(|id| table.column(*id)).map(|c| c.name.as_str()).collect();
    if names.is_empty() { Cell::Null } else { names.join(", ").into() }
}

fn table_row(table: &TableSchema) -> Vec<Cell> {
    let layout = match table.layout {
        Layout::Insertion => "insertion",
        Layout::Sorted => "sorted",
    };
    vec![
        table.name.clone().into(),
        layout.into(),
        names(table, &table.primary_key),
        names(table, &table.sort_key),
        table.options.segment_rows.into(),
        table.options.delta_rows.into(),
    ]
}

fn column_rows(table: &TableSchema) -> Vec<Vec<Cell>> {
    table
        .columns
        .iter()
        .zip(1_u32..)
        .map(|(column, position)| {
            vec![
                table.name.clone().into(),
                column.name.clone().into(),
                position.into(),
                sql_name(column.data_type).into(),
                column.nullable.into(),
            ]
        })
        .collect()
}

fn containers(storage: &Database) -> Vec<Vec<Cell>> {
    let text = |value: &Option<Value>| value.as_ref().filter(|v| !v.is_null()).map(describe);
    storage
        .containers()
        .into_iter()
        .map(|c| {
            vec![
                c.table.into(),
                c.id.0.into(),
                c.kind.into(),
                c.run.into(),
                c.rows.into(),
                c.deleted.into(),
                c.bytes.into(),
                text(&c.min_key).into(),
                text(&c.max_key).into(),
            ]
        })
        .collect()
}

/// A value without its type.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Boolean(v) => v.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Decimal(v) => v.to_string(),
        Value::Real(v) => v.to_string(),
        Value::Double(v) => v.to_string(),
        Value::Text(v) => v.to_string(),
        Value::Bytes(v) => format!("{v:02x?}"),
    }
}

fn merges(storage: &Database) -> Vec<Vec<Cell>> {
    storage.merges().into_iter().map(|m| vec![Cell::Null, Cell::Null, format!("{m:?}").into()]).collect()
}

fn wal(storage: &Database) -> Vec<Vec<Cell>> {
    let status = storage.log_status();
    vec![vec!["status".into(), format!("{status:?}").into()]]
}
