//! JSON: an array of objects, or an object a line. NULL is `null`; decimals are numbers with all their digits. Dates, times and UUIDs are
//! texts as PostgreSQL writes them in JSON.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited, Writer};
use mainstem::Error;

use super::values::Cells;
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
        writer.write(&with_texts(batch?)?).map_err(stopped)?;
    }
    writer.finish().map_err(stopped)
}

/// `batch` with UUIDs and times as text: to Arrow the ones are bytes, and in the others it writes zeros behind the point.
fn with_texts(batch: RecordBatch) -> Result<RecordBatch, Stopped> {
    let has_text = |field: &FieldRef| {
        use DataType::{FixedSizeBinary, Time32, Time64, Timestamp};
        matches!(field.data_type(), FixedSizeBinary(16) | Time32(_) | Time64(_) | Timestamp(..))
    };
    if !batch.schema().fields().iter().any(has_text) {
        return Ok(batch);
    }
    let cells = Cells::of_json(&batch)?;
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (at, (field, column)) in batch.schema().fields().iter().zip(batch.columns()).enumerate() {
        if has_text(field) {
            let text = |row| {
                let mut text = String::new();
                cells.append(at, row, &mut text).then_some(text)
            };
            columns.push(Arc::new((0..batch.num_rows()).map(text).collect::<StringArray>()) as ArrayRef);
            fields.push(Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)));
        } else {
            columns.push(column.clone());
            fields.push(field.clone());
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(stopped)
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
