//! Rank and select over an immutable bitmap (Vigna, "Broadword implementation of rank/select queries", 2008: rank9).
//!
//! Per 512 rows (a cache line of bits) two words of counts: the ones before the block, and seven 9-bit counts of the
//! ones before each later word of the block. A quarter bit a row on top of the bitmap. `rank` is two loads of counts
//! and one popcount; `select` a binary search over the blocks, then over the words of one.

use super::{scalar, words};
use std::sync::Arc;

const WORDS_PER_BLOCK: usize = 8;
/// Ones before a word within its block: at most 448.
const COUNT_BITS: usize = 9;

/// A bitmap that answers "how many before" and "where is the k-th".
#[derive(Clone, Debug)]
pub struct Rank {
    bits: Arc<[u64]>,
    len: usize,
    /// Per block, and once more for the end.
    counts: Arc<[Counts]>,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    /// Ones before the block.
    before: u64,
    /// Ones of the block before word `w` (1 to 7), at bit `9 * (w - 1)`. The top bit is zero.
    within: u64,
}

impl Counts {
    /// Ones of the block before word `word` of it. Word 0 reads the top bit.
    #[inline]
    fn before_word(self, word: usize) -> usize {
        let at = (word + WORDS_PER_BLOCK - 1) % WORDS_PER_BLOCK * COUNT_BITS;
        (self.within >> at) as usize & ((1 << COUNT_BITS) - 1)
    }
}

impl Rank {
    /// Counts `bits`, which hold `len` rows. Bits past `len` must be zero.
    ///
    /// Panics when `bits` are too few for `len`.
    #[must_use]
    pub fn new(bits: impl Into<Arc<[u64]>>, len: usize) -> Self {
        let bits: Arc<[u64]> = bits.into();
        assert!(words(len) <= bits.len(), "{} words do not hold {len} rows", bits.len());
        let mut before = 0;
        let mut counts = Vec::with_capacity(bits.len().div_ceil(WORDS_PER_BLOCK) + 1);
        for block in bits.chunks(WORDS_PER_BLOCK) {
            let (mut ones, mut within) = (0, 0);
            for word in 0..WORDS_PER_BLOCK {
                if word > 0 {
                    within |= ones << (COUNT_BITS * (word - 1));
                }
                ones += block.get(word).map_or(0, |bits| u64::from(bits.count_ones()));
            }
            counts.push(Counts { before, within });
            before += ones;
        }
        counts.push(Counts { before, within: 0 });
        Self { bits, len, counts: counts.into() }
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
        self.counts.last().map_or(0, |counts| counts.before as usize)
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
        let counts = self.counts[word / WORDS_PER_BLOCK];
        let last = self.bits.get(word).copied().unwrap_or(0) & ((1 << bit) - 1);
        counts.before as usize + counts.before_word(word % WORDS_PER_BLOCK) + last.count_ones() as usize
    }

    /// The row of the selected row number `k`, from 0; `None` when there are not that many. O(log rows).
    #[must_use]
    pub fn select(&self, k: usize) -> Option<usize> {
        if k >= self.ones() {
            return None;
        }
        // The last block with at most k ones before it. Block 0 has none, so there is one.
        let block = self.counts.partition_point(|counts| counts.before as usize <= k) - 1;
        let counts = self.counts[block];
        let left = k - counts.before as usize;
        let word = (1..WORDS_PER_BLOCK).filter(|&word| counts.before_word(word) <= left).count();
        let at = block * WORDS_PER_BLOCK + word;
        Some(at * 64 + select_in_word(self.bits[at], left - counts.before_word(word)))
    }

    /// Bytes held, the bitmap included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.bits) + size_of_val(&*self.counts)
    }
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
