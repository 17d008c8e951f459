//! The rows deleted as of now, as bits that one writer sets and anybody reads without a lock.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows whose bits are allocated together: 8 KiB, and 256 of them span a container.
pub(super) const CHUNK_ROWS: u32 = 1 << 16;
pub(super) const CHUNK_WORDS: usize = (CHUNK_ROWS / 64) as usize;

/// Grow-only bits over the rows of a container; memory comes with the first bit of each chunk.
pub(super) struct LatestBits {
    chunks: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl LatestBits {
    /// Bits for `capacity` rows, all off.
    pub(super) fn new(capacity: u32) -> Self {
        Self { chunks: (0..capacity.div_ceil(CHUNK_ROWS)).map(|_| OnceLock::new()).collect() }
    }

    /// Whether the bit of row `offset` is on; false for rows past the capacity.
    #[inline]
    pub(super) fn get(&self, offset: u32) -> bool {
        let Some(words) = self.chunks.get((offset / CHUNK_ROWS) as usize).and_then(OnceLock::get) else { return false };
        let within = offset % CHUNK_ROWS;
        words.get((within / 64) as usize).is_some_and(|w| w.load(Ordering::Acquire) >> (within % 64) & 1 == 1)
    }

    /// Sets the bits of `offset`'s word given by `mask`; returns how many of them were off. Only one thread may write.
    fn set_mask(&self, offset: u32, mask: u64) -> u32 {
        let Some(chunk) = self.chunks.get((offset / CHUNK_ROWS) as usize) else { return 0 };
        let words = chunk.get_or_init(|| (0..CHUNK_WORDS).map(|_| AtomicU64::new(0)).collect());
        let Some(word) = words.get((offset % CHUNK_ROWS / 64) as usize) else { return 0 };
        let old = word.load(Ordering::Relaxed);
        word.store(old | mask, Ordering::Release);
        (mask & !old).count_ones()
    }

    /// Sets the bits that are on in `words`, whose first bit is row [`CHUNK_ROWS`] times `chunk`. Only one thread may
    /// write.
    pub(super) fn set_chunk(&self, chunk: u32, words: &[u64; CHUNK_WORDS]) {
        for (word, mask) in (0u32..).zip(words).filter(|(_, mask)| **mask != 0) {
            self.set_mask(chunk * CHUNK_ROWS + word * 64, *mask);
        }
    }

    /// Sets the bit of row `offset`; true if it was off. Only one thread may write.
    pub(super) fn set(&self, offset: u32) -> bool {
        self.set_mask(offset, 1 << (offset % 64)) == 1
    }

    /// Sets the bits of `range`; returns how many were off. Only one thread may write.
    pub(super) fn set_range(&self, range: Range<u32>) -> u64 {
        let mut added = 0;
        let mut at = range.start;
        while at < range.end {
            let end = (at / 64 * 64).saturating_add(64).min(range.end);
            let mask = u64::MAX << (at % 64) & u64::MAX >> (63 - (end - 1) % 64);
            added += u64::from(self.set_mask(at, mask));
            at = end;
        }
        added
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().filter(|c| c.get().is_some()).count();
        self.chunks.len() * size_of::<OnceLock<Box<[AtomicU64]>>>() + chunks * CHUNK_WORDS * 8
    }
}
