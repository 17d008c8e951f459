//! Results as streams that any reader of Arrow understands.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mainstem::QueryResult;
use mainstem::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, RecordBatchReader};
use mainstem::arrow::compute::cast;
use mainstem::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use mainstem::arrow::error::ArrowError;

use crate::errors;

/// What a driver gives.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// Bytes of texts in a batch that is given: plain texts have offsets of 32 bits.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// The rows of a query. Texts and bytes are views inside the engine, which few other readers know: unless the program
/// asks for them they become plain ones.
pub(crate) struct Results {
    /// Batches that were made ahead. What is wrong with the first is an error with all that it has to tell, and not
    /// one of a stream.
    ahead: VecDeque<RecordBatch>,
    rows: QueryResult,
    schema: SchemaRef,
    process: u32,
}

impl Results {
    /// # Errors
    /// Those of the query until its first rows.
    pub(crate) fn new(mut rows: QueryResult, keeps_views: bool) -> Result<Self, mainstem::Error> {
        let ahead = rows.next().transpose()?.into_iter().collect();
        let schema = shown(&rows.schema(), keeps_views);
        Ok(Self { ahead, rows, schema, process: std::process::id() })
    }

    fn next_shown(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        loop {
            let batch = match self.ahead.pop_front() {
                Some(batch) => batch,
                None => match self.rows.next()? {
                    Ok(batch) => batch,
                    Err(error) => return Some(Err(errors::in_stream(&errors::adbc(&error)))),
                },
            };
            let rows = batch.num_rows();
            if rows < 2 || batch.columns().iter().all(|array| text_bytes(array) <= TEXT_BYTES_MAX) {
                return Some(as_shown(&batch, &self.schema));
            }
            self.ahead.push_front(batch.slice(rows / 2, rows - rows / 2));
            self.ahead.push_front(batch.slice(0, rows / 2));
        }
    }
}

/// Bytes of the texts of `array`.
fn text_bytes(array: &ArrayRef) -> usize {
    let lengths = |views: &[u128]| views.iter().map(|view| (view & u128::from(u32::MAX)) as usize).sum();
    match array.data_type() {
        DataType::Utf8View => lengths(array.as_string_view().views()),
        DataType::BinaryView => lengths(array.as_binary_view().views()),
        _ => 0,
    }
}

impl Iterator for Results {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.process != std::process::id() {
            let message = "08003: the query is of the process that this one was forked from";
            return Some(Err(ArrowError::ExternalError(message.into())));
        }
        // A panic would go through frames of C, and end the program.
        catch_unwind(AssertUnwindSafe(|| self.next_shown())).unwrap_or_else(|_| {
            Some(Err(ArrowError::ExternalError("XX000: the query failed inside the engine".into())))
        })
    }
}

impl RecordBatchReader for Results {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Batches that are there already, or none.
#[derive(Debug)]
pub(crate) struct Ready {
    schema: SchemaRef,
    batches: std::vec::IntoIter<RecordBatch>,
}

impl Ready {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches: batches.into_iter() }
    }

    /// What a statement without rows gives.
    pub(crate) fn nothing() -> Self {
        Self::new(Arc::new(Schema::empty()), Vec::new())
    }
}

impl Iterator for Ready {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(Ok)
    }
}

impl RecordBatchReader for Ready {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// `schema` as results have it.
pub(crate) fn shown(schema: &SchemaRef, keeps_views: bool) -> SchemaRef {
    if keeps_views {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(plain).collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(plain(item)),
        DataType::LargeList(item) => DataType::LargeList(plain(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        _ => return field.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// `batch` in the types of `schema`, which is [`shown`] of its own.
pub(crate) fn as_shown(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |(array, field): (&ArrayRef, &FieldRef)| {
        if array.data_type() == field.data_type() { Ok(array.clone()) } else { cast(array, field.data_type()) }
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}
