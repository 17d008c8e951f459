//! Packed codes into AVX2 lanes: what the fast twins of unpacking and of predicates share.
//!
//! In: a pointer to the first byte of a group of rows. Out: one vector of 16-, 32- or 64-bit codes, in row order.
//!
//! 1. A call knows the width and the first row, hence the *phase*: the bit, 0 to 7, at which the first row starts in
//!    its byte. 8 rows fill `width` bytes exactly, so each later group of 8 has the same phase.
//! 2. Each 128-bit lane loads the 16 bytes that hold its rows; a shuffle brings to each code the bytes that hold it; a
//!    shift drops the bits before it, a mask those after it. Shuffle, shifts and mask are made once a call.
//! 3. Work goes in blocks of 64 rows (`8 * width` bytes): one word of a selection bitmap. A block whose loads would
//!    leave `packed` is copied to a padded buffer first ([`source`]).
//!
//! Invariant: a block's loads touch at most [`reach`] bytes from its first byte.

use std::arch::x86_64::*;

/// Rows in a block.
pub(crate) const BLOCK: usize = 64;

/// The largest width that 16-bit lanes unpack: shift and width together fit 16 bits.
pub(crate) const WIDTH_MAX_16: u32 = 9;
/// The largest width that 32-bit lanes unpack: shift and width together fit 32 bits.
pub(crate) const WIDTH_MAX_32: u32 = 25;
/// The largest width that 64-bit lanes unpack: shift and width together fit 64 bits.
pub(crate) const WIDTH_MAX_64: u32 = 57;

/// Bytes that the loads of one block may touch: its last lane starts at most `8 * width` bytes in, and takes 16.
#[inline(always)]
pub(crate) const fn reach(width: u32) -> usize {
    8 * width as usize + 16
}

pub(crate) type Padded = [u8; reach(WIDTH_MAX_64)];

/// The bytes of `packed` from `at` on, padded with zeros.
#[inline(never)]
pub(crate) fn padded<const BYTES: usize>(packed: &[u8], at: usize) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let rest = packed.get(at..).unwrap_or(&[]);
    let rest = &rest[..rest.len().min(BYTES)];
    bytes[..rest.len()].copy_from_slice(rest);
    bytes
}

/// A pointer to `reach(width)` readable bytes that begin with `packed[at..]`: into `packed` itself where it is long
/// enough, else into `buffer`.
#[inline(always)]
pub(crate) fn source<'a>(packed: &'a [u8], at: usize, width: u32, buffer: &'a mut Option<Padded>) -> *const u8 {
    match packed.get(at..) {
        Some(rest) if rest.len() >= reach(width) => rest.as_ptr(),
        _ => buffer.insert(padded(packed, at)).as_ptr(),
    }
}

/// How far ahead of the block that is read memory is asked for.
const AHEAD_BYTES: usize = 2048;

/// Asks for the lines of the block that comes [`AHEAD_BYTES`] behind `block`, of codes of `width` bits. Loads that
/// cross lines, as those of most widths do, keep the processor from doing so early enough by itself: from memory 24
/// bits are compared three times as fast.
#[inline(always)]
pub(crate) fn prefetch(block: *const u8, width: u32) {
    const LINE_BYTES: usize = 64;
    for line in 0..(width as usize).div_ceil(8) {
        // SAFETY: a prefetch reads nothing that the program sees, wherever it points.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(AHEAD_BYTES + LINE_BYTES * line).cast()) };
    }
}

/// Where row 0 of the first group starts: its byte, and its phase.
#[inline(always)]
pub(crate) fn origin(width: u32, start: usize) -> (usize, usize) {
    let bit = start * width as usize;
    (bit / 8, bit % 8)
}

/// The two 16-byte halves at `low` and `high` as one vector.
///
/// # Safety
/// 16 bytes are readable at both.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn halves(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: the caller vouches for both.
    unsafe { _mm256_loadu2_m128i(high.cast(), low.cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn vector(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are readable; loadu needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Unpacks 16 rows of width 1 to 9.
pub(crate) struct Lanes16 {
    width: usize,
    shuffle: __m256i,
    /// Multiplying by a power of two is the variable left shift that AVX2 lacks for 16 bits.
    align: __m256i,
    mask: __m256i,
}

impl Lanes16 {
    #[target_feature(enable = "avx2")]
    pub(crate) fn new(width: u32, phase: usize) -> Self {
        let mut shuffle = [0u8; 32];
        let mut align = [0u8; 32];
        for row in 0..16 {
            // Both halves hold 8 rows, and so have the same phase.
            let bit = phase + row % 8 * width as usize;
            shuffle[2 * row] = (bit / 8) as u8;
            shuffle[2 * row + 1] = (bit / 8 + 1) as u8;
            align[2 * row] = 1 << (7 - bit % 8);
        }
        let mask = _mm256_set1_epi16(super::mask(width) as i16);
        Self { width: width as usize, shuffle: vector(&shuffle), align: vector(&align), mask }
    }

    /// Bytes from one group of 16 rows to the next.
    #[inline(always)]
    pub(crate) fn stride(&self) -> usize {
        2 * self.width
    }

    /// The 16 rows at `group`.
    ///
    /// # Safety
    /// `width + 16` bytes are readable at `group`.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) unsafe fn load(&self, group: *const u8) -> __m256i {
        // SAFETY: the caller vouches for these bytes.
        let bytes = unsafe { halves(group, group.add(self.width)) };
        let codes = _mm256_mullo_epi16(_mm256_shuffle_epi8(bytes, self.shuffle), self.align);
        _mm256_and_si256(_mm256_srli_epi16(codes, 7), self.mask)
    }
}

/// Unpacks 8 rows of width 1 to 25.
pub(crate) struct Lanes32 {
    high: usize,
    shuffle: __m256i,
    shift: __m256i,
    mask: __m256i,
}

impl Lanes32 {
    #[target_feature(enable = "avx2")]
    pub(crate) fn new(width: u32, phase: usize) -> Self {
        let high = (phase + 4 * width as usize) / 8;
        let mut shuffle = [0u8; 32];
        let mut shift = [0u8; 32];
        for row in 0..8 {
            let bit = phase + row * width as usize - if row < 4 { 0 } else { high * 8 };
            for byte in 0..4 {
                shuffle[4 * row + byte] = (bit / 8 + byte) as u8;
            }
            shift[4 * row] = (bit % 8) as u8;
        }
        let mask = _mm256_set1_epi32(super::mask(width) as i32);
        Self { high, shuffle: vector(&shuffle), shift: vector(&shift), mask }
    }

    /// The 8 rows at `group`.
    ///
    /// # Safety
    /// `width + 16` bytes are readable at `group`.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) unsafe fn load(&self, group: *const u8) -> __m256i {
        // SAFETY: the caller vouches for these bytes; `high` is at most `width`.
        let bytes = unsafe { halves(group, group.add(self.high)) };
        let codes = _mm256_srlv_epi32(_mm256_shuffle_epi8(bytes, self.shuffle), self.shift);
        _mm256_and_si256(codes, self.mask)
    }
}

/// Unpacks 8 rows of width 1 to 57, as two vectors of 4.
pub(crate) struct Lanes64 {
    starts: [usize; 4],
    shuffle: [__m256i; 2],
    shift: [__m256i; 2],
    mask: __m256i,
}

impl Lanes64 {
    #[target_feature(enable = "avx2")]
    pub(crate) fn new(width: u32, phase: usize) -> Self {
        let starts = [0, 2, 4, 6].map(|row| (phase + row * width as usize) / 8);
        let mut shuffle = [[0u8; 32]; 2];
        let mut shift = [[0u8; 32]; 2];
        for row in 0..8 {
            let bit = phase + row * width as usize - starts[row / 2] * 8;
            for byte in 0..8 {
                shuffle[row / 4][row % 4 * 8 + byte] = (bit / 8 + byte) as u8;
            }
            shift[row / 4][row % 4 * 8] = (bit % 8) as u8;
        }
        let mask = _mm256_set1_epi64x(super::mask(width) as i64);
        Self {
            starts,
            shuffle: [vector(&shuffle[0]), vector(&shuffle[1])],
            shift: [vector(&shift[0]), vector(&shift[1])],
            mask,
        }
    }

    /// The 8 rows at `group`: rows 0 to 3 and rows 4 to 7.
    ///
    /// # Safety
    /// `width + 16` bytes are readable at `group`.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) unsafe fn load(&self, group: *const u8) -> [__m256i; 2] {
        let [a, b, c, d] = self.starts;
        // SAFETY: the caller vouches for these bytes; each start is at most `width`.
        let (first, second) = unsafe { (halves(group.add(a), group.add(b)), halves(group.add(c), group.add(d))) };
        let first = _mm256_srlv_epi64(_mm256_shuffle_epi8(first, self.shuffle[0]), self.shift[0]);
        let second = _mm256_srlv_epi64(_mm256_shuffle_epi8(second, self.shuffle[1]), self.shift[1]);
        [_mm256_and_si256(first, self.mask), _mm256_and_si256(second, self.mask)]
    }

    /// The 8 rows at `group` as 32-bit codes; the width is at most 32.
    ///
    /// # Safety
    /// `width + 16` bytes are readable at `group`.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) unsafe fn load_narrow(&self, group: *const u8) -> __m256i {
        // SAFETY: as the caller vouches.
        let [first, second] = unsafe { self.load(group) };
        // The low half of each code: rows 0 1 4 5 | 2 3 6 7, then into order.
        let mixed = _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
        _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(mixed))
    }
}

/// Two vectors of 16-bit lanes as one of bytes, in row order. Lanes hold 0 to 255.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn narrow_16_to_8(first: __m256i, second: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(first, second))
}

/// Two vectors of 32-bit lanes as one of 16-bit lanes, in row order. Lanes hold 0 to 65,535.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn narrow_32_to_16(first: __m256i, second: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(first, second))
}
