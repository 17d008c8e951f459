//! What a table is: columns with types and ids, keys, layout, options. Immutable; every DDL statement makes a new
//! version. A container keeps the schema it was written under; column ids connect them (contract 1).

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema, TimeUnit};

use crate::ids::{ColumnId, SchemaVersion, TableId};
use crate::limits;
use crate::row::Value;

/// A column's SQL type. Stored and emitted as the Arrow type of [`DataType::arrow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// BOOLEAN; Arrow Boolean.
    Boolean,
    /// SMALLINT; Arrow Int16.
    SmallInt,
    /// INTEGER; Arrow Int32.
    Integer,
    /// BIGINT; Arrow Int64.
    BigInt,
    /// REAL; Arrow Float32.
    Real,
    /// DOUBLE PRECISION; Arrow Float64.
    Double,
    /// DECIMAL(precision, scale), 1 <= precision <= 38; Arrow Decimal128.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: i8,
    },
    /// DATE; Arrow Date32 (days since 1970-01-01).
    Date,
    /// TIMESTAMP; Arrow Timestamp(Microsecond, None).
    Timestamp,
    /// TIMESTAMP WITH TIME ZONE; Arrow Timestamp(Microsecond, "+00:00"), stored in UTC.
    TimestampTz,
    /// TEXT, VARCHAR or VARCHAR(n); Arrow Utf8View. At most `max_chars` characters.
    Text {
        /// The n of VARCHAR(n).
        max_chars: Option<u32>,
    },
    /// BYTEA; Arrow BinaryView.
    Bytea,
}

impl DataType {
    /// The Arrow type of this column in memory and in scans.
    #[must_use]
    pub fn arrow(self) -> ArrowType {
        match self {
            Self::Boolean => ArrowType::Boolean,
            Self::SmallInt => ArrowType::Int16,
            Self::Integer => ArrowType::Int32,
            Self::BigInt => ArrowType::Int64,
            Self::Real => ArrowType::Float32,
            Self::Double => ArrowType::Float64,
            Self::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale),
            Self::Date => ArrowType::Date32,
            Self::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Self::Text { .. } => ArrowType::Utf8View,
            Self::Bytea => ArrowType::BinaryView,
        }
    }
}

/// The type as PostgreSQL's messages spell it.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("boolean"),
            Self::SmallInt => f.write_str("smallint"),
            Self::Integer => f.write_str("integer"),
            Self::BigInt => f.write_str("bigint"),
            Self::Real => f.write_str("real"),
            Self::Double => f.write_str("double precision"),
            Self::Decimal { precision, scale } => write!(f, "numeric({precision},{scale})"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp without time zone"),
            Self::TimestampTz => f.write_str("timestamp with time zone"),
            Self::Text { max_chars: None } => f.write_str("text"),
            Self::Text { max_chars: Some(n) } => write!(f, "character varying({n})"),
            Self::Bytea => f.write_str("bytea"),
        }
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its id: never reused within the table, also not after DROP COLUMN.
    pub id: ColumnId,
    /// Its name, as SQL folds it.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// What a container written before the column existed reads as (contract 1).
    pub missing_value: Value,
}

/// Order of rows in main: which stages a table's rows pass (the design space of `docs/ARCHITECTURE.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Arrival order (HYRISE).
    Insertion,
    /// Sorted runs of segments on the sort key (MemSQL).
    Sorted,
}

/// `WITH (...)` options of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableOptions {
    /// Rows of a full segment.
    pub segment_rows: u32,
    /// Rows at which the delta is frozen.
    pub delta_rows: u32,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { segment_rows: limits::SEGMENT_ROWS_DEFAULT, delta_rows: limits::DELTA_ROWS_DEFAULT }
    }
}

/// One version of a table's definition.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSchema {
    /// The table.
    pub id: TableId,
    /// Which version of its definition this is.
    pub version: SchemaVersion,
    /// Its name without a schema.
    pub name: String,
    /// The columns in the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// The next unused column id.
    pub next_column: ColumnId,
    /// Columns of the PRIMARY KEY in declared order; empty without one. All are NOT NULL.
    pub primary_key: Vec<ColumnId>,
    /// Columns of the sort key, ascending, NULLs last; empty in layout `insertion`.
    pub sort_key: Vec<ColumnId>,
    /// Row order in main.
    pub layout: Layout,
    /// Options.
    pub options: TableOptions,
}

impl TableSchema {
    /// The column with id `id`.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> Option<&Column> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// Position of the column with id `id` among [`TableSchema::columns`].
    #[must_use]
    pub fn position(&self, id: ColumnId) -> Option<usize> {
        self.columns.iter().position(|c| c.id == id)
    }

    /// The column called `name`.
    #[must_use]
    pub fn column_named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Ids of all columns in the order of `SELECT *`.
    #[must_use]
    pub fn column_ids(&self) -> Vec<ColumnId> {
        self.columns.iter().map(|c| c.id).collect()
    }

    /// Whether rows are found by key: the table has a PRIMARY KEY.
    #[must_use]
    pub fn has_key(&self) -> bool {
        !self.primary_key.is_empty()
    }

    /// Whether rows are found by key through a key index (`docs/design/0003-key-index.md`): the PRIMARY KEY is not the sort key.
    #[must_use]
    pub fn has_key_index(&self) -> bool {
        self.has_key() && self.primary_key != self.sort_key
    }

    /// The Arrow schema of `SELECT *`.
    #[must_use]
    pub fn arrow(&self) -> Arc<ArrowSchema> {
        Arc::new(ArrowSchema::new(
            self.columns.iter().map(|c| Field::new(&c.name, c.data_type.arrow(), c.nullable)).collect::<Vec<_>>(),
        ))
    }
}
