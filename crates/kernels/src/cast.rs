//! Plain numbers as bytes, and back, without `unsafe` at the caller.
//!
//! In: slices of a [`Pod`] number, or bytes. Out: the other. [`as_bytes`] borrows and shows native byte order; what
//! goes to disk goes through [`to_le_bytes`] and [`from_le_bytes`], which are one `memcpy` on little-endian machines.

mod sealed {
    pub trait Sealed {}
}

/// A plain number: no padding, no invalid bit pattern, no drop, no pointer. Sealed, because `unsafe` code relies on it.
pub trait Pod: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// The value with its bytes in little-endian order (the value itself on little-endian machines).
    #[must_use]
    fn to_le(self) -> Self;
}

macro_rules! pod_int {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl Pod for $t {
            #[inline]
            fn to_le(self) -> Self {
                <$t>::to_le(self)
            }
        }
    )*};
}
pod_int!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128);

macro_rules! pod_float {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl Pod for $t {
            #[inline]
            fn to_le(self) -> Self {
                <$t>::from_bits(self.to_bits().to_le())
            }
        }
    )*};
}
pod_float!(f32, f64);

/// The bytes of `values`, in native order.
#[must_use]
pub fn as_bytes<T: Pod>(values: &[T]) -> &[u8] {
    // SAFETY: Pod is sealed to numbers without padding, so each of the size_of_val bytes is initialised; u8 has
    // alignment 1; the result borrows `values`, which cannot change meanwhile.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}

/// Appends `values` to `out` in little-endian order.
pub fn to_le_bytes<T: Pod>(values: &[T], out: &mut Vec<u8>) {
    if cfg!(target_endian = "little") {
        out.extend_from_slice(as_bytes(values));
    } else {
        for value in values {
            out.extend_from_slice(as_bytes(&[value.to_le()]));
        }
    }
}

/// The values that `bytes` hold in little-endian order; `bytes` need no alignment. Bytes after the last whole value are
/// ignored: a caller that reads from disk checks the length first.
#[must_use]
pub fn from_le_bytes<T: Pod>(bytes: &[u8]) -> Vec<T> {
    let count = bytes.len() / size_of::<T>();
    let mut values = vec![T::default(); count];
    // SAFETY: source and target hold at least count * size_of::<T>() bytes, the target is freshly allocated and so
    // apart from the source, and every bit pattern is a valid T.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), values.as_mut_ptr().cast::<u8>(), count * size_of::<T>());
    }
    if cfg!(target_endian = "big") {
        for value in &mut values {
            *value = value.to_le();
        }
    }
    values
}

#[cfg(test)]
mod tests;
