//! Rust values to SQL values: parameters and appended rows.

use std::borrow::Cow;
use std::time::SystemTime;

use super::{Date, Decimal, Time, Timestamp, TimestampTz, Uuid, ValueRef};

/// A Rust value that can be bound to a parameter or appended to a table.
///
/// The SQL type follows from the Rust type: `bool`, `i16`, `i32`, `i64`, `f32`, `f64` are BOOLEAN, SMALLINT, INTEGER, BIGINT,
/// REAL, DOUBLE PRECISION (smaller integers take the next larger type); [`Decimal`], [`Date`], [`Time`],
/// [`Timestamp`], [`TimestampTz`], [`Uuid`] and `SystemTime` are what their names say; strings are TEXT, bytes BYTEA (16 of
/// them also spell a UUID); `None` is NULL.
pub trait ToValue {
    /// The value.
    fn to_value(&self) -> ValueRef<'_>;
}

impl ToValue for ValueRef<'_> {
    fn to_value(&self) -> ValueRef<'_> {
        *self
    }
}

macro_rules! by_copy {
    ($($rust:ty => $variant:ident),* $(,)?) => {
        $(impl ToValue for $rust {
            fn to_value(&self) -> ValueRef<'_> {
                ValueRef::$variant((*self).into())
            }
        })*
    };
}

by_copy! {
    bool => Boolean, i8 => SmallInt, u8 => SmallInt, i16 => SmallInt, u16 => Integer, i32 => Integer, u32 => BigInt,
    i64 => BigInt, f32 => Real, f64 => Double, Decimal => Decimal, Date => Date, Timestamp => Timestamp,
    TimestampTz => TimestampTz, SystemTime => TimestampTz, Time => Time, Uuid => Uuid,
}

impl ToValue for str {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, T::to_value)
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue + ?Sized> ToValue for Box<T> {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue + ToOwned + ?Sized> ToValue for Cow<'_, T> {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }
}

/// The values of a statement's parameters, or of a row: a tuple (`(1, "a", None::<i32>)`), an array or slice of one type, or
/// of `&dyn ToValue`; `()` for none.
pub trait Params {
    /// Calls `work` with the values. They are borrowed, and stand on the stack where their number is known.
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R;
}

impl<P: Params + ?Sized> Params for &P {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        (**self).with_values(work)
    }
}

impl<T: ToValue> Params for [T] {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        let values: Vec<ValueRef<'_>> = self.iter().map(T::to_value).collect();
        work(&values)
    }
}

impl<T: ToValue> Params for Vec<T> {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        self.as_slice().with_values(work)
    }
}

impl<T: ToValue, const N: usize> Params for [T; N] {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        let mut values = [ValueRef::Null; N];
        for (value, given) in values.iter_mut().zip(self) {
            *value = given.to_value();
        }
        work(&values)
    }
}

impl Params for () {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        work(&[])
    }
}

macro_rules! tuples {
    ($(($($name:ident $at:tt),+))*) => {
        $(impl<$($name: ToValue),+> Params for ($($name,)+) {
            fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
                work(&[$(self.$at.to_value()),+])
            }
        })*
    };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15)
}
