#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use mainstem_storage::schema::DataType;
use proptest::prelude::*;

use super::value_type::{ColumnTypes, ValueType};
use super::*;

fn of(text: &str, known: &Known) -> Result<Detected> {
    let bytes = text.as_bytes().to_vec();
    detect(&Sample::of_file(&bytes, bytes.len() as u64).unwrap(), known)
}

/// What is told of a file.
fn described(text: &str) -> String {
    match of(text, &Known::default()) {
        Ok(found) => found.description(),
        Err(error) => error.to_string(),
    }
}

/// Files of many shapes, and what they are: delimiter, quote, escape, line end, header, NULL, columns.
const SHAPES: &[(&str, &str)] = &[
    ("a,b\n1,x\n2,y\n", "delimiter ',', {plain}, header yes, NULL '', columns (a integer, b text)"),
    ("1,x\n2,y\n", "delimiter ',', {plain}, header no, NULL '', columns (column0 integer, column1 text)"),
    ("a;b\n1;2,5\n3;4,5\n", "delimiter ';', {plain}, header yes, NULL '', columns (a integer, b text)"),
    ("a\tb\n1\t2.50\n3\t4\n", "delimiter '\\t', {plain}, header yes, NULL '', columns (a integer, b numeric(18,2))"),
    (
        "id|name\n1|Smith, John\n2|Doe, Jane\n",
        "delimiter '|', {plain}, header yes, NULL '', columns (id integer, name text)",
    ),
    (
        "a,b\r\n1,x\r\n",
        "delimiter ',', quote '\"', escape '\"', line end CRLF, header yes, NULL '', columns (a integer, b text)",
    ),
    (
        "a,b\r1,x\r2,y\r",
        "delimiter ',', quote '\"', escape '\"', line end CR, header yes, NULL '', columns (a integer, b text)",
    ),
    (
        "a,b\n1,\"x\ny, \"\"z\"\"\"\n2,\"\"\n",
        "delimiter ',', {plain}, header yes, NULL '', columns (a integer, b text)",
    ),
    (
        "a,b\n1,\"x \\\"y\\\", z\"\n2,\"\\\"\"\n",
        "delimiter ',', quote '\"', escape '\\', line end LF, header yes, NULL '', columns (a integer, b text)",
    ),
    (
        "'a','b'\n'1','it''s, so'\n'2','x'\n",
        "delimiter ',', quote ''', escape ''', line end LF, header yes, NULL '', columns (a integer, b text)",
    ),
    (
        "size,n\n5\" disk,1\n3\" tape,2\n8 inch,3\n",
        "delimiter ',', quote none, escape none, line end LF, header yes, NULL '', columns (size text, n integer)",
    ),
    ("a,b\n1,NULL\n2,5\n", "delimiter ',', {plain}, header yes, NULL 'NULL', columns (a integer, b integer)"),
    ("a,b\n1,\\N\n2,2024-01-31\n", "delimiter ',', {plain}, header yes, NULL '\\N', columns (a integer, b date)"),
    ("a,b\n1,\n,5\n", "delimiter ',', {plain}, header yes, NULL '', columns (a integer, b integer)"),
    (
        ",a,b\n0,1,2\n1,3,4\n",
        "delimiter ',', {plain}, header yes, NULL '', columns (column0 integer, a integer, b integer)",
    ),
    ("A,a,B b\n1,2,3\n", "delimiter ',', {plain}, header yes, NULL '', columns (A integer, a integer, B b integer)"),
    ("Name,Age\nx,1\n", "delimiter ',', {plain}, header yes, NULL '', columns (name text, age integer)"),
    ("name\nAnn\nBob\n", "delimiter ',', {plain}, header yes, NULL '', columns (name text)"),
    ("only,names\n", "delimiter ',', {plain}, header yes, NULL '', columns (only text, names text)"),
    ("5\n", "delimiter ',', {plain}, header no, NULL '', columns (column0 integer)"),
    ("x!,y?\nz!,w?\n", "delimiter ',', {plain}, header no, NULL '', columns (column0 text, column1 text)"),
    ("\u{feff}a,b\n1,2\n", "delimiter ',', {plain}, header yes, NULL '', columns (a integer, b integer)"),
    ("a,b\n1,2", "delimiter ',', {plain}, header yes, NULL '', columns (a integer, b integer)"),
    (
        "1,2,3\n4,5\n6,7,8\n9,1,2\n",
        "delimiter ',', {plain}, header no, NULL '', columns (column0 integer, column1 integer, column2 integer)",
    ),
    ("", "the file is empty: it has no columns (name them, as in read_csv(file, columns => 'a INTEGER, b TEXT'))"),
];

#[test]
fn files_are_what_they_look_like() {
    let plain = "quote '\"', escape '\"', line end LF";
    for (text, expected) in SHAPES {
        let expected = expected.replace("{plain}", plain);
        assert!(described(text).contains(&expected), "{text:?}: {}\ninstead of {expected}", described(text));
    }
}

#[test]
fn columns_are_of_the_first_type_that_takes_all() {
    for (texts, expected) in [
        (&["true", "f", "TRUE"][..], "boolean"),
        (&["true", "1"], "text"),
        (&["yes"], "text"),
        (&["1", "-2147483648", "0"], "integer"),
        (&["1", "007"], "text"),
        (&["-01"], "text"),
        (&["00.5"], "text"),
        (&["0.5", "-0"], "numeric(18,1)"),
        (&["1", "2147483648"], "bigint"),
        (&["9223372036854775807"], "bigint"),
        (&["9223372036854775808"], "numeric(38,0)"),
        (&["123456789012345678901234567890123456789"], "double precision"),
        (&["1.5", "2"], "numeric(18,1)"),
        (&["0.25", "-.5"], "numeric(18,2)"),
        (&["0.1234567"], "double precision"),
        (&["123456789012345.1234"], "double precision"),
        (&["1.5", "123456789012345678"], "double precision"),
        (&["1e5", "2"], "double precision"),
        (&["NaN", "1.5"], "double precision"),
        (&["1e400"], "text"),
        (&["1e-400"], "text"),
        (&["1.", "2.50"], "double precision"),
        (&["."], "text"),
        (&["-"], "text"),
        (&["1 "], "text"),
        (&["0x10"], "text"),
        (&["2024-02-29", "0001-01-01"], "date"),
        (&["2023-02-29"], "text"),
        (&["0000-01-01"], "text"),
        (&["2024-2-9"], "text"),
        (&["2024-01-01", "2024-01-01 10:00:00.5"], "timestamp without time zone"),
        (&["2024-01-01T10:00:00"], "timestamp without time zone"),
        (&["2024-01-01 24:00:00"], "text"),
        (&["2024-01-01 10:00:00.1234567"], "text"),
        (
            &["2024-01-01 10:00:00Z", "2024-01-01T10:00:00+02:00", "2024-01-01 10:00:00-0330"],
            "timestamp with time zone",
        ),
        (&["2024-01-01 10:00:00Z", "2024-01-01 10:00:00"], "text"),
        (&["12:30:00", "23:59:59.999999"], "time without time zone"),
        (&["12:30"], "text"),
        (&["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "uuid"),
        (&["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g"], "text"),
        (&["1", "2024-01-01"], "text"),
        (&[], "text"),
        (&[""], "text"),
    ] {
        let mut types = ColumnTypes::default();
        texts.iter().for_each(|text| types.add(text.as_bytes()));
        assert_eq!(types.data_type().to_string(), expected, "{texts:?}");
        // In whichever order, and by whichever parts.
        let mut merged = ColumnTypes::default();
        for text in texts.iter().rev() {
            let mut one = ColumnTypes::default();
            one.add(text.as_bytes());
            merged.merge(&one);
        }
        assert_eq!(merged.data_type(), types.data_type(), "{texts:?}");
    }
}

#[test]
fn what_is_known_is_not_looked_for() {
    let text = "a,b;c\n1,2;3\n";
    let known = |change: &dyn Fn(&mut Known)| {
        let mut known = Known::default();
        change(&mut known);
        of(text, &known).map(|found| found.description()).unwrap_or_else(|e| format!("{} {e}", e.sqlstate()))
    };
    assert!(known(&|k| k.delimiter = Some(b';')).contains("columns (a,b text, c integer)"));
    assert!(known(&|k| k.header = Some(false)).contains("columns (column0 text, column1 text)"));
    assert!(known(&|k| k.all_text = true).contains("columns (a text, b;c text)"));
    assert!(known(&|k| k.types = vec![("a".into(), DataType::BigInt)]).contains("(a bigint"));
    assert!(known(&|k| k.types = vec![("z".into(), DataType::BigInt)]).starts_with("42703"));
    let named = known(&|k| k.names = vec!["x".into(), "y".into()]);
    assert!(named.contains("header no") && named.contains("(x text, y text)"), "{named}");
    let named = known(&|k| k.names = vec!["a".into(), "b;c".into()]);
    assert!(named.contains("header yes"), "{named}");
    assert!(known(&|k| k.null = Some("2;3".into())).contains("NULL '2;3', columns (a integer, b;c text)"));
    let padded = of("1\n1,2,3\n", &Known { null_padding: true, ..Known::default() }).unwrap();
    assert_eq!(padded.columns.len(), 3);
    let empty = of("", &Known { names: vec!["a".into()], ..Known::default() }).unwrap();
    assert_eq!((empty.columns.len(), empty.is_certain), (1, true));
}

/// A value that comes late is seen in a piece of the sample, or in the whole file.
#[test]
fn samples_reach_behind_the_first_bytes() {
    let mut rows: Vec<String> = (0..10_000).map(|row| format!("{row},\"a, b\",x{row}\n")).collect();
    rows[9_999] = "4000000000,\"a, b\",y\n".into();
    let file = rows.concat().into_bytes();
    let sample = Sample::with_sizes(&file, file.len() as u64, 2_000, 500).unwrap();
    let found = detect(&sample, &Known::default()).unwrap();
    assert!(!found.is_certain);
    assert_eq!(found.columns[0].data_type, DataType::BigInt, "{}", found.description());
    // One that none of them has.
    rows[5_200] = "word,\"a, b\",z\n".into();
    let file = Arc::new(rows.concat().into_bytes());
    let sample = Sample::with_sizes(&*file, file.len() as u64, 2_000, 500).unwrap();
    let found = detect(&sample, &Known::default()).unwrap();
    assert_eq!(found.columns[0].data_type, DataType::BigInt);
    let input = Input::File(file.clone(), file.len() as u64);
    let types = types_of_file(input, &found, 3, &|| Ok(())).unwrap();
    assert_eq!(types, [DataType::Text { max_chars: None }; 3]);
    let stream = Input::Stream(Box::new(std::io::Cursor::new(file.to_vec())));
    assert_eq!(types_of_file(stream, &found, 3, &|| Ok(())).unwrap(), types);
    let canceled =
        types_of_file(Input::File(file.clone(), file.len() as u64), &found, 2, &|| Err(Error::internal("no")));
    assert!(canceled.is_err());
}

/// A piece whose first quote may be either one says nothing, rather than something wrong.
#[test]
fn pieces_within_quotes_say_nothing() {
    let mut file = b"a,b\n".to_vec();
    (0..200).for_each(|row| file.extend(format!("{row},\"text\nword,8\nword,10\n\"\n").into_bytes()));
    for piece in 10..60 {
        let sample = Sample::with_sizes(&file, file.len() as u64, 200, piece).unwrap();
        let found = detect(&sample, &Known::default()).unwrap();
        assert!(found.description().contains("columns (a integer, b text)"), "{piece}: {}", found.description());
    }
}

fn fields() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<i16>().prop_map(|n| format!("{}.{:02}", n / 100, (n % 100).abs())),
        any::<f64>().prop_map(|n| n.to_string()),
        (0i32..3_000, 0u32..14, 0u32..33).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}")),
        "(true|f|12:0[0-9]:00|2024-01-0[1-9]( |T)[0-3][0-9]:00:00(Z|\\+01)?)",
        "[-+.0-9eE:T ]{1,12}",
    ]
}

/// Whole numbers beyond INTEGER make decimals no floats as long as both have room.
#[test]
fn long_whole_numbers_stay_beside_decimals() {
    for (texts, found) in [
        (["0.25", "-4987476655460054"], "numeric(18,2)"),
        (["4987476655460054", "0.25"], "numeric(18,2)"),
        (["0.25", "49874766554600541"], "double precision"),
    ] {
        let mut types = ColumnTypes::default();
        texts.iter().for_each(|text| types.add(text.as_bytes()));
        assert_eq!(types.data_type().to_string(), found, "{texts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A text of a type is one that a column of it takes, in the plain form.
    #[test]
    fn texts_fit_the_type_that_is_found(texts in proptest::collection::vec(fields(), 1..4)) {
        let mut types = ColumnTypes::default();
        texts.iter().for_each(|text| types.add(text.as_bytes()));
        let data_type = types.data_type();
        prop_assert!(check_fits(texts.iter().map(|text| Some(text.as_str())), data_type).is_ok(), "{texts:?} {data_type}");
        let column = Column::new(ColumnId(0), "c", data_type, true);
        let array: arrow::array::ArrayRef = Arc::new(arrow::array::StringArray::from(texts.clone()));
        let assigned = mainstem_postgres::cast::assign(&array, &column);
        prop_assert!(assigned.is_ok(), "{texts:?} {data_type}: {assigned:?}");
    }

    /// What is not of a type that was found changes it: no text is rounded to a value of it, or taken for another.
    #[test]
    fn other_texts_widen(texts in proptest::collection::vec(fields(), 1..3), late in fields()) {
        let mut types = ColumnTypes::default();
        texts.iter().for_each(|text| types.add(text.as_bytes()));
        let before = types.data_type();
        let fits = check_fits([Some(late.as_str())].into_iter(), before).is_ok();
        types.add(late.as_bytes());
        if types.data_type() != before {
            prop_assert!(!fits, "{texts:?} {late} {before} {}", types.data_type());
        }
    }

    #[test]
    fn any_bytes_are_looked_at(text in proptest::collection::vec(prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'\r'), Just(b'\''), Just(b'\\'), Just(b'1'), any::<u8>()], 0..80)) {
        let _ = detect(&Sample::of_file(&text, text.len() as u64).unwrap(), &Known::default());
        let _ = ValueType::of(&text);
    }
}
