//! The AVX2 twins: loops over several accumulators, which the compiler turns into vectors where it is told that they
//! exist.
//!
//! At most [`super::BLOCK`] values a call.

/// Accumulators: enough to keep the adders busy while each waits for its last sum.
const LANES: usize = 16;

/// Adds `part` of each value to one of [`LANES`] accumulators.
#[inline(always)]
fn lanes<T: Copy, S: Copy + Default + std::ops::AddAssign>(values: &[T], part: impl Fn(T) -> S) -> [S; LANES] {
    let mut sums = [S::default(); LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for (sum, &value) in sums.iter_mut().zip(block) {
            *sum += part(value);
        }
    }
    for (sum, &value) in sums.iter_mut().zip(rest) {
        *sum += part(value);
    }
    sums
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_i16(values: &[i16]) -> i64 {
    lanes(values, i64::from).iter().sum()
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_i32(values: &[i32]) -> i64 {
    lanes(values, i64::from).iter().sum()
}

/// `value + 2^63` is not negative, so that both of its halves are shifted without their sign, which AVX2 can do.
#[target_feature(enable = "avx2")]
pub(super) fn sum_i64(values: &[i64]) -> i128 {
    const OFFSET: u64 = 1 << 63;
    let (mut low, mut high) = (0_i128, 0_i128);
    // In rounds, so that the second look at a value finds it in the first cache.
    for round in values.chunks(1 << 12) {
        low += i128::from(lanes(round, |value| (value as u64) & 0xffff_ffff).iter().sum::<u64>());
        high += i128::from(lanes(round, |value| (value as u64 ^ OFFSET) >> 32).iter().sum::<u64>());
    }
    (high << 32) + low - ((values.len() as i128) << 63)
}

/// Adds `part` of each value that is selected, and 0 for the others, to one of [`LANES`] accumulators.
#[inline(always)]
fn selected_lanes<T: Copy>(blocks: &[[T; 64]], selection: &[u64], part: impl Fn(T) -> u64) -> u64 {
    let mut sums = [0_u64; LANES];
    for (block, &word) in blocks.iter().zip(selection) {
        for (group, values) in block.as_chunks::<LANES>().0.iter().enumerate() {
            let bits = word >> (group * LANES);
            for (lane, (sum, &value)) in sums.iter_mut().zip(values).enumerate() {
                *sum += part(value) & (bits >> lane & 1).wrapping_neg();
            }
        }
    }
    sums.iter().sum()
}

/// See [`super::sum_selected_u32`]. One word of `selection` per block.
#[target_feature(enable = "avx2")]
pub(super) fn sum_selected_u32(blocks: &[[u32; 64]], selection: &[u64]) -> u64 {
    selected_lanes(blocks, selection, u64::from)
}

/// See [`super::sum_selected_u64`]. One word of `selection` per block.
#[target_feature(enable = "avx2")]
pub(super) fn sum_selected_u64(blocks: &[[u64; 64]], selection: &[u64]) -> u128 {
    let low = selected_lanes(blocks, selection, |value| value & 0xffff_ffff);
    let high = selected_lanes(blocks, selection, |value| value >> 32);
    (u128::from(high) << 32) + u128::from(low)
}
