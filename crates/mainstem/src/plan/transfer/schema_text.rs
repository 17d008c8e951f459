//! A catalog as the SQL that makes it again.
//!
//! Comes in: tables and views. Goes out: statements, each with its semicolon, in an order in which they run: schemas,
//! tables, views behind what they read. Expressions and queries stand in the catalog as SQL, and are written as they
//! are. What tables have beside SQL, order and options, is written where it is not what CREATE TABLE gives by itself.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use mainstem_postgres::types::sql_name;
use mainstem_storage::Result;
use mainstem_storage::catalog::Catalog;
use mainstem_storage::ids::{ColumnId, KeyId};
use mainstem_storage::schema::{Column, Layout, RelationName, TableOptions, TableSchema, View};

use super::is_temporary;
use crate::sql::read_by;

/// `name` in quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Schema and name in quotes.
pub(super) fn full_name(name: &RelationName) -> String {
    format!("{}.{}", quoted(&name.namespace), quoted(&name.name))
}

/// `text` as a literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The tables of `catalog`, without temporary ones.
pub(super) fn tables(catalog: &Catalog) -> Vec<Arc<TableSchema>> {
    catalog.tables().filter(|table| !is_temporary(&table.namespace)).cloned().collect()
}

/// Statements that make schemas and tables.
pub(super) fn tables_text(catalog: &Catalog) -> String {
    let mut text = String::new();
    for name in catalog.namespaces().filter(|name| !is_temporary(name)) {
        push(&mut text, format_args!("CREATE SCHEMA {};\n", quoted(name)));
    }
    for table in tables(catalog) {
        table_text(&table, &mut text);
    }
    text
}

/// Statements that make views.
///
/// # Errors
/// Internal.
pub(super) fn views_text(catalog: &Catalog) -> Result<String> {
    let mut text = String::new();
    let mut left: Vec<&Arc<View>> = catalog.views().filter(|view| !is_temporary(&view.name.namespace)).collect();
    let mut missing: BTreeSet<&RelationName> = left.iter().map(|view| &view.name).collect();
    while !left.is_empty() {
        let before = left.len();
        let mut waiting = Vec::new();
        for view in left {
            if read_by(&view.query)?.iter().any(|read| missing.contains(read)) {
                waiting.push(view);
                continue;
            }
            missing.remove(&view.name);
            let columns: Vec<String> = view.columns.iter().map(|name| quoted(name)).collect();
            let list = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
            push(&mut text, format_args!("CREATE VIEW {}{list} AS\n    {};\n", full_name(&view.name), view.query));
        }
        // No view reads itself; if one did, it would be left out for ever.
        if waiting.len() == before {
            return Err(mainstem_storage::Error::internal("views that read one another in a circle"));
        }
        left = waiting;
    }
    Ok(text)
}

fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    // A String takes everything.
    let _ = text.write_fmt(what);
}

fn table_text(table: &TableSchema, text: &mut String) {
    let names = |ids: &[ColumnId]| {
        let names = ids.iter().filter_map(|id| table.column(*id)).map(|column| quoted(&column.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let mut parts: Vec<String> = table.columns.iter().map(|column| column_text(column, table)).collect();
    for (key, columns) in table.keys() {
        let kind = if key == KeyId::PRIMARY { "PRIMARY KEY" } else { "UNIQUE" };
        parts.push(format!("CONSTRAINT {} {kind} ({})", quoted(&table.key_name(key)), names(columns)));
    }
    for check in &table.checks {
        parts.push(format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.expression));
    }
    push(text, format_args!("CREATE TABLE {} (\n    {}\n)", full_name(&table.relation_name()), parts.join(",\n    ")));
    let mut options = Vec::new();
    if table.layout == Layout::Insertion && !table.primary_key.is_empty() {
        options.push("layout = 'insertion'".to_owned());
    }
    if table.layout == Layout::Sorted && table.sort_key != table.primary_key {
        push(text, format_args!(" ORDER BY ({})", names(&table.sort_key)));
    }
    let default = TableOptions::default();
    if table.options.segment_rows != default.segment_rows {
        options.push(format!("segment_rows = {}", table.options.segment_rows));
    }
    if table.options.delta_rows != default.delta_rows {
        options.push(format!("delta_rows = {}", table.options.delta_rows));
    }
    if !options.is_empty() {
        push(text, format_args!(" WITH ({})", options.join(", ")));
    }
    text.push_str(";\n");
}

fn column_text(column: &Column, table: &TableSchema) -> String {
    let mut text = format!("{} {}", quoted(&column.name), sql_name(column.data_type).to_uppercase());
    if !column.nullable && !table.primary_key.contains(&column.id) {
        text.push_str(" NOT NULL");
    }
    if let Some(default) = &column.default {
        push(&mut text, format_args!(" DEFAULT {default}"));
    }
    if let Some(identity) = &column.identity {
        let when = if identity.always { "ALWAYS" } else { "BY DEFAULT" };
        let (start, increment) = (identity.start, identity.increment);
        push(&mut text, format_args!(" GENERATED {when} AS IDENTITY (START WITH {start} INCREMENT BY {increment})"));
    }
    text
}
