//! Numbers of one Arrow type, one by one, into an array: as Arrow's own builder, with less to do for each value.

use arrow::array::{ArrowPrimitiveType, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use mainstem_storage::limits;

pub(super) type Int16Builder = Primitives<Int16Type>;
pub(super) type Int32Builder = Primitives<Int32Type>;
pub(super) type Int64Builder = Primitives<Int64Type>;
pub(super) type Float32Builder = Primitives<Float32Type>;
pub(super) type Float64Builder = Primitives<Float64Type>;
pub(super) type Decimal128Builder = Primitives<Decimal128Type>;
pub(super) type Date32Builder = Primitives<Date32Type>;
pub(super) type TimestampMicrosecondBuilder = Primitives<TimestampMicrosecondType>;

/// Values so far.
#[derive(Debug)]
pub(crate) struct Primitives<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    /// Positions of NULLs, ascending.
    nulls: Vec<usize>,
    data_type: DataType,
}

impl<T: ArrowPrimitiveType> Primitives<T> {
    pub(super) fn new() -> Self {
        Self { values: Vec::new(), nulls: Vec::new(), data_type: T::DATA_TYPE }
    }

    /// The same with values of `data_type`, which `T` must be able to have.
    pub(super) fn with_data_type(self, data_type: DataType) -> Self {
        Self { data_type, ..self }
    }

    #[inline]
    pub(super) fn append_value(&mut self, value: T::Native) {
        if self.values.len() == self.values.capacity() {
            // A batch at once: memory that grows is copied.
            self.values.reserve(limits::BATCH_ROWS);
        }
        self.values.push(value);
    }

    pub(super) fn append_null(&mut self) {
        self.nulls.push(self.values.len());
        self.append_value(T::Native::default());
    }

    /// The array; nothing is left.
    pub(super) fn finish(&mut self) -> PrimitiveArray<T> {
        let values = std::mem::take(&mut self.values);
        let nulls = std::mem::take(&mut self.nulls);
        let validity = (!nulls.is_empty()).then(|| {
            let mut valid = vec![true; values.len()];
            for at in nulls {
                if let Some(is_valid) = valid.get_mut(at) {
                    *is_valid = false;
                }
            }
            NullBuffer::from(valid)
        });
        PrimitiveArray::new(values.into(), validity).with_data_type(self.data_type.clone())
    }
}
