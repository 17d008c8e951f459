//! Arrow batches of other programs, in the types that columns of tables have here.
//!
//! Values are converted as they are: what is finer than a microsecond is refused (22008), not cut.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType as ArrowType, Field, Schema, SchemaRef, Time64NanosecondType, TimeUnit, TimestampNanosecondType,
};
use mainstem_postgres::cast::in_own_unit;
use mainstem_postgres::error::from_arrow;
use mainstem_postgres::sqlstate::DATETIME_RANGE;
use mainstem_postgres::types::{UUID, sql_type};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use super::batch::BatchRows;
use super::{ResultColumn, ValueRows};

/// The name by which Arrow's fields say that they are of UUIDs.
const EXTENSION: &str = "ARROW:extension:name";

/// The columns and rows of `batch`, which may be of another program: the inverse of [`batch_of`](super::batch_of).
///
/// # Errors
/// 22008 for times finer than a microsecond, 22003 for numbers that no type has, 0A000 for types without values here.
pub fn values_of(batch: &RecordBatch) -> Result<ValueRows> {
    let schema = own_schema(&batch.schema());
    let columns = ResultColumn::of(&schema);
    let mut rows = BatchRows::new(&own_batch(batch, &schema)?, &columns)?;
    let values = std::iter::from_fn(|| rows.next()).collect::<Result<_>>()?;
    Ok((columns, values))
}

/// `schema` with the types that columns of its values have here.
pub(crate) fn own_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| own_field(field)).collect::<Vec<_>>();
    Arc::new(Schema::new(fields))
}

/// `field` in the type that a column of its values has here; what no column has stays as it is.
fn own_field(field: &Field) -> Field {
    let is_uuid = field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid");
    let data_type = match field.data_type() {
        ArrowType::FixedSizeBinary(16) if is_uuid => UUID,
        ArrowType::FixedSizeBinary(16) => DataType::Bytea.arrow(),
        // A column of NULLs alone, whose type the program does not know.
        ArrowType::Null => DataType::Text { max_chars: None }.arrow(),
        other => sql_type(other).map_or_else(|| other.clone(), DataType::arrow),
    };
    Field::new(field.name(), data_type, true)
}

/// `array` as values of type `own`.
fn converted(array: &ArrayRef, own: &ArrowType, column: &str) -> Result<ArrayRef> {
    if array.data_type() == own {
        return Ok(array.clone());
    }
    let is_exact = match array.data_type() {
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>();
            nanos.iter().flatten().all(|nanos| nanos % 1_000 == 0)
        }
        ArrowType::Time64(TimeUnit::Nanosecond) => {
            array.as_primitive::<Time64NanosecondType>().iter().flatten().all(|nanos| nanos % 1_000 == 0)
        }
        _ => true,
    };
    if !is_exact {
        let message = format!("column \"{column}\" has times finer than a microsecond; round them first");
        return Err(Error::invalid(DATETIME_RANGE, message));
    }
    let array = in_own_unit(array)?;
    if array.data_type() == own {
        return Ok(array);
    }
    cast_with_options(&array, own, &CastOptions { safe: false, ..CastOptions::default() }).map_err(|e| from_arrow(&e))
}

/// `batch` in the columns of `schema`, which [`own_schema`] gave for its own.
///
/// # Errors
/// As [`values_of`].
pub(crate) fn own_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        let message = format!("a batch of {} columns stands for another number of them", batch.num_columns());
        return Err(Error::internal(message));
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(array, field)| converted(array, field.data_type(), field.name()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_>>()?, &options)?)
}
