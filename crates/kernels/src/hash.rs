//! The mixer behind hash tables and filters.

/// Mixes a 64-bit key so that every input bit moves every output bit: Stafford's variant 13 of the MurmurHash3
/// finaliser, as in SplitMix64, with an odd constant added first so that 0 does not map to 0. A bijection: distinct
/// keys never collide in full. Not keyed, so not a defence against chosen keys.
#[inline]
#[must_use]
pub fn hash_u64(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Folds another 64-bit part into a running hash, for keys of several parts. Order matters.
#[inline]
#[must_use]
pub fn hash_combine(hash: u64, part: u64) -> u64 {
    hash_u64(hash.rotate_left(25) ^ part)
}

#[cfg(test)]
mod tests;
