//! The scalar twins.

/// See [`super::count_ones`].
#[must_use]
pub fn count_ones(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// See [`super::indices`].
pub fn indices(bits: &[u64], out: &mut Vec<u32>) {
    out.reserve(super::count_ones(bits));
    super::for_each_one(bits, |row| out.push(row as u32));
}

/// The place of one bit number `k` of `word`, which has more than `k`: the last step of [`super::Rank::select`].
#[must_use]
pub fn select_in_word(mut word: u64, k: usize) -> usize {
    for _ in 0..k {
        word &= word - 1;
    }
    word.trailing_zeros() as usize
}
