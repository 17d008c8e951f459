#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use arrow::array::{BinaryArray, Decimal128Array, Float32Array, Float64Array, StringArray, TimestampMicrosecondArray};
use arrow::util::display::ArrayFormatter;

use super::*;

/// The converted values as text, or the SQLSTATE.
fn converted(array: &ArrayRef, to: DataType) -> Result<Vec<String>, &'static str> {
    let result = convert(array, to).map_err(|e| e.sqlstate())?;
    assert_eq!(*result.data_type(), to.arrow());
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(result.as_ref(), &options).unwrap();
    Ok((0..result.len()).map(|row| formatter.value(row).to_string()).collect())
}

const TEXT: DataType = DataType::Text { max_chars: None };

#[test]
fn datetimes_as_people_write_them() {
    for (text, expected) in [
        ("2024-01-05 10:00", "2024-01-05T10:00:00"),
        ("2024-01-05 9:05", "2024-01-05T09:05:00"),
        ("2024-1-5", "2024-01-05T00:00:00"),
        ("2024/01/05 10:00:01.5", "2024-01-05T10:00:01.500"),
        ("20240105", "2024-01-05T00:00:00"),
        ("20240105 1:2:3", "2024-01-05T01:02:03"),
        ("2024-01-05T10:00", "2024-01-05T10:00:00"),
        ("2024-01-05 10:00:00+02", "2024-01-05T10:00:00"),
        ("2024-01-05 10:00 -05:30", "2024-01-05T10:00:00"),
        ("2024-01-05T10:00:00Z", "2024-01-05T10:00:00"),
    ] {
        let array: ArrayRef = Arc::new(StringArray::from(vec![Some("2024-01-05"), Some(text), None]));
        let expected = ["2024-01-05T00:00:00", expected, "NULL"].map(str::to_owned).to_vec();
        assert_eq!(converted(&array, DataType::Timestamp), Ok(expected), "{text}");
    }
    let zoned: ArrayRef = Arc::new(StringArray::from(vec!["2024-01-05 10:00+02", "2024-01-05 10:00 Z"]));
    let expected = vec!["2024-01-05T08:00:00Z".to_owned(), "2024-01-05T10:00:00Z".to_owned()];
    assert_eq!(converted(&zoned, DataType::TimestampTz), Ok(expected));
    for (text, code) in [
        ("noon", "22007"),
        ("", "22007"),
        ("2024-01", "22007"),
        ("2024-01-05 x", "22007"),
        ("2024-02-30", "22008"),
        ("2024-13-01 10:00", "22008"),
        ("2024-01-05 25:00", "22008"),
        ("2024-01-05 10:61", "22008"),
    ] {
        let array: ArrayRef = Arc::new(StringArray::from(vec![text]));
        assert_eq!(converted(&array, DataType::Timestamp), Err(code), "{text}");
    }
}

#[test]
fn floats_as_text() {
    for (value, expected) in [
        (100.0, "100"),
        (0.5, "0.5"),
        (-0.0, "-0"),
        (1.0 / 3.0, "0.3333333333333333"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-123.25, "-123.25"),
        (1e14, "100000000000000"),
        (1e15, "1e+15"),
        (1.5e300, "1.5e+300"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![value]));
        assert_eq!(converted(&array, TEXT), Ok(vec![expected.to_owned()]), "{value}");
    }
    let reals: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 100_000.0, 1e6]));
    assert_eq!(converted(&reals, TEXT), Ok(["0.1", "100000", "1e+06"].map(str::to_owned).to_vec()));
}

#[test]
fn bytes_as_text_and_back() {
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&[0_u8, 0xff][..]), None, Some(&[])]));
    assert_eq!(converted(&bytes, TEXT), Ok(["\\x00ff", "NULL", "\\x"].map(str::to_owned).to_vec()));
    let back = convert(&convert(&bytes, TEXT).unwrap(), DataType::Bytea).unwrap();
    assert_eq!(back.as_binary_view().iter().collect::<Vec<_>>(), [Some(&[0_u8, 0xff][..]), None, Some(&[][..])]);
}

#[test]
fn numbers_are_rounded() {
    let decimals = Decimal128Array::from(vec![25_i128, 35, -25, 24]).with_precision_and_scale(6, 1).unwrap();
    let decimals: ArrayRef = Arc::new(decimals);
    assert_eq!(converted(&decimals, DataType::Integer), Ok(["3", "4", "-3", "2"].map(str::to_owned).to_vec()));
    let wide = DataType::Decimal { precision: 6, scale: 0 };
    assert_eq!(converted(&decimals, wide), Ok(["3", "4", "-3", "2"].map(str::to_owned).to_vec()));
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![2.5, 3.5, -2.5]));
    assert_eq!(converted(&doubles, DataType::BigInt), Ok(["2", "4", "-2"].map(str::to_owned).to_vec()));
    let large: ArrayRef = Arc::new(Float64Array::from(vec![1e300]));
    assert_eq!(converted(&large, DataType::Real), Err("22003"));
    assert_eq!(converted(&large, DataType::BigInt), Err("22003"));
}

#[test]
fn a_day_before_1970() {
    let noon: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-1, -MICROS_OF_DAY]));
    assert_eq!(converted(&noon, DataType::Date), Ok(["1969-12-31", "1969-12-31"].map(str::to_owned).to_vec()));
}

#[test]
fn floats_become_decimals_by_their_digits() {
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![
        Some(0.1),
        Some(1.1),
        Some(-2.5),
        Some(1e20),
        Some(0.0),
        Some(123_456_789.123_456_78),
        Some(1e-300),
        None,
    ]));
    let expected = [
        "0.10000000000000000",
        "1.10000000000000000",
        "-2.50000000000000000",
        "100000000000000000000.00000000000000000",
        "0.00000000000000000",
        "123456789.12345700000000000",
        "0.00000000000000000",
        "NULL",
    ];
    assert_eq!(converted(&doubles, decimal(38, 17)), Ok(expected.map(str::to_owned).to_vec()));
    let rounded: ArrayRef = Arc::new(Float64Array::from(vec![2.5, -2.5, 2.4, 0.05, 0.5, 0.49]));
    assert_eq!(converted(&rounded, decimal(3, 0)), Ok(["3", "-3", "2", "0", "1", "0"].map(str::to_owned).to_vec()));
    let reals: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 123_456.79]));
    assert_eq!(converted(&reals, decimal(20, 4)), Ok(["0.1000", "123457.0000"].map(str::to_owned).to_vec()));
    for out in [1e21, 999.5, f64::NAN, f64::INFINITY, f64::MAX] {
        let out: ArrayRef = Arc::new(Float64Array::from(vec![out]));
        assert_eq!(converted(&out, decimal(3, 0)), Err("22003"));
    }
}

#[test]
fn decimals_with_an_exponent() {
    let decimal = DataType::Decimal { precision: 10, scale: 5 };
    let texts =
        ["1e3", "-1.5e-3", " 2.5E+1 ", "0e999999999999", "1e-400", "12345e-2", ".5e1", "1e-99999999999999999999"];
    let expected = ["1000.00000", "-0.00150", "25.00000", "0.00000", "0.00000", "123.45000", "5.00000", "0.00000"];
    let array: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    assert_eq!(converted(&array, decimal), Ok(expected.map(str::to_owned).to_vec()));
    for (text, code) in [
        ("1e5", "22003"),
        ("-1e300", "22003"),
        ("1e99999999999999999999", "22003"),
        ("e5", "22P02"),
        ("1e", "22P02"),
        ("1e+", "22P02"),
        ("1e5.5", "22P02"),
        ("1.2.3e1", "22P02"),
        ("1ee5", "22P02"),
        ("--1e1", "22P02"),
    ] {
        let array: ArrayRef = Arc::new(StringArray::from(vec![text]));
        assert_eq!(converted(&array, decimal), Err(code), "{text}");
    }
    let whole: ArrayRef = Arc::new(StringArray::from(vec!["1e3"]));
    assert_eq!(converted(&whole, DataType::Integer), Err("22P02"));
}
