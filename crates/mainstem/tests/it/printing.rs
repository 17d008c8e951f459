//! How values are printed in `slt/`: see `slt/README.md`.

use mainstem::arrow::array::{Array, AsArray, RecordBatch};
use mainstem::arrow::datatypes::{DataType, Float32Type, Float64Type};
use mainstem::arrow::util::display::{ArrayFormatter, FormatOptions};

/// The rows of `batch`, each value as text.
pub fn printed(batch: &RecordBatch) -> Vec<Vec<String>> {
    let batch = mainstem::with_composed_as_text(batch.clone()).unwrap();
    let options = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.6f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.6f"));
    (0..batch.num_rows())
        .map(|row| {
            batch
                .columns()
                .iter()
                .map(|column| {
                    if column.is_null(row) {
                        return "NULL".to_string();
                    }
                    let text = || ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string();
                    match column.data_type() {
                        DataType::Float32 => float(f64::from(column.as_primitive::<Float32Type>().value(row)), || {
                            format!("{:?}", column.as_primitive::<Float32Type>().value(row))
                        }),
                        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row), || {
                            format!("{:?}", column.as_primitive::<Float64Type>().value(row))
                        }),
                        DataType::Timestamp(_, None) => without_zeros(&text()),
                        DataType::Timestamp(_, Some(_)) => format!("{}+00", without_zeros(&text())),
                        DataType::Time64(_) => without_zeros(&text()),
                        DataType::FixedSizeBinary(16) => {
                            let bytes = column.as_fixed_size_binary().value(row);
                            mainstem::Uuid::from(<[u8; 16]>::try_from(bytes).unwrap()).to_string()
                        }
                        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => format!("\\x{}", text()),
                        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => match text() {
                            empty if empty.is_empty() => "(empty)".to_string(),
                            text => text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t"),
                        },
                        _ => text(),
                    }
                })
                .collect()
        })
        .collect()
}

fn float(value: f64, text: impl Fn() -> String) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value == f64::INFINITY {
        "Infinity".into()
    } else if value == f64::NEG_INFINITY {
        "-Infinity".into()
    } else if value == 0.0 {
        "0.0".into()
    } else {
        text()
    }
}

/// Drops the fraction's trailing zeros, and the point if nothing is left.
fn without_zeros(text: &str) -> String {
    match text.split_once('.') {
        Some((_, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit()) => {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
        _ => text.to_string(),
    }
}

/// The letter of a column's type in a `query` record: `I` integers, `R` floats and decimals, `T` all others.
pub fn letter(data_type: &DataType) -> char {
    match data_type {
        integer if integer.is_integer() => 'I',
        number if number.is_numeric() => 'R',
        _ => 'T',
    }
}
