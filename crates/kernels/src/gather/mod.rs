//! Fetching what a list of rows or a selection names.
//!
//! In: values (plain or packed), and row numbers or a selection bitmap. Out: the chosen values, appended to the
//! caller's vector. Bounds are checked once for the whole list, not per value.
//!
//! Panics: a row number outside the values.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod scalar;

#[cfg(test)]
mod tests;

use crate::bitpack;
use crate::cast::Pod;

/// Asserts that every index is below `count`.
#[inline]
fn check(indices: &[u32], count: usize) {
    // A fold without early exit: it vectorises.
    let largest = indices.iter().fold(0, |largest, &index| largest.max(index));
    assert!(indices.is_empty() || (largest as usize) < count, "row {largest} is outside {count} rows");
}

/// [`check`] for packed codes, and that the width is at most 64.
#[inline]
fn check_packed(packed: &[u8], width: u32, indices: &[u32]) {
    bitpack::check(packed, width, 0, 0, 64);
    check(indices, if width == 0 { usize::MAX } else { packed.len() * 8 / width as usize });
}

/// Appends `values[index]` for each of `indices`, in their order.
pub fn gather<T: Copy>(values: &[T], indices: &[u32], out: &mut Vec<T>) {
    check(indices, values.len());
    // SAFETY: check() has seen that every index is inside `values`.
    out.extend(indices.iter().map(|&index| unsafe { *values.get_unchecked(index as usize) }));
}

/// Appends code `index` of `packed` (see [`crate::bitpack`]) for each of `indices`, in their order. Width at most 64.
pub fn gather_packed(packed: &[u8], width: u32, indices: &[u32], out: &mut Vec<u64>) {
    #[cfg(target_arch = "x86_64")]
    if width <= bitpack::lanes::WIDTH_MAX_64 && packed.len() >= 8 && crate::dispatch::avx2() {
        check_packed(packed, width, indices);
        // SAFETY: the processor has AVX2; width and indices were checked.
        return unsafe { avx2::gather_packed(packed, width, indices, out) };
    }
    scalar::gather_packed(packed, width, indices, out);
}

/// Appends the values whose bit of `selection` is set, in row order. `selection` must not name rows outside `values`.
pub fn filter<T: Copy>(values: &[T], selection: &[u64], out: &mut Vec<T>) {
    let (blocks, rest) = values.as_chunks::<64>();
    let (whole, last) = selection.split_at(selection.len().min(blocks.len()));
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has the features that the twin asks for.
        unsafe { avx2::filter(blocks, whole, out) };
        return scalar::filter(rest, last, out);
    }
    scalar::filter(blocks.as_flattened(), whole, out);
    scalar::filter(rest, last, out);
}

/// As [`filter`], of numbers: those of 4, 8 and 16 bytes are kept a register at a time.
pub fn filter_numbers<T: Pod>(values: &[T], selection: &[u64], out: &mut Vec<T>) {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx512() {
        let (blocks, rest) = values.as_chunks::<64>();
        let (whole, last) = selection.split_at(selection.len().min(blocks.len()));
        // SAFETY: the processor has the features that the twin asks for; plain numbers of these sizes are any bytes.
        unsafe {
            match size_of::<T>() {
                4 => avx512::filter::<T, 4>(blocks, whole, out),
                8 => avx512::filter::<T, 8>(blocks, whole, out),
                16 => avx512::filter::<T, 16>(blocks, whole, out),
                _ => return filter(values, selection, out),
            }
        }
        return scalar::filter(rest, last, out);
    }
    filter(values, selection, out);
}
