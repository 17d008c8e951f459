//! The tables of the schemas `mainstem` and `information_schema`: what the database knows about itself.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;

use super::information;
use crate::sql::INFORMATION;

/// Contents of the system tables that one statement reads.
#[derive(Debug, Default)]
pub(crate) struct SystemTables {
    /// By schema and name.
    filled: Vec<(&'static str, &'static str, RecordBatch)>,
}

/// Columns of a system table.
const TABLES: &[(&str, &[(&str, Kind)])] = &[
    (
        "tables",
        &[
            ("table_name", Kind::Text),
            ("layout", Kind::Text),
            ("primary_key", Kind::Text),
            ("sort_key", Kind::Text),
            ("segment_rows", Kind::Int),
            ("delta_rows", Kind::Int),
            ("schema_name", Kind::Text),
        ],
    ),
    (
        "columns",
        &[
            ("table_name", Kind::Text),
            ("column_name", Kind::Text),
            ("position", Kind::Int),
            ("data_type", Kind::Text),
            ("nullable", Kind::Bool),
            ("schema_name", Kind::Text),
            ("column_default", Kind::Text),
            ("identity", Kind::Text),
        ],
    ),
    (
        "containers",
        &[
            ("table_name", Kind::Text),
            ("container", Kind::Int),
            ("kind", Kind::Text),
            ("run", Kind::Int),
            ("rows", Kind::Int),
            ("deleted", Kind::Int),
            ("bytes", Kind::Int),
            ("min_key", Kind::Text),
            ("max_key", Kind::Text),
            ("schema_name", Kind::Text),
        ],
    ),
    (
        "merges",
        &[
            ("number", Kind::Int),
            ("table_name", Kind::Text),
            ("reason", Kind::Text),
            ("state", Kind::Text),
            ("message", Kind::Text),
            ("started", Kind::Time),
            ("milliseconds", Kind::Int),
            ("deltas", Kind::Int),
            ("runs", Kind::Int),
            ("rows_in", Kind::Int),
            ("rows_written", Kind::Int),
        ],
    ),
    (
        "wal",
        &[
            ("applied", Kind::Int),
            ("visible", Kind::Int),
            ("fsynced", Kind::Int),
            ("files", Kind::Int),
            ("bytes", Kind::Int),
            ("tail_bytes", Kind::Int),
            ("commits", Kind::Int),
            ("installs", Kind::Int),
            ("writes", Kind::Int),
            ("fsyncs", Kind::Int),
            ("stopped", Kind::Text),
        ],
    ),
    ("lost_files", &[("file", Kind::Text), ("bytes", Kind::Int), ("log_file", Kind::Int), ("container", Kind::Int)]),
    ("memory", &[("kind", Kind::Text), ("bytes", Kind::Int), ("bytes_max", Kind::Int)]),
    ("settings", &[("name", Kind::Text), ("value", Kind::Text), ("description", Kind::Text)]),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    Int,
    Bool,
    Time,
}

/// A value of a system table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    Int(i64),
    Bool(bool),
    /// Microseconds since 1970-01-01, UTC.
    Time(i64),
    Null,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Null, Self::Int)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<std::time::SystemTime> for Cell {
    fn from(time: std::time::SystemTime) -> Self {
        let since = time.duration_since(std::time::UNIX_EPOCH).ok();
        since.and_then(|d| i64::try_from(d.as_micros()).ok()).map_or(Self::Null, Self::Time)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Null, Into::into)
    }
}

fn tables_of(schema: &str) -> &'static [(&'static str, &'static [(&'static str, Kind)])] {
    if schema == INFORMATION { information::TABLES } else { TABLES }
}

fn columns_of(schema: &str, name: &str) -> Option<&'static [(&'static str, Kind)]> {
    tables_of(schema).iter().find(|(table, _)| *table == name).map(|(_, columns)| *columns)
}

fn schema_of(columns: &[(&str, Kind)]) -> SchemaRef {
    let fields = columns.iter().map(|(name, kind)| {
        let data_type = match kind {
            Kind::Text => DataType::Utf8View,
            Kind::Int => DataType::Int64,
            Kind::Bool => DataType::Boolean,
            Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        };
        Field::new(*name, data_type, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl SystemTables {
    /// Names of those of `schema`.
    pub(crate) fn names(schema: &str) -> Vec<&'static str> {
        tables_of(schema).iter().map(|(name, _)| *name).collect()
    }

    /// Columns of table `name` of `schema`, each with its type.
    pub(crate) fn columns(schema: &str, name: &str) -> SchemaRef {
        schema_of(columns_of(schema, name).unwrap_or_default())
    }

    /// Fills table `name` of `schema`; each row has the table's columns in order.
    ///
    /// # Errors
    /// Internal when rows do not fit the table.
    pub(crate) fn fill(&mut self, schema: &'static str, name: &'static str, rows: &[Vec<Cell>]) -> Result<()> {
        let columns = columns_of(schema, name).unwrap_or_default();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for (at, (_, kind)) in columns.iter().enumerate() {
            let cells = rows.iter().map(|row| row.get(at).unwrap_or(&Cell::Null));
            arrays.push(match kind {
                Kind::Text => Arc::new(StringViewArray::from_iter(cells.map(|c| match c {
                    Cell::Text(text) => Some(text.as_str()),
                    _ => None,
                }))),
                Kind::Int => Arc::new(Int64Array::from_iter(cells.map(|c| match c {
                    Cell::Int(number) => Some(*number),
                    _ => None,
                }))),
                Kind::Time => {
                    let times = TimestampMicrosecondArray::from_iter(cells.map(|c| match c {
                        Cell::Time(micros) => Some(*micros),
                        _ => None,
                    }));
                    Arc::new(times.with_timezone("+00:00"))
                }
                Kind::Bool => Arc::new(BooleanArray::from_iter(cells.map(|c| match c {
                    Cell::Bool(flag) => Some(*flag),
                    _ => None,
                }))),
            });
        }
        self.filled.push((schema, name, RecordBatch::try_new(schema_of(columns), arrays)?));
        Ok(())
    }

    /// Table `name` of `schema` as DataFusion reads it; empty if this statement did not fill it.
    pub(super) fn table(&self, schema: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(columns) = columns_of(schema, name) else { return Ok(None) };
        let filled = self.filled.iter().filter(|(of, table, _)| *of == schema && *table == name);
        let batches = filled.map(|(.., batch)| batch.clone()).collect();
        Ok(Some(Arc::new(MemTable::try_new(schema_of(columns), vec![batches])?)))
    }
}
