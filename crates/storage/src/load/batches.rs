//! Batches of one load: their types, and parts of them.
//!
//! Columns come in the form in which a file was read: texts with offsets, decimals in 64 bits, codes of a dictionary.
//! They stay so as long as they can be joined with those beside them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringViewArray};
use arrow_cast::cast;

use crate::error::Result;
use crate::schema::TableSchema;

/// Bytes of texts that are joined as they are: half of what the offsets of an array tell.
const JOINED_TEXT_BYTES_MAX: i64 = 1 << 30;

/// `batches` as they are if they can be joined so, or with columns of `schema`'s types.
pub(super) fn joinable(batches: Vec<RecordBatch>, schema: &TableSchema) -> Result<Vec<RecordBatch>> {
    if can_be_joined(&batches) {
        return Ok(batches);
    }
    batches.iter().map(|batch| with_own_types(batch, schema)).collect()
}

/// Whether columns of `batches` are of the same types, and have no more texts than the offsets of one array tell.
pub(super) fn can_be_joined(batches: &[RecordBatch]) -> bool {
    let Some((first, others)) = batches.split_first() else { return true };
    let text_bytes = |batch: &RecordBatch, at: usize| {
        let texts = batch.columns().get(at).and_then(|column| column.as_string_opt::<i32>());
        texts.and_then(|texts| texts.value_offsets().last()?.checked_sub(*texts.value_offsets().first()?))
    };
    let is_bounded = |at: usize| {
        let bytes = batches.iter().filter_map(|batch| text_bytes(batch, at)).map(i64::from).sum::<i64>();
        bytes <= JOINED_TEXT_BYTES_MAX
    };
    // Codes of different dictionaries would have to be translated.
    let are_alike = |(own, other): (&ArrayRef, &ArrayRef)| match own.as_any_dictionary_opt() {
        _ if own.data_type() != other.data_type() => false,
        Some(own) => own.values().to_data().ptr_eq(&other.as_any_dictionary().values().to_data()),
        None => true,
    };
    let is_alike = |batch: &RecordBatch| first.columns().iter().zip(batch.columns()).all(are_alike);
    others.is_empty() || others.iter().all(is_alike) && (0..first.num_columns()).all(is_bounded)
}

/// `batch` with columns of `schema`'s types: texts as views, decimals in 128 bits.
fn with_own_types(batch: &RecordBatch, schema: &TableSchema) -> Result<RecordBatch> {
    let own = schema.arrow();
    if batch
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.data_type())
        .eq(own.fields().iter().map(|field| field.data_type()))
    {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(own.fields()).map(|(column, field)| {
        Ok(match column.as_string_opt::<i32>() {
            Some(texts) => Arc::new(StringViewArray::from(texts)) as ArrayRef,
            None if column.data_type() == field.data_type() => column.clone(),
            None => cast(column, field.data_type())?,
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(own, columns)?)
}

/// The first `rows` rows of `batches`, and the others.
pub(super) fn split(batches: Vec<RecordBatch>, rows: usize) -> (Vec<RecordBatch>, Vec<RecordBatch>) {
    let (mut head, mut rest) = (Vec::new(), Vec::new());
    let mut left = rows;
    for batch in batches {
        let take = left.min(batch.num_rows());
        if take > 0 {
            head.push(batch.slice(0, take));
        }
        if take < batch.num_rows() {
            rest.push(batch.slice(take, batch.num_rows() - take));
        }
        left -= take;
    }
    (head, rest)
}
