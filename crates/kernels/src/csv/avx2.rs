//! The AVX2 twins: two registers are a block of 64 bytes.

use std::arch::x86_64::*;

use super::{Marks, Structure, Summary, prefix_xor};

/// Bytes of a block.
const BLOCK: usize = 64;

/// The bytes of `block` that equal `wanted`, a bit each.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(block: &[u8; BLOCK], wanted: u8) -> u64 {
    let wanted = _mm256_set1_epi8(wanted as i8);
    let half = |at: usize| {
        // SAFETY: both halves lie within the block; the load needs no alignment.
        let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().add(at).cast()) };
        u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, wanted)) as u32)
    };
    half(0) | half(32) << 32
}

/// See [`super::summarise`].
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn summarise(bytes: &[u8], quote: u8) -> Summary {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut all = super::scalar::summarise(rest, quote);
    for block in blocks {
        all.quotes += u64::from(equal(block, quote).count_ones());
        all.line_feeds += u64::from(equal(block, b'\n').count_ones());
    }
    all
}

/// See [`super::find_separators`].
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) fn find_separators(bytes: &[u8], marks: Marks, in_quotes: bool, separators: &mut Vec<u32>) -> Structure {
    let mut found = Structure::default();
    // All bits if what comes is in quotes.
    let mut state = if in_quotes { u64::MAX } else { 0 };
    let mut next = |block: &[u8; BLOCK], valid: u64, base: u32| {
        let quotes = equal(block, marks.quote) & valid;
        let quoted = prefix_xor(quotes) ^ state;
        state = (quoted.cast_signed() >> 63).cast_unsigned();
        let open = valid & !quoted & !quotes;
        let all_line_feeds = equal(block, b'\n') & valid;
        let line_feeds = all_line_feeds & open;
        found.has_quotes |= quotes != 0;
        found.quoted_line_feeds += (all_line_feeds & !open).count_ones() as usize;
        found.line_feeds += line_feeds.count_ones() as usize;
        found.carriage_returns += (equal(block, b'\r') & open).count_ones() as usize;
        push_places(line_feeds | equal(block, marks.delimiter) & open, base, separators);
    };
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut base = 0;
    for block in blocks {
        next(block, u64::MAX, base);
        base += BLOCK as u32;
    }
    if !rest.is_empty() {
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        next(&last, (1 << rest.len()) - 1, base);
        // The bits behind the last byte say the same as its own.
    }
    found.in_quotes = state != 0;
    found
}

/// Appends `base` and the place of each bit of `bits`.
#[inline]
#[target_feature(enable = "bmi1,popcnt")]
fn push_places(mut bits: u64, base: u32, places: &mut Vec<u32>) {
    let count = bits.count_ones() as usize;
    places.reserve(BLOCK);
    let len = places.len();
    let spare = &mut places.spare_capacity_mut()[..BLOCK];
    let mut at = 0;
    // Four at once cost less than a branch for each; what is written behind the last one is not taken.
    while at < count {
        for place in &mut spare[at..at + 4] {
            place.write(base.wrapping_add(bits.trailing_zeros()));
            bits &= bits.wrapping_sub(1);
        }
        at += 4;
    }
    // SAFETY: the first `count` of the reserved places were written.
    unsafe { places.set_len(len + count) };
}
