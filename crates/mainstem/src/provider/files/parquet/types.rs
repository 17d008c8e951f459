//! Units and logical types: columns of Parquet files as columns of tables have them.
//!
//! 1. [`read_as`] has Arrow's reader (`parquet` 59.3, as DataFusion 55.2 has it) give INT96 as microseconds, for
//!    nanoseconds of 64 bits end in 2262; and ENUM as text.
//! 2. [`own_type`] says what a column is then: days and microseconds whatever the unit, moments in the time zone of
//!    tables, bytes of a fixed length as bytes unless their logical type is UUID, decimals as those of tables.
//! 3. [`in_own_type`] makes it of what was read: what is finer than a microsecond is cut toward the past.
//!
//! It does not own: what a value becomes in the column of a table (`cast::assign`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
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
            ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView if is_enum(in_file) => {
                ArrowType::Utf8View
            }
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

fn is_enum(column: &Type) -> bool {
    let info = column.get_basic_info();
    matches!(info.logical_type_ref(), Some(LogicalType::Enum)) || info.converted_type() == ConvertedType::ENUM
}

/// The types that columns of a file have here, which Arrow's reader gives as `schema`.
pub(super) fn own_types(schema: &Schema, file: &SchemaDescriptor) -> Vec<ArrowType> {
    let is_uuid = |column: &Type| matches!(column.get_basic_info().logical_type_ref(), Some(LogicalType::Uuid));
    described(schema, file).map(|(field, column)| own_type(field.data_type(), is_uuid(column))).collect()
}

/// The type that a column has here which Arrow's reader gives as `read`.
fn own_type(read: &ArrowType, is_uuid: bool) -> ArrowType {
    match read {
        // A load takes codes of texts as such.
        ArrowType::Dictionary(_, values) if values.is_string() => read.clone(),
        ArrowType::Dictionary(_, values) => own_type(values, is_uuid),
        uuid if *uuid == UUID && is_uuid => UUID,
        ArrowType::FixedSizeBinary(_) => ArrowType::BinaryView,
        ArrowType::Decimal32(precision, scale) => ArrowType::Decimal128(*precision, *scale),
        ArrowType::Decimal256(precision, scale) if *precision <= DECIMAL128_MAX_PRECISION => {
            ArrowType::Decimal128(*precision, *scale)
        }
        other => own_unit(other),
    }
}

/// The column `name` of a file, in its own type.
///
/// # Errors
/// 22008 for times beyond those that there are, 22003 for decimals of too many digits.
pub(super) fn in_own_type(array: &ArrayRef, own: &ArrowType, name: &str) -> Result<ArrayRef> {
    if array.data_type() == own {
        return Ok(array.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |to: &ArrowType| {
        let out_of_range = || Error::invalid(sqlstate::OUT_OF_RANGE, "a value is out of range");
        cast_with_options(array, to, &options).map_err(|_| out_of_range())
    };
    let made = match array.data_type() {
        ArrowType::Dictionary(_, values) => return in_own_type(&cast(values)?, own, name),
        from if own_unit(from) == *own => in_own_unit(array),
        _ => cast(own),
    };
    made.map_err(|error| error.context(format_args!("column \"{name}\"")))
}
