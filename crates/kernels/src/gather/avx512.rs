//! The AVX-512 twin of filtering numbers: what is kept of a register is moved together by one instruction.

use std::arch::x86_64::*;

use crate::bitmap;

/// Values of a block, a word of the selection.
const BLOCK: usize = 64;

/// Appends of each block the values whose bit is set, `BYTES` bytes each: 4, 8 or 16.
///
/// # Safety
/// The processor has the features below; values have `BYTES` bytes, any of which make a value.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2,popcnt,avx2,bmi1")]
pub(super) unsafe fn filter<T: Copy, const BYTES: usize>(blocks: &[[T; BLOCK]], selection: &[u64], out: &mut Vec<T>) {
    const { assert!(BYTES == 4 || BYTES == 8 || BYTES == 16) };
    assert_eq!(size_of::<T>(), BYTES);
    // Values of a register.
    let at_once = 64 / BYTES;
    let ones = bitmap::avx2::count_ones(selection);
    // A register is stored as a whole, at most its values behind the last one.
    out.reserve(ones + at_once);
    // SAFETY: loads stay within a block. `end` moves by one place per one bit, so that a whole register behind it stays
    // within the reserved places; those before it are written when the length is set.
    unsafe {
        let mut end = out.as_mut_ptr().add(out.len());
        for (block, &word) in blocks.iter().zip(selection) {
            if word == u64::MAX {
                // Stretches are short: a call of a copy takes longer than these.
                for first in (0..BLOCK).step_by(at_once) {
                    _mm512_storeu_si512(end.add(first).cast(), _mm512_loadu_si512(block.as_ptr().add(first).cast()));
                }
                end = end.add(BLOCK);
                continue;
            }
            let mut word = word;
            for first in (0..BLOCK).step_by(at_once) {
                let values = _mm512_loadu_si512(block.as_ptr().add(first).cast());
                let mask = word & ((1 << at_once) - 1);
                word >>= at_once;
                let kept = match BYTES {
                    4 => _mm512_maskz_compress_epi32(mask as u16, values),
                    8 => _mm512_maskz_compress_epi64(mask as u8, values),
                    // Each value is two halves, both kept or neither.
                    _ => _mm512_maskz_compress_epi64((_pdep_u64(mask, 0x55) * 3) as u8, values),
                };
                _mm512_storeu_si512(end.cast(), kept);
                end = end.add(mask.count_ones() as usize);
            }
        }
        out.set_len(out.len() + ones);
    }
}
