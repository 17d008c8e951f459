//! Arrow batches as rows of values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringViewArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use mainstem_postgres::cast::{convert, is_composed, is_span};
use mainstem_postgres::types::{field_type, sql_type};
use mainstem_storage::row::{Value, array_of, value_of};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use mainstem_postgres::error::from_arrow;

use super::ValueRef;

/// Columns, and rows of values in storage form.
pub type ValueRows = (Arc<[ResultColumn]>, Vec<Vec<Value>>);

/// A column of a result: its name and SQL type.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    name: String,
    data_type: DataType,
}

impl ResultColumn {
    /// The columns of a result whose batches have `schema`.
    pub(crate) fn of(schema: &Schema) -> Arc<[Self]> {
        let column = |field: &Arc<arrow::datatypes::Field>| Self {
            name: field.name().clone(),
            data_type: field_type(field).unwrap_or(DataType::Text { max_chars: None }),
        };
        schema.fields().iter().map(column).collect()
    }

    /// Its name; columns may have the same one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `value`, which stands in this column, with its type.
    #[must_use]
    pub fn value_of<'v>(&self, value: &'v Value) -> ValueRef<'v> {
        ValueRef::stored(value, self.data_type)
    }

    /// Its SQL type. Types that no table has, intervals and lists among them, are TEXT: rows give the text of their
    /// values.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        self.data_type
    }
}

/// The rows of one batch, in order.
#[derive(Debug)]
pub(crate) struct BatchRows {
    columns: Vec<(ArrayRef, DataType)>,
    at: usize,
    rows: usize,
}

impl BatchRows {
    /// The rows of `batch`, whose columns are `columns`.
    ///
    /// # Errors
    /// Those of values that do not fit their SQL type.
    pub(crate) fn new(batch: &RecordBatch, columns: &[ResultColumn]) -> Result<Self> {
        let stored = batch
            .columns()
            .iter()
            .zip(columns)
            .map(|(array, column)| Ok((stored_array(array, column.data_type)?, column.data_type)))
            .collect::<Result<_>>()?;
        Ok(Self { columns: stored, at: 0, rows: batch.num_rows() })
    }

    /// The values of the next row.
    pub(crate) fn next(&mut self) -> Option<Result<Vec<Value>>> {
        if self.at == self.rows {
            return None;
        }
        let row = self.at;
        self.at += 1;
        Some(self.columns.iter().map(|(array, data_type)| value_of(array.as_ref(), *data_type, row)).collect())
    }
}

/// `array` in the storage form of `data_type`, which [`sql_type`] gave for it.
pub(crate) fn stored_array(array: &ArrayRef, data_type: DataType) -> Result<ArrayRef> {
    let wanted = data_type.arrow();
    if *array.data_type() == wanted {
        return Ok(array.clone());
    }
    if sql_type(array.data_type()).is_some() || array.data_type().is_null() {
        let options = CastOptions { safe: false, format_options: FormatOptions::default() };
        return cast_with_options(array, &wanted, &options).map_err(|e| from_arrow(&e));
    }
    if is_span(array.data_type()) || is_composed(array.data_type()) {
        return convert(array, DataType::Text { max_chars: None });
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(|e| from_arrow(&e))?;
    let text = |row: usize| -> Result<Option<String>> {
        if array.is_null(row) {
            return Ok(None);
        }
        formatter.value(row).try_to_string().map(Some).map_err(|e| from_arrow(&e))
    };
    let texts = (0..array.len()).map(text).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StringViewArray::from_iter(texts)))
}

/// `rows` of `columns` as a batch of `schema`.
///
/// # Errors
/// Internal.
pub fn batch_of(schema: &SchemaRef, columns: &[ResultColumn], rows: &[Vec<Value>]) -> Result<RecordBatch> {
    let array = |(at, column): (usize, &ResultColumn)| {
        array_of(rows.iter().filter_map(|values| values.get(at)), column.data_type)
    };
    let arrays = columns.iter().enumerate().map(array).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?)
}

/// The only row of `batch`, with the types of its values.
///
/// # Errors
/// Internal when it has none.
pub(crate) fn only_row(batch: &RecordBatch) -> Result<Vec<(Value, DataType)>> {
    let columns = ResultColumn::of(&batch.schema());
    let values = BatchRows::new(batch, &columns)?.next();
    let values = values.ok_or_else(|| Error::internal("an expression without a value"))??;
    Ok(values.into_iter().zip(columns.iter().map(|c| c.data_type)).collect())
}
