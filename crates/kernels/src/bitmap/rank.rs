//! Rank and select over an immutable bitmap.
//!
//! One absolute count per 512 rows (a cache line of bits): 1/8 bit a row on top of the bitmap. `rank` is one load and at most
//! eight popcounts; `select` a binary search over the counts and a walk within one line.

use super::{scalar, words};
use std::sync::Arc;

const WORDS_PER_BLOCK: usize = 8;

/// A bitmap that answers "how many before" and "where is the k-th".
#[derive(Clone, Debug)]
pub struct Rank {
    bits: Arc<[u64]>,
    len: usize,
    /// Ones before each block, and the total as a last entry.
    before: Arc<[u64]>,
}

impl Rank {
    /// Counts `bits`, which hold `len` rows. Bits past `len` must be zero.
    ///
    /// Panics when `bits` are too few for `len`.
    #[must_use]
    pub fn new(bits: impl Into<Arc<[u64]>>, len: usize) -> Self {
        let bits: Arc<[u64]> = bits.into();
        assert!(words(len) <= bits.len(), "{} words do not hold {len} rows", bits.len());
        let mut ones = 0;
        let mut before = Vec::with_capacity(bits.len().div_ceil(WORDS_PER_BLOCK) + 1);
        for block in bits.chunks(WORDS_PER_BLOCK) {
            before.push(ones);
            ones += super::count_ones(block) as u64;
        }
        before.push(ones);
        Self { bits, len, before: before.into() }
    }

    /// Rows in the bitmap.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the bitmap has no rows at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Rows selected in all.
    #[must_use]
    pub fn ones(&self) -> usize {
        self.before.last().map_or(0, |&ones| ones as usize)
    }

    /// The bitmap.
    #[must_use]
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Whether row `index` is selected.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        super::get(&self.bits, index)
    }

    /// Selected rows before row `index`; `index` may be `len`. O(1).
    #[inline]
    #[must_use]
    pub fn rank(&self, index: usize) -> usize {
        assert!(index <= self.len, "row {index} is past {} rows", self.len);
        let (word, bit) = (index / 64, index % 64);
        let block = word / WORDS_PER_BLOCK;
        let whole = &self.bits[block * WORDS_PER_BLOCK..word];
        let last = self.bits.get(word).copied().unwrap_or(0);
        self.before[block] as usize + count_block(whole, last, bit)
    }

    /// The row of the selected row number `k`, from 0; `None` when there are not that many. O(log rows).
    #[must_use]
    pub fn select(&self, k: usize) -> Option<usize> {
        if k >= self.ones() {
            return None;
        }
        let block = self.before.partition_point(|&ones| ones as usize <= k) - 1;
        let mut left = k - self.before[block] as usize;
        let start = block * WORDS_PER_BLOCK;
        for (at, &word) in self.bits[start..].iter().enumerate() {
            let ones = word.count_ones() as usize;
            if left < ones {
                return Some((start + at) * 64 + select_in_word(word, left));
            }
            left -= ones;
        }
        None
    }

    /// Bytes held, the bitmap included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.bits) + size_of_val(&*self.before)
    }
}

/// Ones of `words` and of the low `bits` (below 64) bits of `last`.
#[inline]
fn count_block(words: &[u64], last: u64, bits: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has POPCNT.
        return unsafe { super::avx2::count_block(words, last, bits) };
    }
    scalar::count_block(words, last, bits)
}

/// The place of one bit number `k` of `word`, which has more than `k`.
#[inline]
fn select_in_word(word: u64, k: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has BMI1 and BMI2.
        return unsafe { super::avx2::select_in_word(word, k) };
    }
    scalar::select_in_word(word, k)
}
