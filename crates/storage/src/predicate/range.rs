//! Zone maps: what a predicate can say about many rows from their smallest and largest value.

use std::cmp::Ordering;

use arrow_array::Array;
use arrow_buffer::NullBuffer;

use crate::error::Result;
use crate::row::{TypedValues, Value, comparable, compare_floats, compare_values, normal_f32, normal_f64, uuid_at};
use crate::schema::DataType;

use super::{CompareOp, Predicate};

/// Bounds of a column over some rows. `min` and `max` need not occur among the rows (a long text may be shortened), but
/// no value is outside them. Both are NULL if all rows are NULL, or if nothing is known (`all_null` is then false).
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRange {
    /// No value is below it.
    pub min: Value,
    /// No value is above it.
    pub max: Value,
    /// Whether some row may be NULL.
    pub has_nulls: bool,
    /// Whether every row is NULL.
    pub all_null: bool,
}

/// What a predicate selects of some rows, as far as their [`ValueRange`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// No row: they need not be read.
    None,
    /// Perhaps some rows: they have to be looked at.
    Some,
    /// Every row: the predicate need not be evaluated (MemSQL section III, full enclosure).
    All,
}

impl ValueRange {
    /// The range of rows of which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { min: Value::Null, max: Value::Null, has_nulls: true, all_null: false }
    }

    /// The range of the rows of `array`, an array of type `data_type.arrow()`. No rows count as all NULL without a
    /// NULL.
    pub fn of_array(array: &dyn Array, data_type: DataType) -> Result<Self> {
        let nulls = array.nulls().filter(|n| n.null_count() > 0);
        let bounds = match TypedValues::of(array, data_type)? {
            TypedValues::Boolean(v) => pair(rows(nulls, v.len(), |i| v.value(i), Ord::cmp), Value::Boolean),
            TypedValues::Int16(v) => pair(of_slice(nulls, v, Ord::cmp), |v| Value::Int(v.into())),
            TypedValues::Int32(v) => pair(of_slice(nulls, v, Ord::cmp), |v| Value::Int(v.into())),
            TypedValues::Int64(v) => pair(of_slice(nulls, v, Ord::cmp), Value::Int),
            TypedValues::Decimal(v) => pair(of_slice(nulls, v, Ord::cmp), Value::Decimal),
            TypedValues::Real(v) => {
                let order = |a: &f32, b: &f32| compare_floats((*a).into(), (*b).into());
                pair(of_slice(nulls, v, order), |v| Value::Real(normal_f32(v)))
            }
            TypedValues::Double(v) => {
                pair(of_slice(nulls, v, |a, b| compare_floats(*a, *b)), |v| Value::Double(normal_f64(v)))
            }
            TypedValues::Text(v) => pair(rows(nulls, v.len(), |i| v.value(i), Ord::cmp), |v| Value::Text(v.into())),
            TypedValues::Bytes(v) => pair(rows(nulls, v.len(), |i| v.value(i), Ord::cmp), |v| Value::Bytes(v.into())),
            TypedValues::Uuid(v) => pair(rows(nulls, v.len(), |i| uuid_at(v, i), Ord::cmp), Value::Uuid),
        };
        let all_null = bounds.is_none();
        let (min, max) = bounds.unwrap_or((Value::Null, Value::Null));
        Ok(Self { min, max, has_nulls: nulls.is_some(), all_null })
    }

    /// The range of these rows and those of `other` together.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let unknown = |r: &Self| r.min.is_null() && !r.all_null;
        let has_nulls = self.has_nulls | other.has_nulls;
        let all_null = self.all_null & other.all_null;
        if unknown(&self) || unknown(&other) {
            return Self { min: Value::Null, max: Value::Null, has_nulls, all_null };
        }
        // NULL is last, so the smaller of two bounds is never the NULL of a side without values.
        let min = self.min.min(other.min);
        let max = match (self.max, other.max) {
            (Value::Null, max) | (max, Value::Null) => max,
            (a, b) => a.max(b),
        };
        Self { min, max, has_nulls, all_null }
    }
}

/// Smallest and largest of `values`.
fn extremes<T: Copy>(mut values: impl Iterator<Item = T>, order: impl Fn(&T, &T) -> Ordering) -> Option<(T, T)> {
    let first = values.next()?;
    let wider = |(min, max): (T, T), v: T| {
        (if order(&v, &min).is_lt() { v } else { min }, if order(&v, &max).is_gt() { v } else { max })
    };
    Some(values.fold((first, first), wider))
}

/// Smallest and largest of the rows that are not NULL.
fn rows<T: Copy>(
    nulls: Option<&NullBuffer>,
    len: usize,
    value: impl Fn(usize) -> T,
    order: impl Fn(&T, &T) -> Ordering,
) -> Option<(T, T)> {
    match nulls {
        None => extremes((0..len).map(value), order),
        Some(nulls) => extremes(nulls.valid_indices().map(value), order),
    }
}

/// As [`rows`]; without NULLs a loop over a slice, which vectorises.
fn of_slice<T: Copy>(nulls: Option<&NullBuffer>, values: &[T], order: impl Fn(&T, &T) -> Ordering) -> Option<(T, T)> {
    match nulls {
        None => extremes(values.iter().copied(), order),
        Some(_) => rows(nulls, values.len(), |i| values[i], order),
    }
}

fn pair<T>(bounds: Option<(T, T)>, value: impl Fn(T) -> Value) -> Option<(Value, Value)> {
    bounds.map(|(min, max)| (value(min), value(max)))
}

impl Predicate {
    /// What the predicate selects of rows with range `range`.
    #[must_use]
    pub fn may_match(&self, range: &ValueRange) -> Prune {
        let answer = match self {
            Self::IsNull { .. } if range.all_null => return Prune::All,
            Self::IsNull { .. } => return if range.has_nulls { Prune::Some } else { Prune::None },
            _ if range.all_null => return Prune::None,
            Self::IsNotNull { .. } => Prune::All,
            Self::Compare { value, .. } if value.is_null() => return Prune::None,
            Self::Compare { op, value, .. } => compare_range(*op, value, range),
            Self::In { values, .. } => in_range(values, range),
        };
        // A NULL is selected by nothing that came here.
        if answer == Prune::All && range.has_nulls { Prune::Some } else { answer }
    }
}

/// Whether values between the bounds of `range`, none of them NULL, satisfy `op value`.
fn compare_range(op: CompareOp, value: &Value, range: &ValueRange) -> Prune {
    if range.min.is_null() || range.max.is_null() || !comparable(&range.min, value) {
        return Prune::Some;
    }
    let min = compare_values(&range.min, value);
    let max = compare_values(&range.max, value);
    let (none, all) = match op {
        CompareOp::Eq => (min.is_gt() || max.is_lt(), min.is_eq() && max.is_eq()),
        CompareOp::NotEq => (min.is_eq() && max.is_eq(), min.is_gt() || max.is_lt()),
        CompareOp::Lt => (min.is_ge(), max.is_lt()),
        CompareOp::LtEq => (min.is_gt(), max.is_le()),
        CompareOp::Gt => (max.is_le(), min.is_gt()),
        CompareOp::GtEq => (max.is_lt(), min.is_ge()),
    };
    match (none, all) {
        (true, _) => Prune::None,
        (_, true) => Prune::All,
        _ => Prune::Some,
    }
}

fn in_range(values: &[Value], range: &ValueRange) -> Prune {
    let mut answer = Prune::None;
    for value in values.iter().filter(|v| !v.is_null()) {
        match compare_range(CompareOp::Eq, value, range) {
            Prune::All => return Prune::All,
            Prune::Some => answer = Prune::Some,
            Prune::None => {}
        }
    }
    answer
}
