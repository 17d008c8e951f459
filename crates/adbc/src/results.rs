//! Results as streams that any reader of Arrow understands.

use std::sync::Arc;

use mainstem::QueryResult;
use mainstem::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use mainstem::arrow::compute::cast;
use mainstem::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use mainstem::arrow::error::ArrowError;

use crate::errors;

/// What a driver gives.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// The rows of a query. Texts and bytes are views inside the engine, which few other readers know: unless the program
/// asks for them they become plain ones.
#[derive(Debug)]
pub(crate) struct Results {
    /// Made ahead: what is wrong with it is an error with all that it has to tell, and not one of a stream.
    first: Option<RecordBatch>,
    rows: QueryResult,
    schema: SchemaRef,
}

impl Results {
    /// # Errors
    /// Those of the query until its first rows.
    pub(crate) fn new(mut rows: QueryResult, keeps_views: bool) -> Result<Self, mainstem::Error> {
        let first = rows.next().transpose()?;
        let schema = shown(&rows.schema(), keeps_views);
        Ok(Self { first, rows, schema })
    }
}

impl Iterator for Results {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.first.take().map(Ok).or_else(|| self.rows.next())? {
            Ok(batch) => as_shown(&batch, &self.schema),
            Err(error) => Err(errors::in_stream(&error)),
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
