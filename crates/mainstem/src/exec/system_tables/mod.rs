//! Rows of the system tables.

mod information;

use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use mainstem_storage::background::MergeState;
use mainstem_storage::catalog::Catalog;
use mainstem_storage::database::Database;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::memory::MemoryKind;
use mainstem_storage::recover::LostFile;
use mainstem_storage::row::{Value, array_of};
use mainstem_storage::schema::{DataType, Layout, RelationName, TableSchema};

use super::plan_cache::{PlanCache, PlanRow};
use super::settings::Settings;
use crate::provider::Cell;
pub(super) use information::rows as information;
use mainstem_postgres::types::sql_name;

/// The rows of system table `name`. Running queries take `query_bytes` of memory.
pub(super) fn rows(
    name: &str,
    storage: &Database,
    catalog: &Catalog,
    settings: &Settings,
    query_bytes: u64,
) -> Vec<Vec<Cell>> {
    match name {
        "tables" => seen(catalog, settings).map(|table| table_row(table)).collect(),
        "columns" => seen(catalog, settings).flat_map(|table| column_rows(table)).collect(),
        "containers" => containers(storage, catalog, settings),
        "merges" => merges(storage),
        "wal" => wal(storage),
        "lost_files" => lost_files(storage),
        "memory" => storage
            .memory()
            .into_iter()
            .map(|m| {
                let bytes = if m.kind == MemoryKind::Queries { query_bytes } else { m.bytes };
                vec![m.kind.name().into(), bytes.into(), m.limit.into()]
            })
            .collect(),
        "settings" => settings
            .all()
            .into_iter()
            .map(|(name, value, description)| vec![name.into(), value.into(), description.into()])
            .collect(),
        _ => Vec::new(),
    }
}

/// The rows of system table `plans`.
pub(super) fn plans(cache: &PlanCache, catalog: &Arc<Catalog>) -> Vec<Vec<Cell>> {
    let row = |row: PlanRow| {
        vec![
            row.text.into(),
            row.execution.map(str::to_owned).into(),
            (row.parameters as u64).into(),
            row.reuses.into(),
            row.runs.into(),
            row.bytes.into(),
        ]
    };
    cache.rows(catalog).into_iter().map(row).collect()
}

/// The tables that the session may know of.
fn seen<'c>(catalog: &'c Catalog, settings: &'c Settings) -> impl Iterator<Item = &'c Arc<TableSchema>> {
    catalog.tables().filter(|table| settings.names().sees(&table.namespace))
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
        table.namespace.clone().into(),
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
                table.namespace.clone().into(),
                column.default.as_deref().map(str::to_owned).into(),
                column.identity.map(|i| if i.always { "always" } else { "by default" }).into(),
            ]
        })
        .collect()
}

fn containers(storage: &Database, catalog: &Catalog, settings: &Settings) -> Vec<Vec<Cell>> {
    storage
        .containers()
        .into_iter()
        .filter(|c| settings.names().sees(&c.namespace))
        .map(|c| {
            let key_type = catalog
                .table_called(&RelationName::new(&c.namespace, &c.table))
                .and_then(|table| table.column(*table.sort_key.first()?))
                .map(|column| column.data_type);
            let text = |value: &Option<Value>| describe(value.as_ref()?, key_type?);
            let (min_key, max_key) = (text(&c.min_key), text(&c.max_key));
            vec![
                c.table.into(),
                c.id.0.into(),
                c.kind.into(),
                c.run.into(),
                c.rows.into(),
                c.deleted.into(),
                c.bytes.into(),
                min_key.into(),
                max_key.into(),
                c.namespace.into(),
            ]
        })
        .collect()
}

/// `value` of type `data_type` as text; None for NULL.
fn describe(value: &Value, data_type: DataType) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let array = array_of(std::iter::once(value), data_type).ok()?;
    let formatter = ArrayFormatter::try_new(array.as_ref(), &FormatOptions::default()).ok()?;
    Some(formatter.value(0).to_string())
}

fn merges(storage: &Database) -> Vec<Vec<Cell>> {
    storage
        .merges()
        .into_iter()
        .map(|m| {
            let (state, message) = match m.state {
                MergeState::Running => ("running", None),
                MergeState::Installed => ("installed", None),
                MergeState::Discarded => ("discarded", None),
                MergeState::Failed(message) => ("failed", Some(message)),
            };
            let milliseconds = u64::try_from(m.duration.as_millis()).unwrap_or(u64::MAX);
            vec![
                m.number.into(),
                m.table.into(),
                m.reason.to_string().into(),
                state.into(),
                message.into(),
                m.started.into(),
                milliseconds.into(),
                (m.deltas as u64).into(),
                (m.runs as u64).into(),
                m.rows_in.into(),
                m.rows_written.into(),
            ]
        })
        .collect()
}

fn wal(storage: &Database) -> Vec<Vec<Cell>> {
    let status = storage.log_status();
    vec![vec![
        status.applied.0.into(),
        status.visible.0.into(),
        status.fsynced.0.into(),
        status.files.into(),
        status.bytes.into(),
        storage.log_tail_bytes().into(),
        status.commits.into(),
        status.installs.into(),
        status.writes.into(),
        status.syncs.into(),
        status.poisoned.into(),
    ]]
}

/// Files that recovery has set aside. What cannot be listed is shown as none, and logged: system tables do not fail.
fn lost_files(storage: &Database) -> Vec<Vec<Cell>> {
    let files = storage.lost_files().unwrap_or_else(|e| {
        tracing::warn!("files that were set aside could not be listed: {e}");
        Vec::new()
    });
    let row = |(file, bytes): (LostFile, u64)| {
        let container = file.container.map(|id| id.0);
        vec![file.path().into(), bytes.into(), file.log_file.into(), container.into()]
    };
    files.into_iter().map(row).collect()
}
