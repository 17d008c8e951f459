//! Reading one row.

use crate::schema::{DataType, TableSchema};

use super::Value;
use super::layout::{RowLayout, eight, is_variable, is_wide, null_bit, sixteen, span};

/// One row of a [`super::RowBuffer`]. Positions count the columns of its schema version from 0; a position outside is a
/// defect of the caller and panics.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

impl<'a> RowView<'a> {
    /// A view of bytes that are known to be a row of `layout`.
    pub(super) fn new(layout: &'a RowLayout, bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() >= layout.fixed_bytes());
        Self { layout, bytes }
    }

    /// The schema version of the row.
    #[must_use]
    pub fn schema(&self) -> &'a TableSchema {
        self.layout.schema()
    }

    /// The layout of the row.
    #[must_use]
    pub fn layout(&self) -> &'a RowLayout {
        self.layout
    }

    /// The row's bytes: what [`super::RowBuffer::push_encoded`] takes back.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the column at `pos` is NULL.
    #[inline]
    #[must_use]
    pub fn is_null(&self, pos: usize) -> bool {
        null_bit(self.bytes, pos)
    }

    /// A Boolean (0 or 1), integer, date, time, timestamp or narrow decimal; 0 if NULL.
    #[inline]
    #[must_use]
    pub fn get_i64(&self, pos: usize) -> i64 {
        i64::from_le_bytes(eight(self.bytes, self.layout.slots()[pos].at))
    }

    /// A decimal of any precision (unscaled), or an integer; 0 if NULL.
    #[inline]
    #[must_use]
    pub fn get_i128(&self, pos: usize) -> i128 {
        let slot = &self.layout.slots()[pos];
        if is_wide(slot.data_type) {
            i128::from_le_bytes(sixteen(self.bytes, slot.at))
        } else {
            i128::from(self.get_i64(pos))
        }
    }

    /// A UUID; 0 if NULL.
    #[inline]
    #[must_use]
    pub fn get_uuid(&self, pos: usize) -> u128 {
        let slot = &self.layout.slots()[pos];
        debug_assert!(slot.data_type == DataType::Uuid);
        u128::from_be_bytes(sixteen(self.bytes, slot.at))
    }

    /// A Real; 0 if NULL.
    #[inline]
    #[must_use]
    pub fn get_f32(&self, pos: usize) -> f32 {
        f32::from_bits(self.get_i64(pos) as u32)
    }

    /// A Double; 0 if NULL.
    #[inline]
    #[must_use]
    pub fn get_f64(&self, pos: usize) -> f64 {
        f64::from_bits(self.get_i64(pos) as u64)
    }

    /// The bytes of a Text, Char or Bytea; empty if NULL.
    #[inline]
    #[must_use]
    pub fn get_bytes(&self, pos: usize) -> &'a [u8] {
        let slot = &self.layout.slots()[pos];
        debug_assert!(is_variable(slot.data_type));
        let (at, length) = span(eight(self.bytes, slot.at));
        self.bytes.get(at..at + length).unwrap_or_default()
    }

    /// The value of the column at `pos`.
    #[must_use]
    pub fn value(&self, pos: usize) -> Value {
        if self.is_null(pos) {
            return Value::Null;
        }
        match self.layout.slots()[pos].data_type {
            DataType::Boolean => Value::Boolean(self.get_i64(pos) != 0),
            DataType::Real => Value::Real(self.get_f32(pos)),
            DataType::Double => Value::Double(self.get_f64(pos)),
            DataType::Decimal { .. } => Value::Decimal(self.get_i128(pos)),
            // Checked on the way in, so nothing is replaced here.
            DataType::Text { .. } | DataType::Char { .. } => {
                Value::Text(String::from_utf8_lossy(self.get_bytes(pos)).into())
            }
            DataType::Bytea => Value::Bytes(self.get_bytes(pos).into()),
            DataType::Uuid => Value::Uuid(self.get_uuid(pos)),
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Date
            | DataType::Time
            | DataType::Timestamp
            | DataType::TimestampTz => Value::Int(self.get_i64(pos)),
        }
    }

    /// All values in column order.
    #[must_use]
    pub fn values(&self) -> Vec<Value> {
        (0..self.layout.slots().len()).map(|pos| self.value(pos)).collect()
    }
}

impl std::fmt::Debug for RowView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}
