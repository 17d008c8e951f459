//! The plain twins.

macro_rules! sums {
    ($($name:ident $t:ty;)*) => {$(
        /// The sum of `values`.
        #[must_use]
        pub fn $name(values: &[$t]) -> i128 {
            values.iter().map(|&value| i128::from(value)).sum()
        }
    )*};
}
sums! {
    sum_i16 i16;
    sum_i32 i32;
    sum_i64 i64;
}

/// The sum of those of `values` whose bit of `selection` is set.
#[must_use]
pub fn sum_selected<T: Copy + Into<u128>>(values: &[T], selection: &[u64]) -> u128 {
    let mut sum = 0;
    crate::bitmap::for_each_one(selection, |at| sum += values[at].into());
    sum
}
