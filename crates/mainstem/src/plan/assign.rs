//! Assignment casts: a computed value becomes a value of a column, as PostgreSQL does it in INSERT and UPDATE.
//!
//! Numbers are rounded to the column (halves away from zero for decimals, to even for floats) and must be in range (22003);
//! anything becomes text; a string literal becomes anything it spells (22P02, 22007); text that is no literal does not turn
//! into another type by itself (42804). Lengths and NOT NULL are checked by storage.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::{Error, Result};

use crate::sql::sql_name;
use crate::value::convert;

/// How a value of one type gets into a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All NULL.
    Null,
    /// The same values under another Arrow type, or none.
    Same,
    /// Numbers, by value.
    Number,
    /// Text that spells a value.
    Spelled,
    /// Written as text.
    Text,
    /// Dates and timestamps.
    Time,
}

fn is_text(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
}

fn is_time(data_type: &ArrowType) -> bool {
    matches!(
        data_type,
        ArrowType::Date32 | ArrowType::Date64 | ArrowType::Time32(_) | ArrowType::Time64(_) | ArrowType::Timestamp(..)
    )
}

fn way(from: &ArrowType, to: &Column) -> Option<Way> {
    let target = to.data_type;
    Some(match from {
        ArrowType::Null => Way::Null,
        from if *from == target.arrow() => Way::Same,
        from if is_text(from) => match target {
            DataType::Text { .. } | DataType::Char { .. } => Way::Same,
            _ => Way::Spelled,
        },
        ArrowType::FixedSizeBinary(16) => match target {
            DataType::Text { .. } | DataType::Char { .. } => Way::Text,
            _ => return None,
        },
        ArrowType::Dictionary(_, value) => return way(value, to),
        from if target.is_text() && !from.is_nested() && !from.is_binary() => Way::Text,
        from if from.is_numeric() => match target {
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Real
            | DataType::Double
            | DataType::Decimal { .. } => Way::Number,
            _ => return None,
        },
        ArrowType::Time32(_) | ArrowType::Time64(_) if target == DataType::Time => Way::Time,
        ArrowType::Time32(_) | ArrowType::Time64(_) => return None,
        from if is_time(from) => match target {
            DataType::Date | DataType::Timestamp | DataType::TimestampTz => Way::Time,
            DataType::Time if matches!(from, ArrowType::Timestamp(..)) => Way::Time,
            _ => return None,
        },
        from if from.is_binary() && target == DataType::Bytea => Way::Same,
        _ => return None,
    })
}

/// Whether values of type `from` may be assigned to `to`; `literal` says that they are string literals.
///
/// # Errors
/// 42804.
pub(crate) fn check(from: &ArrowType, literal: bool, to: &Column) -> Result<()> {
    match way(from, to) {
        Some(Way::Spelled) if !literal => Err(mismatch(from, to)),
        Some(_) => Ok(()),
        None => Err(mismatch(from, to)),
    }
}

fn mismatch(from: &ArrowType, to: &Column) -> Error {
    let from = match from {
        t if is_text(t) => "text".to_string(),
        ArrowType::Int64 => "bigint".into(),
        ArrowType::Float64 => "double precision".into(),
        ArrowType::Boolean => "boolean".into(),
        ArrowType::FixedSizeBinary(16) => "uuid".into(),
        ArrowType::Time32(_) | ArrowType::Time64(_) => "time".into(),
        other => other.to_string().to_lowercase(),
    };
    Error::invalid(
        sqlstate::TYPE_MISMATCH,
        format!(
            "column \"{}\" is of type {} but the expression is of type {from}; use CAST",
            to.name,
            sql_name(to.data_type)
        ),
    )
}

/// `array` as values of column `to`.
///
/// # Errors
/// As the module says; the message names the column.
pub(crate) fn assign(array: &ArrayRef, to: &Column) -> Result<ArrayRef> {
    way(array.data_type(), to).ok_or_else(|| mismatch(array.data_type(), to))?;
    convert(array, to.data_type).map_err(|e| e.context(format_args!("column \"{}\"", to.name)))
}

#[cfg(test)]
mod tests;
