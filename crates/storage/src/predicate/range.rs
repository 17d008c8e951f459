//! Zone maps: what a predicate can say about many rows from their smallest and largest value.

use std::cmp::Ordering;

use arrow_array::Array;

use crate::error::Result;
use crate::row::{TypedValues, Value};
use crate::schema::DataType;

use super::order::{comparable, compare_values};
use super::{CompareOp, Predicate};

/// Bounds of a column over some rows. `min` and `max` need not occur among the rows (a long text may be shortened), but no
/// value is outside them. Both are NULL if all rows are NULL, or if nothing is known (`all_null` is then false).
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

    /// The range of the rows of `array`, an array of type `data_type.arrow()`. No rows count as all NULL without a NULL.
    pub fn of_array(array: &dyn Array, data_type: DataType) -> Result<Self> {
        let values = TypedValues::of(array, data_type)?;
        let nulls = array.nulls();
        let valid = (0..array.len()).filter(|row| nulls.is_none_or(|n| n.is_valid(*row)));
        let (mut least, mut greatest) = (None, None);
        for row in valid {
            let (low, high) = (*least.get_or_insert(row), *greatest.get_or_insert(row));
            if values.compare(row, low) == Ordering::Less {
                least = Some(row);
            }
            if values.compare(row, high) == Ordering::Greater {
                greatest = Some(row);
            }
        }
        let value = |row: Option<usize>| row.map_or(Value::Null, |row| values.value(row));
        Ok(Self {
            min: value(least),
            max: value(greatest),
            has_nulls: array.null_count() > 0,
            all_null: array.null_count() == array.len(),
        })
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
