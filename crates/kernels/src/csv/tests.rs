use arrow_array::Array;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const MARKS: Marks = Marks { delimiter: b',', quote: b'"' };

type Twin = fn(&[u8], Marks, bool, &mut Vec<u32>) -> Structure;

/// Those that this processor can run.
fn twins() -> Vec<Twin> {
    let mut all: Vec<Twin> = vec![scalar::find_separators, find_separators];
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has AVX2.
        all.push(|bytes, marks, in_quotes, out| unsafe { avx2::find_separators(bytes, marks, in_quotes, out) });
    }
    all
}

/// Mostly marks.
fn files(len: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()];
    let rare = prop_oneof![1 => Just(b','), 1 => Just(b'\n'), 1 => Just(b'"'), 40 => Just(b'x')];
    prop_oneof![vec(byte, 0..len), vec(rare, 0..len)]
}

proptest! {
    /// All twins say the same, also of a text in two parts, the second begun in the state that the quotes of the first
    /// tell.
    #[test]
    fn separators_are_found_by_all_twins(text in files(400), in_quotes: bool, cut in 0..400usize) {
        let cut = cut.min(text.len());
        let mut expected = vec![7];
        let whole = scalar::find_separators(&text, MARKS, in_quotes, &mut expected);
        let odd = summarise(&text, MARKS.quote).quotes % 2 == 1;
        prop_assert_eq!(whole.in_quotes, in_quotes ^ odd);
        prop_assert_eq!(summarise(&text, MARKS.quote), scalar::summarise(&text, MARKS.quote));
        for twin in twins() {
            let mut found = vec![7];
            prop_assert_eq!(twin(&text, MARKS, in_quotes, &mut found), whole);
            prop_assert_eq!(&found, &expected);
            let (head, tail) = text.split_at(cut);
            let (mut found, mut behind) = (vec![7], Vec::new());
            let first = twin(head, MARKS, in_quotes, &mut found);
            let second = twin(tail, MARKS, in_quotes ^ (summarise(head, MARKS.quote).quotes % 2 == 1), &mut behind);
            found.extend(behind.iter().map(|at| at + cut as u32));
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(first.line_feeds + second.line_feeds, whole.line_feeds);
            prop_assert_eq!(first.carriage_returns + second.carriage_returns, whole.carriage_returns);
        }
    }

    /// Numbers are those that the standard library reads, wherever they stand.
    #[test]
    fn whole_numbers_are_read(rows in vec(prop_oneof![any::<i64>(), -1_000i64..1_000, Just(0)], 1..40)) {
        let column: Vec<String> = rows.iter().map(ToString::to_string).collect();
        let short = rows.iter().all(|row| row.unsigned_abs() < 1_000_000_000_000_000_000);
        let (found, nulls) = read(&column, "", |fields, quoting, values: &mut Vec<i64>, nulls| {
            integers(fields, quoting, values, nulls)
        });
        prop_assert_eq!(found.is_some(), short);
        prop_assert!(nulls.is_empty());
        prop_assert!(found.is_none_or(|found| found == rows));
    }

    /// Of any text, what is read is what it says.
    #[test]
    fn only_digits_are_numbers(text in "[-+ 0-9.e:/a]{0,20}") {
        let (found, nulls) = read(std::slice::from_ref(&text), "", |fields, quoting, values: &mut Vec<i64>, nulls| {
            integers(fields, quoting, values, nulls)
        });
        let is_plain = !text.starts_with('+') && text.trim_start_matches('-').len() <= 18;
        let expected = text.parse::<i64>().ok().filter(|_| is_plain).or(text.is_empty().then_some(0));
        prop_assert_eq!(found, expected.map(|value| vec![value]));
        prop_assert_eq!(nulls.len(), usize::from(text.is_empty()));
    }

    /// Texts of any length, in quotes or not, with quotes within: copied in blocks, they are what the bytes say one by
    /// one.
    #[test]
    fn texts_are_read(fields in vec((any::<bool>(), "[ab\u{e9}]{0,40}", "[ab\"]{0,3}", "[a,b\n]{0,20}"), 1..30)) {
        let raw = |(is_quoted, plain, marked, rest): &(bool, String, String, String)| match is_quoted {
            true => format!("\"{plain}{}{rest}\"", marked.replace('"', "\"\"")),
            false => plain.clone(),
        };
        let expected = |(is_quoted, plain, marked, rest): &(bool, String, String, String)| match is_quoted {
            true => Some(format!("{plain}{marked}{rest}")),
            false => Some(plain.clone()).filter(|plain| !plain.is_empty()),
        };
        let rows: Vec<String> = fields.iter().map(raw).collect();
        let bytes = rows.join("\n") + "\n";
        let mut ends = Vec::new();
        let marks = Marks { delimiter: b',', quote: b'"' };
        let seen = find_separators(bytes.as_bytes(), marks, false, &mut ends);
        let quoting = Quoting { quote: b'"', null: b"" };
        let (mut heap, mut behind, mut nulls) = (b"before".to_vec(), vec![6], Vec::new());
        let found = Fields::new(bytes.as_bytes(), &ends, 0, (1, 0), false);
        prop_assert!(texts(found, quoting, seen.has_quotes, &mut heap, &mut behind, &mut nulls));
        let text = |row: usize| std::str::from_utf8(&heap[behind[row] as usize..behind[row + 1] as usize]).unwrap();
        for (row, field) in fields.iter().enumerate() {
            let is_null = nulls.contains(&(row as u32));
            prop_assert_eq!((!is_null).then(|| text(row).to_owned()), expected(field));
        }
    }

    /// Texts of one byte, with others among them, in one column and between others, up to the end of all bytes.
    #[test]
    fn texts_of_one_byte_are_read(
        column in vec(prop_oneof![40 => "[abN]", 1 => Just(String::new()), 1 => "[ab\u{e9}]{2,3}", 1 => Just("\"".to_owned() + "a\"")], 0..60),
        null in prop_oneof![Just(""), Just("N"), Just("NULL")], between: bool, has_quotes: bool,
    ) {
        let rows: Vec<String> = column.iter().map(|field| match between {
            true => format!("left,{field},r\n"),
            false => format!("{field}\n"),
        }).collect();
        let (bytes, columns) = (rows.concat(), if between { (3, 1) } else { (1, 0) });
        let mut ends = Vec::new();
        let seen = find_separators(bytes.as_bytes(), MARKS, false, &mut ends);
        let quoting = Quoting { quote: b'"', null: null.as_bytes() };
        let fields = Fields::new(bytes.as_bytes(), &ends, 0, columns, false);
        let (mut all, mut nulls) = (Texts::new(Vec::new(), Vec::new()), Vec::new());
        prop_assert!(all.read(fields, quoting, has_quotes || seen.has_quotes, &mut nulls));
        let is_null = |field: &String| field == null;
        let wanted: Vec<u32> = (0..).zip(&column).filter(|(_, field)| is_null(field)).map(|(row, _)| row).collect();
        prop_assert_eq!(nulls, wanted);
        let found = all.finish(None).unwrap();
        prop_assert_eq!(found.len(), column.len());
        for (field, text) in column.iter().zip(found.iter()) {
            let expected = if is_null(field) { String::new() } else { field.replace('"', "") };
            prop_assert_eq!(text, Some(expected.as_str()));
        }
    }

    #[test]
    fn decimals_are_read(value in -10i128.pow(15)..10i128.pow(15), scale in 0u8..8, shown in 0u8..8) {
        let factor = 10i128.pow(u32::from(shown));
        let sign = if value < 0 { "-" } else { "" };
        let (whole, part) = (value.unsigned_abs() / factor.unsigned_abs(), value.unsigned_abs() % factor.unsigned_abs());
        let text = match shown {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{part:0width$}", width = usize::from(shown)),
        };
        let fits = shown <= scale && whole.to_string().len() + usize::from(scale) <= 18;
        let (found, _) = read(&[text, "".into()], "", |fields, quoting, values, nulls| {
            decimals(fields, quoting, (38, scale), values, nulls)
        });
        let expected = fits.then(|| vec![value * 10i128.pow(u32::from(scale - shown)), 0]);
        prop_assert_eq!(found, expected);
    }
}

/// Fields that are mostly plain values of one kind, and now and then something else.
fn alike() -> impl Strategy<Value = Vec<String>> {
    let number = prop_oneof![0i64..100, 0i64..10_000_000_000_000_000, any::<i64>()].prop_map(|v| v.to_string());
    // Of one type, so that all of a column is read.
    let small = (0i64..30_000).prop_map(|v| v.to_string());
    let decimal = (0i64..1_000_000_000_000, 0u32..4).prop_map(|(v, scale)| match scale {
        0 => v.to_string(),
        _ => format!("{}.{:0width$}", v / 10i64.pow(scale), v % 10i64.pow(scale), width = scale as usize),
    });
    let date = (0u32..10_100, 0u32..14, 0u32..34).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"));
    let kinds: [BoxedStrategy<String>; 4] = [number.boxed(), decimal.boxed(), date.boxed(), small.boxed()];
    let other = prop_oneof![
        Just(String::new()),
        Just("\"7\"".to_owned()),
        Just("-3".to_owned()),
        Just("-2.50".to_owned()),
        "[-0-9.:/a]{0,18}"
    ];
    (0usize..4, 0u32..80).prop_flat_map(move |(kind, rare)| match rare.checked_sub(40) {
        None => vec(kinds[kind].clone(), 1..40).boxed(),
        Some(rare) => vec(prop_oneof![60 => kinds[kind].clone(), 1 + rare => other.clone()], 1..40).boxed(),
    })
}

/// What `parse` reads of each of `column` alone; None if it does not take one of them.
fn one_by_one<T: Copy>(
    column: &[String],
    null: &str,
    mut parse: impl FnMut(Fields<'_>, Quoting<'_>, &mut Vec<T>, &mut Vec<u32>) -> bool,
) -> Option<(Vec<T>, Vec<u32>)> {
    let (mut values, mut nulls) = (Vec::new(), Vec::new());
    for (row, field) in column.iter().enumerate() {
        let (value, found) = read(std::slice::from_ref(field), null, &mut parse);
        values.extend(value?);
        nulls.extend(found.iter().map(|_| row as u32));
    }
    Some((values, nulls))
}

proptest! {
    /// Several fields at once are read as each of them alone, whichever of them are not plain.
    #[test]
    fn fields_are_read_alike_alone_and_with_others(
        column in alike(), null in prop_oneof![Just(""), Just("7"), Just("NULL")], scale in 0u8..17, room in 0u8..22, at in 0usize..4, returns: bool,
    ) {
        macro_rules! compare {
            ($parse:expr) => {{
                let expected = one_by_one(&column, null, $parse);
                let (found, nulls) = read_at(at, returns, &column, null, $parse);
                prop_assert_eq!(found.map(|found| (found, nulls)), expected);
            }};
        }
        compare!(|fields, quoting, values: &mut Vec<i64>, nulls: &mut Vec<u32>| integers(fields, quoting, values, nulls));
        compare!(|fields, quoting, values: &mut Vec<i32>, nulls: &mut Vec<u32>| integers(fields, quoting, values, nulls));
        compare!(|fields, quoting, values: &mut Vec<i16>, nulls: &mut Vec<u32>| integers(fields, quoting, values, nulls));
        compare!(|fields, quoting, values: &mut Vec<i32>, nulls: &mut Vec<u32>| dates(fields, quoting, values, nulls));
        let of_type = (scale + room, scale);
        compare!(|fields, quoting, values: &mut Vec<i128>, nulls: &mut Vec<u32>| {
            decimals(fields, quoting, of_type, values, nulls)
        });
    }
}

/// A file with `column` between others, and what `parse` reads of it: its values, unless there is one that it does not
/// take, and the rows of NULLs.
fn read<T>(
    column: &[String],
    null: &str,
    parse: impl FnMut(Fields<'_>, Quoting<'_>, &mut Vec<T>, &mut Vec<u32>) -> bool,
) -> (Option<Vec<T>>, Vec<u32>) {
    read_at(1, true, column, null, parse)
}

/// As [`read`], with `column` at `at` of three, or alone for 3, and rows that end in a carriage return or not.
fn read_at<T>(
    at: usize,
    returns: bool,
    column: &[String],
    null: &str,
    mut parse: impl FnMut(Fields<'_>, Quoting<'_>, &mut Vec<T>, &mut Vec<u32>) -> bool,
) -> (Option<Vec<T>>, Vec<u32>) {
    let end = if returns { "\r\n" } else { "\n" };
    let row = |field: &String| match at {
        0 => format!("{field},left,\"right\"{end}"),
        1 => format!("left,{field},\"right\"{end}"),
        2 => format!("left,\"right\",{field}{end}"),
        _ => format!("{field}{end}"),
    };
    let text: String = column.iter().map(row).collect();
    let columns = if at < 3 { (3, at) } else { (1, 0) };
    let mut ends = Vec::new();
    find_separators(text.as_bytes(), MARKS, false, &mut ends);
    let (mut values, mut nulls) = (Vec::new(), Vec::new());
    let fields = Fields::new(text.as_bytes(), &ends, 0, columns, returns);
    assert_eq!(fields.len(), column.len());
    let done = parse(fields, Quoting { quote: b'"', null: null.as_bytes() }, &mut values, &mut nulls);
    (done.then_some(values), nulls)
}

fn dates_of(column: &[&str]) -> Option<Vec<i32>> {
    let column: Vec<String> = column.iter().map(ToString::to_string).collect();
    read(&column, "", dates).0
}

#[test]
fn decimals_beyond_their_type_are_left_alone() {
    let of = |text: &str, precision, scale| {
        let column = [text.to_owned()];
        let narrow = read(&column, "", |fields, quoting, values: &mut Vec<i64>, nulls| {
            decimals(fields, quoting, (precision, scale), values, nulls)
        });
        let wide = read(&column, "", |fields, quoting, values: &mut Vec<i128>, nulls| {
            decimals(fields, quoting, (precision, scale), values, nulls)
        });
        let narrow = narrow.0.map(|values| values.into_iter().map(i128::from).collect::<Vec<_>>());
        assert_eq!(narrow, wide.0);
        narrow
    };
    assert_eq!(of("123.45", 5, 2), Some(vec![12_345]));
    assert_eq!(of("1234.5", 5, 2), None);
    assert_eq!(of("1234", 5, 2), None);
    for left in ["1.234", ".5", "5.", "1.2.3", "--1", "1e3", "+1", " 1", "1 ", "-", ".", "-.5", "NaN"] {
        assert_eq!(of(left, 15, 2), None, "{left}");
    }
    assert_eq!(of("7", 3, 3), None);
    assert_eq!(of("1", 38, 30), None);
}

#[test]
fn nulls_and_quotes_are_told_apart() {
    let numbers = |column: &[&str], null: &str| {
        let column: Vec<String> = column.iter().map(ToString::to_string).collect();
        read(&column, null, |fields, quoting, values: &mut Vec<i32>, nulls| integers(fields, quoting, values, nulls))
    };
    assert_eq!(numbers(&["1", "", "\"3\""], ""), (Some(vec![1, 0, 3]), vec![1]));
    // What is in quotes is no NULL, and no number either.
    assert_eq!(numbers(&["1", "\"\""], "").0, None);
    assert_eq!(numbers(&["0", "\"0\"", "1"], "0"), (Some(vec![0, 0, 1]), vec![0]));
    assert_eq!(numbers(&["1", ""], "\\N").0, None);
    for left in ["1\"2\"", "\"1\"2", "\"1\"\"2\"", "\"\"\"\"", "2147483648"] {
        assert_eq!(numbers(&[left], "").0, None, "{left}");
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    let mut expected = -719_162;
    for year in 1..=9_999i64 {
        for month in 1..=12 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
            let text = |day: i64| format!("{year:04}-{month:02}-{day:02}");
            let (first, last) = (expected, expected + days as i32 - 1);
            let some = [text(1), text(days), text(days - 1), text(2)];
            // So many that some are read together.
            let some: Vec<&str> = some.iter().cycle().take(12).map(String::as_str).collect();
            assert_eq!(dates_of(&some), Some([first, last, last - 1, first + 1].repeat(3)));
            expected += days as i32;
            if year % 25 == 0 {
                assert_eq!(dates_of(&[&text(days + 1)]), None);
                let more = text(days + 1);
                let mut some = vec!["2024-02-29"; 12];
                some[7] = &more;
                assert_eq!(dates_of(&some), None);
            }
        }
    }
    assert_eq!(dates_of(&["1970-01-01", ""]), Some(vec![0, 0]));
    for left in ["0000-01-01", "1970-00-01", "1970-13-01", "1970-01-00", "1970-1-1", "1970/01/01", "19700101", "x"] {
        assert_eq!(dates_of(&[left]), None, "{left}");
        let mut some = ["2024-02-29"; 12];
        some[5] = left;
        assert_eq!(dates_of(&some), None, "{left}");
    }
}

#[test]
fn timestamps_have_a_date_and_a_time() {
    let of = |text: &str| read(&[text.to_owned()], "", timestamps).0.map(|values| values[0]);
    assert_eq!(of("1970-01-01 00:00:00"), Some(0));
    assert_eq!(of("1970-01-02T01:02:03.5"), Some(90_123_500_000));
    assert_eq!(of("1969-12-31 23:59:59.999999"), Some(-1));
    for left in [
        "1970-01-01",
        "1970-01-01 24:00:00",
        "1970-01-01 00:60:00",
        "1970-01-01 00:00:60",
        "1970-01-01 00:00:00.",
        "1970-01-01 00:00:00.1234567",
        "1970-01-01 00:00:00+01",
        "1970-01-01_00:00:00",
        "1970-01-01 00-00-00",
        "1970-02-30 00:00:00",
    ] {
        assert_eq!(of(left), None, "{left}");
    }
}

#[test]
fn texts_lose_their_quotes() {
    let rows =
        ["plain", "", "\"\"", "\"a,b\"", "\"say \"\"hi\"\"\"", "a\"b,\"\"c\"d", "\"two\nlines\"", "\"\"\"\"", "NULL"];
    let column: Vec<String> = rows.iter().map(ToString::to_string).collect();
    let of = |null: &str| {
        let (mut heap, mut ends) = (Vec::new(), Vec::new());
        let (_, nulls) = read(&column, null, |fields, quoting, _: &mut Vec<u8>, nulls| {
            texts(fields, quoting, true, &mut heap, &mut ends, nulls)
        });
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let texts = begins.zip(&ends).map(|(begin, end)| heap[begin as usize..*end as usize].to_vec());
        (texts.map(|text| String::from_utf8(text).unwrap()).collect::<Vec<_>>(), nulls)
    };
    let expected = ["plain", "", "", "a,b", "say \"hi\"", "ab,\"cd", "two\nlines", "\"", "NULL"];
    assert_eq!(of(""), (expected.map(str::to_owned).to_vec(), vec![1]));
    let mut without_null = expected.map(str::to_owned).to_vec();
    without_null[8].clear();
    assert_eq!(of("NULL"), (without_null, vec![8]));
}
