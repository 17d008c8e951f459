//! Exact sums of integers.
//!
//! In: a slice of values. Out: their sum in a type that no sum of them can leave.
//!
//! Values of 64 bits are added as two halves of 32, each in a 64-bit lane, which a block of [`BLOCK`] values cannot
//! overflow; sums of blocks are added in 128 bits. Nothing branches on a value.

#[cfg(target_arch = "x86_64")]
mod avx2;
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
