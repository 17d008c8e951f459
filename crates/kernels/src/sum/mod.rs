//! Exact sums of integers.
//!
//! In: a slice of values, for some functions with a selection of them. Out: their sum in a type that no sum of them can
//! leave.
//!
//! Values of 64 bits are added as two halves of 32, each in a 64-bit lane, which a block of [`BLOCK`] values cannot
//! overflow; sums of blocks are added in 128 bits. Nothing branches on a value.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod scalar;

#[cfg(test)]
mod tests;

/// Values after which the sums of a block are added to the whole: 2^31 halves below 2^32 stay below 2^63.
const BLOCK: usize = 1 << 31;

macro_rules! sums {
    ($($name:ident $t:ty, $sum:ty;)*) => {$(
        /// The sum of `values`.
        #[must_use]
        pub fn $name(values: &[$t]) -> $sum {
            #[cfg(target_arch = "x86_64")]
            if crate::dispatch::avx2() {
                // SAFETY: the processor has AVX2.
                return values.chunks(BLOCK).map(|block| <$sum>::from(unsafe { avx2::$name(block) })).sum();
            }
            scalar::$name(values)
        }
    )*};
}
sums! {
    sum_i16 i16, i128;
    sum_i32 i32, i128;
    sum_i64 i64, i128;
}

/// The sum of those of `values` whose bit of `selection` is set. `selection` must not name rows outside `values`.
#[must_use]
pub fn sum_selected_u32(values: &[u32], selection: &[u64]) -> u128 {
    sum_selected(values, selection, |blocks, selection| {
        #[cfg(target_arch = "x86_64")]
        if crate::dispatch::avx512() {
            // SAFETY: the processor has the features that the twin asks for.
            return unsafe { avx512::sum_selected_u32(blocks, selection) }.into();
        } else if crate::dispatch::avx2() {
            // SAFETY: the processor has AVX2.
            return unsafe { avx2::sum_selected_u32(blocks, selection) }.into();
        }
        scalar::sum_selected(blocks.as_flattened(), selection)
    })
}

/// The sum of those of `values` whose bit of `selection` is set. `selection` must not name rows outside `values`.
#[must_use]
pub fn sum_selected_u64(values: &[u64], selection: &[u64]) -> u128 {
    sum_selected(values, selection, |blocks, selection| {
        #[cfg(target_arch = "x86_64")]
        if crate::dispatch::avx512() {
            // SAFETY: the processor has the features that the twin asks for.
            return unsafe { avx512::sum_selected_u64(blocks, selection) };
        } else if crate::dispatch::avx2() {
            // SAFETY: the processor has AVX2.
            return unsafe { avx2::sum_selected_u64(blocks, selection) };
        }
        scalar::sum_selected(blocks.as_flattened(), selection)
    })
}

/// Adds up whole words of the selection by `fast`, a block's worth of values at most, and the rest one by one.
#[inline(always)]
fn sum_selected<T: Copy + Into<u128>>(
    values: &[T],
    selection: &[u64],
    fast: impl Fn(&[[T; 64]], &[u64]) -> u128,
) -> u128 {
    let (blocks, rest) = values.as_chunks::<64>();
    let (whole, last) = selection.split_at(selection.len().min(blocks.len()));
    let rounds = blocks.chunks(BLOCK / 64).zip(whole.chunks(BLOCK / 64));
    rounds.map(|(blocks, selection)| fast(blocks, selection)).sum::<u128>() + scalar::sum_selected(rest, last)
}
