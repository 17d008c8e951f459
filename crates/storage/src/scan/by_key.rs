//! A few rows of a scan, found by their keys: those whose predicates are a short range of a key.
//!
//! Comes in: predicates; then a request with them, and the rows that were found. Goes out: row references, as
//! [`rows_between`] finds them; then one batch of the rows that fulfil all predicates, in the order of that key.
//!
//! 1. [`TableView::rows_of_key_range`]: predicates that fix the first columns of a key, and those that bound the next
//!    one, are the range. Others do not count yet. The key that main is in the order of comes first.
//! 2. [`TableView::scan_rows`]: evaluates all predicates on the rows, and reads the columns of those that are left.
//!
//! Invariant: both steps together give what [`TableView::scan`] gives for the same request. It does not own: ranges of
//! so many rows that a scan is as fast.

use std::ops::Bound;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_buffer::{BooleanBuffer, Buffer};
use mainstem_kernels::bitmap;

use super::{ScanRequest, resolve};
use crate::error::Result;
use crate::ids::{ColumnId, RowRef};
use crate::point::{RangeRequest, rows_between};
use crate::predicate::{CompareOp, Predicate};
use crate::row::Value;
use crate::row::key::{KeyCodec, KeyRange};
use crate::schema::{DataType, TableSchema};
use crate::version::TableView;

/// Rows in the range of a key.
#[derive(Clone, Debug)]
pub struct KeyRows {
    /// In the order of the key.
    pub rows: Arc<[RowRef]>,
    /// Whether main is in that order, too.
    pub in_order: bool,
}

/// Whether predicates that compare these columns with values compare at least the first column of a key: only then may
/// [`TableView::rows_of_key_range`] find rows.
#[must_use]
pub fn compares_key(schema: &TableSchema, mut compares: impl FnMut(ColumnId) -> bool) -> bool {
    let mut first = schema.keys().filter_map(|(_, columns)| columns.first());
    first.any(|first| is_exact(schema, *first) && compares(*first))
}

/// Whether keys of the column are in the order that predicates compare its values in.
fn is_exact(schema: &TableSchema, column: ColumnId) -> bool {
    let data_type = schema.column(column).map(|column| column.data_type);
    data_type.is_some_and(|of| !matches!(of, DataType::Real | DataType::Double | DataType::Char { .. }))
}

impl TableView {
    /// The live rows in the range of a key that `predicates` leave; whether a row fulfils the other
    /// predicates is not looked at. `None` if there is no such range, or more than `rows_max` rows to look at in it.
    ///
    /// # Errors
    /// Io or Corrupt when key blocks cannot be read.
    pub fn rows_of_key_range(&self, predicates: &[Predicate], rows_max: usize) -> Result<Option<KeyRows>> {
        let schema = self.schema();
        let ordered = schema.ordered_key();
        let others = schema.keys().map(|(id, _)| id).filter(|id| Some(*id) != ordered);
        for id in ordered.into_iter().chain(others) {
            let Some(range) = range_of(schema, schema.key_columns(id), predicates) else { continue };
            let request = RangeRequest { id, range: &range, backwards: false, limit: usize::MAX, steps_max: rows_max };
            if let Some(rows) = rows_between(self, request, |row| Ok(Some(row)))? {
                return Ok(Some(KeyRows { rows: rows.into(), in_order: ordered == Some(id) }));
            }
        }
        Ok(None)
    }

    /// What a scan of `request` gives, whose rows are among `rows`, those that [`TableView::rows_of_key_range`] found
    /// for its predicates.
    ///
    /// # Errors
    /// Internal when the request names a column the table does not have; Io or Corrupt when blocks cannot be read.
    pub fn scan_rows(&self, request: &ScanRequest, rows: &[RowRef]) -> Result<RecordBatch> {
        let (columns, predicates, schema) = resolve(self, request)?;
        let mut selected = bitmap::full(rows.len());
        for (predicate, column) in &predicates {
            for array in self.fetch(&[column.id], rows)? {
                bitmap::and_in_place(&mut selected, &predicate.evaluate(&array, column.data_type)?);
            }
        }
        // Other columns are read of no row that does not count.
        let selected = BooleanBuffer::new(Buffer::from_vec(selected), 0, rows.len());
        let limit = request.limit.unwrap_or(usize::MAX);
        let rows: Vec<RowRef> = selected.set_indices().filter_map(|at| rows.get(at).copied()).take(limit).collect();
        let columns: Vec<ColumnId> = columns.iter().map(|column| column.id).collect();
        let mut arrays = self.fetch(&columns, &rows)?;
        if request.row_refs {
            arrays.push(Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.to_bits()))));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// The range of keys of `columns` that `predicates` leave; `None` if they do not compare the first one.
fn range_of(schema: &TableSchema, columns: &[ColumnId], predicates: &[Predicate]) -> Option<KeyRange> {
    let compared = |id: ColumnId| {
        let is_exact = is_exact(schema, id);
        predicates.iter().filter_map(move |predicate| match predicate {
            Predicate::Compare { column, op, value } if *column == id && is_exact && !value.is_null() => {
                Some((*op, value))
            }
            _ => None,
        })
    };
    let equal: Vec<Value> = columns
        .iter()
        .map_while(|id| compared(*id).find(|(op, _)| *op == CompareOp::Eq).map(|(_, value)| value.clone()))
        .collect();
    let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
    // Any one of several bounds will do: all of them are evaluated in the end.
    for (op, value) in columns.get(equal.len()).into_iter().flat_map(|id| compared(*id)) {
        match op {
            CompareOp::Gt => low = Bound::Excluded(value.clone()),
            CompareOp::GtEq => low = Bound::Included(value.clone()),
            CompareOp::Lt => high = Bound::Excluded(value.clone()),
            CompareOp::LtEq => high = Bound::Included(value.clone()),
            CompareOp::Eq | CompareOp::NotEq => {}
        }
    }
    if equal.is_empty() && matches!((&low, &high), (Bound::Unbounded, Bound::Unbounded)) {
        return None;
    }
    // A value that the column cannot have is no key: a scan knows what comes of it.
    KeyRange::new(&KeyCodec::of_values(schema, columns), equal, low, high).ok()
}
