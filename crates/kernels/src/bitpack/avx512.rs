//! The AVX-512 twins of unpacking: a register of codes takes one load, one or two byte permutations, a shift and a
//! mask. And of packing ([`pack`]).
//!
//! 1. A call knows the width and the phase of its rows, as in [`super::lanes`]. So does each group of rows that fill a
//!    register: 64 bytes hold them all.
//! 2. A permutation brings to each lane the bytes that its code begins in. Where a code may reach beyond the lane, a
//!    second one brings the bytes behind those, and the shift takes from both.
//!
//! Work goes in blocks of 64 rows. A block whose loads would leave the packed bytes is copied to a padded buffer first.

use std::arch::x86_64::*;
use std::array::from_fn;

use super::lanes::{BLOCK, WIDTH_MAX_32, WIDTH_MAX_64, origin, padded, prefetch};
use super::mask;
use crate::cast::Pod;

/// Bytes that the loads of one block may touch.
const fn reach(width: u32) -> usize {
    8 * width as usize + 64
}

const PADDED: usize = reach(WIDTH_MAX_64);

/// Calls `unpack(from, to)` for each block of `out`: `from` has [`reach`] readable bytes that begin with those of the
/// block, `to` room for its 64 rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
#[inline]
fn each_block<T: Pod>(
    packed: &[u8],
    width: u32,
    first: usize,
    out: &mut [T],
    mut unpack: impl FnMut(*const u8, *mut T),
) {
    let mut at = first;
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    for block in blocks {
        match packed.get(at..) {
            Some(there) if there.len() >= reach(width) => {
                prefetch(there.as_ptr(), width);
                unpack(there.as_ptr(), block.as_mut_ptr());
            }
            _ => unpack(padded::<PADDED>(packed, at).as_ptr(), block.as_mut_ptr()),
        }
        at += 8 * width as usize;
    }
    if !rest.is_empty() {
        let mut block = [T::default(); BLOCK];
        unpack(padded::<PADDED>(packed, at).as_ptr(), block.as_mut_ptr());
        rest.copy_from_slice(&block[..rest.len()]);
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn vector(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: 64 bytes are readable; loadu needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// How codes of one width and phase come into lanes of `BYTES` bytes.
struct Lanes<const BYTES: usize> {
    low: __m512i,
    high: __m512i,
    shift: __m512i,
}

impl<const BYTES: usize> Lanes<BYTES> {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new(width: u32, phase: usize) -> Self {
        let bit = |byte: usize| phase + byte / BYTES * width as usize;
        let place = |byte: usize| bit(byte) / 8 + byte % BYTES;
        let shift = |byte: usize| if byte.is_multiple_of(BYTES) { (bit(byte) % 8) as u8 } else { 0 };
        Self {
            low: vector(&from_fn(|byte| place(byte) as u8)),
            // Beyond the load there are only bits that the mask takes off: permutations count modulo 64.
            high: vector(&from_fn(|byte| (place(byte) + BYTES) as u8)),
            shift: vector(&from_fn(shift)),
        }
    }
}

/// The 64 bytes at `group`.
///
/// # Safety
/// They are readable.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn load(group: *const u8) -> __m512i {
    // SAFETY: the caller vouches for them.
    unsafe { _mm512_loadu_si512(group.cast()) }
}

/// Codes of width 1 to 8 into bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
pub(super) fn unpack_8(packed: &[u8], width: u32, start: usize, out: &mut [u8]) {
    let (first, phase) = origin(width, start);
    // 8 codes fill `width` bytes: those of a lane begin in a byte of their own, at most 7 bits in.
    let place = vector(&from_fn(|byte| (byte / 8 * width as usize + byte % 8) as u8));
    let offsets = vector(&from_fn(|byte| (phase + byte % 8 * width as usize) as u8));
    let mask = _mm512_set1_epi8(((1_u32 << width) - 1) as i8);
    each_block(packed, width, first, out, |from, to| {
        // SAFETY: each_block gives 64 readable bytes, and room for 64 rows.
        unsafe {
            let codes = _mm512_multishift_epi64_epi8(offsets, _mm512_permutexvar_epi8(place, load(from)));
            _mm512_storeu_si512(to.cast(), _mm512_and_si512(codes, mask));
        }
    });
}

/// Codes of width 1 to 16 plus `reference`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
pub(super) fn unpack_16(packed: &[u8], width: u32, start: usize, reference: u16, out: &mut [u16]) {
    let (first, phase) = origin(width, start);
    let lanes = Lanes::<2>::new(width, phase);
    let (mask, reference) = (_mm512_set1_epi16(super::mask(width) as i16), _mm512_set1_epi16(reference as i16));
    each_block(packed, width, first, out, |from, to| {
        for group in 0..2 {
            // SAFETY: each_block gives the bytes of 2 groups of 32, and room for 64 rows.
            unsafe {
                let bytes = load(from.add(group * 4 * width as usize));
                let (low, high) =
                    (_mm512_permutexvar_epi8(lanes.low, bytes), _mm512_permutexvar_epi8(lanes.high, bytes));
                let codes = _mm512_and_si512(_mm512_shrdv_epi16(low, high, lanes.shift), mask);
                _mm512_storeu_si512(to.add(group * 32).cast(), _mm512_add_epi16(codes, reference));
            }
        }
    });
}

/// 16 codes of width 1 to 32, at `group`.
///
/// # Safety
/// 64 bytes are readable at `group`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
#[inline]
unsafe fn codes_32<const IS_NARROW: bool>(lanes: &Lanes<4>, mask: __m512i, group: *const u8) -> __m512i {
    // SAFETY: the caller's.
    let bytes = unsafe { load(group) };
    let low = _mm512_permutexvar_epi8(lanes.low, bytes);
    let codes = match IS_NARROW {
        true => _mm512_srlv_epi32(low, lanes.shift),
        false => _mm512_shrdv_epi32(low, _mm512_permutexvar_epi8(lanes.high, bytes), lanes.shift),
    };
    _mm512_and_si512(codes, mask)
}

/// Calls `store(to, codes)` for each 16 codes of width 1 to 32; `to` has room for 16 rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
#[inline]
fn each_16_codes<T: Pod>(packed: &[u8], width: u32, start: usize, out: &mut [T], store: impl Fn(*mut T, __m512i)) {
    let (first, phase) = origin(width, start);
    let (lanes, mask) = (Lanes::<4>::new(width, phase), _mm512_set1_epi32(super::mask(width) as i32));
    let stride = 2 * width as usize;
    if width <= WIDTH_MAX_32 {
        each_block(packed, width, first, out, |from, to| {
            for group in 0..4 {
                // SAFETY: each_block gives the bytes of 4 groups of 16, and room for 64 rows.
                unsafe { store(to.add(16 * group), codes_32::<true>(&lanes, mask, from.add(group * stride))) };
            }
        });
        return;
    }
    each_block(packed, width, first, out, |from, to| {
        for group in 0..4 {
            // SAFETY: as above.
            unsafe { store(to.add(16 * group), codes_32::<false>(&lanes, mask, from.add(group * stride))) };
        }
    });
}

/// Codes of width 1 to 32 plus `reference`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
pub(super) fn unpack_32(packed: &[u8], width: u32, start: usize, reference: u32, out: &mut [u32]) {
    let reference = _mm512_set1_epi32(reference as i32);
    each_16_codes(packed, width, start, out, |to, codes| {
        // SAFETY: there is room for 16 rows.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_add_epi32(codes, reference)) };
    });
}

/// Codes of width 1 to 57 plus `reference`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
pub(super) fn unpack_64(packed: &[u8], width: u32, start: usize, reference: u64, out: &mut [u64]) {
    let reference = _mm512_set1_epi64(reference as i64);
    if width <= u32::BITS {
        each_16_codes(packed, width, start, out, |to, codes| {
            for (half, codes) in widened(codes).into_iter().enumerate() {
                // SAFETY: there is room for 16 rows.
                unsafe { _mm512_storeu_si512(to.add(8 * half).cast(), _mm512_add_epi64(codes, reference)) };
            }
        });
        return;
    }
    each_8_codes(packed, width, start, out, |to, codes| {
        // SAFETY: there is room for 8 rows.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_add_epi64(codes, reference)) };
    });
}

/// Codes of width 1 to 57 plus `reference`, none of which leave 64 bits, with their signs.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
pub(super) fn unpack_128(packed: &[u8], width: u32, start: usize, reference: i64, out: &mut [i128]) {
    let reference = _mm512_set1_epi64(reference);
    let (front, back) = (_mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4));
    let store = |to: *mut i128, codes: __m512i| {
        let values = _mm512_add_epi64(codes, reference);
        let signs = _mm512_srai_epi64::<63>(values);
        // SAFETY: there is room for 8 rows.
        unsafe {
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi64(values, front, signs));
            _mm512_storeu_si512(to.add(4).cast(), _mm512_permutex2var_epi64(values, back, signs));
        }
    };
    if width <= u32::BITS {
        each_16_codes(packed, width, start, out, |to, codes| {
            let [low, high] = widened(codes);
            store(to, low);
            store(to.wrapping_add(8), high);
        });
        return;
    }
    each_8_codes(packed, width, start, out, store);
}

/// The 16 codes in 64 bits each.
#[target_feature(enable = "avx512f")]
#[inline]
fn widened(codes: __m512i) -> [__m512i; 2] {
    let (low, high) = (_mm512_castsi512_si256(codes), _mm512_extracti64x4_epi64::<1>(codes));
    [_mm512_cvtepu32_epi64(low), _mm512_cvtepu32_epi64(high)]
}

/// Calls `store(to, codes)` for each 8 codes of width 33 to 57.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2")]
#[inline]
fn each_8_codes<T: Pod>(packed: &[u8], width: u32, start: usize, out: &mut [T], store: impl Fn(*mut T, __m512i)) {
    let (first, phase) = origin(width, start);
    let (lanes, mask) = (Lanes::<8>::new(width, phase), _mm512_set1_epi64(super::mask(width) as i64));
    each_block(packed, width, first, out, |from, to| {
        for group in 0..8 {
            // SAFETY: each_block gives the bytes of 8 groups of 8, and room for 64 rows.
            unsafe {
                let bytes = _mm512_permutexvar_epi8(lanes.low, load(from.add(group * width as usize)));
                store(to.add(8 * group), _mm512_and_si512(_mm512_srlv_epi64(bytes, lanes.shift), mask));
            }
        }
    });
}

/// Widths that [`pack`] takes: a code that begins anywhere in a byte has all its bits in eight bytes.
pub(super) const PACKED_WIDTH_MAX: u32 = 57;
/// Values that are packed at once: they fill `width` bytes exactly.
const PACKED_ROWS: usize = 8;

/// Places of bytes that bring eight codes, each shifted to where it begins in its first byte, behind one another: those
/// of `of_even` rows, or of the others. Codes of at least eight bits share no byte with the next but one.
fn places(width: usize, of_even: bool) -> ([u8; 64], u64) {
    let (mut places, mut valid) = ([0; 64], 0);
    for row in (0..PACKED_ROWS).filter(|row| row.is_multiple_of(2) == of_even) {
        let (first, last) = (row * width / 8, ((row + 1) * width - 1) / 8);
        for (place, byte) in places[first..=last].iter_mut().zip(8 * row as u8..) {
            *place = byte;
        }
        valid |= mask((last - first) as u32 + 1) << first;
    }
    (places, valid)
}

/// See [`super::pack`]. Eight values fill `width` bytes. Narrow ones are bytes, of which one instruction takes the
/// bits. Others are shifted to where they begin in their first byte; one permutation brings those of even rows into
/// place, another one the rest.
///
/// # Safety
/// `width` is 1 to [`PACKED_WIDTH_MAX`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi2")]
pub(super) unsafe fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    debug_assert!(values.iter().all(|value| *value <= mask(width)), "a value does not fit {width} bits");
    let bytes = width as usize;
    let (groups, rest) = values.as_chunks::<PACKED_ROWS>();
    let start = out.len();
    out.reserve(super::packed_bytes(values.len(), width));
    // SAFETY: there is room for all groups.
    let mut to = unsafe { out.as_mut_ptr().add(start) };
    if width <= 8 {
        let (bits, written) = (mask(width) * 0x0101_0101_0101_0101, mask(width) as u16);
        for group in groups {
            // SAFETY: eight values are readable; of the word the bytes that they fill are written, for which there is
            // room.
            unsafe {
                let wide = _mm512_loadu_si512(group.as_ptr().cast());
                let word = _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(wide)).cast_unsigned();
                let packed = _mm_cvtsi64_si128(_pext_u64(word, bits).cast_signed());
                _mm_mask_storeu_epi8(to.cast(), written, packed);
                to = to.add(bytes);
            }
        }
    } else {
        let ((even, are_even), (odd, are_odd)) = (places(bytes, true), places(bytes, false));
        let (even, odd) = (vector(&even), vector(&odd));
        let shifts: [u64; PACKED_ROWS] = from_fn(|row| (row * bytes % 8) as u64);
        let (cut, written) = (_mm512_set1_epi64(mask(width).cast_signed()), mask(width));
        // SAFETY: eight words are readable.
        let shifts = unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) };
        for group in groups {
            // SAFETY: eight values are readable; of the register the bytes that they fill are written, for which there
            // is room.
            unsafe {
                let wide = _mm512_and_si512(_mm512_loadu_si512(group.as_ptr().cast()), cut);
                let shifted = _mm512_sllv_epi64(wide, shifts);
                let even = _mm512_maskz_permutexvar_epi8(are_even, even, shifted);
                let odd = _mm512_maskz_permutexvar_epi8(are_odd, odd, shifted);
                _mm512_mask_storeu_epi8(to.cast(), written, _mm512_or_si512(even, odd));
                to = to.add(bytes);
            }
        }
    }
    // SAFETY: so many bytes were written behind the length.
    unsafe { out.set_len(start + groups.len() * bytes) };
    // The last few, which may fill no whole bytes; and then whole words, whatever the groups fill.
    let mut last = Vec::new();
    super::scalar::pack(rest, width, &mut last);
    out.extend_from_slice(&last[..(rest.len() * bytes).div_ceil(8)]);
    out.resize(start + super::packed_bytes(values.len(), width), 0);
}
