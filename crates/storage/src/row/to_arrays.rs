//! Rows to columns: `RowBuffer::to_arrays` and `RowBuffer::take_arrays`.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::error::{Error, Result};
use crate::ids::ColumnId;
use crate::schema::DataType;

use super::arrays::uuid_array;
use super::layout::{Slot, null_bit};
use super::{RowBuffer, RowView};

impl RowBuffer {
    /// The columns `columns` of rows `rows`, as arrays of type [`DataType::arrow`]. A column that the rows' schema
    /// version lacks is an Internal error: its constant is known only to the newer schema.
    pub fn to_arrays(&self, columns: &[ColumnId], rows: Range<usize>) -> Result<Vec<ArrayRef>> {
        if rows.start > rows.end || rows.end > self.len {
            return Err(Error::internal(format!("rows {rows:?} of {self:?}")));
        }
        let chosen = Chosen { buffer: self, count: rows.len(), row: |i| rows.start + i };
        columns.iter().map(|id| chosen.column(*id)).collect()
    }

    /// As [`RowBuffer::to_arrays`], for the rows that `indices` name, in that order; an index may come twice.
    pub fn take_arrays(&self, columns: &[ColumnId], indices: &[u32]) -> Result<Vec<ArrayRef>> {
        if let Some(outside) = indices.iter().find(|i| **i as usize >= self.len) {
            return Err(Error::internal(format!("row {outside} of {self:?}")));
        }
        let chosen = Chosen { buffer: self, count: indices.len(), row: |i| indices[i] as usize };
        columns.iter().map(|id| chosen.column(*id)).collect()
    }
}

/// Some rows of a buffer: the `i`-th is row `row(i)`.
struct Chosen<'a, F> {
    buffer: &'a RowBuffer,
    count: usize,
    row: F,
}

impl<F: Fn(usize) -> usize> Chosen<'_, F> {
    fn view(&self, i: usize) -> RowView<'_> {
        self.buffer.row((self.row)(i))
    }

    fn column(&self, id: ColumnId) -> Result<ArrayRef> {
        let layout = &self.buffer.layout;
        let Some(pos) = layout.position(id) else {
            return Err(Error::internal(format!("{layout:?} has no column {id}")));
        };
        let slot = &layout.slots()[pos];
        let nulls = self.nulls(slot, pos);
        Ok(match slot.data_type {
            DataType::Boolean => {
                let values = BooleanBuffer::collect_bool(self.count, |i| self.view(i).get_i64(pos) != 0);
                Arc::new(BooleanArray::new(values, nulls))
            }
            // The casts below lose nothing: a slot holds a value of its column's type.
            DataType::SmallInt => self.primitive::<Int16Type>(nulls, |r| r.get_i64(pos) as i16),
            DataType::Integer => self.primitive::<Int32Type>(nulls, |r| r.get_i64(pos) as i32),
            DataType::BigInt => self.primitive::<Int64Type>(nulls, |r| r.get_i64(pos)),
            DataType::Date => self.primitive::<Date32Type>(nulls, |r| r.get_i64(pos) as i32),
            DataType::Real => self.primitive::<Float32Type>(nulls, |r| r.get_f32(pos)),
            DataType::Double => self.primitive::<Float64Type>(nulls, |r| r.get_f64(pos)),
            DataType::Time => self.primitive::<Time64MicrosecondType>(nulls, |r| r.get_i64(pos)),
            DataType::Uuid => uuid_array((0..self.count).map(|i| self.view(i).get_uuid(pos)), nulls)?,
            DataType::Timestamp => self.primitive::<TimestampMicrosecondType>(nulls, |r| r.get_i64(pos)),
            DataType::TimestampTz => {
                let values = (0..self.count).map(|i| self.view(i).get_i64(pos)).collect::<Vec<_>>();
                Arc::new(
                    PrimitiveArray::<TimestampMicrosecondType>::new(values.into(), nulls)
                        .with_data_type(slot.data_type.arrow()),
                )
            }
            DataType::Decimal { precision, scale } => {
                let values = (0..self.count).map(|i| self.view(i).get_i128(pos)).collect::<Vec<_>>();
                Arc::new(
                    PrimitiveArray::<Decimal128Type>::new(values.into(), nulls)
                        .with_precision_and_scale(precision, scale)?,
                )
            }
            DataType::Text { .. } | DataType::Char { .. } => Arc::new(self.bytes(pos).finish().to_string_view()?),
            DataType::Bytea => Arc::new(self.bytes(pos).finish()),
        })
    }

    fn nulls(&self, slot: &Slot, pos: usize) -> Option<NullBuffer> {
        if !slot.nullable {
            return None;
        }
        let buffer = self.buffer;
        let valid = BooleanBuffer::collect_bool(self.count, |i| !null_bit(buffer.row_bytes((self.row)(i)), pos));
        Some(NullBuffer::new(valid)).filter(|n| n.null_count() > 0)
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        nulls: Option<NullBuffer>,
        get: impl Fn(RowView<'_>) -> T::Native,
    ) -> ArrayRef {
        let values = (0..self.count).map(|i| get(self.view(i))).collect::<Vec<_>>();
        Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
    }

    fn bytes(&self, pos: usize) -> BinaryViewBuilder {
        let mut builder = BinaryViewBuilder::with_capacity(self.count);
        for i in 0..self.count {
            let row = self.view(i);
            if row.is_null(pos) {
                builder.append_null();
            } else {
                builder.append_value(row.get_bytes(pos));
            }
        }
        builder
    }
}
