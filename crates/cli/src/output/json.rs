//! JSON: an array of objects, or an object a line. NULL is `null`; decimals are numbers with all their digits.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited, Writer};
use mainstem::Error;

use super::values::uuid_text;
use super::{Rows, Stopped};

/// Writes all rows as one array, a row a line.
pub fn write_array(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    write::<JsonArray>(rows, out)?;
    Ok(writeln!(out)?)
}

/// Writes all rows as objects, each on its line.
pub fn write_lines(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    write::<LineDelimited>(rows, out)
}

fn write<F: JsonFormat>(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer: Writer<_, F> = builder.build(out);
    for batch in rows {
        writer.write(&with_texts(batch?).map_err(stopped)?).map_err(stopped)?;
    }
    writer.finish().map_err(stopped)
}

/// `batch` with UUIDs as text: to Arrow they are bytes.
fn with_texts(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let is_uuid = |field: &FieldRef| *field.data_type() == DataType::FixedSizeBinary(16);
    if !batch.schema().fields().iter().any(is_uuid) {
        return Ok(batch);
    }
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        match column.as_fixed_size_binary_opt().filter(|_| is_uuid(field)) {
            Some(uuids) => {
                columns.push(Arc::new(uuids.iter().map(|v| v.map(uuid_text)).collect::<StringArray>()) as ArrayRef);
                fields.push(Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)));
            }
            None => {
                columns.push(column.clone());
                fields.push(field.clone());
            }
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

/// Arrow wraps what the writer failed with.
fn stopped(error: ArrowError) -> Stopped {
    match error {
        ArrowError::IoError(_, error) => Stopped::Output(error),
        ArrowError::ExternalError(error) => match error.downcast::<io::Error>() {
            Ok(error) => Stopped::Output(*error),
            Err(error) => Error::from(ArrowError::ExternalError(error)).into(),
        },
        error => Error::from(error).into(),
    }
}
