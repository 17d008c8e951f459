//! Bit packing: integers of a fixed width, back to back.
//!
//! Layout: value `i` occupies bits `[i * width, (i + 1) * width)` of a little-endian bit stream (bit `b` is bit `b % 8`
//! of byte `b / 8`). `width` is 0 to 64; width 0 takes no bytes, and every value is 0. [`packed_bytes`] rounds up to 8
//! bytes.
//!
//! In: packed bytes, a width, a first row. Out: values, in the caller's slice.
//!
//! 1. [`pack`] appends; [`bits_needed`] chooses the width.
//! 2. `unpack_*` give the codes; `unpack_for_*` add a reference (frame of reference, wrapping).
//! 3. [`get`] reads one value.
//!
//! The AVX2 twins work in blocks of 64 rows: since 8 values fill `width` bytes exactly, the place of each value inside
//! a group is the same for the whole call. One byte shuffle, one variable shift and one mask bring 16, 8 or 4 of
//! them into lanes (the technique of Lemire and Boytsov, "Decoding billions of integers per second through
//! vectorization", section 3, on a horizontal layout). The AVX-512 twins fill whole registers in the same way.
//!
//! Invariants: nothing is read outside `packed`. `packed` may lack the padding of the last 8 bytes.
//! Panics: a width above the type's, or rows that `packed` does not hold.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod lanes;
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
    #[cfg(target_arch = "x86_64")]
    if (1..=avx512::PACKED_WIDTH_MAX).contains(&width) && values.len() >= SIMD_ROWS_MIN && crate::dispatch::avx512() {
        // SAFETY: the processor has the features that the twin asks for; the width was checked.
        return unsafe { avx512::pack(values, width, out) };
    }
    scalar::pack(values, width, out);
}

/// Value `index` of `packed`.
#[inline(always)]
#[must_use]
pub fn get(packed: &[u8], width: u32, index: usize) -> u64 {
    // So narrow a value lies in the eight bytes from its first one on, and where those are there, so is it.
    if width <= 57
        && let Some(at) = index.checked_mul(width as usize)
        && let Some(window) = packed.get(at / 8..).and_then(|rest| rest.first_chunk())
    {
        return u64::from_le_bytes(*window) >> (at % 8) & mask(width);
    }
    get_any(packed, width, index)
}

/// [`get`] of wide values, and near the end of `packed`.
#[cold]
fn get_any(packed: &[u8], width: u32, index: usize) -> u64 {
    check(packed, width, index, 1, 64);
    scalar::read(packed, width, index * width as usize)
}

/// Below this many rows the set-up of the shuffles costs more than it saves.
#[cfg(target_arch = "x86_64")]
pub(crate) const SIMD_ROWS_MIN: usize = 16;

/// Reinterprets signed output as unsigned: the fast twins add modulo 2^n, which is the same for both.
macro_rules! as_unsigned {
    ($name:ident $signed:ty, $unsigned:ty) => {
        #[cfg(target_arch = "x86_64")]
        fn $name(out: &mut [$signed]) -> &mut [$unsigned] {
            // SAFETY: both types have one size and alignment and no invalid bit pattern; the borrow passes on.
            unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len()) }
        }
    };
}
as_unsigned!(as_u16 i16, u16);
as_unsigned!(as_u32 i32, u32);
as_unsigned!(as_u64 i64, u64);

/// Whether the fast twin takes this call: widths of 1 to `width_max`, and enough rows to pay for the set-up.
#[cfg(target_arch = "x86_64")]
#[inline]
fn fast(width: u32, width_max: u32, rows: usize) -> bool {
    width >= 1 && width <= width_max && rows >= SIMD_ROWS_MIN && crate::dispatch::avx2()
}

macro_rules! unpack {
    ($($(#[$doc:meta])* $name:ident $t:ty, $width_max:expr, $fast_max:expr, $twin:ident($($reference:literal)?);)*) => {$(
        $(#[$doc])*
        pub fn $name(packed: &[u8], width: u32, start: usize, out: &mut [$t]) {
            check(packed, width, start, out.len(), $width_max);
            #[cfg(target_arch = "x86_64")]
            if fast(width, $fast_max, out.len()) {
                // SAFETY: the processor has the features that the twin asks for; rows and width were checked.
                return unsafe {
                    match crate::dispatch::avx512() {
                        true => avx512::$twin(packed, width, start, $($reference,)? out),
                        false => avx2::$twin(packed, width, start, $($reference,)? out),
                    }
                };
            }
            scalar::$name(packed, width, start, out);
        }
    )*};
}
unpack! {
    /// Codes of rows `start..start + out.len()`. Width at most 64.
    unpack_u64 u64, 64, lanes::WIDTH_MAX_64, unpack_64(0);
    /// Codes of rows `start..start + out.len()`. Width at most 32.
    unpack_u32 u32, 32, 32, unpack_32(0);
    /// Codes of rows `start..start + out.len()`. Width at most 16.
    unpack_u16 u16, 16, 16, unpack_16(0);
    /// Codes of rows `start..start + out.len()`. Width at most 8.
    unpack_u8 u8, 8, 8, unpack_8();
}

macro_rules! unpack_for {
    ($($(#[$doc:meta])* $name:ident $t:ty, $u:ty, $width_max:expr, $fast_max:expr, $twin:ident, $cast:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(packed: &[u8], width: u32, start: usize, reference: $t, out: &mut [$t]) {
            check(packed, width, start, out.len(), $width_max);
            #[cfg(target_arch = "x86_64")]
            if fast(width, $fast_max, out.len()) {
                // SAFETY: the processor has the features that the twin asks for; rows and width were checked.
                return unsafe {
                    match crate::dispatch::avx512() {
                        true => avx512::$twin(packed, width, start, reference as $u, $cast(out)),
                        false => avx2::$twin(packed, width, start, reference as $u, $cast(out)),
                    }
                };
            }
            scalar::$name(packed, width, start, reference, out);
        }
    )*};
}
unpack_for! {
    /// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 64.
    unpack_for_i64 i64, u64, 64, lanes::WIDTH_MAX_64, unpack_64, as_u64;
    /// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 32.
    unpack_for_i32 i32, u32, 32, 32, unpack_32, as_u32;
    /// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 16.
    unpack_for_i16 i16, u16, 16, 16, unpack_16, as_u16;
}

/// `reference` plus each code of rows `start..start + out.len()`, wrapping. Width at most 64.
pub fn unpack_for_i128(packed: &[u8], width: u32, start: usize, reference: i128, out: &mut [i128]) {
    check(packed, width, start, out.len(), 64);
    #[cfg(target_arch = "x86_64")]
    if fast(width, lanes::WIDTH_MAX_64, out.len())
        && crate::dispatch::avx512()
        && let Ok(reference) = i64::try_from(reference)
        && reference.checked_add_unsigned(mask(width)).is_some()
    {
        // SAFETY: the processor has the features that the twin asks for; rows and width were checked.
        return unsafe { avx512::unpack_128(packed, width, start, reference, out) };
    }
    let mut codes = [0u64; 256];
    let mut row = start;
    for values in out.chunks_mut(codes.len()) {
        let codes = &mut codes[..values.len()];
        unpack_u64(packed, width, row, codes);
        for (value, code) in values.iter_mut().zip(codes) {
            *value = reference.wrapping_add(i128::from(*code));
        }
        row += values.len();
    }
}
