//! The tables of the schemas `mainstem` and `information_schema`: what the database knows about itself.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;

use crate::sql::INFORMATION;

/// Contents of the system tables that one statement reads.
#[derive(Debug, Default)]
pub(crate) struct SystemTables {
    /// By schema and name.
    filled: Vec<(&'static str, &'static str, RecordBatch)>,
}

/// A table's name, and its columns: texts, or of the kind behind the colon.
type Table = (&'static str, &'static str);

/// The tables of the schema `mainstem`.
const TABLES: &[Table] = &[
    ("tables", "table_name layout primary_key sort_key segment_rows:int delta_rows:int schema_name"),
    ("columns", "table_name column_name position:int data_type nullable:bool schema_name column_default identity"),
    ("containers", "table_name container:int kind run:int rows:int deleted:int bytes:int min_key max_key schema_name"),
    (
        "merges",
        "number:int table_name reason state message started:time milliseconds:int deltas:int runs:int rows_in:int \
         rows_written:int",
    ),
    (
        "wal",
        "applied:int visible:int fsynced:int files:int bytes:int tail_bytes:int commits:int installs:int writes:int \
         fsyncs:int stopped",
    ),
    ("lost_files", "file bytes:int log_file:int container:int"),
    ("memory", "kind bytes:int bytes_max:int"),
    ("settings", "name value description"),
    ("plans", "statement execution parameters:int reuses:int runs:int bytes:int"),
];

/// The tables of `information_schema`, with PostgreSQL's names of their columns.
const INFORMATION_TABLES: &[Table] = &[
    (
        "schemata",
        "catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema \
         default_character_set_name sql_path",
    ),
    (
        "tables",
        "table_catalog table_schema table_name table_type self_referencing_column_name reference_generation \
         user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed \
         commit_action",
    ),
    (
        "columns",
        "table_catalog table_schema table_name column_name ordinal_position:int column_default is_nullable data_type \
         character_maximum_length:int character_octet_length:int numeric_precision:int numeric_precision_radix:int \
         numeric_scale:int datetime_precision:int interval_type interval_precision:int character_set_catalog \
         character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog \
         domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name \
         maximum_cardinality:int dtd_identifier is_self_referencing is_identity identity_generation identity_start \
         identity_increment identity_maximum identity_minimum identity_cycle is_generated generation_expression \
         is_updatable",
    ),
    (
        "views",
        "table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into \
         is_trigger_updatable is_trigger_deletable is_trigger_insertable_into",
    ),
    (
        "table_constraints",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type \
         is_deferrable initially_deferred enforced nulls_distinct",
    ),
    (
        "key_column_usage",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name \
         ordinal_position:int position_in_unique_constraint:int",
    ),
    ("check_constraints", "constraint_catalog constraint_schema constraint_name check_clause"),
    (
        "constraint_column_usage",
        "table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name",
    ),
];

#[derive(Clone, Copy, Debug)]
enum Kind {
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

fn tables_of(schema: &str) -> &'static [Table] {
    if schema == INFORMATION { INFORMATION_TABLES } else { TABLES }
}

fn columns_of(schema: &str, name: &str) -> Option<Vec<(&'static str, Kind)>> {
    let (_, columns) = tables_of(schema).iter().find(|(table, _)| *table == name)?;
    let column = |word: &'static str| match word.split_once(':') {
        Some((name, "int")) => (name, Kind::Int),
        Some((name, "bool")) => (name, Kind::Bool),
        Some((name, _)) => (name, Kind::Time),
        None => (word, Kind::Text),
    };
    Some(columns.split(' ').map(column).collect())
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
        schema_of(&columns_of(schema, name).unwrap_or_default())
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
        self.filled.push((schema, name, RecordBatch::try_new(schema_of(&columns), arrays)?));
        Ok(())
    }

    /// Table `name` of `schema` as DataFusion reads it; empty if this statement did not fill it.
    pub(super) fn table(&self, schema: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(columns) = columns_of(schema, name) else { return Ok(None) };
        let filled = self.filled.iter().filter(|(of, table, _)| *of == schema && *table == name);
        let batches = filled.map(|(.., batch)| batch.clone()).collect();
        Ok(Some(Arc::new(MemTable::try_new(schema_of(&columns), vec![batches])?)))
    }
}
