//! Selection bitmaps: `&[u64]`, bit `i` is row `i`, least significant bit first. Bits past the length are zero.
//!
//! In: words. Out: words, counts, row numbers. A bitmap of `len` rows takes [`words`]`(len)` words; its length is the
//! caller's to remember.
//!
//! 1. Single bits and ranges: [`set`], [`clear`], [`get`], [`set_range`].
//! 2. Whole bitmaps: [`and_in_place`], [`or_in_place`], [`and_not_in_place`], [`not_in_place`].
//! 3. Counting and walking: [`count_ones`], [`count_range`], [`for_each_one`], [`indices`].
//! 4. Cutting: [`copy_range`]. Rank and select: [`Rank`].
//!
//! Panics: rows outside the bitmap; two bitmaps of different size.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
mod rank;
pub mod scalar;

#[cfg(test)]
mod tests;

pub use rank::Rank;

/// Words that a bitmap of `len` rows takes.
#[inline]
#[must_use]
pub const fn words(len: usize) -> usize {
    len.div_ceil(64)
}

/// A bitmap of `len` rows, all selected.
#[must_use]
pub fn full(len: usize) -> Vec<u64> {
    let mut bits = vec![u64::MAX; words(len)];
    mask_end(&mut bits, len);
    bits
}

/// Selects row `index`.
#[inline]
pub fn set(bits: &mut [u64], index: usize) {
    bits[index / 64] |= 1 << (index % 64);
}

/// Drops row `index`.
#[inline]
pub fn clear(bits: &mut [u64], index: usize) {
    bits[index / 64] &= !(1 << (index % 64));
}

/// Whether row `index` is selected.
#[inline]
#[must_use]
pub fn get(bits: &[u64], index: usize) -> bool {
    bits[index / 64] >> (index % 64) & 1 == 1
}

/// The first word of `range`, its mask, the last word and its mask; `None` for an empty range.
#[inline]
fn edges(range: &Range<usize>) -> Option<(usize, u64, usize, u64)> {
    if range.start >= range.end {
        return None;
    }
    let last = range.end - 1;
    Some((range.start / 64, u64::MAX << (range.start % 64), last / 64, u64::MAX >> (63 - last % 64)))
}

/// Selects the rows of `range`.
pub fn set_range(bits: &mut [u64], range: Range<usize>) {
    let Some((first, first_mask, last, last_mask)) = edges(&range) else { return };
    if first == last {
        bits[first] |= first_mask & last_mask;
        return;
    }
    bits[first] |= first_mask;
    bits[first + 1..last].fill(u64::MAX);
    bits[last] |= last_mask;
}

/// Drops the rows of `range`.
pub fn clear_range(bits: &mut [u64], range: Range<usize>) {
    let Some((first, first_mask, last, last_mask)) = edges(&range) else { return };
    if first == last {
        bits[first] &= !(first_mask & last_mask);
        return;
    }
    bits[first] &= !first_mask;
    bits[first + 1..last].fill(0);
    bits[last] &= !last_mask;
}

#[inline(always)]
fn combine(left: &mut [u64], right: &[u64], op: impl Fn(u64, u64) -> u64) {
    assert_eq!(left.len(), right.len(), "bitmaps of different size");
    for (l, r) in left.iter_mut().zip(right) {
        *l = op(*l, *r);
    }
}

/// `left &= right`.
pub fn and_in_place(left: &mut [u64], right: &[u64]) {
    combine(left, right, |l, r| l & r);
}

/// `left |= right`.
pub fn or_in_place(left: &mut [u64], right: &[u64]) {
    combine(left, right, |l, r| l | r);
}

/// `left &= !right`.
pub fn and_not_in_place(left: &mut [u64], right: &[u64]) {
    combine(left, right, |l, r| l & !r);
}

/// Flips the first `len` rows; bits past them become zero.
pub fn not_in_place(bits: &mut [u64], len: usize) {
    for word in bits.iter_mut() {
        *word = !*word;
    }
    mask_end(bits, len);
}

/// Clears every bit from `len` on.
pub fn mask_end(bits: &mut [u64], len: usize) {
    let all = bits.len() * 64;
    clear_range(bits, len..all);
}

/// Rows selected.
#[must_use]
pub fn count_ones(bits: &[u64]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has the features that the twin asks for.
        return unsafe { avx2::count_ones(bits) };
    }
    scalar::count_ones(bits)
}

/// Rows of `range` selected.
#[must_use]
pub fn count_range(bits: &[u64], range: Range<usize>) -> usize {
    let Some((first, first_mask, last, last_mask)) = edges(&range) else { return 0 };
    if first == last {
        return (bits[first] & first_mask & last_mask).count_ones() as usize;
    }
    (bits[first] & first_mask).count_ones() as usize
        + count_ones(&bits[first + 1..last])
        + (bits[last] & last_mask).count_ones() as usize
}

/// Whether no row is selected.
#[must_use]
pub fn is_empty(bits: &[u64]) -> bool {
    bits.iter().all(|&word| word == 0)
}

/// Calls `visit` with each selected row, in order.
#[inline]
pub fn for_each_one(bits: &[u64], mut visit: impl FnMut(usize)) {
    for (at, &word) in bits.iter().enumerate() {
        let mut word = word;
        while word != 0 {
            visit(at * 64 + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}

/// Appends the selected rows to `out`, in order. Rows must fit a `u32`.
pub fn indices(bits: &[u64], out: &mut Vec<u32>) {
    assert!(bits.len() <= 1 << 26, "row numbers of {} words do not fit 32 bits", bits.len());
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has the features that the twin asks for.
        return unsafe { avx2::indices(bits, out) };
    }
    scalar::indices(bits, out);
}

/// The rows of `range` as a bitmap of their own: its bit 0 is row `range.start`.
#[must_use]
pub fn copy_range(bits: &[u64], range: Range<usize>) -> Vec<u64> {
    let len = range.end.saturating_sub(range.start);
    let (first, shift) = (range.start / 64, (range.start % 64) as u32);
    let mut out = Vec::with_capacity(words(len));
    if len == 0 {
        return out;
    }
    let source = &bits[first..words(range.end)];
    if shift == 0 {
        out.extend_from_slice(source);
    } else {
        out.extend(source.windows(2).map(|pair| pair[0] >> shift | pair[1] << (64 - shift)));
        if out.len() < words(len) {
            out.push(source[source.len() - 1] >> shift);
        }
    }
    mask_end(&mut out, len);
    out
}
