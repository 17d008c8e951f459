//! Memory of columns that were taken: the next ones are read into it. Fresh memory has to be cleared by the system,
//! which takes about as long as to read a column.

use std::mem;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::buffer::Buffer;
use arrow::datatypes::{
    ArrowNativeType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use parking_lot::Mutex;

/// Bytes of a vector that is kept at most: what a chunk of common rows needs. Those of a long row go.
const SPARE_BYTES_MAX: usize = 2 * super::CHUNK_BYTES_MAX as usize;
/// Bytes of a vector that are kept however few of them were used.
const SPARE_BYTES_MIN: usize = 64 << 10;

/// Vectors without values, by the type of those.
#[derive(Debug, Default)]
pub(super) struct Spare {
    shorts: Mutex<Vec<Vec<i16>>>,
    ints: Mutex<Vec<Vec<i32>>>,
    longs: Mutex<Vec<Vec<i64>>>,
    wide: Mutex<Vec<Vec<i128>>>,
    singles: Mutex<Vec<Vec<f32>>>,
    doubles: Mutex<Vec<Vec<f64>>>,
    bytes: Mutex<Vec<Vec<u8>>>,
    /// Of chunks of a stream.
    chunks: Mutex<Vec<Vec<u8>>>,
}

/// A type of values.
pub(super) trait Kept: ArrowNativeType {
    /// Where its vectors are.
    fn of(spare: &Spare) -> &Mutex<Vec<Vec<Self>>>;
}

macro_rules! kept {
    ($($t:ty => $place:ident),*) => {$(
        impl Kept for $t {
            fn of(spare: &Spare) -> &Mutex<Vec<Vec<Self>>> {
                &spare.$place
            }
        }
    )*};
}

kept!(i16 => shorts, i32 => ints, i64 => longs, i128 => wide, f32 => singles, f64 => doubles, u8 => bytes);

impl Spare {
    /// A vector without values, perhaps with room for some.
    pub(super) fn take<T: Kept>(&self) -> Vec<T> {
        T::of(self).lock().pop().unwrap_or_default()
    }

    /// Memory of a chunk of a stream.
    pub(super) fn take_chunk(&self) -> Vec<u8> {
        self.chunks.lock().pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(super) fn take_back_chunk(&self, bytes: Vec<u8>) {
        if (1..=SPARE_BYTES_MAX).contains(&bytes.capacity()) {
            self.chunks.lock().push(bytes);
        }
    }

    /// Takes the memory of `columns`, as far as nobody else has it.
    pub(super) fn take_back(&self, columns: Vec<ArrayRef>) {
        columns.into_iter().for_each(|column| self.take_array(column));
    }

    fn take_array(&self, array: ArrayRef) {
        fn buffer<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<Buffer> {
            array.as_primitive_opt::<T>().map(|values| values.values().inner().clone())
        }
        // What the array itself holds has to go before its memory is nobody's.
        macro_rules! take {
            ($($t:ty),*) => {$(
                if let Some(buffer) = buffer::<$t>(&array) {
                    drop(array);
                    return self.take_buffer::<<$t as ArrowPrimitiveType>::Native>(buffer);
                }
            )*};
        }
        take!(Int16Type, Int32Type, Int64Type, Decimal128Type, Date32Type, TimestampMicrosecondType);
        take!(Decimal64Type, Float32Type, Float64Type);
        if let Some(texts) = array.as_string_opt::<i32>() {
            let (ends, heap) = (texts.offsets().inner().inner().clone(), texts.values().clone());
            drop(array);
            self.take_buffer::<i32>(ends);
            self.take_buffer::<u8>(heap);
        }
    }

    fn take_buffer<T: Kept>(&self, buffer: Buffer) {
        if let Ok(mut values) = buffer.into_vec::<T>() {
            let bytes = mem::size_of::<T>() * values.capacity();
            // What a small column has of a large one is not kept: else in the end all would have as much.
            let is_used = bytes <= 4 * mem::size_of::<T>() * values.len() + SPARE_BYTES_MIN;
            values.clear();
            if is_used && (1..=SPARE_BYTES_MAX).contains(&bytes) {
                T::of(self).lock().push(values);
            }
        }
    }
}
