//! Assignment casts: a computed value becomes a value of a column, as PostgreSQL does it in INSERT and UPDATE.
//!
//! Numbers become numbers, dates and timestamps each other, anything text, and a string literal whatever it spells; text that is
//! no literal does not turn into another type by itself (42804). How they are converted, and what is out of range, is of [`convert`]. Lengths and NOT NULL are checked by storage. The cast is a function, too (`assignment_function`).

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::{Error, Result};

use super::convert;
use crate::sqlstate;
use crate::types::{UUID, sql_name, sql_words};

/// Whether values of type `from` become values of type `to` by themselves; a string `literal` spells values of every type.
fn fits(from: &ArrowType, literal: bool, to: DataType) -> bool {
    match from {
        ArrowType::Null => true,
        ArrowType::Dictionary(_, value) => fits(value, literal, to),
        from if *from == to.arrow() => true,
        from if from.is_string() => literal || to.is_text(),
        from if *from == UUID => to.is_text(),
        from if from.is_nested() => false,
        from if from.is_binary() => to == DataType::Bytea,
        _ if to.is_text() => true,
        from if from.is_numeric() => to.arrow().is_numeric(),
        ArrowType::Time32(_) | ArrowType::Time64(_) => to == DataType::Time,
        ArrowType::Timestamp(..) if to == DataType::Time => true,
        ArrowType::Date32 | ArrowType::Date64 | ArrowType::Timestamp(..) => {
            matches!(to, DataType::Date | DataType::Timestamp | DataType::TimestampTz)
        }
        _ => false,
    }
}

/// Whether values of type `from` may be assigned to `to`; `literal` says that they are string literals.
///
/// # Errors
/// 42804.
pub fn check(from: &ArrowType, literal: bool, to: &Column) -> Result<()> {
    if fits(from, literal, to.data_type) { Ok(()) } else { Err(mismatch(from, to)) }
}

fn mismatch(from: &ArrowType, to: &Column) -> Error {
    let from = match from {
        t if t.is_string() => "text".to_string(),
        ArrowType::Int64 => "bigint".into(),
        ArrowType::Float64 => "double precision".into(),
        ArrowType::Boolean => "boolean".into(),
        t if *t == UUID => "uuid".into(),
        ArrowType::Time32(_) | ArrowType::Time64(_) => "time".into(),
        other => sql_words(&other.to_string()).to_lowercase(),
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
pub fn assign(array: &ArrayRef, to: &Column) -> Result<ArrayRef> {
    check(array.data_type(), true, to)?;
    convert(array, to.data_type).map_err(|e| e.context(format_args!("column \"{}\"", to.name)))
}

#[cfg(test)]
#[path = "assignment_tests.rs"]
mod tests;
