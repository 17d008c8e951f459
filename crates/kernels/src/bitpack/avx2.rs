//! The AVX2 twins of unpacking. See [`super::lanes`] for how codes come into lanes.
//!
//! Each function handles the widths its lanes can; the caller (`mod.rs`) sends the others to the scalar twin. The
//! reference of a frame is added always (0 for plain codes): the loops are bound by their stores.

use super::lanes::{BLOCK, Lanes16, Lanes32, Lanes64, WIDTH_MAX_16, WIDTH_MAX_32, narrow_16_to_8, narrow_32_to_16};
use super::lanes::{origin, prefetch, source};
use crate::cast::Pod;
use std::arch::x86_64::*;

/// Calls `unpack(from, to)` for each block of `out`: `from` has the readable bytes of a block, `to` room for its 64
/// rows.
#[target_feature(enable = "avx2")]
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
        let mut buffer = None;
        let from = source(packed, at, width, &mut buffer);
        prefetch(from, width);
        unpack(from, block.as_mut_ptr());
        at += 8 * width as usize;
    }
    if !rest.is_empty() {
        let mut buffer = None;
        let mut block = [T::default(); BLOCK];
        unpack(source(packed, at, width, &mut buffer), block.as_mut_ptr());
        rest.copy_from_slice(&block[..rest.len()]);
    }
}

/// Codes of width 1 to 8 into bytes.
#[target_feature(enable = "avx2")]
pub(super) fn unpack_8(packed: &[u8], width: u32, start: usize, out: &mut [u8]) {
    let (first, phase) = origin(width, start);
    let lanes = Lanes16::new(width, phase);
    let stride = lanes.stride();
    each_block(packed, width, first, out, |from, to| {
        for pair in 0..2 {
            // SAFETY: each_block gives the bytes of 4 groups of 16, and room for 64 rows.
            unsafe {
                let group = from.add(pair * 2 * stride);
                let bytes = narrow_16_to_8(lanes.load(group), lanes.load(group.add(stride)));
                _mm256_storeu_si256(to.add(pair * 32).cast(), bytes);
            }
        }
    });
}

/// Codes of width 1 to 16 plus `reference`.
#[target_feature(enable = "avx2")]
pub(super) fn unpack_16(packed: &[u8], width: u32, start: usize, reference: u16, out: &mut [u16]) {
    let (first, phase) = origin(width, start);
    let reference = _mm256_set1_epi16(reference as i16);
    if width <= WIDTH_MAX_16 {
        let lanes = Lanes16::new(width, phase);
        each_block(packed, width, first, out, |from, to| {
            for group in 0..4 {
                // SAFETY: each_block gives the bytes of 4 groups of 16, and room for 64 rows.
                unsafe {
                    let codes = lanes.load(from.add(group * lanes.stride()));
                    _mm256_storeu_si256(to.add(group * 16).cast(), _mm256_add_epi16(codes, reference));
                }
            }
        });
        return;
    }
    let lanes = Lanes32::new(width, phase);
    let stride = width as usize;
    each_block(packed, width, first, out, |from, to| {
        for pair in 0..4 {
            // SAFETY: each_block gives the bytes of 8 groups of 8, and room for 64 rows.
            unsafe {
                let group = from.add(pair * 2 * stride);
                let codes = narrow_32_to_16(lanes.load(group), lanes.load(group.add(stride)));
                _mm256_storeu_si256(to.add(pair * 16).cast(), _mm256_add_epi16(codes, reference));
            }
        }
    });
}

/// Codes of width 1 to 32 plus `reference`.
#[target_feature(enable = "avx2")]
pub(super) fn unpack_32(packed: &[u8], width: u32, start: usize, reference: u32, out: &mut [u32]) {
    let (first, phase) = origin(width, start);
    let reference = _mm256_set1_epi32(reference as i32);
    let stride = width as usize;
    if width <= WIDTH_MAX_32 {
        let lanes = Lanes32::new(width, phase);
        each_block(packed, width, first, out, |from, to| {
            for group in 0..8 {
                // SAFETY: each_block gives the bytes of 8 groups of 8, and room for 64 rows.
                unsafe {
                    let codes = lanes.load(from.add(group * stride));
                    _mm256_storeu_si256(to.add(group * 8).cast(), _mm256_add_epi32(codes, reference));
                }
            }
        });
        return;
    }
    let lanes = Lanes64::new(width, phase);
    each_block(packed, width, first, out, |from, to| {
        for group in 0..8 {
            // SAFETY: as above.
            unsafe {
                let codes = lanes.load_narrow(from.add(group * stride));
                _mm256_storeu_si256(to.add(group * 8).cast(), _mm256_add_epi32(codes, reference));
            }
        }
    });
}

/// Codes of width 1 to 57 plus `reference`.
#[target_feature(enable = "avx2")]
pub(super) fn unpack_64(packed: &[u8], width: u32, start: usize, reference: u64, out: &mut [u64]) {
    let (first, phase) = origin(width, start);
    let reference = _mm256_set1_epi64x(reference as i64);
    let stride = width as usize;
    if width <= WIDTH_MAX_32 {
        // Unpacking to 32 bits and widening is cheaper than unpacking to 64.
        let lanes = Lanes32::new(width, phase);
        each_block(packed, width, first, out, |from, to| {
            for group in 0..8 {
                // SAFETY: each_block gives the bytes of 8 groups of 8, and room for 64 rows.
                unsafe {
                    let codes = lanes.load(from.add(group * stride));
                    let low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(codes));
                    let high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(codes));
                    _mm256_storeu_si256(to.add(group * 8).cast(), _mm256_add_epi64(low, reference));
                    _mm256_storeu_si256(to.add(group * 8 + 4).cast(), _mm256_add_epi64(high, reference));
                }
            }
        });
        return;
    }
    let lanes = Lanes64::new(width, phase);
    each_block(packed, width, first, out, |from, to| {
        for group in 0..8 {
            // SAFETY: each_block gives the bytes of 8 groups of 8, and room for 64 rows.
            unsafe {
                let [low, high] = lanes.load(from.add(group * stride));
                _mm256_storeu_si256(to.add(group * 8).cast(), _mm256_add_epi64(low, reference));
                _mm256_storeu_si256(to.add(group * 8 + 4).cast(), _mm256_add_epi64(high, reference));
            }
        }
    });
}
