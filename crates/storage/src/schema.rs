//! What a table is: columns with types and ids, keys, layout, options. Immutable; every DDL statement makes a new
//! version. A container keeps the schema it was written under; column ids connect them (contract 1).

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema, TimeUnit};

use crate::ids::{ColumnId, KeyId, SchemaVersion, TableId};
use crate::limits;
use crate::row::Value;

/// The name by which a field of text says that it is CHAR(n).
const CHAR_EXTENSION: &str = "mainstem.char";

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
    /// TIME; Arrow Time64(Microsecond), from 00:00:00 to 23:59:59.999999.
    Time,
    /// TIMESTAMP; Arrow Timestamp(Microsecond, None).
    Timestamp,
    /// TIMESTAMP WITH TIME ZONE; Arrow Timestamp(Microsecond, "+00:00"), stored in UTC.
    TimestampTz,
    /// TEXT, VARCHAR or VARCHAR(n); Arrow Utf8View. At most `max_chars` characters.
    Text {
        /// The n of VARCHAR(n).
        max_chars: Option<u32>,
    },
    /// CHAR(n); Arrow Utf8View. At most `chars` characters, held without the blanks at their end, which do not count.
    Char {
        /// The n of CHAR(n).
        chars: u32,
    },
    /// BYTEA; Arrow BinaryView.
    Bytea,
    /// UUID; Arrow FixedSizeBinary(16), ordered by bytes. No other type has this Arrow type.
    Uuid,
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
            Self::Time => ArrowType::Time64(TimeUnit::Microsecond),
            Self::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Self::Text { .. } | Self::Char { .. } => ArrowType::Utf8View,
            Self::Bytea => ArrowType::BinaryView,
            Self::Uuid => ArrowType::FixedSizeBinary(16),
        }
    }

    /// A field of this type. CHAR(n) is an extension of text: the field says so, for the Arrow type does not.
    #[must_use]
    pub fn field(self, name: impl Into<String>, nullable: bool) -> Field {
        let field = Field::new(name, self.arrow(), nullable);
        match self {
            Self::Char { chars } => field.with_metadata(HashMap::from([
                (EXTENSION_TYPE_NAME_KEY.to_owned(), CHAR_EXTENSION.to_owned()),
                (EXTENSION_TYPE_METADATA_KEY.to_owned(), chars.to_string()),
            ])),
            _ => field,
        }
    }

    /// The n of CHAR(n), if `field` is one that [`DataType::field`] made of it.
    #[must_use]
    pub fn chars_of(field: &Field) -> Option<u32> {
        let metadata = field.metadata();
        (metadata.get(EXTENSION_TYPE_NAME_KEY)? == CHAR_EXTENSION)
            .then(|| metadata.get(EXTENSION_TYPE_METADATA_KEY)?.parse().ok())
            .flatten()
    }

    /// Whether it has sums, of numbers without a fraction in storage, and those of any number of rows fit 128 bits.
    #[must_use]
    pub fn has_small_sums(self) -> bool {
        /// 10^19 times 2^63 rows is less than 2^127.
        const DIGITS_MAX: u8 = 19;
        match self {
            Self::SmallInt | Self::Integer | Self::BigInt => true,
            Self::Decimal { precision, .. } => precision <= DIGITS_MAX,
            _ => false,
        }
    }

    /// Whether its values are whole numbers of at most 64 bits, in storage: [`Value::Int`].
    #[must_use]
    pub fn is_whole(self) -> bool {
        matches!(
            self,
            Self::SmallInt
                | Self::Integer
                | Self::BigInt
                | Self::Date
                | Self::Time
                | Self::Timestamp
                | Self::TimestampTz
        )
    }

    /// Whether its values are text.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Char { .. })
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
            Self::Time => f.write_str("time without time zone"),
            Self::Timestamp => f.write_str("timestamp without time zone"),
            Self::TimestampTz => f.write_str("timestamp with time zone"),
            Self::Text { max_chars: None } => f.write_str("text"),
            Self::Text { max_chars: Some(n) } => write!(f, "character varying({n})"),
            Self::Char { chars } => write!(f, "character({chars})"),
            Self::Bytea => f.write_str("bytea"),
            Self::Uuid => f.write_str("uuid"),
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
    /// DEFAULT: an SQL expression without columns. Without one, NULL.
    pub default: Option<Arc<str>>,
    /// GENERATED ... AS IDENTITY: where its values come from when a row names none.
    pub identity: Option<Identity>,
}

impl Column {
    /// A column called `name`, without a default; containers without it read as NULL.
    #[must_use]
    pub fn new(id: ColumnId, name: impl Into<String>, data_type: DataType, nullable: bool) -> Self {
        Self { id, name: name.into(), data_type, nullable, missing_value: Value::Null, default: None, identity: None }
    }
}

/// How an IDENTITY column counts. Which numbers are taken is state, not schema: values may leave gaps and never repeat
/// (contract 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// ALWAYS: a row that names a value is refused; BY DEFAULT: it keeps its own.
    pub always: bool,
    /// The first value.
    pub start: i64,
    /// From one value to the next; not 0.
    pub increment: i64,
}

impl Identity {
    /// How many of its numbers are taken when `value` is the last one given out, or, unless it `is_called`, the next;
    /// none if there are not so many.
    #[must_use]
    pub fn taken_upto(&self, value: i64, is_called: bool) -> Option<u64> {
        let (start, increment) = (i128::from(self.start), i128::from(self.increment));
        let ahead = i128::from(value) - start;
        if ahead * increment.signum() < 0 {
            return Some(0);
        }
        let steps = ahead.checked_div(increment)?;
        // A value that it does not count through is behind one that it has given out.
        u64::try_from(steps + i128::from(is_called || steps * increment != ahead)).ok()
    }
}

/// A CHECK constraint: its expression is not false for any row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, unique in the table.
    pub name: String,
    /// An SQL expression over the table's columns.
    pub expression: String,
}

/// A UNIQUE constraint. Rows with a NULL in one of its columns are distinct from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueKey {
    /// Its id: never reused within the table; not [`KeyId::PRIMARY`].
    pub id: KeyId,
    /// Its name, unique in the table.
    pub name: String,
    /// Its columns in declared order.
    pub columns: Vec<ColumnId>,
}

/// What the PRIMARY KEY of the table called `table` is called if nothing else was said.
#[must_use]
pub fn primary_key_name(table: &str) -> String {
    format!("{table}_pkey")
}

/// Name of the namespace that always exists.
pub const PUBLIC: &str = "public";

/// How a table or view is called: a namespace (CREATE SCHEMA) and a name in it, as SQL folds them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationName {
    /// The namespace.
    pub namespace: String,
    /// The name in it.
    pub name: String,
}

impl RelationName {
    /// `namespace.name`.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// `name` in the namespace that always exists.
    #[must_use]
    pub fn public(name: impl Into<String>) -> Self {
        Self::new(PUBLIC, name)
    }
}

/// As messages spell it: without the namespace that always exists.
impl fmt::Display for RelationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace == PUBLIC { f.write_str(&self.name) } else { write!(f, "{}.{}", self.namespace, self.name) }
    }
}

/// A view: a query with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// How it is called.
    pub name: RelationName,
    /// Names of its columns; empty means those of the query.
    pub columns: Vec<String>,
    /// The query, as SQL.
    pub query: String,
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
    /// The namespace it stands in.
    pub namespace: String,
    /// Its name in the namespace.
    pub name: String,
    /// The columns in the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// The next unused column id.
    pub next_column: ColumnId,
    /// The next unused key id.
    pub next_key: KeyId,
    /// Columns of the PRIMARY KEY in declared order; empty without one. All are NOT NULL.
    pub primary_key: Vec<ColumnId>,
    /// Its constraint's name; without one, the table's with `_pkey` behind.
    pub primary_key_name: Option<String>,
    /// UNIQUE constraints beside the PRIMARY KEY.
    pub unique_keys: Vec<UniqueKey>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Columns of the sort key, ascending, NULLs last; empty in layout `insertion`.
    pub sort_key: Vec<ColumnId>,
    /// Row order in main.
    pub layout: Layout,
    /// Options.
    pub options: TableOptions,
}

impl TableSchema {
    /// The first version of a table called `name`, in the namespace that always exists, in arrival order and without
    /// keys.
    #[must_use]
    pub fn new(id: TableId, name: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            id,
            version: SchemaVersion(1),
            namespace: PUBLIC.to_owned(),
            name: name.into(),
            next_column: ColumnId(columns.iter().map(|c| c.id.0 + 1).max().unwrap_or(0)),
            columns,
            next_key: KeyId(KeyId::PRIMARY.0 + 1),
            primary_key: Vec::new(),
            primary_key_name: None,
            unique_keys: Vec::new(),
            checks: Vec::new(),
            sort_key: Vec::new(),
            layout: Layout::Insertion,
            options: TableOptions::default(),
        }
    }

    /// How the table is called.
    #[must_use]
    pub fn relation_name(&self) -> RelationName {
        RelationName::new(&self.namespace, &self.name)
    }

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

    /// Whether the table has a PRIMARY KEY.
    #[must_use]
    pub fn has_key(&self) -> bool {
        !self.primary_key.is_empty()
    }

    /// Its keys, each with its columns in declared order: the PRIMARY KEY, if it has one, then the UNIQUE constraints.
    /// No two rows are equal in all columns of a key; a row with a NULL in one of them has no such key.
    pub fn keys(&self) -> impl Iterator<Item = (KeyId, &[ColumnId])> {
        let primary = Some((KeyId::PRIMARY, self.primary_key.as_slice())).filter(|_| self.has_key());
        primary.into_iter().chain(self.unique_keys.iter().map(|key| (key.id, key.columns.as_slice())))
    }

    /// Rows that a commit may append to a delta of the table under the commit lock.
    #[must_use]
    pub fn commit_rows_max(&self) -> usize {
        limits::commit_rows_max(self.keys().count(), self.columns.len())
    }

    /// Whether the table has any key.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.has_key() || !self.unique_keys.is_empty()
    }

    /// Columns of `key` in declared order; empty without it.
    #[must_use]
    pub fn key_columns(&self, key: KeyId) -> &[ColumnId] {
        self.keys().find(|(id, _)| *id == key).map_or(&[], |(_, columns)| columns)
    }

    /// What the constraint is called that makes `key` one.
    #[must_use]
    pub fn key_name(&self, key: KeyId) -> Cow<'_, str> {
        let unique = self.unique_keys.iter().find(|unique| unique.id == key).map(|unique| &unique.name);
        let named = unique.or(self.primary_key_name.as_ref());
        named.map_or_else(|| primary_key_name(&self.name).into(), |name| name.as_str().into())
    }

    /// Whether main is in the order of a key of these `columns`, so that runs themselves are searched for it: they are
    /// the sort key, and no row is without it.
    #[must_use]
    pub fn is_order(&self, columns: &[ColumnId]) -> bool {
        let never_null = |id: &ColumnId| self.column(*id).is_some_and(|column| !column.nullable);
        *columns == *self.sort_key && columns.iter().all(never_null)
    }

    /// The key that main is in the order of.
    #[must_use]
    pub fn ordered_key(&self) -> Option<KeyId> {
        self.keys().find(|(_, columns)| self.is_order(columns)).map(|(id, _)| id)
    }

    /// The keys that runs are not in the order of: each run has a key index for each of them
    /// (`docs/design/0003-key-index.md`).
    pub fn indexed_keys(&self) -> impl Iterator<Item = KeyId> {
        self.keys().filter(|(_, columns)| !self.is_order(columns)).map(|(id, _)| id)
    }

    /// The Arrow schema of `SELECT *`.
    #[must_use]
    pub fn arrow(&self) -> Arc<ArrowSchema> {
        Arc::new(ArrowSchema::new(
            self.columns.iter().map(|c| c.data_type.field(&c.name, c.nullable)).collect::<Vec<_>>(),
        ))
    }
}
