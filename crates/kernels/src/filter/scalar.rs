//! The scalar twins.

use super::{Block, SALTS, block_of};

/// The bit of `hash` in each word of its block.
#[inline(always)]
pub(super) fn bits(hash: u64) -> Block {
    SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

/// See [`super::BlockedBloom::may_contain`].
#[inline]
#[must_use]
pub fn may_contain(blocks: &[[u32; 8]], hash: u64) -> bool {
    let Some(block) = blocks.get(block_of(hash, blocks.len())) else { return false };
    block.iter().zip(bits(hash)).fold(0, |missing, (word, bit)| missing | (!word & bit)) == 0
}

/// See [`super::BlockedBloom::may_contain_many`].
pub fn may_contain_many(blocks: &[[u32; 8]], hashes: &[u64], out: &mut [u64]) {
    for (word, hashes) in out.iter_mut().zip(hashes.chunks(64)) {
        *word =
            hashes.iter().enumerate().fold(0, |bits, (row, &hash)| bits | u64::from(may_contain(blocks, hash)) << row);
    }
}
