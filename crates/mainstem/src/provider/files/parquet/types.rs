//! Units and logical types: columns of Parquet files as columns of tables have them.
//!
//! 1. [`read_as`] has Arrow's reader (`parquet` 59.3, as DataFusion 55.2 has it) give INT96 as microseconds, for
//!    nanoseconds of 64 bits end in 2262.
//! 2. [`OwnType`] says what a column is then: days and microseconds whatever the unit, moments in the time zone of
//!    tables, bytes of a fixed length as bytes unless their logical type is UUID, ENUM as text, decimals as those of
//!    tables.
//! 3. [`OwnType::of`] makes it of what was read: what is finer than a microsecond is cut toward the past.
//!
//! That reader looks whether texts are UTF-8 only where their converted type is UTF8 (issue 11140 of apache/arrow-rs),
//! which JSON's is not, nor that of bytes that a schema of Arrow's calls text: those are looked at here.
//!
//! It does not own: what a value becomes in the column of a table (`cast::assign`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use datafusion::parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use datafusion::parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use mainstem_postgres::cast::{in_own_unit, own_unit};
use mainstem_postgres::types::UUID;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// The fields of `schema`, each with what the file says of it.
fn described<'s>(schema: &'s Schema, file: &'s SchemaDescriptor) -> impl Iterator<Item = (&'s FieldRef, &'s TypePtr)> {
    schema.fields().iter().zip(file.root_schema().get_fields())
}

/// As what Arrow's reader has to give the columns of a file, where that is not `schema`.
pub(super) fn read_as(schema: &SchemaRef, file: &SchemaDescriptor) -> Option<SchemaRef> {
    let better = |(field, in_file): (&FieldRef, &TypePtr)| {
        let data_type = match field.data_type() {
            ArrowType::Timestamp(_, zone) if is_int96(in_file) => {
                ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            // It takes texts without a converted type for bytes where they are codes.
            ArrowType::Dictionary(_, values) if values.is_string() && !is_utf8(in_file) => ArrowType::Utf8,
            _ => return field.clone(),
        };
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    let fields: Vec<FieldRef> = described(schema, file).map(better).collect();
    let differs = fields.len() == schema.fields().len() && !fields.iter().eq(schema.fields().iter());
    differs.then(|| Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

fn is_int96(column: &Type) -> bool {
    column.is_primitive() && column.get_physical_type() == PhysicalType::INT96
}

/// Whether Arrow's reader sees to it that texts of `column` are some.
fn is_utf8(column: &Type) -> bool {
    column.get_basic_info().converted_type() == ConvertedType::UTF8
}

fn is_enum(column: &Type) -> bool {
    let info = column.get_basic_info();
    matches!(info.logical_type_ref(), Some(LogicalType::Enum)) || info.converted_type() == ConvertedType::ENUM
}

/// What a column of a file is here.
#[derive(Clone, Debug)]
pub(super) struct OwnType {
    pub(super) data_type: ArrowType,
    /// Nobody has looked yet whether its texts are UTF-8.
    is_unchecked: bool,
}

impl OwnType {
    /// Those of the columns of `file`, which Arrow's reader gives as `schema`.
    pub(super) fn all(schema: &Schema, file: &SchemaDescriptor) -> Vec<Self> {
        let own = |(field, column): (&FieldRef, &TypePtr)| {
            let data_type = own_type(field.data_type(), column);
            Self { is_unchecked: data_type.is_string() && !is_utf8(column), data_type }
        };
        described(schema, file).map(own).collect()
    }

    /// The column `name` of a file as one of this type.
    ///
    /// # Errors
    /// 22008 for times beyond those that there are, 22003 for decimals of too many digits, 22021 for texts that are
    /// none.
    pub(super) fn of(&self, array: &ArrayRef, name: &str) -> Result<ArrayRef> {
        let own = &self.data_type;
        let made = match array.data_type() {
            from if from == own && self.is_unchecked => {
                array.to_data().validate_full().map_err(|_| no_text()).map(|()| array.clone())
            }
            from if from == own => return Ok(array.clone()),
            ArrowType::Dictionary(_, values) => {
                return self.of(&cast(array, values).map_err(|_| out_of_range())?, name);
            }
            from if from.is_binary() && own.is_string() => cast(array, own).map_err(|_| no_text()),
            from if own_unit(from) == *own => in_own_unit(array),
            _ => cast(array, own).map_err(|_| out_of_range()),
        };
        made.map_err(|error| error.context(format_args!("column \"{name}\"")))
    }
}

/// The type that a column has here which Arrow's reader gives as `read`, and the file describes as `column`.
fn own_type(read: &ArrowType, column: &Type) -> ArrowType {
    match read {
        // A load takes codes of texts as such.
        ArrowType::Dictionary(_, values) if values.is_string() => read.clone(),
        ArrowType::Dictionary(_, values) => own_type(values, column),
        uuid if *uuid == UUID && matches!(column.get_basic_info().logical_type_ref(), Some(LogicalType::Uuid)) => UUID,
        ArrowType::FixedSizeBinary(_) => ArrowType::BinaryView,
        bytes if bytes.is_binary() && is_enum(column) => ArrowType::Utf8View,
        ArrowType::Decimal32(precision, scale) => ArrowType::Decimal128(*precision, *scale),
        ArrowType::Decimal256(precision, scale) if *precision <= DECIMAL128_MAX_PRECISION => {
            ArrowType::Decimal128(*precision, *scale)
        }
        other => own_unit(other),
    }
}

fn cast(array: &ArrayRef, to: &ArrowType) -> std::result::Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

fn out_of_range() -> Error {
    Error::invalid(sqlstate::OUT_OF_RANGE, "a value is out of range")
}

fn no_text() -> Error {
    Error::invalid("22021", "invalid byte sequence for encoding \"UTF8\"")
}
