//! Rows of a range that are kept, while others of it are left out.
//!
//! Comes in: a bitmap over the range. Goes out: their values in a column, which are unpacked and left out in one pass
//! where the encoding can, and filtered as arrays otherwise.

use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use mainstem_kernels::cast::Pod;
use mainstem_kernels::{bitmap, gather};

use crate::error::Result;

/// Tenths of the rows of a range that are selected, from which on the range is read as a whole.
const DENSE_TENTHS: usize = 4;

/// Whether `count` of `rows` rows are so many that all are read.
pub(crate) fn is_dense(count: usize, rows: usize) -> bool {
    10 * count >= DENSE_TENTHS * rows
}

/// Rows of a range that are kept.
#[derive(Debug)]
pub(crate) struct Kept {
    words: Vec<u64>,
    rows: usize,
    count: usize,
    /// For columns that are no numbers: where runs of rows begin and end, found once for all of them.
    others: OnceLock<FilterPredicate>,
}

impl Kept {
    /// Those of `rows` rows whose bits are set in `words`.
    pub fn new(words: Vec<u64>, rows: usize) -> Self {
        let count = bitmap::count_ones(&words);
        Self::counted(words, rows, count)
    }

    /// As [`Kept::new`], where it is known that they are `count`.
    pub fn counted(words: Vec<u64>, rows: usize, count: usize) -> Self {
        Self { words, rows, count, others: OnceLock::new() }
    }

    /// A bit for each row of the range.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Where they are, of a range that is theirs.
    pub fn offsets(&self, range: &Range<u32>) -> Vec<u32> {
        let mut offsets = Vec::with_capacity(self.count);
        bitmap::indices(&self.words, &mut offsets);
        offsets.iter_mut().for_each(|offset| *offset += range.start);
        offsets
    }

    /// The rows of `array` that are kept.
    pub fn filter(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if array.null_count() > 0 {
            return self.other(array);
        }
        match array.data_type() {
            DataType::Int32 => Ok(self.numbers::<Int32Type>(array)),
            DataType::Int64 => Ok(self.numbers::<Int64Type>(array)),
            DataType::Float32 => Ok(self.numbers::<Float32Type>(array)),
            DataType::Float64 => Ok(self.numbers::<Float64Type>(array)),
            DataType::Decimal64(..) => Ok(self.numbers::<Decimal64Type>(array)),
            DataType::Decimal128(..) => Ok(self.numbers::<Decimal128Type>(array)),
            DataType::Date32 => Ok(self.numbers::<Date32Type>(array)),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Ok(self.numbers::<TimestampMicrosecondType>(array)),
            DataType::Time64(TimeUnit::Microsecond) => Ok(self.numbers::<Time64MicrosecondType>(array)),
            _ => self.other(array),
        }
    }

    fn numbers<T: ArrowPrimitiveType>(&self, array: &ArrayRef) -> ArrayRef
    where
        T::Native: Pod,
    {
        let mut kept = Vec::new();
        gather::filter_numbers(array.as_primitive::<T>().values(), &self.words, &mut kept);
        Arc::new(PrimitiveArray::<T>::new(kept.into(), None).with_data_type(array.data_type().clone()))
    }

    fn other(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let runs = self.others.get_or_init(|| {
            let selected = BooleanBuffer::new(Buffer::from_vec(self.words.clone()), 0, self.rows);
            FilterBuilder::new(&BooleanArray::new(selected, None)).optimize().build()
        });
        Ok(runs.filter(array.as_ref())?)
    }
}
