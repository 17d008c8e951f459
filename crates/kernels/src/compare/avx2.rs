//! The AVX2 twins: codes are compared in the lanes they were unpacked to, and never stored.

use super::lanes::*;
use crate::bitpack;
use crate::bitpack::lanes::{
    BLOCK, Lanes16, Lanes32, Lanes64, WIDTH_MAX_16, WIDTH_MAX_32, WIDTH_MAX_64, narrow_16_to_8, origin, prefetch,
    source,
};
use std::arch::x86_64::*;
use std::array::from_fn;

/// Sets each word of `out` to `test(pointer)` of its block of 64 rows, of which [`bitpack::lanes::reach`] bytes are
/// readable.
#[target_feature(enable = "avx2")]
#[inline]
fn each_block(packed: &[u8], width: u32, first: usize, len: usize, out: &mut [u64], test: impl Fn(*const u8) -> u64) {
    let mut at = first;
    for word in out.iter_mut() {
        let mut buffer = None;
        let block = source(packed, at, width, &mut buffer);
        prefetch(block, width);
        *word = test(block);
        at += 8 * width as usize;
    }
    crate::bitmap::mask_end(out, len);
}

/// See [`super::select_range`]. Here `lo <= hi`, `hi` fits the width, and the range is not all of it.
#[target_feature(enable = "avx2")]
pub(super) fn select_range(packed: &[u8], width: u32, start: usize, len: usize, lo: u64, hi: u64, out: &mut [u64]) {
    let (first, phase) = origin(width, start);
    let stride = width as usize;
    match width {
        1 => select_bits(packed, start, len, hi == 1, out),
        8 => {
            let range = range_8(lo as i8, hi as i8);
            each_block(packed, width, first, len, out, |block| {
                // SAFETY: each_block gives 64 readable bytes and more.
                word_8(from_fn(|i| within_8(unsafe { _mm256_loadu_si256(block.add(32 * i).cast()) }, range)))
            });
        }
        16 => {
            let range = range_16(lo as i16, hi as i16);
            each_block(packed, width, first, len, out, |block| {
                // SAFETY: each_block gives 128 readable bytes and more.
                word_16(from_fn(|i| within_16(unsafe { _mm256_loadu_si256(block.add(32 * i).cast()) }, range)))
            });
        }
        32 => {
            let range = range_32(lo as i32, hi as i32);
            each_block(packed, width, first, len, out, |block| {
                // SAFETY: each_block gives 256 readable bytes and more.
                word_32(from_fn(|i| within_32(unsafe { _mm256_loadu_si256(block.add(32 * i).cast()) }, range)))
            });
        }
        _ if width <= WIDTH_MAX_16 => {
            let (lanes, range) = (Lanes16::new(width, phase), range_16(lo as i16, hi as i16));
            each_block(packed, width, first, len, out, |block| {
                // SAFETY: each_block gives the bytes of 4 groups of 16.
                word_16(from_fn(|i| within_16(unsafe { lanes.load(block.add(i * lanes.stride())) }, range)))
            });
        }
        _ if width <= WIDTH_MAX_32 => {
            let (lanes, range) = (Lanes32::new(width, phase), range_32(lo as i32, hi as i32));
            each_block(packed, width, first, len, out, |block| {
                // SAFETY: each_block gives the bytes of 8 groups of 8.
                word_32(from_fn(|i| within_32(unsafe { lanes.load(block.add(i * stride)) }, range)))
            });
        }
        _ if width <= 32 => {
            let (lanes, range) = (Lanes64::new(width, phase), range_32(lo as i32, hi as i32));
            each_block(packed, width, first, len, out, |block| {
                // SAFETY: as above.
                word_32(from_fn(|i| within_32(unsafe { lanes.load_narrow(block.add(i * stride)) }, range)))
            });
        }
        _ if width <= WIDTH_MAX_64 => {
            let (lanes, range) = (Lanes64::new(width, phase), range_64(lo as i64, hi as i64));
            each_block(packed, width, first, len, out, |block| {
                !(0..8).fold(0, |word, i| {
                    // SAFETY: as above.
                    let [low, high] = unsafe { lanes.load(block.add(i * stride)) };
                    let bits = bits_64(outside_64(low, range)) | bits_64(outside_64(high, range)) << 4;
                    word | bits << (8 * i)
                })
            });
        }
        _ => select_wide(packed, width, start, len, lo, hi, out),
    }
}

/// Width 1: the codes are the answer (`ones`), or its inverse.
fn select_bits(packed: &[u8], start: usize, len: usize, ones: bool, out: &mut [u64]) {
    for (at, word) in out.iter_mut().enumerate() {
        let bit = start + at * BLOCK;
        let rows = (len - at * BLOCK).min(BLOCK) as u32;
        let bits = bitpack::scalar::read(packed, BLOCK as u32, bit);
        *word = if ones { bits } else { !bits } & bitpack::mask(rows);
    }
}

/// Widths that do not fit the lanes: unpacked to a small buffer first.
#[target_feature(enable = "avx2")]
fn select_wide(packed: &[u8], width: u32, start: usize, len: usize, lo: u64, hi: u64, out: &mut [u64]) {
    let mut codes = [0u64; BLOCK];
    for (at, word) in out.iter_mut().enumerate() {
        let codes = &mut codes[..(len - at * BLOCK).min(BLOCK)];
        bitpack::scalar::unpack_u64(packed, width, start + at * BLOCK, codes);
        super::select_range_plain(codes, lo, hi, std::slice::from_mut(word));
    }
}

/// See [`super::select_members`]. Here the width is 1 to 32.
#[target_feature(enable = "avx2")]
pub(super) fn select_members(packed: &[u8], width: u32, start: usize, len: usize, members: &[u64], out: &mut [u64]) {
    let (first, phase) = origin(width, start);
    let stride = width as usize;
    match width {
        _ if width <= 8 => {
            let (lanes, set) = (Lanes16::new(width, phase), ByteSet::new(members));
            each_block(packed, width, first, len, out, |block| {
                word_8(from_fn(|i| {
                    // SAFETY: each_block gives the bytes of 4 groups of 16.
                    let (low, high) = unsafe {
                        let group = block.add(2 * i * lanes.stride());
                        (lanes.load(group), lanes.load(group.add(lanes.stride())))
                    };
                    set.contains(narrow_16_to_8(low, high))
                }))
            });
        }
        _ if width <= WIDTH_MAX_32 => {
            let lanes = Lanes32::new(width, phase);
            each_block(packed, width, first, len, out, |block| {
                (0..8).fold(0, |word, i| {
                    // SAFETY: each_block gives the bytes of 8 groups of 8.
                    let codes = unsafe { lanes.load(block.add(i * stride)) };
                    word | members_8(codes, members) << (8 * i)
                })
            });
        }
        _ => {
            let lanes = Lanes64::new(width, phase);
            each_block(packed, width, first, len, out, |block| {
                (0..8).fold(0, |word, i| {
                    // SAFETY: as above; the width is at most 32.
                    let codes = unsafe { lanes.load_narrow(block.add(i * stride)) };
                    word | members_8(codes, members) << (8 * i)
                })
            });
        }
    }
}

/// Which of 8 codes `members` has, as bits.
#[target_feature(enable = "avx2")]
#[inline]
fn members_8(codes: __m256i, members: &[u64]) -> u64 {
    // A code has at most 32 bits, so its 32-bit word of the bitmap is below 2^27: signed comparison and index are
    // right.
    let words = (members.len() * 2).min(1 << 27) as i32;
    let word = _mm256_srli_epi32(codes, 5);
    let inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(words), word);
    // SAFETY: lanes whose word is not inside `members` are masked off and not read. A 64-bit word is two 32-bit words,
    // the low one first, on the little-endian machines this is compiled for.
    let words =
        unsafe { _mm256_mask_i32gather_epi32::<4>(_mm256_setzero_si256(), members.as_ptr().cast(), word, inside) };
    let bit = _mm256_srlv_epi32(words, _mm256_and_si256(codes, _mm256_set1_epi32(31)));
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32::<31>(bit))) as u64
}

/// Fills the whole words of `out` from blocks of 64 plain values; the remaining values are the caller's.
macro_rules! plain_int {
    ($name:ident, $t:ty, $make:ident, $test:ident, $word:ident, $per_vector:literal) => {
        /// The words that whole blocks of 64 values fill. `lo <= hi`.
        #[target_feature(enable = "avx2")]
        pub(super) fn $name(values: &[[$t; BLOCK]], lo: $t, hi: $t, out: &mut [u64]) {
            let range = $make(lo, hi);
            for (word, block) in out.iter_mut().zip(values) {
                *word = $word(from_fn(|i| {
                    // SAFETY: vector i lies within the block of 64.
                    $test(unsafe { _mm256_loadu_si256(block.as_ptr().add($per_vector * i).cast()) }, range)
                }));
            }
        }
    };
}
plain_int!(plain_8, i8, range_8, within_8, word_8, 32);
plain_int!(plain_16, i16, range_16, within_16, word_16, 16);
plain_int!(plain_32, i32, range_32, within_32, word_32, 8);

/// As the others of its kind.
#[target_feature(enable = "avx2")]
pub(super) fn plain_64(values: &[[i64; BLOCK]], lo: i64, hi: i64, out: &mut [u64]) {
    let range = range_64(lo, hi);
    for (word, block) in out.iter_mut().zip(values) {
        *word = !(0..16).fold(0, |word, i| {
            // SAFETY: vector i lies within the block of 64.
            let rows = unsafe { _mm256_loadu_si256(block.as_ptr().add(4 * i).cast()) };
            word | bits_64(outside_64(rows, range)) << (4 * i)
        });
    }
}

macro_rules! plain_float {
    ($name:ident, $each:ident, $t:ty, $v:ty, $set:ident, $load:ident, $cmp:ident, $and:ident, $mask:ident, $lanes:literal) => {
        #[target_feature(enable = "avx2")]
        #[inline]
        fn $each(values: &[[$t; BLOCK]], out: &mut [u64], test: impl Fn($v) -> $v) {
            for (word, block) in out.iter_mut().zip(values) {
                *word = (0..BLOCK / $lanes).fold(0, |word, i| {
                    // SAFETY: vector i lies within the block of 64.
                    let rows = unsafe { $load(block.as_ptr().add($lanes * i)) };
                    word | ($mask(test(rows)) as u64) << ($lanes * i)
                });
            }
        }

        /// The words that whole blocks of 64 values fill. NaN is above all numbers; the range is not empty.
        #[target_feature(enable = "avx2")]
        pub(super) fn $name(values: &[[$t; BLOCK]], lo: $t, hi: $t, out: &mut [u64]) {
            let (low, high) = ($set(lo), $set(hi));
            if !hi.is_nan() {
                $each(values, out, |x| $and($cmp::<_CMP_GE_OQ>(x, low), $cmp::<_CMP_LE_OQ>(x, high)));
            } else if !lo.is_nan() {
                // Everything at or above lo, NaN included: what is not below it.
                $each(values, out, |x| $cmp::<_CMP_NLT_UQ>(x, low));
            } else {
                $each(values, out, |x| $cmp::<_CMP_UNORD_Q>(x, x));
            }
        }
    };
}
plain_float!(
    plain_f32,
    each_f32,
    f32,
    __m256,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_cmp_ps,
    _mm256_and_ps,
    _mm256_movemask_ps,
    8
);
plain_float!(
    plain_f64,
    each_f64,
    f64,
    __m256d,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_cmp_pd,
    _mm256_and_pd,
    _mm256_movemask_pd,
    4
);
