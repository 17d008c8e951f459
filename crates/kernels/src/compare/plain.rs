//! Closed ranges on plain slices: the types, and the choice of twin.

use super::{cut, scalar};

mod sealed {
    pub trait Sealed: Copy {
        /// Fills the words of the whole blocks of 64 values that a fast twin takes, and says how many.
        fn fast(values: &[Self], lo: Self, hi: Self, out: &mut [u64]) -> usize;
    }
}

/// A value that [`select_range_plain`] compares. Sealed: the fast twins know each type.
pub trait Plain: sealed::Sealed {
    /// Whether `lo <= self <= hi` in the order of [`crate::compare`].
    fn within(self, lo: Self, hi: Self) -> bool;
}

/// Hands whole blocks to `$twin`, which knows the type by its size: a range compares signed and unsigned lanes alike.
macro_rules! fast {
    ($twin:ident, $lanes:ty) => {
        #[inline]
        fn fast(values: &[Self], lo: Self, hi: Self, out: &mut [u64]) -> usize {
            #[cfg(target_arch = "x86_64")]
            if values.len() >= 64 && crate::dispatch::avx2() {
                let blocks = values.len() / 64;
                // SAFETY: $lanes is this type, or the integer of its size and alignment; the blocks lie within
                // `values`.
                let values = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<[$lanes; 64]>(), blocks) };
                // SAFETY: the processor has AVX2.
                unsafe { super::avx2::$twin(values, lo as $lanes, hi as $lanes, out) };
                return blocks;
            }
            let _ = (values, lo, hi, out);
            0
        }
    };
}

macro_rules! plain_int {
    ($($t:ty, $twin:ident, $lanes:ty;)*) => {$(
        impl sealed::Sealed for $t {
            fast!($twin, $lanes);
        }
        impl Plain for $t {
            #[inline(always)]
            fn within(self, lo: Self, hi: Self) -> bool {
                (lo <= self) & (self <= hi)
            }
        }
    )*};
}
plain_int! {
    u8, plain_8, i8;
    i16, plain_16, i16;
    u16, plain_16, i16;
    i32, plain_32, i32;
    u32, plain_32, i32;
    i64, plain_64, i64;
    u64, plain_64, i64;
}

macro_rules! plain_wide {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {
            fn fast(_: &[Self], _: Self, _: Self, _: &mut [u64]) -> usize {
                0
            }
        }
        impl Plain for $t {
            #[inline(always)]
            fn within(self, lo: Self, hi: Self) -> bool {
                (lo <= self) & (self <= hi)
            }
        }
    )*};
}
plain_wide!(i128, u128);

macro_rules! plain_float {
    ($($t:ty, $twin:ident;)*) => {$(
        impl sealed::Sealed for $t {
            fast!($twin, $t);
        }
        impl Plain for $t {
            #[inline(always)]
            fn within(self, lo: Self, hi: Self) -> bool {
                // NaN is at or above everything, and only NaN is at or above NaN.
                ((self >= lo) | self.is_nan()) & ((self <= hi) | hi.is_nan())
            }
        }
    )*};
}
plain_float! {
    f32, plain_f32;
    f64, plain_f64;
}

/// Sets bit `i` of `out` if `lo <= values[i] <= hi`, clears it otherwise.
///
/// Panics when `out` is shorter than [`words`](crate::bitmap::words)`(values.len())`.
pub fn select_range_plain<T: Plain>(values: &[T], lo: T, hi: T, out: &mut [u64]) {
    let out = cut(out, values.len());
    if !lo.within(lo, hi) {
        return out.fill(0);
    }
    let blocks = T::fast(values, lo, hi, out);
    scalar::select_range_plain(&values[blocks * 64..], lo, hi, &mut out[blocks..]);
}
