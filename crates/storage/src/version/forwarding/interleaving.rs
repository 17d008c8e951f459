//! From which stream each output row came, packed, with select.
//!
//! An entry has 0, 1, 2, 4, 8 or 16 bits, the fewest that number the streams: no entry straddles a word, and one word's
//! entries are compared at once. Per [`BLOCK`] entries, the rows of each stream before it are counted: with 16 streams
//! that is 1 bit a row. Select is a binary search over the counts and a walk of at most one block.

/// Entries between two counts.
const BLOCK: u64 = 1_024;

/// A sequence of stream numbers that answers "where is the k-th row of stream s".
#[derive(Debug)]
pub(super) struct Interleaving {
    streams: usize,
    /// Bits of an entry.
    width: u32,
    words: Vec<u64>,
    len: u64,
    /// Rows of each stream so far; `streams` numbers.
    counts: Vec<u64>,
    /// For each block, `counts` as they were before it.
    before: Vec<u64>,
}

impl Interleaving {
    pub(super) fn new(streams: usize) -> Self {
        let bits = usize::BITS - streams.saturating_sub(1).leading_zeros();
        let width = if bits == 0 { 0 } else { bits.next_power_of_two() };
        debug_assert!(width <= 16, "a merge of {streams} streams");
        Self { streams, width, words: Vec::new(), len: 0, counts: vec![0; streams], before: Vec::new() }
    }

    pub(super) fn streams(&self) -> usize {
        self.streams
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Entries of a word.
    fn per_word(&self) -> u64 {
        64 / u64::from(self.width.max(1))
    }

    pub(super) fn push(&mut self, stream: usize, rows: usize) {
        if self.width == 0 {
            self.len += rows as u64;
            return;
        }
        let per_word = self.per_word();
        for _ in 0..rows {
            if self.len.is_multiple_of(BLOCK) {
                self.before.extend_from_slice(&self.counts);
            }
            if self.len.is_multiple_of(per_word) {
                self.words.push(0);
            }
            let shift = (self.len % per_word) as u32 * self.width;
            if let Some(word) = self.words.last_mut() {
                *word |= (stream as u64) << shift;
            }
            if let Some(count) = self.counts.get_mut(stream) {
                *count += 1;
            }
            self.len += 1;
        }
    }

    /// Gives back what growing left over.
    pub(super) fn finish(mut self) -> Self {
        self.words.shrink_to_fit();
        self.before.shrink_to_fit();
        self
    }

    /// Position of row number `k` (from 0) of `stream`; `None` if it has not that many.
    pub(super) fn select(&self, stream: usize, k: u64) -> Option<u64> {
        if self.width == 0 {
            return (k < self.len).then_some(k);
        }
        if self.counts.get(stream).is_none_or(|count| *count <= k) {
            return None;
        }
        let block = self.block_of(stream, k);
        let counted = self.before.get(block * self.streams + stream)?;
        let mut left = (k - counted) as u32;
        let first = block as u64 * BLOCK / self.per_word();
        for (at, &word) in (first..).zip(self.words.get(first as usize..)?) {
            let mut hits = self.matches(word, stream);
            // The last word's unused entries read as stream 0: they lie behind every real one, so none is reached.
            if left < hits.count_ones() {
                (0..left).for_each(|_| hits &= hits - 1);
                return Some(at * self.per_word() + u64::from(hits.trailing_zeros() / self.width));
            }
            left -= hits.count_ones();
        }
        None
    }

    /// The last block that begins with at most `k` rows of `stream` before it.
    fn block_of(&self, stream: usize, k: u64) -> usize {
        let (mut low, mut high) = (0, self.before.len() / self.streams);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.before.get(middle * self.streams + stream).is_some_and(|count| *count <= k) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The lowest bit of each entry of `word` that is `stream`.
    fn matches(&self, word: u64, stream: usize) -> u64 {
        let ones = u64::MAX / (u64::MAX >> (64 - self.width));
        let mut differs = word ^ (stream as u64).wrapping_mul(ones);
        let mut shift = 1;
        while shift < self.width {
            differs |= differs >> shift;
            shift *= 2;
        }
        !differs & ones
    }

    pub(super) fn bytes(&self) -> usize {
        (self.words.capacity() + self.counts.capacity() + self.before.capacity()) * size_of::<u64>()
    }
}
