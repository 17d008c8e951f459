//! Predicates that answer with a selection bitmap, on packed codes and on plain values.
//!
//! In: packed codes (see [`crate::bitpack`]) or a slice, and a closed range or a set of codes. Out: `out`, overwritten:
//! bit `i` tells whether row `start + i` qualifies; bits past the rows are zero.
//!
//! An order-preserving dictionary or a frame of reference turns `=`, `<`, `BETWEEN` and prefixes into [`select_range`],
//! and every other predicate into [`select_members`] over a bitmap of the qualifying codes.
//!
//! Order of floats: -0.0 equals 0.0, NaN equals NaN and stands above all numbers.
//!
//! Panics: rows that `packed` does not hold, a width above 64, an `out` shorter than [`words`]`(len)`.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod plain;
pub mod scalar;

#[cfg(test)]
mod tests;

pub use plain::{Plain, select_range_plain};

use crate::bitmap::words;
use crate::bitpack;

/// Cuts `out` to the words of `len` rows and clears the rest.
#[inline]
pub(crate) fn cut(out: &mut [u64], len: usize) -> &mut [u64] {
    assert!(out.len() >= words(len), "a bitmap of {} words does not hold {len} rows", out.len());
    let (used, rest) = out.split_at_mut(words(len));
    rest.fill(0);
    used
}

/// Sets bit `i` of `out` if `lo <= code <= hi` for the code of row `start + i`, clears it otherwise.
pub fn select_range(packed: &[u8], width: u32, start: usize, len: usize, lo: u64, hi: u64, out: &mut [u64]) {
    bitpack::check(packed, width, start, len, 64);
    let out = cut(out, len);
    let largest = bitpack::mask(width);
    if lo > hi || lo > largest {
        return out.fill(0);
    }
    if lo == 0 && hi >= largest {
        out.fill(u64::MAX);
        return crate::bitmap::mask_end(out, len);
    }
    let hi = hi.min(largest);
    #[cfg(target_arch = "x86_64")]
    if len >= bitpack::SIMD_ROWS_MIN && crate::dispatch::avx2() {
        // SAFETY: the processor has AVX2; rows and width were checked, and the range is neither empty nor everything.
        return unsafe { avx2::select_range(packed, width, start, len, lo, hi, out) };
    }
    scalar::select_range(packed, width, start, len, lo, hi, out);
}

/// Sets bit `i` of `out` if the bitmap `members` has the code of row `start + i`, clears it otherwise. Codes past the
/// end of `members` are not members.
pub fn select_members(packed: &[u8], width: u32, start: usize, len: usize, members: &[u64], out: &mut [u64]) {
    bitpack::check(packed, width, start, len, 64);
    let out = cut(out, len);
    #[cfg(target_arch = "x86_64")]
    if (1..=32).contains(&width) && len >= bitpack::SIMD_ROWS_MIN && crate::dispatch::avx2() {
        // SAFETY: the processor has AVX2; rows and width were checked.
        return unsafe { avx2::select_members(packed, width, start, len, members, out) };
    }
    scalar::select_members(packed, width, start, len, members, out);
}
