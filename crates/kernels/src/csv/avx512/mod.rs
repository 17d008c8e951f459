//! The AVX-512 twins: one register is a block of 64 bytes, and places are taken from it by compression (VBMI2); or it
//! has four of the eight fields whose values are read at once ([`values`]), or one text ([`text`]).

pub(super) mod text;
pub(super) mod values;

use std::arch::x86_64::*;

use super::{Marks, Structure};

/// Bytes of a block.
const BLOCK: usize = 64;

/// The numbers of a block's bytes.
const NUMBERS: [u8; BLOCK] = {
    let mut numbers = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        numbers[at] = at as u8;
        at += 1;
    }
    numbers
};

/// Each bit is the exclusive or of itself and all lower ones: the product without carries by ones everywhere.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,pclmulqdq")]
fn prefix_xor_by_product(bits: u64) -> u64 {
    let bits = _mm_set_epi64x(0, bits.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(bits, _mm_set1_epi8(-1))).cast_unsigned()
}

/// See [`super::find_separators`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,pclmulqdq,popcnt")]
pub(super) fn find_separators(bytes: &[u8], marks: Marks, in_quotes: bool, separators: &mut Vec<u32>) -> Structure {
    let [quote, delimiter] = [marks.quote, marks.delimiter].map(|mark| _mm512_set1_epi8(mark as i8));
    let [line_feed, carriage_return] = [b'\n', b'\r'].map(|byte| _mm512_set1_epi8(byte as i8));
    // SAFETY: the array has the bytes of a register; the load needs no alignment.
    let numbers = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast()) };
    let mut found = Structure::default();
    // All bits if what comes is in quotes.
    let mut state = if in_quotes { u64::MAX } else { 0 };
    let mut base = 0;
    while base < bytes.len() {
        let left = bytes.len() - base;
        let valid = if left >= BLOCK { u64::MAX } else { (1 << left) - 1 };
        // SAFETY: only bytes of `valid` are read, and those are within the slice.
        let block = unsafe { _mm512_maskz_loadu_epi8(valid, bytes.as_ptr().add(base).cast()) };
        let quotes = _mm512_mask_cmpeq_epi8_mask(valid, block, quote);
        // Files mostly have quotes everywhere or nowhere.
        found.has_quotes |= quotes != 0;
        let quoted = if found.has_quotes { prefix_xor_by_product(quotes) ^ state } else { state };
        state = (quoted.cast_signed() >> 63).cast_unsigned();
        let open = valid & !quoted & !quotes;
        let all_line_feeds = _mm512_mask_cmpeq_epi8_mask(valid, block, line_feed);
        let line_feeds = all_line_feeds & open;
        found.quoted_line_feeds += (all_line_feeds & !open).count_ones() as usize;
        let bits = line_feeds | _mm512_mask_cmpeq_epi8_mask(open, block, delimiter);
        found.line_feeds += line_feeds.count_ones() as usize;
        found.carriage_returns += _mm512_mask_cmpeq_epi8_mask(open, block, carriage_return).count_ones() as usize;

        let count = bits.count_ones() as usize;
        separators.reserve(BLOCK);
        let len = separators.len();
        let end = separators.spare_capacity_mut()[..BLOCK].as_mut_ptr();
        let places = _mm512_maskz_compress_epi8(bits, numbers);
        let first = _mm512_set1_epi32(base as i32);
        let wide = |sixteen: __m128i| _mm512_add_epi32(first, _mm512_cvtepu8_epi32(sixteen));
        // SAFETY: there is room for the 64 places of a block, and `count` of them are written before they are taken.
        unsafe {
            _mm512_storeu_si512(end.cast(), wide(_mm512_castsi512_si128(places)));
            if count > 16 {
                _mm512_storeu_si512(end.add(16).cast(), wide(_mm512_extracti32x4_epi32::<1>(places)));
                _mm512_storeu_si512(end.add(32).cast(), wide(_mm512_extracti32x4_epi32::<2>(places)));
                _mm512_storeu_si512(end.add(48).cast(), wide(_mm512_extracti32x4_epi32::<3>(places)));
            }
            separators.set_len(len + count);
        }
        base += BLOCK;
    }
    found.in_quotes = state != 0;
    found
}
