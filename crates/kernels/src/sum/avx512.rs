//! The AVX-512 twins of adding up what is selected: a word of the selection is the mask of the loads.
//!
//! At most [`super::BLOCK`] values a call.

use std::arch::x86_64::*;

/// See [`super::sum_selected_u32`]. One word of `selection` per block.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2")]
pub(super) fn sum_selected_u32(blocks: &[[u32; 64]], selection: &[u64]) -> u64 {
    let low_half = _mm512_set1_epi64(0xffff_ffff);
    let mut sums = [_mm512_setzero_si512(); 4];
    for (block, &word) in blocks.iter().zip(selection) {
        for (group, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the four groups of 16 values lie within the block.
            let values = unsafe {
                _mm512_maskz_loadu_epi32((word >> (group * 16)) as u16, block.as_ptr().add(group * 16).cast())
            };
            let halves = _mm512_add_epi64(_mm512_and_si512(values, low_half), _mm512_srli_epi64::<32>(values));
            *sum = _mm512_add_epi64(*sum, halves);
        }
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d))) as u64
}

/// See [`super::sum_selected_u64`]. One word of `selection` per block.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2")]
pub(super) fn sum_selected_u64(blocks: &[[u64; 64]], selection: &[u64]) -> u128 {
    let low_half = _mm512_set1_epi64(0xffff_ffff);
    let mut low = [_mm512_setzero_si512(); 2];
    let mut high = [_mm512_setzero_si512(); 2];
    for (block, &word) in blocks.iter().zip(selection) {
        for group in 0..8 {
            // SAFETY: the eight groups of 8 values lie within the block.
            let values =
                unsafe { _mm512_maskz_loadu_epi64((word >> (group * 8)) as u8, block.as_ptr().add(group * 8).cast()) };
            let lane = group % 2;
            low[lane] = _mm512_add_epi64(low[lane], _mm512_and_si512(values, low_half));
            high[lane] = _mm512_add_epi64(high[lane], _mm512_srli_epi64::<32>(values));
        }
    }
    let all = |[a, b]: [__m512i; 2]| u128::from(_mm512_reduce_add_epi64(_mm512_add_epi64(a, b)) as u64);
    (all(high) << 32) + all(low)
}
