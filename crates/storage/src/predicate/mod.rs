//! One meaning of comparison, equality and hash for every type (contract 5): keys, zone maps, predicates and grouping
//! all come here. Text compares by bytes, -0.0 equals 0.0, there is one NaN and it is above all numbers, NULL compares
//! to nothing.
//!
//! Comes in: a [`Predicate`] with the column's values as an array, a zone map, or one value. Goes out: the rows it
//! selects.
//!
//! 1. [`compare_values`] is the total order: sorting, keys (`row::key` encodes it) and [`Value`]'s own `Ord` follow it.
//! 2. [`Predicate::may_match`] prunes by zone map ([`ValueRange`]).
//! 3. [`Predicate::int_interval`] and [`Predicate::matches`] let a segment translate a predicate to its codes.
//! 4. [`Predicate::evaluate`] answers for plain arrays.
//!
//! Invariant: the four agree on every value; `matches` is the definition.
//!
//! It does not own: which predicates a scan may push down, encodings, visibility.

use std::cmp::Ordering;

use crate::ids::ColumnId;
use crate::row::Value;

mod range;
mod evaluate;

#[cfg(test)]
mod tests;

pub use crate::row::{compare_floats, compare_values};
pub use range::{Prune, ValueRange};

/// A closed interval of integers; empty when the first is above the second.
pub type Bounds = (i128, i128);

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// =
    Eq,
    /// <>
    NotEq,
    /// <
    Lt,
    /// <=
    LtEq,
    /// >
    Gt,
    /// >=
    GtEq,
}

/// A condition on one column that the store evaluates itself. A row is selected only if it is true (not NULL).
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `column op value`; never true for NULL on either side.
    Compare {
        /// The column.
        column: ColumnId,
        /// The operator.
        op: CompareOp,
        /// The constant, of the column's type.
        value: Value,
    },
    /// `column IN (values)`; NULLs among the values match nothing.
    In {
        /// The column.
        column: ColumnId,
        /// The constants, of the column's type.
        values: Vec<Value>,
    },
    /// `column IS NULL`.
    IsNull {
        /// The column.
        column: ColumnId,
    },
    /// `column IS NOT NULL`.
    IsNotNull {
        /// The column.
        column: ColumnId,
    },
}

impl Predicate {
    /// The column the condition is on.
    #[must_use]
    pub fn column(&self) -> ColumnId {
        match self {
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::IsNull { column }
            | Self::IsNotNull { column } => *column,
        }
    }

    /// Whether the predicate is true for `value`. A constant of another type than `value` compares as
    /// [`compare_values`] says.
    #[must_use]
    pub fn matches(&self, value: &Value) -> bool {
        match self {
            Self::IsNull { .. } => value.is_null(),
            Self::IsNotNull { .. } => !value.is_null(),
            _ if value.is_null() => false,
            Self::Compare { value: Value::Null, .. } => false,
            Self::Compare { op, value: constant, .. } => op.holds(compare_values(value, constant)),
            Self::In { values, .. } => values.iter().any(|v| compare_values(value, v).is_eq()),
        }
    }

    /// The integers (or unscaled decimals) for which a comparison is true, as a closed interval; `None` for `<>`, for
    /// other predicates and for other types.
    #[must_use]
    pub fn int_interval(&self) -> Option<Bounds> {
        const EMPTY: Bounds = (1, 0);
        let Self::Compare { op, value, .. } = self else { return None };
        let v = match value {
            Value::Int(v) => i128::from(*v),
            Value::Decimal(v) => *v,
            _ => return None,
        };
        match op {
            CompareOp::Eq => Some((v, v)),
            CompareOp::NotEq => None,
            CompareOp::Lt => Some(v.checked_sub(1).map_or(EMPTY, |below| (i128::MIN, below))),
            CompareOp::LtEq => Some((i128::MIN, v)),
            CompareOp::Gt => Some(v.checked_add(1).map_or(EMPTY, |above| (above, i128::MAX))),
            CompareOp::GtEq => Some((v, i128::MAX)),
        }
    }
}

impl CompareOp {
    /// Whether the operator is true for two values that compare as `ordering`.
    #[must_use]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::NotEq => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::LtEq => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::GtEq => ordering.is_ge(),
        }
    }
}
