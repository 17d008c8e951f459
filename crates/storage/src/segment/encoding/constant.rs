//! Constant: one value for every row that is not NULL; it stands in the metadata, and without NULLs there is no block
//! at all. A column of NULLs only is the constant NULL.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, BooleanArray, StringViewArray, UInt32Array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use mainstem_kernels::bitmap;

use super::condition::wrong_constant;
use super::form::Form;
use super::native::{Native, Place, dispatch, wide_value};
use super::sections::Damage;
use crate::error::Result;
use crate::predicate::{Predicate, compare_values};
use crate::row::Value;
use crate::schema::DataType;

/// Longest text or bytes that stand in the metadata: metadata is held in memory for every segment.
pub(crate) const CONSTANT_BYTES_MAX: usize = 64;

/// One value for all rows.
#[derive(Debug)]
pub(crate) struct Constant {
    value: Value,
}

impl Constant {
    /// Proves that `value` is of `data_type`.
    pub fn open(data_type: DataType, value: &Value) -> Result<Self, Damage> {
        fn fits<N: Native>(value: &Value) -> bool {
            matches!(N::place(value), Some(Place::At(_)))
        }
        let right = match (data_type, value) {
            (_, Value::Null) => true,
            (DataType::Boolean, Value::Boolean(_)) => true,
            (DataType::Text { .. } | DataType::Char { .. }, Value::Text(_)) | (DataType::Bytea, Value::Bytes(_)) => {
                true
            }
            (DataType::Decimal { .. }, Value::Decimal(_)) => true,
            (DataType::Decimal { .. }, _) | (_, Value::Boolean(_) | Value::Decimal(_)) => false,
            _ => dispatch!(data_type, N => fits::<N>(value), boolean => false, bytes => false),
        };
        if right { Ok(Self { value: value.clone() }) } else { Err(Damage::new(0, "a constant of another type")) }
    }

    /// The value, if it is a [`Value::Int`].
    #[inline]
    pub fn whole(&self) -> Option<i64> {
        if let Value::Int(value) = &self.value { Some(*value) } else { None }
    }

    /// `len` rows as an Arrow array.
    pub fn read(&self, (data_type, form): (DataType, Form), len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        fn numbers<N: Native>(
            value: &Value,
            data_type: DataType,
            len: usize,
            nulls: Option<NullBuffer>,
        ) -> Result<ArrayRef> {
            match N::place(value) {
                Some(Place::At(v)) => N::array(data_type, vec![v; len].into(), nulls),
                _ => Err(wrong_constant(value)),
            }
        }
        if self.value.is_null() {
            return Ok(new_null_array(&form.arrow(data_type), len));
        }
        if form.narrows(data_type) {
            return numbers::<i64>(&self.value, data_type, len, nulls);
        }
        dispatch!(data_type,
        N => numbers::<N>(&self.value, data_type, len, nulls),
        boolean => {
            let set = self.value == Value::Boolean(true);
            let bits = if set { BooleanBuffer::new_set(len) } else { BooleanBuffer::new_unset(len) };
            Ok(Arc::new(BooleanArray::new(bits, nulls)))
        },
        bytes => {
            let one: ArrayRef = match &self.value {
                Value::Text(text) => Arc::new(StringViewArray::from_iter_values([text])),
                Value::Bytes(bytes) => Arc::new(BinaryViewArray::from_iter_values([bytes])),
                other => return Err(wrong_constant(other)),
            };
            let zeros = UInt32Array::try_new(vec![0; len].into(), nulls)?;
            Ok(arrow_select::take::take(&one, &zeros, None)?)
        })
    }

    /// The value, and a NULL behind it.
    pub fn entries(&self, data_type: DataType) -> Result<ArrayRef> {
        self.read((data_type, Form::Values), 2, Some(NullBuffer::from(vec![true, false])))
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The sum of `count` rows; `None` if they are no integers.
    pub fn sum(&self, count: usize) -> Option<i128> {
        if self.value.is_null() { Some(0) } else { wide_value(&self.value)?.checked_mul(count as i128) }
    }

    /// Where rows equal to `value` begin and end among `rows`.
    pub fn equal_range(&self, value: &Value, rows: Range<usize>) -> (usize, usize) {
        match compare_values(&self.value, value) {
            Ordering::Less => (rows.end, rows.end),
            Ordering::Equal => (rows.start, rows.end),
            Ordering::Greater => (rows.start, rows.start),
        }
    }

    /// All of `len` rows or none, by `predicate`; NULL slots come out either way.
    pub fn select(&self, predicate: &Predicate, len: usize) -> Vec<u64> {
        if predicate.matches(&self.value) { bitmap::full(len) } else { vec![0; bitmap::words(len)] }
    }
}
