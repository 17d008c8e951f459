//! Closed ranges on plain slices: the types, and the choice of twin.

use super::scalar;

mod sealed {
    pub trait Sealed {}
}

/// A value that [`select_range_plain`] compares. Sealed: the fast twins know each type.
pub trait Plain: sealed::Sealed + Copy {
    /// Whether `lo <= self <= hi` in the order of [`crate::compare`].
    fn within(self, lo: Self, hi: Self) -> bool;
}

macro_rules! plain_int {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl Plain for $t {
            #[inline(always)]
            fn within(self, lo: Self, hi: Self) -> bool {
                (lo <= self) & (self <= hi)
            }
        }
    )*};
}
plain_int!(i16, i32, i64, i128, u8, u16, u32, u64);

macro_rules! plain_float {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl Plain for $t {
            #[inline(always)]
            fn within(self, lo: Self, hi: Self) -> bool {
                // At or above lo: NaN is above everything, and only NaN is at or above NaN.
                let above = (self >= lo) | self.is_nan();
                let below = (self <= hi) | hi.is_nan();
                above & below
            }
        }
    )*};
}
plain_float!(f32, f64);

/// Sets bit `i` of `out` if `lo <= values[i] <= hi`, clears it otherwise.
///
/// Panics when `out` is shorter than [`words`](crate::bitmap::words)`(values.len())`.
pub fn select_range_plain<T: Plain>(values: &[T], lo: T, hi: T, out: &mut [u64]) {
    scalar::select_range_plain(values, lo, hi, out);
}
