//! Comparisons within AVX2 lanes, and 64 answers as one word.
//!
//! A closed range `lo..=hi` is one unsigned comparison, `x - lo <= hi - lo`, for signed and unsigned lanes alike as
//! long as `lo <= hi`. AVX2 has no unsigned comparison: up to 32 bits `min(x, span) == x` says it; 64 bits flip the
//! sign bit.

use std::arch::x86_64::*;

/// `lo` and `hi - lo` in every lane; `lo <= hi` in the order of the lanes.
#[derive(Clone, Copy)]
pub(super) struct Range {
    lo: __m256i,
    span: __m256i,
}

macro_rules! range {
    ($make:ident, $test:ident, $t:ty, $set:ident, $sub:ident, $min:ident, $eq:ident) => {
        #[target_feature(enable = "avx2")]
        #[inline]
        pub(super) fn $make(lo: $t, hi: $t) -> Range {
            Range { lo: $set(lo), span: $set(hi.wrapping_sub(lo)) }
        }

        /// All ones in each lane that is within the range.
        #[target_feature(enable = "avx2")]
        #[inline]
        pub(super) fn $test(x: __m256i, range: Range) -> __m256i {
            let x = $sub(x, range.lo);
            $eq($min(x, range.span), x)
        }
    };
}
range!(range_8, within_8, i8, _mm256_set1_epi8, _mm256_sub_epi8, _mm256_min_epu8, _mm256_cmpeq_epi8);
range!(range_16, within_16, i16, _mm256_set1_epi16, _mm256_sub_epi16, _mm256_min_epu16, _mm256_cmpeq_epi16);
range!(range_32, within_32, i32, _mm256_set1_epi32, _mm256_sub_epi32, _mm256_min_epu32, _mm256_cmpeq_epi32);

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn range_64(lo: i64, hi: i64) -> Range {
    // The sign bits are flipped here, once: x - (lo ^ MIN) is (x - lo) ^ MIN.
    let (lo_flipped, span) = (lo ^ i64::MIN, hi.wrapping_sub(lo));
    Range { lo: _mm256_set1_epi64x(lo_flipped), span: _mm256_set1_epi64x(span ^ i64::MIN) }
}

/// All ones in each lane that is *outside* the range.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn outside_64(x: __m256i, range: Range) -> __m256i {
    _mm256_cmpgt_epi64(_mm256_sub_epi64(x, range.lo), range.span)
}

/// The top bits of two vectors of bytes: 64 rows.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn word_8(rows: [__m256i; 2]) -> u64 {
    let [low, high] = rows.map(|bytes| u64::from(_mm256_movemask_epi8(bytes) as u32));
    low | high << 32
}

/// 64 rows of all ones or zeros in 16-bit lanes, as bits.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn word_16(rows: [__m256i; 4]) -> u64 {
    let [a, b, c, d] = rows;
    let pack = |first, second| _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(first, second));
    word_8([pack(a, b), pack(c, d)])
}

/// 64 rows of all ones or zeros in 32-bit lanes, as bits.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn word_32(rows: [__m256i; 8]) -> u64 {
    let [a, b, c, d, e, f, g, h] = rows;
    // Packing works within 128-bit halves: four vectors end as dwords 0 2 4 6 | 1 3 5 7 of the row order.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let pack = |a, b, c, d| {
        let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        _mm256_permutevar8x32_epi32(bytes, order)
    };
    word_8([pack(a, b, c, d), pack(e, f, g, h)])
}

/// 4 rows of all ones or zeros in 64-bit lanes, as bits.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn bits_64(rows: __m256i) -> u64 {
    _mm256_movemask_pd(_mm256_castsi256_pd(rows)) as u64
}

/// The set of bytes that `members` (a bitmap of at most 256 bits) names, for a test by two shuffles (Mula's method):
/// each low half of a byte looks up which high halves go with it, as one bit each.
pub(super) struct ByteSet {
    /// Per low half: the members whose high half is 0 to 7, and 8 to 15.
    rows: [__m256i; 2],
    /// `1 << (high % 8)`.
    bits: __m256i,
}

impl ByteSet {
    #[target_feature(enable = "avx2")]
    pub(super) fn new(members: &[u64]) -> Self {
        let mut rows = [[0u8; 16]; 2];
        for (at, word) in members.iter().take(4).enumerate() {
            for bit in 0..64 {
                let code = at * 64 + bit;
                rows[code / 128][code % 16] |= ((word >> bit & 1) as u8) << (code / 16 % 8);
            }
        }
        // SAFETY: 16 bytes are readable; loadu needs no alignment.
        let rows = rows.map(|row| _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(row.as_ptr().cast()) }));
        let bits = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
        Self { rows, bits: _mm256_broadcastsi128_si256(bits) }
    }

    /// All ones in each byte that is a member.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn contains(&self, bytes: __m256i) -> __m256i {
        let nibble = _mm256_set1_epi8(15);
        let low = _mm256_and_si256(bytes, nibble);
        let high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
        let [few, many] = self.rows.map(|row| _mm256_shuffle_epi8(row, low));
        // The top bit of a byte says which half of the high halves it is in.
        let row = _mm256_blendv_epi8(few, many, bytes);
        let bit = _mm256_shuffle_epi8(self.bits, high);
        _mm256_cmpeq_epi8(_mm256_and_si256(row, bit), bit)
    }
}
