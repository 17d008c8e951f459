//! Values of eight fields at once: a lane of 16 bytes for each, which ends where its field ends.
//!
//! 1. One gather tells where eight fields begin and end. The lanes are loaded, and bytes before the fields masked out;
//!    so each digit stands where its power of ten wants it, whatever the length.
//! 2. What is no digit stands out in one comparison. A minus in front is found by the lengths; a point or dashes, whose
//!    places are known, are taken out by a shuffle before.
//! 3. Multiplications add digits to pairs, pairs to fours, fours to eights (Mula, "SIMD-ized faster parse of IPv4
//!    addresses" and its kin), and eights to sixteens. Years, months and days become days by arithmetic.
//!
//! Eight fields that are not all plain (quoted, longer than 16 bytes, of another form) are left to the scalar twin,
//! which takes them one by one. Empty ones are plain where they are NULL.

use std::arch::x86_64::*;
use std::array::from_fn;

use super::super::fields::{Fields, Quoting, each_of};

/// Fields at once.
pub(in super::super) const EIGHT: usize = 8;
/// Those of one register.
const FOUR: usize = 4;
/// Bytes of a lane.
const LANE: usize = 16;
/// Characters of a date.
const DATE_LEN: i64 = 10;
/// Zero in a shuffle.
const NOTHING: u8 = 0x80;
/// All of eight.
const ALL: u8 = u8::MAX;

/// Eight fields in their lanes, four in each register.
#[derive(Clone, Copy)]
pub(in super::super) struct Lanes {
    bytes: [__m512i; 2],
    /// How long they are, 64 bits for each.
    lens: __m512i,
    /// Those that have no bytes, and are NULL.
    empty: u8,
}

/// Which bytes of a lane are digits of a number, and in which order.
#[derive(Clone, Copy)]
pub(in super::super) struct Form {
    shuffle: __m512i,
    /// A byte of each lane that is a mark, and which; both of all lanes.
    marks: u64,
    mark: u8,
}

/// The place of each byte in its lane.
const PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = (at % LANE) as u8;
        at += 1;
    }
    places
};

/// For each byte of the lanes of either half, where the 64 bits of its lane begin among those of all eight.
const OF_LANES: [[u8; 64]; 2] = {
    let mut all = [[0; 64]; 2];
    let mut at = 0;
    while at < 64 {
        all[0][at] = (8 * (at / LANE)) as u8;
        all[1][at] = (8 * (FOUR + at / LANE)) as u8;
        at += 1;
    }
    all
};

/// The first 32 bits of each lane of two registers, and the second ones.
const FIRSTS: [i32; 16] = [0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28];
const SECONDS: [i32; 16] = [1, 5, 9, 13, 17, 21, 25, 29, 1, 5, 9, 13, 17, 21, 25, 29];

/// A register of 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn register(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has the bytes of a register; the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// A register of 16 numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn numbers_of(numbers: &[i32; 16]) -> __m512i {
    // SAFETY: the array has the bytes of a register; the load needs no alignment.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

/// The same 16 bytes in all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub(in super::super) fn whole() -> Self {
        Self { shuffle: in_all_lanes(from_fn(|at| at as u8)), marks: 0, mark: 0 }
    }

    /// Digits with a point before the last `scale` of them, 1 to 14.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub(in super::super) fn with_point(scale: usize) -> Self {
        let point = LANE - 1 - scale;
        // What stands before the point moves up into its place.
        let from = |at: usize| match at {
            0 => NOTHING,
            _ if at > point => at as u8,
            _ => at as u8 - 1,
        };
        Self { shuffle: in_all_lanes(from_fn(from)), marks: of_all_lanes(1 << point), mark: b'.' }
    }

    /// `2024-02-29`: eight digits, which come first.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub(in super::super) fn date() -> Self {
        const DIGITS: [u8; 8] = [6, 7, 8, 9, 11, 12, 14, 15];
        let from = |at: usize| DIGITS.get(at).copied().unwrap_or(NOTHING);
        Self { shuffle: in_all_lanes(from_fn(from)), marks: of_all_lanes(1 << 10 | 1 << 13), mark: b'-' }
    }
}

impl Lanes {
    /// Those of `fields` from `row` on, of which `places` has the distances of the ends before them; none if some are
    /// too long or too short, or near the beginning of all bytes. Empty ones are taken if `takes_empty`.
    ///
    /// # Safety
    /// The rows are there, and an end stands before that of the first field; `places` has the first eight multiples of
    /// the number of columns.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    unsafe fn load(fields: &Fields<'_>, row: usize, places: __m256i, takes_empty: bool) -> Option<Self> {
        let at = row * fields.columns + fields.column - 1;
        // SAFETY: each pair of ends is within them, as the caller says.
        let pairs = unsafe { _mm512_i32gather_epi64::<4>(places, fields.ends.as_ptr().add(at).cast()) };
        let before = _mm512_and_si512(pairs, _mm512_set1_epi64(0xFFFF_FFFF));
        let ends = _mm512_sub_epi64(_mm512_srli_epi64::<32>(pairs), _mm512_set1_epi64(fields.before_line_feed as i64));
        let lens = _mm512_sub_epi64(ends, _mm512_add_epi64(before, _mm512_set1_epi64(1)));
        let empty = if takes_empty { _mm512_testn_epi64_mask(lens, lens) } else { 0 };
        let lane = _mm512_set1_epi64(LANE as i64);
        let are_short = empty | _mm512_cmplt_epu64_mask(_mm512_sub_epi64(lens, _mm512_set1_epi64(1)), lane);
        let are_within = _mm512_cmpge_epu64_mask(ends, lane)
            & _mm512_cmple_epu64_mask(ends, _mm512_set1_epi64(fields.bytes.len() as i64));
        if are_short & are_within != ALL {
            return None;
        }
        // SAFETY: the ends are there, as the caller says; 16 bytes before each are within the bytes, as was just asked.
        // Loads need no alignment.
        unsafe {
            let base = fields.bytes.as_ptr().wrapping_sub(LANE + fields.before_line_feed);
            let ends = fields.ends.as_ptr().add(at + 1);
            let step = fields.columns;
            let mut low = _mm512_castsi128_si512(_mm_loadu_si128(base.wrapping_add(*ends as usize).cast()));
            low = _mm512_inserti32x4::<1>(low, _mm_loadu_si128(base.wrapping_add(*ends.add(step) as usize).cast()));
            low = _mm512_inserti32x4::<2>(low, _mm_loadu_si128(base.wrapping_add(*ends.add(2 * step) as usize).cast()));
            low = _mm512_inserti32x4::<3>(low, _mm_loadu_si128(base.wrapping_add(*ends.add(3 * step) as usize).cast()));
            let ends = ends.add(4 * step);
            let mut high = _mm512_castsi128_si512(_mm_loadu_si128(base.wrapping_add(*ends as usize).cast()));
            high = _mm512_inserti32x4::<1>(high, _mm_loadu_si128(base.wrapping_add(*ends.add(step) as usize).cast()));
            high =
                _mm512_inserti32x4::<2>(high, _mm_loadu_si128(base.wrapping_add(*ends.add(2 * step) as usize).cast()));
            high =
                _mm512_inserti32x4::<3>(high, _mm_loadu_si128(base.wrapping_add(*ends.add(3 * step) as usize).cast()));
            Some(Self { bytes: [low, high], lens, empty })
        }
    }

    /// Those that have no bytes, and are NULL.
    #[inline]
    pub(in super::super) fn empty(&self) -> u8 {
        self.empty
    }

    /// How many bytes each has, less `less`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn lens_less(&self, less: u8) -> __m512i {
        _mm512_mask_sub_epi64(self.lens, less, self.lens, _mm512_set1_epi64(1))
    }

    /// `counts`, which are at most 16, added to the places of the bytes in the lanes of half `half`: 16 or more are the
    /// last ones.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn from_ends(half: usize, counts: __m512i) -> __m512i {
        _mm512_add_epi8(_mm512_permutexvar_epi8(register(&OF_LANES[half]), counts), register(&PLACES))
    }

    /// Which have a minus in front.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub(in super::super) fn negative(&self) -> u8 {
        let (minus, first) = (_mm512_set1_epi8(b'-' as i8), _mm512_set1_epi8(LANE as i8));
        let low = _mm512_cmpeq_epi8_mask(Self::from_ends(0, self.lens), first);
        let high = _mm512_cmpeq_epi8_mask(Self::from_ends(1, self.lens), first);
        let low = _mm512_mask_cmpeq_epi8_mask(low, self.bytes[0], minus);
        let high = _mm512_mask_cmpeq_epi8_mask(high, self.bytes[1], minus);
        if low | high == 0 {
            return 0;
        }
        // A bit of each lane at most.
        let mut lanes = 0;
        for lane in 0..FOUR {
            lanes |= u8::from((low >> (LANE * lane)) as u16 != 0) << lane;
            lanes |= u8::from((high >> (LANE * lane)) as u16 != 0) << (FOUR + lane);
        }
        lanes
    }

    /// Whether all that are not empty, of which those of `negative` have a minus, have 1 to `most` bytes beside
    /// `others`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub(in super::super) fn have_upto(&self, most: usize, others: usize, negative: u8) -> bool {
        let counts = _mm512_sub_epi64(self.lens_less(negative), _mm512_set1_epi64(others as i64 + 1));
        _mm512_cmplt_epu64_mask(counts, _mm512_set1_epi64(most as i64)) | self.empty == ALL
    }

    /// Of the lanes of half `half` as `form` orders them, the digits of which those of `digits` are valid, as numbers
    /// of two each; none if something else is among them, or marks are not where they have to be.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn pairs(&self, half: usize, form: Form, digits: u64, marks: u64) -> Option<__m512i> {
        let bytes = self.bytes[half];
        let found = _mm512_mask_cmpeq_epi8_mask(marks, bytes, _mm512_set1_epi8(form.mark as i8));
        let ordered = _mm512_shuffle_epi8(bytes, form.shuffle);
        let values = _mm512_maskz_sub_epi8(digits, ordered, _mm512_set1_epi8(b'0' as i8));
        if found != marks || _mm512_cmpgt_epu8_mask(values, _mm512_set1_epi8(9)) != 0 {
            return None;
        }
        Some(_mm512_maddubs_epi16(values, _mm512_set1_epi16(i16::from_le_bytes([10, 1]))))
    }

    /// The bits of the bytes in half `half` of the lanes that are not empty.
    #[inline]
    fn filled(&self, half: usize) -> u64 {
        if self.empty == 0 {
            return u64::MAX;
        }
        let mut bits = 0;
        for lane in 0..FOUR {
            bits |= (u64::from(!self.empty >> (FOUR * half + lane) & 1) * 0xFFFF) << (LANE * lane);
        }
        bits
    }

    /// The numbers of the digits of the lanes as `form` orders them, 0 for empty ones, less than 0 for those of
    /// `negative`, which have a minus; none if one is beyond `greatest`. All have 1 to 16 digits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub(in super::super) fn numbers(&self, form: Form, negative: u8, greatest: u64) -> Option<[i64; EIGHT]> {
        let lens = self.lens_less(negative);
        let counts = if form.marks == 0 { lens } else { _mm512_sub_epi64(lens, _mm512_set1_epi64(1)) };
        let mut halves = [_mm512_setzero_si512(); 2];
        for (half, sums) in halves.iter_mut().enumerate() {
            let filled = self.filled(half);
            let last = _mm512_set1_epi8(LANE as i8);
            let digits = filled & _mm512_cmpge_epu8_mask(Self::from_ends(half, counts), last);
            let pairs = self.pairs(half, form, digits, filled & form.marks)?;
            let fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(1 << 16 | 100));
            let narrow = _mm512_packus_epi32(fours, fours);
            let eights = _mm512_madd_epi16(narrow, _mm512_set1_epi32(1 << 16 | 10_000));
            // The first eight are in the low half of each lane's first 64 bits.
            let high = _mm512_mul_epu32(eights, _mm512_set1_epi64(100_000_000));
            *sums = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(eights));
        }
        let firsts = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
        let sums = _mm512_permutex2var_epi64(halves[0], firsts, halves[1]);
        if _mm512_cmpgt_epu64_mask(sums, _mm512_set1_epi64(greatest.cast_signed())) != 0 {
            return None;
        }
        let signed = _mm512_mask_sub_epi64(sums, negative, _mm512_setzero_si512(), sums);
        let mut out = [0; EIGHT];
        // SAFETY: the array has the bytes of the register; the store needs no alignment.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), signed) };
        Some(out)
    }

    /// The days since day `first` of the dates of the lanes, where 0001-01-01 is day 1; 0 for empty ones.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub(in super::super) fn days(&self, form: Form, first: i32) -> Option<[i32; EIGHT]> {
        if _mm512_cmpeq_epi64_mask(self.lens, _mm512_set1_epi64(DATE_LEN)) | self.empty != ALL {
            return None;
        }
        let weights = i64::from_le_bytes([100, 0, 1, 0, 128, 0, 1, 0]);
        let mut halves = [_mm512_setzero_si512(); 2];
        for (half, parts) in halves.iter_mut().enumerate() {
            let filled = self.filled(half);
            let pairs = self.pairs(half, form, filled & of_all_lanes(0xFF), filled & form.marks)?;
            *parts = _mm512_madd_epi16(pairs, _mm512_set1_epi64(weights));
        }
        // Of each lane a year, and then 128 times a month plus a day.
        let years = _mm512_permutex2var_epi32(halves[0], numbers_of(&FIRSTS), halves[1]);
        let days = _mm512_permutex2var_epi32(halves[0], numbers_of(&SECONDS), halves[1]);
        let (years, days) = (_mm512_castsi512_si256(years), _mm512_castsi512_si256(days));
        let (days, are_dates) = days_of(years, days, first);
        if are_dates | self.empty != ALL {
            return None;
        }
        let mut out = [0; EIGHT];
        // SAFETY: the array has the bytes of the register; the store needs no alignment.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_maskz_mov_epi32(!self.empty, days)) };
        Some(out)
    }
}

/// A number eight times.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn all(number: i32) -> __m256i {
    _mm256_set1_epi32(number)
}

/// The centuries of `years` of four digits: 5243 / 2^19 is as much more than a hundredth as changes nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn centuries_of(years: __m256i) -> __m256i {
    _mm256_srli_epi32::<19>(_mm256_mullo_epi32(years, all(5_243)))
}

/// What `table` has for each of `months`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn of_months(table: &[i32; 16], months: __m256i) -> __m256i {
    _mm512_castsi512_si256(_mm512_permutexvar_epi32(_mm512_castsi256_si512(months), numbers_of(table)))
}

/// The days since day `first` of `years`, at most 9999, and 128 times a month plus a day, at most 99 each, where
/// 0001-01-01 is day 1; and which of them are dates.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn days_of(years: __m256i, days: __m256i, first: i32) -> (__m256i, u8) {
    // Days before a month in a year that is no leap year, and days of it.
    const BEFORE: [i32; 16] = [0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 0, 0, 0];
    const LENGTHS: [i32; 16] = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0];
    let (months, days) = (_mm256_srli_epi32::<7>(days), _mm256_and_si256(days, all(127)));
    let centuries = centuries_of(years);
    let are_centuries = _mm256_cmpeq_epi32_mask(years, _mm256_mullo_epi32(centuries, all(100)));
    let are_leap =
        _mm256_testn_epi32_mask(years, all(3)) & (!are_centuries | _mm256_testn_epi32_mask(centuries, all(3)));
    let february = all(2);
    let lengths = of_months(&LENGTHS, months);
    let are_longer = are_leap & _mm256_cmpeq_epi32_mask(months, february);
    let lengths = _mm256_mask_add_epi32(lengths, are_longer, lengths, all(1));
    let are_dates = _mm256_cmplt_epu32_mask(_mm256_sub_epi32(months, all(1)), all(12))
        & _mm256_cmplt_epu32_mask(_mm256_sub_epi32(days, all(1)), lengths)
        & _mm256_cmpgt_epi32_mask(years, all(0));
    let before = of_months(&BEFORE, months);
    let are_behind = are_leap & _mm256_cmpgt_epi32_mask(months, february);
    let before = _mm256_mask_add_epi32(before, are_behind, before, all(1));
    let years = _mm256_sub_epi32(years, all(1));
    let centuries = centuries_of(years);
    let leap_days =
        _mm256_add_epi32(_mm256_sub_epi32(_mm256_srli_epi32::<2>(years), centuries), _mm256_srli_epi32::<2>(centuries));
    let of_years = _mm256_add_epi32(_mm256_mullo_epi32(years, all(365)), leap_days);
    let of_year = _mm256_add_epi32(before, days);
    (_mm256_sub_epi32(_mm256_add_epi32(of_years, of_year), all(first)), are_dates)
}

/// Appends the values of `fields` as `each` does: of eight at once what `eight` makes of them, which is the default for
/// empty ones, and where that is nothing what `one` makes of each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
pub(in super::super) fn by_eights<T: Copy + Default>(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    values: &mut Vec<T>,
    nulls: &mut Vec<u32>,
    eight: impl Fn(Lanes) -> Option<[T; EIGHT]>,
    one: impl Fn(&[u8], usize, usize) -> Option<T> + Copy,
) -> bool {
    let rows = fields.len();
    values.reserve(rows);
    // What may be NULL as well as a number has to be looked at one by one.
    let is_null_apart = quoting.null.first().is_none_or(|byte| !byte.is_ascii_digit() && *byte != b'-');
    // Before the very first field no other one ends.
    let first = usize::from(fields.column == 0).min(rows);
    let step = fields.columns;
    let eights = if is_null_apart && step < 1 << 24 { (rows - first) / EIGHT } else { 0 };
    let behind = first + eights * EIGHT;
    if !each_of(fields, quoting, 0..first, values, nulls, one) {
        return false;
    }
    let mut distances = [0; EIGHT];
    for (number, distance) in distances.iter_mut().enumerate() {
        *distance = (number * step) as i32;
    }
    // SAFETY: the array has the bytes of a register; the load needs no alignment.
    let places = unsafe { _mm256_loadu_si256(distances.as_ptr().cast()) };
    // Loops and no closures: what they are given to is compiled without the features, and is then called.
    for row in (first..behind).step_by(EIGHT) {
        // SAFETY: so many rows are there, each with an end for each column, and the first has one before it.
        let lanes = unsafe { Lanes::load(&fields, row, places, quoting.null.is_empty()) };
        if let Some(lanes) = lanes
            && let Some(eight) = eight(lanes)
        {
            let mut empty = lanes.empty();
            while empty != 0 {
                nulls.push(row as u32 + empty.trailing_zeros());
                empty &= empty - 1;
            }
            // SAFETY: there is room for a value of each row, and each row before these has had one.
            unsafe {
                values.as_mut_ptr().add(values.len()).cast::<[T; EIGHT]>().write(eight);
                values.set_len(values.len() + EIGHT);
            }
            continue;
        }
        if !each_of(fields, quoting, row..row + EIGHT, values, nulls, one) {
            return false;
        }
    }
    each_of(fields, quoting, behind..rows, values, nulls, one)
}
