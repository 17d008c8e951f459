//! JSON: an array of objects, or an object a line. NULL is `null`; decimals are numbers with all their digits; what
//! JSON has no word for (NaN, the infinities, bytes, UUIDs, dates and times) is text, as PostgreSQL writes it in JSON.
//! Columns of one name, which would be one key, are told apart by their positions: `id`, `id_3`.

use std::collections::HashSet;
use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, FieldRef, Float32Type, Float64Type, Schema};
use arrow::error::ArrowError;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited, NullableEncoder, Writer};
use arrow::json::{Encoder, EncoderFactory, EncoderOptions, WriterBuilder};
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
    let builder = WriterBuilder::new().with_explicit_nulls(true).with_encoder_factory(Arc::new(Texts));
    let mut writer: Writer<_, F> = builder.build(out);
    for batch in rows {
        writer.write(&with_names(with_texts(batch?)?)?).map_err(stopped)?;
    }
    writer.finish().map_err(stopped)
}

/// `batch`, whose columns each have a name of their own.
fn with_names(batch: RecordBatch) -> Result<RecordBatch, Stopped> {
    let schema = batch.schema();
    let mut taken: HashSet<&str> = HashSet::new();
    if schema.fields().iter().all(|field| taken.insert(field.name())) {
        return Ok(batch);
    }
    let mut taken: HashSet<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    let fields = (1..).zip(schema.fields()).map(|(position, field)| {
        if seen.insert(field.name()) {
            return field.clone();
        }
        let mut name = format!("{}_{position}", field.name());
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        Arc::new(field.as_ref().clone().with_name(name))
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options).map_err(stopped)
}

/// `batch` with UUIDs and times as text: to Arrow the ones are bytes, and in the others it writes zeros behind the
/// point.
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

/// Writes what JSON has not as the texts that PostgreSQL's `to_json` makes of it.
#[derive(Debug)]
struct Texts;

impl EncoderFactory for Texts {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Float32 => Box::new(Floats(array.as_primitive::<Float32Type>())),
            DataType::Float64 => Box::new(Floats(array.as_primitive::<Float64Type>())),
            DataType::Binary => Box::new(Bytes(move |row| array.as_binary::<i32>().value(row))),
            DataType::LargeBinary => Box::new(Bytes(move |row| array.as_binary::<i64>().value(row))),
            DataType::BinaryView => Box::new(Bytes(move |row| array.as_binary_view().value(row))),
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

/// Numbers, and NaN and the infinities as texts.
struct Floats<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType<Native: Into<f64> + Debug>> Encoder for Floats<'_, T> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        let wide: f64 = value.into();
        // Writing to a Vec does not fail.
        let _ = match wide {
            f64::INFINITY => out.write_all(b"\"Infinity\""),
            f64::NEG_INFINITY => out.write_all(b"\"-Infinity\""),
            wide if wide.is_nan() => out.write_all(b"\"NaN\""),
            _ => write!(out, "{value:?}"),
        };
    }
}

/// BYTEA, as `\x` and hexadecimal digits; JSON wants the backslash twice.
struct Bytes<F>(F);

impl<'a, F: Fn(usize) -> &'a [u8]> Encoder for Bytes<F> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"\\\\x");
        for byte in (self.0)(row) {
            let _ = write!(out, "{byte:02x}");
        }
        out.push(b'"');
    }
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
