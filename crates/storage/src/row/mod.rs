//! Rows as bytes and values: what a write set, a log record, the delta and the point path pass to one another.
//!
//! Comes in: Arrow batches or values. Goes out: [`RowBuffer`] (fixed-slot rows), Arrow arrays, order-preserving keys.
//!
//! 1. [`check_batch`] makes a batch fit its table: types, NOT NULL, lengths, ranges, one form of each float.
//! 2. [`RowLayout`] says where each column stands in a row (`docs/formats/row.md`); [`RowBuffer`] holds rows of one
//!    layout and takes them from values, batches, other rows or log records.
//! 3. [`RowView`] reads one row; `RowBuffer::to_arrays` and `take_arrays` turn rows back into columns.
//! 4. [`key`] encodes columns as bytes whose `memcmp` order is the SQL order.
//! 5. [`value_of`], [`array_of`] and [`constant_array`] go between single values and arrays.
//!
//! Invariants:
//! - Bytes in a [`RowBuffer`] are valid for its layout: whatever comes from outside is checked on the way in.
//! - Equal rows of one layout have equal bytes: slots of NULLs are zero, floats have one form, text stands in column
//!   order.
//!
//! It does not own: where rows live, or which of them are visible.

mod value;
mod layout;
mod view;
mod buffer;
mod fill;
mod to_arrays;
mod check;
mod arrays;
pub mod key;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use arrays::{array_of, constant_array, value_of};
pub use buffer::RowBuffer;
pub(crate) use check::coded_texts;
pub use check::{check_batch, check_load, without_padding};
pub use layout::RowLayout;
pub use value::{Value, compare_floats, compare_values};
pub use view::RowView;

pub(crate) use arrays::{TypedValues, batch_of, bytes_of_array, compact, uuid_array, uuid_at};
pub(crate) use value::{comparable, normal_f32, normal_f64};
