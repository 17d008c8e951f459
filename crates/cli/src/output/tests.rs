use std::io;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int64Array, NullArray, RecordBatch, StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema};
use mainstem::Error;

use super::{Format, Stopped, Style, write_rows};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// Values of every kind, twice in a row, and NULL.
fn values() -> RecordBatch {
    batch(vec![
        ("n", Arc::new(Int64Array::from(vec![Some(-7), None])) as ArrayRef),
        ("t", Arc::new(StringViewArray::from(vec![Some("a,\"b\""), None]))),
        ("m", Arc::new(Decimal128Array::from(vec![Some(-5), None]).with_precision_and_scale(15, 2).unwrap())),
        ("d", Arc::new(Date32Array::from(vec![Some(10_957), None]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None]))),
    ])
}

fn plain(format: Format) -> Style {
    Style { format, expanded: false }
}

fn written(batches: &[RecordBatch], format: Format) -> String {
    let mut out = Vec::new();
    let schema = batches[0].schema();
    write_rows(&schema, &mut batches.iter().cloned().map(Ok), plain(format), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The CSV text of the one value of `array`.
fn text(array: impl arrow::array::Array + 'static) -> String {
    let csv = written(&[batch(vec![("x", Arc::new(array))])], Format::Csv);
    csv.strip_prefix("x\n").unwrap().strip_suffix('\n').unwrap().to_owned()
}

#[test]
fn csv_tells_null_from_the_empty_text_and_quotes_what_it_must() {
    assert_eq!(written(&[values()], Format::Csv), "n,t,m,d,b\n-7,\"a,\"\"b\"\"\",-0.05,2000-01-01,true\n,,,,\n");
    let texts = StringViewArray::from(vec!["", "a\nb", "a b", "\t", "\r"]);
    let csv = written(&[batch(vec![("a,b", Arc::new(texts))])], Format::Csv);
    assert_eq!(csv, "\"a,b\"\n\"\"\n\"a\nb\"\na b\n\t\n\"\r\"\n");
}

#[test]
fn a_null_of_no_type_is_a_null() {
    let nulls = batch(vec![("x", Arc::new(NullArray::new(1)) as ArrayRef), ("n", Arc::new(Int64Array::from(vec![1])))]);
    assert_eq!(written(std::slice::from_ref(&nulls), Format::Csv), "x,n\n,1\n");
    assert_eq!(written(&[nulls], Format::Tsv), "x\tn\n\t1\n");
}

#[test]
fn tsv_quotes_tabs_and_not_commas() {
    let texts = StringViewArray::from(vec!["a,b", "a\tb"]);
    assert_eq!(written(&[batch(vec![("x", Arc::new(texts))])], Format::Tsv), "x\na,b\n\"a\tb\"\n");
    assert_eq!(written(&[values()], Format::Tsv).lines().last(), Some("\t\t\t\t"));
}

#[test]
fn json_tells_columns_of_one_name_apart() {
    let one = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    let fields = ["id", "id", "id_2", "id"].map(|name| Field::new(name, DataType::Int64, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let repeated = RecordBatch::try_new(schema, vec![one(1), one(2), one(3), one(4)]).unwrap();
    assert_eq!(written(&[repeated], Format::Jsonl), "{\"id\":1,\"id_2_\":2,\"id_2\":3,\"id_4\":4}\n");
}

#[test]
fn json_has_null_and_exact_numbers() {
    let first = r#"{"n":-7,"t":"a,\"b\"","m":-0.05,"d":"2000-01-01","b":true}"#;
    let second = r#"{"n":null,"t":null,"m":null,"d":null,"b":null}"#;
    assert_eq!(written(&[values()], Format::Jsonl), format!("{first}\n{second}\n"));
    assert_eq!(written(&[values()], Format::Json), format!("[{first},{second}]\n"));
}

#[test]
fn json_has_texts_for_what_it_has_no_word_for() {
    let floats =
        Float64Array::from(vec![Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(0.1), None]);
    let reals = Float32Array::from(vec![Some(f32::NAN), Some(1.0), Some(f32::NEG_INFINITY), Some(0.1), None]);
    let bytes = BinaryViewArray::from(vec![Some(&b"\x00\xff"[..]), Some(b""), None, None, None]);
    let numbers = batch(vec![("f", Arc::new(floats) as ArrayRef), ("r", Arc::new(reals)), ("b", Arc::new(bytes))]);
    let expected = [
        r#"{"f":"NaN","r":"NaN","b":"\\x00ff"}"#,
        r#"{"f":"Infinity","r":1.0,"b":"\\x"}"#,
        r#"{"f":"-Infinity","r":"-Infinity","b":null}"#,
        r#"{"f":0.1,"r":0.1,"b":null}"#,
        r#"{"f":null,"r":null,"b":null}"#,
    ];
    assert_eq!(written(std::slice::from_ref(&numbers), Format::Jsonl), expected.join("\n") + "\n");
    assert_eq!(written(&[numbers], Format::Json), format!("[{}]\n", expected.join(",")));
}

#[test]
fn json_writes_times_as_postgresql_does() {
    let time = Arc::new(Time64MicrosecondArray::from(vec![Some(500_000), Some(0), None]));
    let moments = || TimestampMicrosecondArray::from(vec![Some(1_500_000), Some(0), None]);
    let table = batch(vec![
        ("t", time as ArrayRef),
        ("m", Arc::new(moments())),
        ("z", Arc::new(moments().with_timezone("+00:00"))),
    ]);
    let expected = "\
{\"t\":\"00:00:00.5\",\"m\":\"1970-01-01T00:00:01.5\",\"z\":\"1970-01-01T00:00:01.5+00:00\"}
{\"t\":\"00:00:00\",\"m\":\"1970-01-01T00:00:00\",\"z\":\"1970-01-01T00:00:00+00:00\"}
{\"t\":null,\"m\":null,\"z\":null}
";
    assert_eq!(written(&[table], Format::Jsonl), expected);
}

#[test]
fn results_in_several_batches_and_results_without_rows_are_whole() {
    let numbers = |numbers: Vec<i64>| batch(vec![("n", Arc::new(Int64Array::from(numbers)) as ArrayRef)]);
    let parts = [numbers(vec![1]), numbers(vec![]), numbers(vec![2, 3])];
    assert_eq!(written(&parts, Format::Csv), "n\n1\n2\n3\n");
    assert_eq!(written(&parts, Format::Json), "[{\"n\":1},{\"n\":2},{\"n\":3}]\n");
    assert_eq!(written(&parts, Format::None), "");
    assert_eq!(written(&parts[1..2], Format::Csv), "n\n");
    assert_eq!(written(&parts[1..2], Format::Json), "[]\n");
    assert_eq!(written(&parts[1..2], Format::Jsonl), "");
    assert_eq!(written(&parts[1..2], Format::Box), "┌───┐\n│ n │\n├───┤\n└───┘\n(0 rows)\n");
}

#[test]
fn a_box_counts_what_it_does_not_draw() {
    let numbers =
        |range: std::ops::Range<i64>| batch(vec![("n", Arc::new(Int64Array::from_iter_values(range)) as ArrayRef)]);
    let text = written(&[numbers(0..1_500), numbers(1_500..2_500), numbers(2_500..2_501)], Format::Box);
    assert!(text.contains("│ 1999 │") && !text.contains("│ 2000 │"), "{text}");
    assert!(text.ends_with("(2501 rows, the first 2000 shown)\n"), "{text}");
}

#[test]
fn a_box_is_straight_whatever_is_in_it() {
    let texts = StringViewArray::from(vec![Some("漢字"), Some("é"), None, Some("a\nb\u{1b}")]);
    let numbers = Int64Array::from(vec![Some(1), None, Some(1_000), Some(22)]);
    let table = batch(vec![("t", Arc::new(texts)), ("n", Arc::new(numbers))]);
    let expected = "\
┌────────────┬──────┐
│ t          │    n │
├────────────┼──────┤
│ 漢字       │    1 │
│ é          │ NULL │
│ NULL       │ 1000 │
│ a\\nb\\u{1b} │   22 │
└────────────┴──────┘
(4 rows)
";
    assert_eq!(written(&[table], Format::Box), expected);
}

#[test]
fn expanded_rows_stand_below_one_another() {
    let texts = StringViewArray::from(vec![Some("漢字"), None, Some("a\nb")]);
    let numbers = Int64Array::from(vec![Some(1), None, Some(22)]);
    let table = batch(vec![("t", Arc::new(texts) as ArrayRef), ("a_long_name_of_a_column", Arc::new(numbers))]);
    let mut out = Vec::new();
    let rows = &mut [table.slice(0, 1), table.slice(1, 2)].map(Ok).into_iter();
    write_rows(&table.schema(), rows, Style { format: Format::Box, expanded: true }, &mut out).unwrap();
    let expected = "\
─[ RECORD 1 ]────────────┬──────
 t                       │ 漢字
 a_long_name_of_a_column │ 1
─[ RECORD 2 ]────────────┬──────
 t                       │ NULL
 a_long_name_of_a_column │ NULL
─[ RECORD 3 ]────────────┬──────
 t                       │ a\\nb
 a_long_name_of_a_column │ 22
(3 rows)
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let short = batch(vec![("n", Arc::new(Int64Array::from_iter_values(0..2_500)) as ArrayRef)]);
    let mut out = Vec::new();
    let rows = &mut std::iter::once(Ok(short.clone()));
    write_rows(&short.schema(), rows, Style { format: Format::Box, expanded: true }, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.starts_with("─[ RECORD 1 ]┬───\n n           │ 0\n─[ RECORD 2 ]┬───\n"), "{}", &out[..200]);
    assert!(out.ends_with("│ 1999\n(2500 rows, the first 2000 shown)\n"));
    // Other formats know nothing of it.
    let mut out = Vec::new();
    let rows = &mut std::iter::once(Ok(values()));
    write_rows(&values().schema(), rows, Style { format: Format::Csv, expanded: true }, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), written(&[values()], Format::Csv));
}

#[test]
fn floats_have_the_fewest_digits_that_read_back() {
    let cases = [
        (0.1, "0.1"),
        (1.0, "1.0"),
        (-0.0, "0.0"),
        (1e16, "1e16"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
    ];
    for (number, expected) in cases {
        assert_eq!(text(Float64Array::from(vec![number])), expected);
    }
}

#[test]
fn times_have_no_zeros_behind_and_name_their_zone() {
    let time = |micros: i64| text(TimestampMicrosecondArray::from(vec![micros]));
    assert_eq!(time(0), "1970-01-01 00:00:00");
    assert_eq!(time(50_000), "1970-01-01 00:00:00.05");
    assert_eq!(time(1_200_000_000), "1970-01-01 00:20:00");
    assert_eq!(time(-1), "1969-12-31 23:59:59.999999");
    let zoned = |micros: i64, zone: &str| text(TimestampMicrosecondArray::from(vec![micros]).with_timezone(zone));
    assert_eq!(zoned(0, "+00:00"), "1970-01-01 00:00:00+00");
    assert_eq!(zoned(500_000, "-05:30"), "1969-12-31 18:30:00.5-05:30");
}

#[test]
fn years_of_other_than_four_digits_are_written_as_postgresql_does() {
    let days = |days: i32| text(Date32Array::from(vec![days]));
    assert_eq!((days(-719_162), days(-719_163)), ("0001-01-01".to_owned(), "0001-12-31 BC".to_owned()));
    assert_eq!((days(2_932_896), days(2_932_897)), ("9999-12-31".to_owned(), "10000-01-01".to_owned()));
    let time = |micros: i64| text(TimestampMicrosecondArray::from(vec![micros]));
    assert_eq!(time(-719_162 * 86_400_000_000 - 1), "0001-12-31 23:59:59.999999 BC");
    assert_eq!(time(2_932_897 * 86_400_000_000), "10000-01-01 00:00:00");
    let zoned = TimestampMicrosecondArray::from(vec![2_932_897 * 86_400_000_000]).with_timezone("+00:00");
    assert_eq!(text(zoned), "10000-01-01 00:00:00+00");
}

#[test]
fn bytes_are_hexadecimal() {
    assert_eq!(text(BinaryArray::from(vec![&b"\x00\xff"[..]])), "\\x00ff");
    assert_eq!(text(BinaryArray::from(vec![&b""[..]])), "\\x");
}

/// A reader that has gone away.
struct Gone;

impl io::Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_went_away_is_told_from_a_failed_statement() {
    for format in [Format::Box, Format::Csv, Format::Tsv, Format::Json, Format::Jsonl] {
        let rows = &mut std::iter::once(Ok(values()));
        let stopped = write_rows(&values().schema(), rows, plain(format), &mut Gone).unwrap_err();
        let Stopped::Output(error) = stopped else { panic!("{format:?}: {stopped:?}") };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format:?}");
    }
}

#[test]
fn rows_before_a_failure_are_written() {
    for format in [Format::Csv, Format::Tsv, Format::Jsonl, Format::None, Format::Box, Format::Json] {
        let rows = &mut [Ok(values()), Err(Error::invalid("22012", "division by zero"))].into_iter();
        let mut out = Vec::new();
        let stopped = write_rows(&values().schema(), rows, plain(format), &mut out);
        let Err(Stopped::Statement { error, .. }) = stopped else { panic!() };
        assert_eq!(error.sqlstate(), "22012");
        let streams = matches!(format, Format::Csv | Format::Tsv | Format::Jsonl);
        assert!(!streams || !out.is_empty(), "{format:?}");
    }
}
