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
        (DataType::Bytea, "a\\\\b\\001", "615c6201"),
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
        (DataType::Bytea, "\\", "22P02"),
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
