//! Arrow batches of other programs, in the types that columns of tables have here.
//!
//! Values are converted as they are: what is finer than a microsecond is refused (22008), not cut. Texts are looked at:
//! what is no UTF-8 is refused (22021).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{
    DataType as ArrowType, Date64Type, DurationNanosecondType, Field, IntervalMonthDayNanoType, IntervalUnit, Schema,
    SchemaRef, Time64NanosecondType, TimeUnit, TimestampNanosecondType,
};
use mainstem_postgres::cast::in_own_unit;
use mainstem_postgres::error::from_arrow;
use mainstem_postgres::sqlstate::DATETIME_RANGE;
use mainstem_postgres::types::{UUID, sql_type};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use super::batch::BatchRows;
use super::{ResultColumn, ValueRows};

/// character_not_in_repertoire
const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
/// The name by which Arrow's fields say that they are of UUIDs.
const EXTENSION: &str = "ARROW:extension:name";

/// The columns and rows of `batch`, which may be of another program. Values of types that no column has become texts.
///
/// # Errors
/// 22008 for times finer than a microsecond, 22021 for texts that are no UTF-8, 22003 for numbers that no type has.
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
    // Nobody has looked at what came through an interface of C.
    if has_texts(array.data_type()) {
        array.to_data().validate_full().map_err(|error| {
            let message = format!("column \"{column}\" has a text that is no UTF-8, or is damaged: {error}");
            Error::invalid(CHARACTER_NOT_IN_REPERTOIRE, message)
        })?;
    }
    let unpacked;
    let array = match array.as_any_dictionary_opt() {
        // A key may stand for NULL.
        Some(dictionary) => {
            unpacked = take(dictionary.values(), dictionary.keys(), None).map_err(|e| from_arrow(&e))?;
            &unpacked
        }
        None => array,
    };
    check_exact(array, column)?;
    if array.data_type() == own {
        return Ok(array.clone());
    }
    let array = in_own_unit(array)?;
    if array.data_type() == own {
        return Ok(array);
    }
    cast_with_options(&array, own, &CastOptions { safe: false, ..CastOptions::default() }).map_err(|e| from_arrow(&e))
}

/// Whether values of the type have texts, or keys of others.
fn has_texts(data_type: &ArrowType) -> bool {
    match data_type {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Dictionary(..) => true,
        other => other.is_nested(),
    }
}

/// Whether all of `values` are multiples of `part`.
fn whole(mut values: impl Iterator<Item = i64>, part: i64) -> bool {
    values.all(|value| value % part == 0)
}

/// Nothing is cut.
///
/// # Errors
/// 22008 for times finer than a microsecond, and for dates with a time.
fn check_exact(array: &ArrayRef, column: &str) -> Result<()> {
    let is_exact = match array.data_type() {
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            whole(array.as_primitive::<TimestampNanosecondType>().iter().flatten(), 1_000)
        }
        ArrowType::Time64(TimeUnit::Nanosecond) => {
            whole(array.as_primitive::<Time64NanosecondType>().iter().flatten(), 1_000)
        }
        ArrowType::Duration(TimeUnit::Nanosecond) => {
            whole(array.as_primitive::<DurationNanosecondType>().iter().flatten(), 1_000)
        }
        ArrowType::Interval(IntervalUnit::MonthDayNano) => {
            let spans = array.as_primitive::<IntervalMonthDayNanoType>();
            whole(spans.iter().flatten().map(|span| span.nanoseconds), 1_000)
        }
        ArrowType::Date64 => whole(array.as_primitive::<Date64Type>().iter().flatten(), 86_400_000),
        _ => true,
    };
    if is_exact {
        return Ok(());
    }
    let message =
        format!("column \"{column}\" has times finer than a microsecond, or dates with a time; round them first");
    Err(Error::invalid(DATETIME_RANGE, message))
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
