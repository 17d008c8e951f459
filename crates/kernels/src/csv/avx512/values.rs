//! Values of four fields at once: a lane of 16 bytes for each, which ends where its field ends.
//!
//! 1. The lanes are loaded, and bytes before the fields masked out; so each digit stands where its power of ten wants
//!    it, whatever the length.
//! 2. What is no digit stands out in one comparison. A point or dashes, whose places are known, are taken out by a
//!    shuffle before.
//! 3. Multiplications add digits to pairs, pairs to fours, fours to eights (Mula, "SIMD-ized faster parse of IPv4
//!    addresses" and its kin), and eights to sixteens.
//!
//! Four fields that are not all plain (empty, signed, quoted, longer than 16 bytes) are left to the scalar twin, which
//! takes them one by one.

use std::arch::x86_64::*;

use super::super::fields::{Fields, Quoting, each_of};

/// Fields at once.
pub(in super::super) const FOUR: usize = 4;
/// Bytes of a lane.
const LANE: usize = 16;
/// Characters of a date.
const DATE_LEN: usize = 10;
/// Zero in a shuffle.
const NOTHING: u8 = 0x80;

/// Four fields in their lanes.
#[derive(Clone, Copy)]
pub(in super::super) struct Lanes {
    bytes: __m512i,
    lens: [usize; FOUR],
}

/// Which bytes of a lane are digits of a number, and in which order.
#[derive(Clone, Copy)]
pub(in super::super) struct Form {
    shuffle: __m512i,
    /// A byte of each lane that is a mark, and which; both of all lanes.
    marks: u64,
    mark: u8,
}

/// The same 16 bytes in all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
fn in_all_lanes(bytes: [u8; LANE]) -> __m512i {
    // SAFETY: the array has the bytes of a lane; the load needs no alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

/// The same 16 bits for all lanes.
const fn of_all_lanes(bits: u16) -> u64 {
    (bits as u64) * 0x0001_0001_0001_0001
}

impl Form {
    /// Digits alone.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    pub(in super::super) fn whole() -> Self {
        Self { shuffle: in_all_lanes(std::array::from_fn(|at| at as u8)), marks: 0, mark: 0 }
    }

    /// Digits with a point before the last `scale` of them, 1 to 14.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    pub(in super::super) fn with_point(scale: usize) -> Self {
        let point = LANE - 1 - scale;
        // What stands before the point moves up into its place.
        let from = |at: usize| match at {
            0 => NOTHING,
            _ if at > point => at as u8,
            _ => at as u8 - 1,
        };
        Self { shuffle: in_all_lanes(std::array::from_fn(from)), marks: of_all_lanes(1 << point), mark: b'.' }
    }

    /// `2024-02-29`: eight digits, which come first.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    pub(in super::super) fn date() -> Self {
        const DIGITS: [u8; 8] = [6, 7, 8, 9, 11, 12, 14, 15];
        let from = |at: usize| DIGITS.get(at).copied().unwrap_or(NOTHING);
        Self { shuffle: in_all_lanes(std::array::from_fn(from)), marks: of_all_lanes(1 << 10 | 1 << 13), mark: b'-' }
    }
}

impl Lanes {
    /// How long the fields are.
    #[inline]
    pub(in super::super) fn lens(&self) -> [usize; FOUR] {
        self.lens
    }

    /// Of the lanes as `form` orders them, the digits of which those of `digits` are valid, as numbers of two each;
    /// none if something else is among them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    fn pairs(&self, form: Form, digits: u64) -> Option<__m512i> {
        if form.marks != 0 {
            let found = _mm512_mask_cmpeq_epi8_mask(form.marks, self.bytes, _mm512_set1_epi8(form.mark as i8));
            if found != form.marks {
                return None;
            }
        }
        let ordered = _mm512_shuffle_epi8(self.bytes, form.shuffle);
        let values = _mm512_maskz_sub_epi8(digits, ordered, _mm512_set1_epi8(b'0' as i8));
        if _mm512_cmpgt_epu8_mask(values, _mm512_set1_epi8(9)) != 0 {
            return None;
        }
        Some(_mm512_maddubs_epi16(values, _mm512_set1_epi16(i16::from_le_bytes([10, 1]))))
    }

    /// The numbers of the last `counts` digits of the lanes, 1 to 16 each, as `form` orders them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    pub(in super::super) fn numbers(&self, form: Form, counts: [usize; FOUR]) -> Option<[u64; FOUR]> {
        let mut digits = 0;
        let mut are_few = true;
        for (lane, count) in counts.into_iter().enumerate() {
            are_few &= count.wrapping_sub(1) < LANE;
            digits |= u64::from((0xFFFF_0000u32 >> (count & 31)) as u16) << (LANE * lane);
        }
        if !are_few {
            return None;
        }
        let pairs = self.pairs(form, digits)?;
        let fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(1 << 16 | 100));
        let narrow = _mm512_packus_epi32(fours, fours);
        let eights = _mm512_madd_epi16(narrow, _mm512_set1_epi32(1 << 16 | 10_000));
        // The first eight are in the low half of each lane's first 64 bits.
        let high = _mm512_mul_epu32(eights, _mm512_set1_epi64(100_000_000));
        let sums = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(eights));
        Some(of_lanes(sums))
    }

    /// The dates of the lanes: of each year, and 128 times the month plus the day, 32 bits for each, the year lowest.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    pub(in super::super) fn dates(&self, form: Form) -> Option<[u64; FOUR]> {
        if self.lens != [DATE_LEN; FOUR] {
            return None;
        }
        let pairs = self.pairs(form, of_all_lanes(0xFF))?;
        let weights = i64::from_le_bytes([100, 0, 1, 0, 128, 0, 1, 0]);
        Some(of_lanes(_mm512_madd_epi16(pairs, _mm512_set1_epi64(weights))))
    }
}

/// The first 64 bits of each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
fn of_lanes(bits: __m512i) -> [u64; FOUR] {
    let mut out = [0; FOUR];
    let firsts = _mm512_castsi512_si256(_mm512_maskz_compress_epi64(0b0101_0101, bits));
    // SAFETY: the array has the bytes of the register; the store needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), firsts) };
    out
}

/// Appends the values of `fields` as `each` does: of four at once what `four` makes of them, and where that is nothing
/// what `one` makes of each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
pub(in super::super) fn by_fours<T: Copy + Default>(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    values: &mut Vec<T>,
    nulls: &mut Vec<u32>,
    four: impl Fn(Lanes) -> Option<[T; FOUR]>,
    one: impl Fn(&[u8], usize, usize) -> Option<T> + Copy,
) -> bool {
    values.reserve(fields.len());
    // What may be NULL as well as a number has to be looked at one by one.
    let is_null_apart = quoting.null.first().is_none_or(|byte| !byte.is_ascii_digit());
    let whole = if is_null_apart { fields.len() / FOUR * FOUR } else { 0 };
    // Loops and no closures: what they are given to is compiled without the features, and is then called.
    for row in (0..whole).step_by(FOUR) {
        let (mut ends, mut lens) = ([0; FOUR], [0; FOUR]);
        let mut is_within = true;
        for at in 0..FOUR {
            let (start, end) = fields.place(row + at);
            is_within &= end >= LANE && end <= fields.bytes.len();
            (ends[at], lens[at]) = (end, end.wrapping_sub(start));
        }
        if is_within {
            let mut bytes = _mm512_setzero_si512();
            // SAFETY: 16 bytes before each end are within the bytes; loads need no alignment.
            unsafe {
                let base = fields.bytes.as_ptr();
                bytes = _mm512_inserti32x4::<0>(bytes, _mm_loadu_si128(base.add(ends[0] - LANE).cast()));
                bytes = _mm512_inserti32x4::<1>(bytes, _mm_loadu_si128(base.add(ends[1] - LANE).cast()));
                bytes = _mm512_inserti32x4::<2>(bytes, _mm_loadu_si128(base.add(ends[2] - LANE).cast()));
                bytes = _mm512_inserti32x4::<3>(bytes, _mm_loadu_si128(base.add(ends[3] - LANE).cast()));
            }
            if let Some(four) = four(Lanes { bytes, lens }) {
                values.extend_from_slice(&four);
                continue;
            }
        }
        if !each_of(fields, quoting, row..row + FOUR, values, nulls, one) {
            return false;
        }
    }
    each_of(fields, quoting, whole..fields.len(), values, nulls, one)
}
