//! The serial writer is the oracle: text by text, byte by byte.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, ListArray, StringArray, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::Int32Type;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use super::*;
use mainstem_postgres::cast::inside;

/// The rows of `batch` as they were written before: each value a text, each text looked at byte by byte.
fn serial(batch: &RecordBatch, format: &LineFormat) -> Vec<u8> {
    let columns: Vec<StringViewArray> = batch.columns().iter().map(|column| inside(column).unwrap()).collect();
    let mut out = Vec::new();
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                out.push(format.delimiter());
            }
            match column.iter().nth(row).unwrap() {
                None => out.extend_from_slice(format.null().as_bytes()),
                Some(text) => match format {
                    LineFormat::Csv(options) => serial_quote(text, options, &mut out),
                    LineFormat::Text(options) => escape(text, options, &mut out),
                },
            }
        }
        out.push(b'\n');
    }
    out
}

fn serial_quote(text: &str, options: &CsvOptions, out: &mut Vec<u8>) {
    let CsvOptions { delimiter, quote, escape, ref null, .. } = *options;
    let special = |b: u8| b == delimiter || b == quote || b == escape || b == b'\n' || b == b'\r';
    let quoted = text == null || text == "\\." || text.starts_with('\u{feff}') || text.bytes().any(special);
    if !quoted {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(quote);
    for byte in text.bytes() {
        if byte == quote || byte == escape {
            out.push(escape);
        }
        out.push(byte);
    }
    out.push(quote);
}

/// Text with what means something in lines more often than by chance.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("\\.".to_owned()),
        Just("\\N".to_owned()),
        Just("NULL".to_owned()),
        Just("\u{feff}mark".to_owned()),
        "[a-z ]{0,40}",
        "[,\"'\\\\;|\t\n\r\u{8}\u{b}\u{c}.a1é\u{1F600}-]{0,24}",
        any::<String>(),
    ]
}

const ROWS: usize = 24;
/// Year 5000 and some before our era.
const DAYS: std::ops::Range<i32> = -1_100_000..1_100_000;
const MICROS: std::ops::Range<i64> = -95_000_000_000_000_000..95_000_000_000_000_000;

fn nulls<T: std::fmt::Debug + Clone>(values: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<Option<T>>> {
    vec(weighted(0.8, values), ROWS)
}

fn array<A: arrow::array::Array + 'static>(values: A) -> ArrayRef {
    Arc::new(values)
}

/// A column of some type.
fn column() -> BoxedStrategy<ArrayRef> {
    let decimals = (0..=38_u8, 0..=38_i8).prop_flat_map(|(extra, scale)| {
        let precision = (scale.unsigned_abs() + extra).clamp(1, 38);
        let most = 10_i128.pow(precision.into()) - 1;
        nulls(prop_oneof![-most..=most, -1_000..=1_000_i128]).prop_map(move |values| {
            let in_range = values.into_iter().map(|value| value.map(|value| value.clamp(-most, most)));
            array(in_range.collect::<Decimal128Array>().with_precision_and_scale(precision, scale).unwrap())
        })
    });
    let zoned = |values: Vec<Option<i64>>| TimestampMicrosecondArray::from(values).with_timezone("+00:00");
    prop_oneof![
        nulls(any::<bool>()).prop_map(|values| array(BooleanArray::from(values))),
        nulls(any::<i16>()).prop_map(|values| array(Int16Array::from(values))),
        nulls(any::<i32>()).prop_map(|values| array(Int32Array::from(values))),
        nulls(any::<i64>()).prop_map(|values| array(Int64Array::from(values))),
        nulls(any::<u64>()).prop_map(|values| array(UInt64Array::from(values))),
        nulls(any::<f32>()).prop_map(|values| array(Float32Array::from(values))),
        nulls(prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), -1e3..1e3])
            .prop_map(|values| array(Float64Array::from(values))),
        decimals,
        nulls(prop_oneof![DAYS, -3_000_000..3_000_000]).prop_map(|values| array(Date32Array::from(values))),
        nulls(0..86_400_000_000_i64).prop_map(|values| array(Time64MicrosecondArray::from(values))),
        nulls(MICROS).prop_map(|values| array(TimestampMicrosecondArray::from(values))),
        nulls(MICROS).prop_map(move |values| array(zoned(values))),
        nulls(any::<i64>()).prop_map(|values| array(TimestampNanosecondArray::from(values))),
        nulls(any::<[u8; 16]>()).prop_map(|values| {
            array(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 16).unwrap())
        }),
        nulls(vec(any::<u8>(), 0..9)).prop_map(|values| array(BinaryViewArray::from_iter(values))),
        nulls(hostile()).prop_map(|values| array(StringViewArray::from_iter(values))),
        nulls(hostile()).prop_map(|values| array(StringArray::from(values))),
        nulls(vec(weighted(0.8, any::<i32>()), 0..4)).prop_map(|values| array(ListArray::from_iter_primitive::<
            Int32Type,
            _,
            _,
        >(values))),
    ]
    .boxed()
}

fn format() -> impl Strategy<Value = LineFormat> {
    let csv = (
        any::<bool>(),
        prop::sample::select(&b",;\t|-1.:x~"[..]),
        prop::sample::select(&b"\"'\"\"e0+"[..]),
        prop::sample::select(&b"\"'\\\\t5"[..]),
        prop::sample::select(&["", "", "NULL", "\\N", "t", "0", "NaN", "-"][..]),
    );
    let csv = csv.prop_map(|(same, delimiter, quote, escape, null)| {
        let escape = if same { quote } else { escape };
        LineFormat::Csv(CsvOptions {
            header: false,
            delimiter,
            quote,
            escape,
            null: null.into(),
            ..CsvOptions::default()
        })
    });
    let text = (prop::sample::select(&b"\t|,;-:N "[..]), prop::sample::select(&["\\N", "", "NULL", "1"][..]));
    let text = text.prop_map(|(delimiter, null)| {
        LineFormat::Text(TextOptions { delimiter, null: null.into(), ..TextOptions::default() })
    });
    prop_oneof![csv, text]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn rows_are_those_of_the_serial_writer(columns in vec(column(), 1..6), format in format(), from in 0..ROWS) {
        let names = (0..columns.len()).map(|n| format!("c{n}"));
        let batch = RecordBatch::try_from_iter(names.zip(columns)).unwrap();
        // Parts of arrays too.
        for batch in [batch.clone(), batch.slice(from, ROWS - from)] {
            let mut rows = b"before\n".to_vec();
            format.rows(&batch, &mut rows).unwrap();
            let expected = serial(&batch, &format);
            prop_assert_eq!(rows.strip_prefix(b"before\n").unwrap(), expected.as_slice());
        }
    }
}
