//! The AVX2 twins: one block is one vector.

use super::{Block, SALTS, block_of};
use std::arch::x86_64::*;

/// Whether `block` has all eight bits of `hash`.
#[target_feature(enable = "avx2")]
#[inline]
fn has(block: &Block, hash: u64) -> bool {
    // SAFETY: both arrays are 32 readable bytes; loadu needs no alignment.
    let (block, salts) =
        unsafe { (_mm256_loadu_si256(block.as_ptr().cast()), _mm256_loadu_si256(SALTS.as_ptr().cast())) };
    let places = _mm256_srli_epi32::<27>(_mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts));
    let bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), places);
    _mm256_testc_si256(block, bits) == 1
}

/// See [`super::BlockedBloom::may_contain`].
#[target_feature(enable = "avx2")]
pub(super) fn may_contain(blocks: &[Block], hash: u64) -> bool {
    blocks.get(block_of(hash, blocks.len())).is_some_and(|block| has(block, hash))
}

/// See [`super::BlockedBloom::may_contain_many`].
#[target_feature(enable = "avx2")]
pub(super) fn may_contain_many(blocks: &[Block], hashes: &[u64], out: &mut [u64]) {
    if blocks.is_empty() {
        return out.fill(0);
    }
    for (word, hashes) in out.iter_mut().zip(hashes.chunks(64)) {
        *word = 0;
        for (row, &hash) in hashes.iter().enumerate() {
            *word |= u64::from(has(&blocks[block_of(hash, blocks.len())], hash)) << row;
        }
    }
}
