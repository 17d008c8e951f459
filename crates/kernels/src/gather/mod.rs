//! Fetching what a list of rows or a selection names.
//!
//! In: values (plain or packed), and row numbers or a selection bitmap. Out: the chosen values, appended to the caller's
//! vector. Bounds are checked once for the whole list, not per value.
//!
//! Panics: a row number outside the values.

pub mod scalar;

#[cfg(test)]
mod tests;

use crate::{bitmap, bitpack};

/// Asserts that every index is below `count`.
#[inline]
fn check(indices: &[u32], count: usize) {
    // A fold without early exit: it vectorises.
    let largest = indices.iter().fold(0, |largest, &index| largest.max(index));
    assert!(indices.is_empty() || (largest as usize) < count, "row {largest} is outside {count} rows");
}

/// Appends `values[index]` for each of `indices`, in their order.
pub fn gather<T: Copy>(values: &[T], indices: &[u32], out: &mut Vec<T>) {
    check(indices, values.len());
    // SAFETY: check() has seen that every index is inside `values`.
    out.extend(indices.iter().map(|&index| unsafe { *values.get_unchecked(index as usize) }));
}

/// Appends code `index` of `packed` (see [`crate::bitpack`]) for each of `indices`, in their order.
pub fn gather_packed(packed: &[u8], width: u32, indices: &[u32], out: &mut Vec<u64>) {
    scalar::gather_packed(packed, width, indices, out);
}

/// Appends the values whose bit of `selection` is set, in row order. `selection` must not name rows outside `values`.
pub fn filter<T: Copy>(values: &[T], selection: &[u64], out: &mut Vec<T>) {
    out.reserve(bitmap::count_ones(selection));
    for (at, &word) in selection.iter().enumerate() {
        if word == 0 {
            continue;
        }
        let rows = values.get(at * 64..).unwrap_or(&[]);
        let rows = &rows[..rows.len().min(64)];
        if word == u64::MAX {
            assert!(rows.len() == 64, "the selection names rows outside {} values", values.len());
            out.extend_from_slice(rows);
            continue;
        }
        let mut word = word;
        while word != 0 {
            out.push(rows[word.trailing_zeros() as usize]);
            word &= word - 1;
        }
    }
}

#[inline]
fn rows_of(packed: &[u8], width: u32) -> usize {
    if width == 0 { usize::MAX } else { packed.len() * 8 / width as usize }
}

#[inline]
fn check_packed(packed: &[u8], width: u32, indices: &[u32]) {
    bitpack::check(packed, width, 0, 0, 64);
    check(indices, rows_of(packed, width));
}
