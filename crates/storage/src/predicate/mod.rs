//! One meaning of comparison, equality and hash for every type (contract 5): keys, zone maps, predicates and grouping all
//! come here. Text compares by bytes, -0.0 equals 0.0, there is one NaN and it is above all numbers, NULL compares to
//! nothing.

use crate::ids::ColumnId;
use crate::row::Value;

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
}
