//! The fast twins.

use std::arch::x86_64::*;

/// See [`super::count_ones`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(crate) fn count_ones(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// Up to this many ones are walked one by one; above, eight rows at a time.
const SPARSE_ONES_MAX: u32 = 10;

/// The places of the ones of each byte, then zeros.
static PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut at) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][at] = bit;
                at += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// See [`super::indices`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn indices(bits: &[u64], out: &mut Vec<u32>) {
    let ones = count_ones(bits);
    // Eight rows are written at a time, of which the last ones may be surplus.
    out.reserve(ones + 8);
    // SAFETY: `end` starts at the length and moves one place per one bit, so it stays within `ones` of it; each store
    // writes at most 8 places from there, which are reserved. After the loop exactly `ones` places more are
    // initialised.
    unsafe {
        let mut end = out.as_mut_ptr().add(out.len());
        for (at, &word) in bits.iter().enumerate() {
            let first = at as u32 * 64;
            if word.count_ones() <= SPARSE_ONES_MAX {
                let mut word = word;
                while word != 0 {
                    end.write(first + word.trailing_zeros());
                    end = end.add(1);
                    word &= word - 1;
                }
            } else {
                for (at, byte) in word.to_le_bytes().into_iter().enumerate() {
                    let places = _mm_loadl_epi64(PLACES[byte as usize].as_ptr().cast());
                    let base = _mm256_set1_epi32((first + at as u32 * 8) as i32);
                    _mm256_storeu_si256(end.cast(), _mm256_add_epi32(_mm256_cvtepu8_epi32(places), base));
                    end = end.add(byte.count_ones() as usize);
                }
            }
        }
        out.set_len(out.len() + ones);
    }
}

/// The place of one bit number `k` of `word`, which has more than `k`.
#[target_feature(enable = "bmi1,bmi2")]
pub(super) fn select_in_word(word: u64, k: usize) -> usize {
    _tzcnt_u64(_pdep_u64(1 << k, word)) as usize
}
