//! The fast twins.

use crate::{bitmap, bitpack};
use std::arch::x86_64::*;

/// See [`super::gather_packed`]. Here the width is at most 57, `packed` has 8 bytes or more, and indices were checked.
#[target_feature(enable = "avx2")]
pub(super) fn gather_packed(packed: &[u8], width: u32, indices: &[u32], out: &mut Vec<u64>) {
    out.reserve(indices.len());
    let width_lanes = _mm256_set1_epi64x(width.into());
    let mask = _mm256_set1_epi64x(bitpack::mask(width) as i64);
    // The last place from which 8 bytes can be read. A code beyond it is read from here with a larger shift: it ends
    // within `packed`, so shift and width together still fit 64 bits.
    let last = packed.len() - 8;
    let last_lanes = _mm256_set1_epi64x(last as i64);
    let (groups, rest) = indices.as_chunks::<4>();
    // SAFETY: each index names a code within `packed`, so the byte it starts in is inside, and the smaller of that and
    // `last` has 8 readable bytes. `indices.len()` places were reserved, and are all written before the length is set.
    unsafe {
        let mut end = out.as_mut_ptr().add(out.len());
        for group in groups {
            let rows = _mm256_cvtepu32_epi64(_mm_loadu_si128(group.as_ptr().cast()));
            let bits = _mm256_mul_epu32(rows, width_lanes);
            let byte = _mm256_srli_epi64::<3>(bits);
            let byte = _mm256_blendv_epi8(byte, last_lanes, _mm256_cmpgt_epi64(byte, last_lanes));
            let words = _mm256_i64gather_epi64::<1>(packed.as_ptr().cast(), byte);
            let shift = _mm256_sub_epi64(bits, _mm256_slli_epi64::<3>(byte));
            _mm256_storeu_si256(end.cast(), _mm256_and_si256(_mm256_srlv_epi64(words, shift), mask));
            end = end.add(4);
        }
        for &index in rest {
            let bit = index as usize * width as usize;
            let byte = (bit / 8).min(last);
            let word = packed.as_ptr().add(byte).cast::<u64>().read_unaligned();
            end.write(word >> (bit - byte * 8) & bitpack::mask(width));
            end = end.add(1);
        }
        out.set_len(out.len() + indices.len());
    }
}

/// See [`super::filter`]. One word of `selection` per block.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn filter<T: Copy>(blocks: &[[T; 64]], selection: &[u64], out: &mut Vec<T>) {
    let ones = bitmap::avx2::count_ones(selection);
    out.reserve(ones);
    // SAFETY: `end` moves one place per one bit, so it stays within the `ones` reserved places, and all of them are
    // written before the length is set. Places in a word are below 64.
    unsafe {
        let mut end = out.as_mut_ptr().add(out.len());
        for (block, &word) in blocks.iter().zip(selection) {
            if word == u64::MAX {
                end.copy_from_nonoverlapping(block.as_ptr(), 64);
                end = end.add(64);
                continue;
            }
            let mut word = word;
            while word != 0 {
                end.write(*block.get_unchecked(word.trailing_zeros() as usize));
                end = end.add(1);
                word &= word - 1;
            }
        }
        out.set_len(out.len() + ones);
    }
}
