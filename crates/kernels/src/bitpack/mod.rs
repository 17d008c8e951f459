//! Bit packing: integers of a fixed width, back to back.
//!
//! Layout: value `i` occupies bits `[i * width, (i + 1) * width)` of a little-endian bit stream (bit `b` is bit `b % 8` of
//! byte `b / 8`). `width` is 0 to 64; width 0 takes no bytes, and every value is 0. [`packed_bytes`] rounds up to 8 bytes.
//!
//! In: packed bytes, a width, a first row. Out: values, in the caller's slice.
//!
//! 1. [`pack`] appends; [`bits_needed`] chooses the width.
//! 2. `unpack_*` give the codes; `unpack_for_*` add a reference (frame of reference, wrapping).
//! 3. [`get`] reads one value.
//!
//! The AVX2 twins work in blocks of 64 rows: since 8 values fill `width` bytes exactly, the place of each value inside a
//! group is the same for the whole call, and one byte shuffle, one variable shift and one mask bring 16, 8 or 4 of
//! them into lanes (the technique of Lemire and Boytsov, "Decoding billions of integers per second through
//! vectorization", section 3, on a horizontal layout).
//!
//! Invariants: nothing is read outside `packed`. `packed` may lack the padding of the last 8 bytes.
//! Panics: a width above the type's, or rows that `packed` does not hold.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
pub mod scalar;

#[cfg(test)]
mod tests;

/// Bytes that `count` values of `width` bits take, rounded up to a multiple of 8.
#[inline]
#[must_use]
pub fn packed_bytes(count: usize, width: u32) -> usize {
    ((count as u128 * u128::from(width)).div_ceil(64) * 8) as usize
}

/// The least width that holds `max_value` (0 for 0).
#[inline]
#[must_use]
pub fn bits_needed(max_value: u64) -> u32 {
    64 - max_value.leading_zeros()
}

/// Asserts that rows `start..start + count` lie within `packed`.
#[inline]
pub(crate) fn check(packed: &[u8], width: u32, start: usize, count: usize, width_max: u32) {
    assert!(width <= width_max, "bit width {width} is above {width_max}");
    let end = start as u128 + count as u128;
    assert!(
        end * u128::from(width) <= packed.len() as u128 * 8,
        "rows {start}..{end} of {width} bits do not fit {} packed bytes",
        packed.len()
    );
}

/// The low `width` bits set.
#[inline]
pub(crate) fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Appends `values` to `out`, [`packed_bytes`] bytes. Values must fit `width` bits: checked in debug builds, cut off in
/// release builds.
pub fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    scalar::pack(values, width, out);
}

/// Value `index` of `packed`.
#[inline]
#[must_use]
pub fn get(packed: &[u8], width: u32, index: usize) -> u64 {
    check(packed, width, index, 1, 64);
    scalar::read(packed, width, index * width as usize)
}

/// Below this many rows the set-up of the shuffles costs more than it saves.
#[cfg(target_arch = "x86_64")]
pub(crate) const SIMD_ROWS_MIN: usize = 16;

macro_rules! unpack {
    ($($(#[$doc:meta])* $name:ident $t:ty;)*) => {$(
        $(#[$doc])*
        pub fn $name(packed: &[u8], width: u32, start: usize, out: &mut [$t]) {
            scalar::$name(packed, width, start, out);
        }
    )*};
}
unpack! {
    /// Rows `start..start + out.len()`. Width at most 64.
    unpack_u64 u64;
    /// Rows `start..start + out.len()`. Width at most 32.
    unpack_u32 u32;
    /// Rows `start..start + out.len()`. Width at most 16.
    unpack_u16 u16;
    /// Rows `start..start + out.len()`. Width at most 8.
    unpack_u8 u8;
}

macro_rules! unpack_for {
    ($($(#[$doc:meta])* $name:ident $t:ty;)*) => {$(
        $(#[$doc])*
        pub fn $name(packed: &[u8], width: u32, start: usize, reference: $t, out: &mut [$t]) {
            scalar::$name(packed, width, start, reference, out);
        }
    )*};
}
unpack_for! {
    /// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 64.
    unpack_for_i128 i128;
    /// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 64.
    unpack_for_i64 i64;
    /// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 32.
    unpack_for_i32 i32;
    /// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 16.
    unpack_for_i16 i16;
}
