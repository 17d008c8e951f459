//! Rows that a sort has in memory: arrays as they came, whole columns once they are put in order.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow::compute::{concat, filter};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};

use super::gather::gather;
use super::key::KeyColumn;
use super::order::ordered;
use super::threshold::Threshold;

/// Bytes that putting in order takes for each row: its word and number, and those moved, twice.
const BYTES_OF_ORDER: usize = 44;

/// Rows without order; see the module.
#[derive(Debug)]
pub(super) struct Collected {
    schema: SchemaRef,
    exprs: Vec<PhysicalSortExpr>,
    /// Where the parts of the key are among the columns. What is computed stands behind those of the schema.
    key: Vec<usize>,
    columns: Vec<Vec<ArrayRef>>,
    rows: usize,
    bytes: usize,
    /// Buffers of texts that were counted already: many batches share one.
    counted: HashSet<usize>,
}

impl Collected {
    /// Nothing yet of rows of `schema`, to be sorted by `exprs`.
    pub(super) fn new(schema: SchemaRef, exprs: &LexOrdering) -> Self {
        let mut width = schema.fields().len();
        let mut place = |part: &PhysicalSortExpr| match part.expr.downcast_ref::<Column>() {
            Some(column) => column.index(),
            None => {
                width += 1;
                width - 1
            }
        };
        let key = exprs.iter().map(&mut place).collect();
        let columns = vec![Vec::new(); width];
        let exprs = exprs.iter().cloned().collect();
        Self { schema, exprs, key, columns, rows: 0, bytes: 0, counted: HashSet::new() }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that the rows take, and will take while they are put in order.
    pub(super) fn bytes(&self) -> usize {
        // One column at a time is there twice.
        self.bytes + self.bytes / self.columns.len().max(1) + self.rows * BYTES_OF_ORDER
    }

    /// The parts of the key of the rows of `batch`.
    ///
    /// # Errors
    /// Of expressions.
    pub(super) fn key_of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let value = |part: &PhysicalSortExpr| part.expr.evaluate(batch)?.into_array(batch.num_rows());
        self.exprs.iter().map(value).collect()
    }

    /// Adds the rows of `batch`, with `key`, that are `wanted`.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn push(
        &mut self,
        batch: &RecordBatch,
        key: &[ArrayRef],
        wanted: Option<BooleanBuffer>,
    ) -> Result<(), ArrowError> {
        let fields = self.schema.fields().len();
        let computed = self.key.iter().zip(key).filter(|(at, _)| **at >= fields).map(|(_, array)| array);
        let wanted = wanted.map(|wanted| BooleanArray::new(wanted, None));
        for (arrays, array) in self.columns.iter_mut().zip(batch.columns().iter().chain(computed)) {
            let array = match &wanted {
                Some(wanted) => filter(array, wanted)?,
                None => array.clone(),
            };
            self.bytes += bytes_of(&*array, &mut self.counted);
            arrays.push(array);
        }
        self.rows += wanted.map_or(batch.num_rows(), |wanted| wanted.true_count());
        Ok(())
    }

    /// The first `limit` rows in order; nothing stays.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn sort(&mut self, limit: usize) -> Result<Sorted, ArrowError> {
        let columns = self.columns.iter_mut().map(|arrays| whole(std::mem::take(arrays)));
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        self.counted.clear();
        let part = |(at, part): (&usize, &PhysicalSortExpr)| {
            Some(KeyColumn { values: columns.get(*at)?.clone(), options: part.options })
        };
        let key: Vec<KeyColumn> = self.key.iter().zip(&self.exprs).filter_map(part).collect();
        let order = ScalarBuffer::from(ordered(&key, rows, limit)?);
        Ok(Sorted { schema: self.schema.clone(), columns, key, order })
    }

    /// Keeps the first `limit` rows, and tells the key of the last of them.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn keep(&mut self, limit: usize) -> Result<Option<Threshold>, ArrowError> {
        let sorted = self.sort(limit)?;
        let last = sorted.order.get(limit.saturating_sub(1));
        let last = last.map(|row| Threshold::of(&sorted.key, *row)).transpose()?;
        for (arrays, column) in self.columns.iter_mut().zip(&sorted.columns) {
            let array = gather(column, &sorted.order)?;
            self.bytes += bytes_of(&*array, &mut self.counted);
            arrays.push(array);
        }
        self.rows = sorted.order.len();
        Ok(last)
    }

    /// The rows as batches of at most `size` rows, in no order. Memory is given back as they are taken.
    pub(super) fn into_batches(self, size: usize) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
        let Self { schema, columns, .. } = self;
        let fields = schema.fields().len();
        let mut columns: Vec<_> = columns.into_iter().take(fields).map(Vec::into_iter).collect();
        let chunks = std::iter::from_fn(move || {
            let arrays: Vec<ArrayRef> = columns.iter_mut().map_while(Iterator::next).collect();
            (!arrays.is_empty() && arrays.len() == fields).then_some(arrays)
        });
        chunks.flat_map(move |arrays| pieces(schema.clone(), arrays, size))
    }
}

/// The rows of `batch` as batches of at most `size` rows, which keep no memory of the others.
pub(super) fn pieces_of(
    batch: &RecordBatch,
    size: usize,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + use<> {
    pieces(batch.schema(), batch.columns().to_vec(), size)
}

fn pieces(
    schema: SchemaRef,
    arrays: Vec<ArrayRef>,
    size: usize,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    let rows = arrays.first().map_or(0, Array::len);
    (0..rows).step_by(size).map(move |start| {
        let part = |array: &ArrayRef| compact(&array.slice(start, size.min(rows - start)));
        RecordBatch::try_new(schema.clone(), arrays.iter().map(part).collect())
    })
}

/// Rows in order.
#[derive(Debug)]
pub(super) struct Sorted {
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    key: Vec<KeyColumn>,
    order: ScalarBuffer<u32>,
}

impl Sorted {
    pub(super) fn rows(&self) -> usize {
        self.order.len()
    }

    /// The rows of `range`.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn batch(&self, range: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let order = self.order.slice(range.start, range.len());
        let columns = self.columns.iter().take(self.schema.fields().len()).map(|column| gather(column, &order));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(range.len()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &rows)
    }
}

/// The one array that `arrays` are together.
fn whole(mut arrays: Vec<ArrayRef>) -> Result<ArrayRef, ArrowError> {
    match arrays.as_slice() {
        [_] => arrays.pop().ok_or_else(|| ArrowError::ComputeError("no array".into())),
        _ => concat(&arrays.iter().map(|array| &**array).collect::<Vec<_>>()),
    }
}

/// `array`, with texts of its own if it keeps more than twice their bytes in memory.
fn compact(array: &ArrayRef) -> ArrayRef {
    let is_loose = |buffers: &[Buffer], used: usize| buffers.iter().map(Buffer::len).sum::<usize>() > 2 * used;
    match array.data_type() {
        DataType::Utf8View => {
            let texts = array.as_string_view();
            if is_loose(texts.data_buffers(), texts.total_buffer_bytes_used()) {
                Arc::new(texts.gc())
            } else {
                array.clone()
            }
        }
        DataType::BinaryView => {
            let bytes = array.as_binary_view();
            if is_loose(bytes.data_buffers(), bytes.total_buffer_bytes_used()) {
                Arc::new(bytes.gc())
            } else {
                array.clone()
            }
        }
        _ => array.clone(),
    }
}

/// Bytes that `array` keeps in memory, without buffers of texts in `counted`.
fn bytes_of(array: &dyn Array, counted: &mut HashSet<usize>) -> usize {
    let buffers = match array.data_type() {
        DataType::Utf8View => array.as_string_view().data_buffers(),
        DataType::BinaryView => array.as_binary_view().data_buffers(),
        // A part of an array is counted by what it is a part of.
        _ => return array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    };
    let new = buffers.iter().filter(|buffer| counted.insert(buffer.as_ptr() as usize)).map(|buffer| buffer.len());
    array.len() * size_of::<u128>() + new.sum::<usize>()
}
