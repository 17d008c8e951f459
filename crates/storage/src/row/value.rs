//! One SQL value, and the total order of values.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A value of one column, in the storage form of its type. Which variant a [`crate::schema::DataType`] uses: Boolean →
/// `Boolean`; SmallInt, Integer, BigInt, Date (days), Time, Timestamp and TimestampTz (microseconds) → `Int`; Decimal →
/// `Decimal` (unscaled); Real → `Real`; Double → `Double`; Text and Char → `Text`; Bytea → `Bytes`; Uuid → `Uuid`.
///
/// Equality, order and hash are those of [`compare_values`], with NULL equal to NULL and last: what
/// grouping and sorting need, not what `=` means in SQL.
#[derive(Clone, Debug)]
pub enum Value {
    /// SQL NULL, of any type.
    Null,
    /// A truth value.
    Boolean(bool),
    /// Integers, days and microseconds.
    Int(i64),
    /// The unscaled integer of a decimal.
    Decimal(i128),
    /// A 4-byte float, normalised: no -0.0, one NaN.
    Real(f32),
    /// An 8-byte float, normalised: no -0.0, one NaN.
    Double(f64),
    /// Text, compared by bytes.
    Text(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// The 16 bytes of a UUID as one number, the first byte highest: its order is that of the bytes.
    Uuid(u128),
}

impl Value {
    /// Whether this is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        compare_values(self, other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(self, other)
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Boolean(v) => v.hash(state),
            Self::Int(v) => v.hash(state),
            Self::Decimal(v) => v.hash(state),
            Self::Real(v) => normal_f32(*v).to_bits().hash(state),
            Self::Double(v) => normal_f64(*v).to_bits().hash(state),
            Self::Text(v) => v.hash(state),
            Self::Bytes(v) => v.hash(state),
            Self::Uuid(v) => v.hash(state),
        }
    }
}

/// The one form of a 4-byte float: -0.0 becomes 0.0, any NaN the canonical one.
#[inline]
pub(crate) fn normal_f32(v: f32) -> f32 {
    if v.is_nan() { f32::NAN } else { v + 0.0 }
}

/// The one form of an 8-byte float: -0.0 becomes 0.0, any NaN the canonical one.
#[inline]
pub(crate) fn normal_f64(v: f64) -> f64 {
    if v.is_nan() { f64::NAN } else { v + 0.0 }
}

/// The order of sorting and of keys: values of one type ascending, NULL last. Text compares by bytes, -0.0 equals 0.0,
/// NaN equals NaN and is above all numbers. Values of different types, which no column mixes, stand in the order of the
/// variants.
#[must_use]
pub fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Real(a), Value::Real(b)) => compare_floats(f64::from(*a), f64::from(*b)),
        (Value::Double(a), Value::Double(b)) => compare_floats(*a, *b),
        (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The order of floats: one zero, one NaN, and that above all numbers.
#[must_use]
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    // partial_cmp is None only with a NaN on some side, and then the side that is NaN is the greater one.
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Whether both are of the same type, so that comparing them means something; NULL is of every type.
pub(crate) fn comparable(a: &Value, b: &Value) -> bool {
    a.is_null() || b.is_null() || rank(a) == rank(b)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Boolean(_) => 0,
        Value::Int(_) => 1,
        Value::Decimal(_) => 2,
        Value::Real(_) => 3,
        Value::Double(_) => 4,
        Value::Text(_) => 5,
        Value::Bytes(_) => 6,
        Value::Uuid(_) => 7,
        Value::Null => 8,
    }
}
