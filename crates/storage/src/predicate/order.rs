//! The total order of values.

use std::cmp::Ordering;

use crate::row::Value;

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
pub(super) fn comparable(a: &Value, b: &Value) -> bool {
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
