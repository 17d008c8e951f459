//! Assignment casts: a computed value becomes a value of a column, as PostgreSQL does it in INSERT and UPDATE.
//!
//! Numbers become numbers, dates and timestamps each other, anything text, and a string literal whatever it spells;
//! text that is no literal does not turn into another type by itself (42804). How they are converted, and what is out
//! of range, is of [`convert`]. Lengths and NOT NULL are checked by storage. The cast is a function, too
//! (`assignment_function`).

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::{Error, Result};

use super::convert;
use crate::sqlstate;
use crate::types::{UUID, sql_name, sql_words};

/// Whether values of type `from` become values of type `to` by themselves; a string `literal` spells values of every
/// type.
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
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::sync::Arc;

    use arrow::array::{
        Array, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
        TimestampMicrosecondArray, UInt64Array,
    };
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    use mainstem_storage::ids::ColumnId;

    use super::*;

    fn column(data_type: DataType) -> Column {
        Column::new(ColumnId(0), "c", data_type, true)
    }

    /// The assigned values as text, or the SQLSTATE.
    fn assigned(array: ArrayRef, to: DataType) -> Result<Vec<String>, &'static str> {
        let column = column(to);
        let result = assign(&array, &column).map_err(|e| e.sqlstate())?;
        assert_eq!(*result.data_type(), to.arrow());
        let options = FormatOptions::default().with_null("NULL");
        let formatter = ArrayFormatter::try_new(result.as_ref(), &options).unwrap();
        Ok((0..result.len()).map(|row| formatter.value(row).to_string()).collect())
    }

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn ok(values: &[&str]) -> Result<Vec<String>, &'static str> {
        Ok(values.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn numbers_are_rounded_and_in_range() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5, -0.5, -1.5]));
        assert_eq!(assigned(floats, DataType::Integer), ok(&["0", "2", "2", "0", "-2"]));
        let decimals: ArrayRef =
            Arc::new(Decimal128Array::from(vec![5_i128, 15, 25, -5, -15]).with_precision_and_scale(5, 1).unwrap());
        assert_eq!(assigned(decimals, DataType::BigInt), ok(&["1", "2", "3", "-1", "-2"]));
        let edge: ArrayRef = Arc::new(Int64Array::from(vec![32_767, -32_768]));
        assert_eq!(assigned(edge, DataType::SmallInt), ok(&["32767", "-32768"]));
        for (array, to) in [
            (Arc::new(Int64Array::from(vec![32_768])) as ArrayRef, DataType::SmallInt),
            (Arc::new(Float64Array::from(vec![9.3e18])), DataType::BigInt),
            (Arc::new(Float64Array::from(vec![f64::NAN])), DataType::Integer),
            (Arc::new(Float64Array::from(vec![1e300])), DataType::Real),
            (Arc::new(UInt64Array::from(vec![u64::MAX])), DataType::BigInt),
            (Arc::new(Int64Array::from(vec![1_000])), DataType::Decimal { precision: 3, scale: 1 }),
        ] {
            assert_eq!(assigned(array, to), Err("22003"), "{to:?}");
        }
    }

    #[test]
    fn text_spells_values() {
        for (to, text, expected) in [
            (DataType::Integer, " 42 ", "42"),
            (DataType::Decimal { precision: 6, scale: 2 }, "1.5", "1.50"),
            (DataType::Double, "NaN", "NaN"),
            (DataType::Double, "Infinity", "inf"),
            (DataType::Date, "2024-02-29", "2024-02-29"),
            (DataType::Timestamp, "2024-02-29 12:00:00.5", "2024-02-29T12:00:00.500"),
            (DataType::Bytea, "\\x00fF", "00ff"),
            (DataType::Bytea, "ab\u{e4}", "6162c3a4"),
            (DataType::Boolean, "t", "true"),
        ] {
            assert_eq!(assigned(texts(&[text]), to), ok(&[expected]), "{text}");
        }
        for (to, text, code) in [
            (DataType::Integer, "x", "22P02"),
            (DataType::Integer, "", "22P02"),
            (DataType::Integer, "99999999999", "22003"),
            (DataType::Integer, "1.5", "22P02"),
            (DataType::Decimal { precision: 3, scale: 1 }, "1000", "22003"),
            (DataType::Double, "1e999", "22003"),
            (DataType::Date, "2024-02-30", "22008"),
            (DataType::Timestamp, "noon", "22007"),
            (DataType::Bytea, "\\x0", "22023"),
            (DataType::Bytea, "a\\001", "22P02"),
            (DataType::Boolean, "maybe", "22P02"),
        ] {
            assert_eq!(assigned(texts(&[text]), to), Err(code), "{text}");
        }
    }

    #[test]
    fn days_are_floored_and_anything_becomes_text() {
        let before: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-1, 86_400_000_000]));
        assert_eq!(assigned(before, DataType::Date), ok(&["1969-12-31", "1970-01-02"]));
        let text = DataType::Text { max_chars: None };
        assert_eq!(assigned(Arc::new(Int64Array::from(vec![Some(7), None])), text), ok(&["7", "NULL"]));
        assert_eq!(assigned(Arc::new(Date32Array::from(vec![0])), text), ok(&["1970-01-01"]));
    }

    #[test]
    fn types_that_do_not_fit_are_refused() {
        let refused = |from: ArrowType, literal, to| check(&from, literal, &column(to)).map_err(|e| e.sqlstate());
        assert_eq!(refused(ArrowType::Utf8, false, DataType::Integer), Err("42804"));
        assert_eq!(refused(ArrowType::Utf8, true, DataType::Integer), Ok(()));
        assert_eq!(refused(ArrowType::Boolean, false, DataType::Integer), Err("42804"));
        assert_eq!(refused(ArrowType::Int64, false, DataType::Boolean), Err("42804"));
        assert_eq!(refused(ArrowType::Int64, false, DataType::Date), Err("42804"));
        assert_eq!(refused(ArrowType::Date32, false, DataType::Timestamp), Ok(()));
        assert_eq!(refused(ArrowType::Binary, false, DataType::Text { max_chars: None }), Err("42804"));
        assert_eq!(refused(ArrowType::Null, false, DataType::Bytea), Ok(()));
        assert_eq!(assigned(Arc::new(BooleanArray::from(vec![true])), DataType::Double), Err("42804"));
    }
}
