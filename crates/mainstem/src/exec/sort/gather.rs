//! Values of some rows, in an order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray, GenericByteViewBuilder, PrimitiveArray};
use arrow::buffer::ScalarBuffer;
use arrow::compute::take;
use arrow::datatypes::{BinaryViewType, ByteViewType, DataType, StringViewType, UInt32Type};
use arrow::error::ArrowError;

/// The values of `rows`. Texts are copied: rows that were far from one another would keep all of the memory of all.
pub(super) fn gather(values: &ArrayRef, rows: &ScalarBuffer<u32>) -> Result<ArrayRef, ArrowError> {
    match values.data_type() {
        DataType::Utf8View if !values.as_string_view().data_buffers().is_empty() => {
            Ok(Arc::new(copied(values.as_byte_view::<StringViewType>(), rows)))
        }
        DataType::BinaryView if !values.as_binary_view().data_buffers().is_empty() => {
            Ok(Arc::new(copied(values.as_byte_view::<BinaryViewType>(), rows)))
        }
        _ => take(values, &PrimitiveArray::<UInt32Type>::new(rows.clone(), None), None),
    }
}

fn copied<T: ByteViewType>(values: &GenericByteViewArray<T>, rows: &[u32]) -> GenericByteViewArray<T> {
    let mut builder = GenericByteViewBuilder::<T>::with_capacity(rows.len());
    for row in rows {
        let row = *row as usize;
        builder.append_option(values.is_valid(row).then(|| values.value(row)));
    }
    builder.finish()
}
