//! The scalar twins.

use super::{Plain, cut};
use crate::bitpack;

/// Fills each word of `out` from 64 calls of `test` with the row.
#[inline(always)]
pub(super) fn fill(len: usize, out: &mut [u64], mut test: impl FnMut(usize) -> bool) {
    for (at, word) in out.iter_mut().enumerate() {
        let first = at * 64;
        let rows = (len - first).min(64);
        *word = (0..rows).fold(0, |bits, row| bits | u64::from(test(first + row)) << row);
    }
}

/// See [`super::select_range`].
pub fn select_range(packed: &[u8], width: u32, start: usize, len: usize, lo: u64, hi: u64, out: &mut [u64]) {
    bitpack::check(packed, width, start, len, 64);
    fill(len, cut(out, len), |row| {
        let code = bitpack::scalar::read(packed, width, (start + row) * width as usize);
        lo <= code && code <= hi
    });
}

/// See [`super::select_members`].
pub fn select_members(packed: &[u8], width: u32, start: usize, len: usize, members: &[u64], out: &mut [u64]) {
    bitpack::check(packed, width, start, len, 64);
    fill(len, cut(out, len), |row| {
        let code = bitpack::scalar::read(packed, width, (start + row) * width as usize);
        members.get((code / 64) as usize).is_some_and(|word| word >> (code % 64) & 1 == 1)
    });
}

/// See [`super::select_range_plain`].
pub fn select_range_plain<T: Plain>(values: &[T], lo: T, hi: T, out: &mut [u64]) {
    let out = cut(out, values.len());
    for (word, rows) in out.iter_mut().zip(values.chunks(64)) {
        *word = rows.iter().enumerate().fold(0, |bits, (row, value)| bits | u64::from(value.within(lo, hi)) << row);
    }
}
