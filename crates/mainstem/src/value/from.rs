//! SQL values to Rust values.

use std::time::SystemTime;

use mainstem_storage::error::sqlstate;
use mainstem_storage::row::Value;
use mainstem_storage::{Error, Result};

use super::{Date, Decimal, Time, Timestamp, TimestampTz, Uuid, ValueRef};

/// A Rust type that a column of a row can be read as.
///
/// Integers are read as any integer type they fit in, REAL as `f32` and `f64`, the rest as the type that
/// [`super::ToValue`] names for it; text and bytes also borrowed. NULL needs an `Option`, or a [`Value`].
pub trait FromValue<'a>: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// 42804 for a value of another type, 22003 for an integer that does not fit, 22004 for NULL.
    fn from_value(value: ValueRef<'a>) -> Result<Self>;
}

pub(super) fn refused(value: ValueRef<'_>, wanted: &str) -> Error {
    match value.data_type() {
        None => Error::invalid("22004", format!("the value is NULL and cannot be read as {wanted}; read an Option")),
        Some(found) => {
            Error::invalid(sqlstate::TYPE_MISMATCH, format!("a value of type {found} cannot be read as {wanted}"))
        }
    }
}

/// The value of any integer type; none for others.
pub(super) fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::SmallInt(v) => Some(v.into()),
        ValueRef::Integer(v) => Some(v.into()),
        ValueRef::BigInt(v) => Some(v),
        _ => None,
    }
}

macro_rules! integers {
    ($($rust:ty),*) => {
        $(impl<'a> FromValue<'a> for $rust {
            fn from_value(value: ValueRef<'a>) -> Result<Self> {
                let wide = integer(value).ok_or_else(|| refused(value, stringify!($rust)))?;
                Self::try_from(wide).map_err(|_| {
                    Error::invalid(sqlstate::OUT_OF_RANGE, format!("{wide} is out of range for {}", stringify!($rust)))
                })
            }
        })*
    };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! exact {
    ($($rust:ty => $variant:ident),* $(,)?) => {
        $(impl<'a> FromValue<'a> for $rust {
            fn from_value(value: ValueRef<'a>) -> Result<Self> {
                match value {
                    ValueRef::$variant(v) => Ok(v.into()),
                    other => Err(refused(other, stringify!($rust))),
                }
            }
        })*
    };
}

exact! {
    bool => Boolean, f32 => Real, Date => Date, Time => Time, Timestamp => Timestamp, TimestampTz => TimestampTz,
    SystemTime => TimestampTz, &'a str => Text, String => Text, Box<str> => Text, &'a [u8] => Bytes, Vec<u8> => Bytes,
    Uuid => Uuid, [u8; 16] => Uuid,
}

impl<'a> FromValue<'a> for f64 {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        match value {
            ValueRef::Double(v) => Ok(v),
            ValueRef::Real(v) => Ok(v.into()),
            other => Err(refused(other, "f64")),
        }
    }
}

impl<'a> FromValue<'a> for Decimal {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        match (value, integer(value)) {
            (ValueRef::Decimal(v), _) => Ok(v),
            (_, Some(whole)) => Ok(Self::from_integer(whole)),
            (other, None) => Err(refused(other, "Decimal")),
        }
    }
}

/// Whole numbers only: a decimal with digits behind the point is 22003.
impl<'a> FromValue<'a> for i128 {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        match (value, integer(value)) {
            (_, Some(whole)) => Ok(whole.into()),
            (ValueRef::Decimal(v), None) if v.scale() == 0 => Ok(v.unscaled()),
            (ValueRef::Decimal(v), None) => {
                Err(Error::invalid(sqlstate::OUT_OF_RANGE, format!("{v} is not declared as a whole number")))
            }
            (other, None) => Err(refused(other, "i128")),
        }
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        if value.is_null() { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl<'a> FromValue<'a> for ValueRef<'a> {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Ok(value)
    }
}

impl<'a> FromValue<'a> for Value {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Ok(value.to_stored())
    }
}
