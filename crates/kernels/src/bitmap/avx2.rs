//! The fast twins.

/// See [`super::count_ones`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn count_ones(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// See [`super::indices`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn indices(bits: &[u64], out: &mut Vec<u32>) {
    out.reserve(count_ones(bits));
    super::for_each_one(bits, |row| out.push(row as u32));
}
