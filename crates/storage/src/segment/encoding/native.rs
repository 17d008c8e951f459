//! The fixed-width number types that columns are stored in: order, neighbours, conversion from and to [`Value`], and
//! the Arrow array of each. What the encodings need of a type stands here, once.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use mainstem_kernels::cast::Pod;
use mainstem_kernels::compare::Plain as Comparable;
use mainstem_kernels::hash::{hash_combine, hash_u64};
use mainstem_kernels::{bitpack, extremes, sum};

use super::form::Form;
use crate::error::{Error, Result};
use crate::row::{Value, uuid_array, uuid_at};
use crate::schema::DataType;

/// Where a constant stands among the values of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place<N> {
    /// Below all of them.
    Below,
    /// One of them.
    At(N),
    /// Above all of them.
    Above,
}

/// A stored number type.
pub(crate) trait Native: Pod + Comparable + ArrowNativeType {
    /// The least value.
    const LEAST: Self;
    /// The greatest value: NaN for floats.
    const GREATEST: Self;
    /// See [`Native::key`].
    type Key: std::hash::Hash + Eq;

    /// The order of contract 5.
    fn order(self, other: Self) -> Ordering;
    /// The next smaller value; `None` below the least.
    fn below(self) -> Option<Self>;
    /// The next larger value; `None` above the greatest.
    fn above(self) -> Option<Self>;
    /// Whether [`Native::normalised`] leaves all values as they are.
    const IS_NORMAL: bool = true;
    /// The one form in which equal values are stored.
    fn normalised(self) -> Self {
        self
    }
    /// Equal for equal values only: a key for hashing.
    fn key(self) -> Self::Key;
    /// Widened, if this is an integer.
    #[inline]
    fn integer(self) -> Option<i128> {
        None
    }
    /// The least and the greatest of `values`; `None` without any.
    fn extremes(values: &[Self]) -> Option<(Self, Self)> {
        let first = *values.first()?;
        Some(values.iter().fold((first, first), |(least, greatest), value| {
            let least = if value.order(least).is_lt() { *value } else { least };
            let greatest = if value.order(greatest).is_gt() { *value } else { greatest };
            (least, greatest)
        }))
    }
    /// The sum of `values`, if these are integers, unless it overflows.
    fn sum(_values: &[Self]) -> Option<i128> {
        None
    }
    /// A hash that mixes well, of equal values the same.
    fn hash(self) -> u64;
    /// Itself, if this is a REAL.
    #[inline]
    fn real(self) -> Option<f32> {
        None
    }
    /// Itself, if this is a DOUBLE PRECISION.
    #[inline]
    fn double(self) -> Option<f64> {
        None
    }
    /// As a value of a row.
    fn value(self) -> Value;
    /// Where `value` stands; `None` if it is of another type.
    fn place(value: &Value) -> Option<Place<Self>>;
    /// The values of an Arrow array of this native type.
    fn values_of(array: &dyn Array) -> Option<ScalarBuffer<Self>>;
    /// An Arrow array of `data_type`; of decimals in 64 bits, one in [`Form::Narrow`].
    fn array(data_type: DataType, values: ScalarBuffer<Self>, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
}

/// A stored number type that frame of reference works on.
pub(crate) trait Integer: Native {
    /// Most bits of a code.
    const WIDTH_MAX: u32;

    /// Widened.
    fn wide(self) -> i128;
    /// Narrowed; `None` when it does not fit.
    fn narrow(wide: i128) -> Option<Self>;
    /// `self` plus a code, wrapping.
    fn plus(self, code: u64) -> Self;
    /// `reference` plus each code of rows `start..`, wrapping.
    fn unpack(packed: &[u8], width: u32, start: usize, reference: Self, out: &mut [Self]);
}

/// The integer behind `value`, of any type that is stored as one.
pub(crate) fn wide_value(value: &Value) -> Option<i128> {
    match value {
        Value::Int(v) => Some(i128::from(*v)),
        Value::Decimal(v) => Some(*v),
        Value::Boolean(v) => Some(i128::from(*v)),
        _ => None,
    }
}

/// The values of `array`, if it is of Arrow type `A`.
fn values_of<A: ArrowPrimitiveType>(array: &dyn Array) -> Option<ScalarBuffer<A::Native>> {
    array.as_any().downcast_ref::<PrimitiveArray<A>>().map(|a| a.values().clone())
}

/// An array of `data_type` over `values`, of Arrow type `A`: decimals of 64 bits are those of [`Form::Narrow`].
fn primitive<A: ArrowPrimitiveType>(
    data_type: DataType,
    values: ScalarBuffer<A::Native>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let form = if matches!(A::DATA_TYPE, ArrowType::Decimal64(..)) { Form::Narrow } else { Form::Values };
    Ok(Arc::new(PrimitiveArray::<A>::try_new(values, nulls)?.with_data_type(form.arrow(data_type))))
}

/// A defect: an encoding was asked for a type it does not hold.
pub(crate) fn wrong_type(data_type: DataType, native: &str) -> Error {
    Error::internal(format!("a column of {data_type:?} is not stored as {native}"))
}

macro_rules! integer {
    ($t:ty, $unpack:ident, $width:literal, ($extremes:expr, $sum:expr), $value:expr, $($pattern:pat => $arrow:ty),+) => {
        impl Native for $t {
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;
            type Key = $t;

            #[inline]
            fn order(self, other: Self) -> Ordering {
                self.cmp(&other)
            }
            fn below(self) -> Option<Self> {
                self.checked_sub(1)
            }
            fn above(self) -> Option<Self> {
                self.checked_add(1)
            }
            #[inline]
            fn key(self) -> $t {
                self
            }
            #[inline]
            fn integer(self) -> Option<i128> {
                Some(i128::from(self))
            }
            fn extremes(values: &[Self]) -> Option<(Self, Self)> {
                $extremes(values)
            }
            fn sum(values: &[Self]) -> Option<i128> {
                $sum(values)
            }
            #[inline]
            fn hash(self) -> u64 {
                // Decimals mostly fit 64 bits.
                let wide = i128::from(self);
                hash_u64(wide as u64 ^ ((wide >> 64) ^ (wide >> 63)) as u64)
            }
            fn value(self) -> Value {
                $value(self)
            }
            fn place(value: &Value) -> Option<Place<Self>> {
                let wide = wide_value(value)?;
                Some(match <$t>::try_from(wide) {
                    Ok(v) => Place::At(v),
                    Err(_) if wide < 0 => Place::Below,
                    Err(_) => Place::Above,
                })
            }
            fn values_of(array: &dyn Array) -> Option<ScalarBuffer<Self>> {
                None$(.or_else(|| values_of::<$arrow>(array)))+
            }
            fn array(data_type: DataType, values: ScalarBuffer<Self>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
                match data_type {
                    $($pattern => primitive::<$arrow>(data_type, values, nulls),)+
                    _ => Err(wrong_type(data_type, stringify!($t))),
                }
            }
        }

        impl Integer for $t {
            const WIDTH_MAX: u32 = $width;

            #[inline]
            fn wide(self) -> i128 {
                i128::from(self)
            }
            #[inline]
            fn narrow(wide: i128) -> Option<Self> {
                <$t>::try_from(wide).ok()
            }
            #[inline]
            fn plus(self, code: u64) -> Self {
                self.wrapping_add(code as $t)
            }
            fn unpack(packed: &[u8], width: u32, start: usize, reference: Self, out: &mut [Self]) {
                bitpack::$unpack(packed, width, start, reference, out);
            }
        }
    };
}

integer!(i16, unpack_for_i16, 16, (extremes::extremes_i16, |values| Some(sum::sum_i16(values))),
    |v| Value::Int(i64::from(v)), DataType::SmallInt => Int16Type);
integer!(i32, unpack_for_i32, 32, (extremes::extremes_i32, |values| Some(sum::sum_i32(values))),
    |v| Value::Int(i64::from(v)), DataType::Integer => Int32Type, DataType::Date => Date32Type);
integer!(i64, unpack_for_i64, 64, (extremes::extremes_i64, |values| Some(sum::sum_i64(values))), Value::Int,
    DataType::BigInt => Int64Type, DataType::Time => Time64MicrosecondType,
    DataType::Timestamp | DataType::TimestampTz => TimestampMicrosecondType, DataType::Decimal { .. } => Decimal64Type);
integer!(i128, unpack_for_i128, 64, (extremes_of_wide, sum_of_wide), Value::Decimal, DataType::Decimal { .. } => Decimal128Type);

fn extremes_of_wide(values: &[i128]) -> Option<(i128, i128)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(least, greatest), value| (least.min(*value), greatest.max(*value))))
}

fn sum_of_wide(values: &[i128]) -> Option<i128> {
    values.iter().try_fold(0_i128, |sum, value| sum.checked_add(*value))
}

/// UUIDs: 128 bits without a meaning as numbers, so no frame of reference.
impl Native for u128 {
    const LEAST: Self = Self::MIN;
    const GREATEST: Self = Self::MAX;
    type Key = Self;

    #[inline]
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
    fn below(self) -> Option<Self> {
        self.checked_sub(1)
    }
    fn above(self) -> Option<Self> {
        self.checked_add(1)
    }
    #[inline]
    fn key(self) -> Self {
        self
    }
    #[inline]
    fn hash(self) -> u64 {
        hash_combine(hash_u64(self as u64), (self >> 64) as u64)
    }
    fn value(self) -> Value {
        Value::Uuid(self)
    }
    fn place(value: &Value) -> Option<Place<Self>> {
        match value {
            Value::Uuid(v) => Some(Place::At(*v)),
            _ => None,
        }
    }
    fn values_of(array: &dyn Array) -> Option<ScalarBuffer<Self>> {
        let array = array.as_any().downcast_ref::<FixedSizeBinaryArray>()?;
        Some((0..array.len()).map(|row| uuid_at(array, row)).collect::<Vec<_>>().into())
    }
    fn array(data_type: DataType, values: ScalarBuffer<Self>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        match data_type {
            DataType::Uuid => uuid_array(values.iter().copied(), nulls),
            _ => Err(wrong_type(data_type, "u128")),
        }
    }
}

macro_rules! float {
    ($t:ty, $bits:ty, $variant:ident, $own:ident, $arrow:ty) => {
        impl Native for $t {
            const LEAST: Self = <$t>::NEG_INFINITY;
            const GREATEST: Self = <$t>::NAN;
            type Key = $bits;

            #[inline]
            fn order(self, other: Self) -> Ordering {
                self.partial_cmp(&other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
            fn below(self) -> Option<Self> {
                if self.is_nan() {
                    Some(<$t>::INFINITY)
                } else if self == <$t>::NEG_INFINITY {
                    None
                } else {
                    Some(self.next_down())
                }
            }
            fn above(self) -> Option<Self> {
                if self.is_nan() {
                    None
                } else if self == <$t>::INFINITY {
                    Some(<$t>::NAN)
                } else {
                    Some(self.next_up())
                }
            }
            const IS_NORMAL: bool = false;
            #[inline]
            fn normalised(self) -> Self {
                if self.is_nan() { <$t>::NAN } else { self + 0.0 }
            }
            #[inline]
            fn key(self) -> $bits {
                self.normalised().to_bits()
            }
            #[inline]
            fn $own(self) -> Option<$t> {
                Some(self)
            }
            #[inline]
            fn hash(self) -> u64 {
                hash_u64(self.key().into())
            }
            fn value(self) -> Value {
                Value::$variant(self)
            }
            fn place(value: &Value) -> Option<Place<Self>> {
                match value {
                    Value::$variant(v) => Some(Place::At(v.normalised())),
                    _ => None,
                }
            }
            fn values_of(array: &dyn Array) -> Option<ScalarBuffer<Self>> {
                values_of::<$arrow>(array)
            }
            fn array(data_type: DataType, values: ScalarBuffer<Self>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
                match data_type {
                    DataType::$variant => primitive::<$arrow>(data_type, values, nulls),
                    _ => Err(wrong_type(data_type, stringify!($t))),
                }
            }
        }
    };
}

float!(f32, u32, Real, real, Float32Type);
float!(f64, u64, Double, double, Float64Type);

/// Runs one expression for the number type behind a [`DataType`], another for BOOLEAN, a third for text and bytes.
macro_rules! dispatch {
    ($data_type:expr, $n:ident => $number:expr, boolean => $boolean:expr, bytes => $bytes:expr) => {
        match $data_type {
            $crate::schema::DataType::Boolean => $boolean,
            $crate::schema::DataType::SmallInt => {
                type $n = i16;
                $number
            }
            $crate::schema::DataType::Integer | $crate::schema::DataType::Date => {
                type $n = i32;
                $number
            }
            $crate::schema::DataType::BigInt
            | $crate::schema::DataType::Time
            | $crate::schema::DataType::Timestamp
            | $crate::schema::DataType::TimestampTz => {
                type $n = i64;
                $number
            }
            $crate::schema::DataType::Decimal { .. } => {
                type $n = i128;
                $number
            }
            $crate::schema::DataType::Real => {
                type $n = f32;
                $number
            }
            $crate::schema::DataType::Double => {
                type $n = f64;
                $number
            }
            $crate::schema::DataType::Uuid => {
                type $n = u128;
                $number
            }
            $crate::schema::DataType::Text { .. }
            | $crate::schema::DataType::Char { .. }
            | $crate::schema::DataType::Bytea => $bytes,
        }
    };
}
pub(crate) use dispatch;

/// Runs one expression for the integer type behind a [`DataType`] (`i16` for BOOLEAN), another for the other types.
macro_rules! dispatch_integer {
    ($data_type:expr, $n:ident => $integer:expr, else => $other:expr) => {
        match $data_type {
            $crate::schema::DataType::Boolean | $crate::schema::DataType::SmallInt => {
                type $n = i16;
                $integer
            }
            $crate::schema::DataType::Integer | $crate::schema::DataType::Date => {
                type $n = i32;
                $integer
            }
            $crate::schema::DataType::BigInt
            | $crate::schema::DataType::Time
            | $crate::schema::DataType::Timestamp
            | $crate::schema::DataType::TimestampTz => {
                type $n = i64;
                $integer
            }
            $crate::schema::DataType::Decimal { .. } => {
                type $n = i128;
                $integer
            }
            _ => $other,
        }
    };
}
pub(crate) use dispatch_integer;

/// As `dispatch_integer`, for the integer type that values of a [`DataType`] are decoded as in a [`Form`].
macro_rules! dispatch_decoded {
    ($data_type:expr, $form:expr, $n:ident => $integer:expr, else => $other:expr) => {
        if $form.narrows($data_type) {
            type $n = i64;
            $integer
        } else {
            dispatch_integer!($data_type, $n => $integer, else => $other)
        }
    };
}
pub(crate) use dispatch_decoded;
