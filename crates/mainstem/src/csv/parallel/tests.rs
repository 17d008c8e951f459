#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use mainstem_storage::schema::DataType;
use proptest::collection::vec;
use proptest::prelude::*;

use super::oracle::{TYPES, Trickle, check, columns, read_alike, serially};
use super::*;
use crate::sql::RowLimit;

const TEXT: DataType = DataType::Text { max_chars: None };

/// What may be a part of a value is no quote whose fields are read before they are looked at.
#[test]
fn quotes_that_values_may_have_are_read_in_turn() {
    let of = |quote: u8| CsvOptions { quote, escape: quote, ..CsvOptions::default() };
    for quote in *b"059-+.:eET x" {
        assert!(!can_be_cut(&of(quote), 1), "{}", quote as char);
    }
    let columns = columns(&[DataType::Integer, TEXT, DataType::Decimal { precision: 12, scale: 2 }]);
    for quote in *b"'\"|~#\x01" {
        assert!(can_be_cut(&of(quote), 1), "{}", quote as char);
        let text = "Q1Q,QaQQ,Q,Q2.50Q\n3,b,-4.75\n5,,\n".replace('Q', &(quote as char).to_string());
        check(text.as_bytes(), &of(quote), &columns, 1..40);
    }
}

/// Only the first mark is none of the first row.
#[test]
fn a_second_mark_of_byte_order_is_text() {
    check("\u{feff}\u{feff}x\ny\r\nz\n".as_bytes(), &CsvOptions::default(), &columns(&[TEXT]), 1..12);
}

/// A file whose end comes before it was there is told, wherever a chunk has its end.
#[test]
fn a_file_that_becomes_shorter_is_told() {
    let text = b"1,hello\n2,hello world\n3,x\n".to_vec();
    let (options, columns) = (CsvOptions::default(), columns(&[DataType::Integer, TEXT]));
    for chunk_bytes in 3..40 {
        for missing in 1..15 {
            let file = text[..text.len() - missing].to_vec();
            let rows = FileRows::new(&file, text.len() as u64, &options, &columns).with_chunks(chunk_bytes);
            let error = rows.read(2, |_| Ok(())).unwrap_err().to_string();
            assert!(error.contains("shorter"), "{error}");
        }
    }
}

/// A stream that gives its mark of byte order in parts.
#[test]
fn a_mark_that_comes_byte_by_byte_is_none_of_the_first_row() {
    struct OneByOne<'a>(&'a [u8]);
    impl io::Read for OneByOne<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(1);
            io::Read::read(&mut self.0, &mut buffer[..count])
        }
    }
    for (text, first) in [("\u{feff}7,a\n", "7"), ("7\n", "7"), ("\u{feff}", ""), ("\u{feff}\"7\"\n", "7")] {
        let mut reader = CsvReader::new(OneByOne(text.as_bytes()), CsvOptions::default(), vec!["c".to_owned()]);
        let fields = text.matches(',').count();
        if fields > 0 {
            reader = CsvReader::new(OneByOne(text.as_bytes()), CsvOptions::default(), vec!["c".into(), "d".into()]);
        }
        let batch = reader.next_batch(10).unwrap();
        let found = batch.map(|batch| batch.columns[0].as_string::<i32>().value(0).to_owned()).unwrap_or_default();
        assert_eq!(found, first);
    }
}

/// A field of a value of some type, in quotes or not, or of some other form.
fn fields() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        any::<i32>().prop_map(|v| v.to_string()),
        (-99_999i64..99_999).prop_map(|v| format!("{}.{:02}", v / 100, (v % 100).abs())),
        (1i32..3_000, 0u32..14, 0u32..33).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}")),
        any::<f64>().prop_map(|v| v.to_string()),
        any::<f32>().prop_map(|v| format!("{v:e}")),
        Just("2024-02-29 12:34:56.5".to_owned()),
        "[-+ 0-9a-z.é\\\\]{0,6}",
        Just(String::new()),
        Just("NULL".to_owned()),
    ];
    let quoted = "[a-z,\n\r0-9é]{0,6}".prop_map(|text| format!("\"{text}\""));
    let escaped = "[a-z,\n0-9]{0,3}".prop_map(|text| format!("a\"{text}\"\"{text}\"b"));
    prop_oneof![12 => plain.clone(), 3 => plain.prop_map(|text| format!("\"{text}\"")), 1 => quoted, 1 => escaped]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Of any bytes.
    #[test]
    fn any_bytes_are_read_alike(
        text in vec(prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'\r'), Just(b'1'), Just(0xC3), Just(0xA9)], 0..60),
        header: bool, width in 1usize..4, chunks in vec(1u64..20, 3),
    ) {
        let options = CsvOptions { header, ..CsvOptions::default() };
        check(&text, &options, &columns(&vec![TEXT; width]), chunks.clone());
        check(&text, &options, &columns(&vec![DataType::Integer; width]), chunks);
    }

    /// Of any bytes and any options, as a fuzzer makes them.
    #[test]
    fn what_a_fuzzer_makes_is_read_alike(
        looks: u8, chunk in 1u8..40, types: u8,
        text in vec(prop_oneof![4 => prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'\r')], 4 => b'0'..=b'9', 1 => any::<u8>()], 0..80),
    ) {
        read_alike(&[[looks, chunk, types].as_slice(), &text].concat());
    }

    /// Of rows with as many fields as there are columns.
    #[test]
    fn rows_are_read_alike(
        rows in vec(vec(fields(), 13), 1..12),
        width in 1usize..=13, first in 0usize..13, header: bool, returns: bool, ended: bool, mark: bool,
        chunks in vec(1u64..200, 4), null in prop_oneof![Just(String::new()), Just("NULL".to_owned()), Just("1".to_owned())],
    ) {
        let types: Vec<DataType> = TYPES.iter().cycle().skip(first).take(width).copied().collect();
        let end = if returns { "\r\n" } else { "\n" };
        let lines: Vec<String> = rows.iter().map(|row| row[..width].join(",")).collect();
        let mut text = if mark { "\u{FEFF}" } else { "" }.to_owned() + if header { "some,\"na\nmes\"" } else { "" };
        text += if header { end } else { "" };
        text += &lines.join(end);
        text += if ended { end } else { "" };
        check(text.as_bytes(), &CsvOptions { header, null, ..CsvOptions::default() }, &columns(&types), chunks);
    }

    /// Of one type, in its plainest form and in others that it has.
    #[test]
    fn columns_of_one_type_are_read_alike(which in 0usize..13, rows in vec(fields(), 1..4), plain in 0i64..1_000) {
        let mut rows = rows;
        rows.push(plain.to_string());
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        check(text.as_bytes(), &CsvOptions::default(), &columns(&[TYPES[which]]), [1, 5, 1_000]);
    }
}

/// A chunk of several blocks, with what is not plain in some of them alone: NULLs, signs, quotes, line feeds in them, a
/// row that is longer than a block.
#[test]
fn blocks_of_a_chunk_are_one_column() {
    let of = |row: usize| match row {
        row if row % 9_001 == 9_000 => format!("{row},,,\"two\nlines, é\"\n"),
        row if row % 7_001 == 7_000 => format!("-{row},2024-02-29,-1.5,\n"),
        21_003 => format!("{row},2024-01-01,1,\"{}\"\n", "long,\n".repeat(60_000)),
        row => format!("{row},2024-03-{:02},{}.{:02},text {row}\n", row % 31 + 1, row, row % 100),
    };
    let text: String = (0..40_000).map(of).collect();
    let types = [DataType::BigInt, DataType::Date, DataType::Decimal { precision: 12, scale: 2 }, TEXT];
    let columns = columns(&types);
    assert!(text.len() > 4 << 18);
    check(text.as_bytes(), &CsvOptions::default(), &columns, [300_000, 1 << 20]);
    let in_returns = text.replace("\n", "\r\n");
    check(in_returns.as_bytes(), &CsvOptions::default(), &columns, [1 << 20]);
    // One row of a later block ends otherwise.
    let mixed = in_returns.replacen("text 39000\r\n", "text 39000\n", 1);
    check(mixed.as_bytes(), &CsvOptions::default(), &columns, []);
}

/// The memory of columns that were taken is that of later ones, unless somebody still has it.
#[test]
fn memory_of_columns_is_used_again() {
    let text: Vec<u8> = (0..300).flat_map(|row| format!("{row},text {row},1.5\n").into_bytes()).collect();
    let types = [DataType::BigInt, TEXT, DataType::Decimal { precision: 30, scale: 1 }];
    let (options, columns) = (CsvOptions::default(), columns(&types));
    let rows = FileRows::new(&text, text.len() as u64, &options, &columns).for_load(true);
    let (mut held, mut held_place) = (Vec::new(), std::ptr::null());
    for is_held in [false, true, false] {
        rows.read(1, |part| {
            if is_held {
                held.clone_from(&part.columns);
                held_place = held[0].as_primitive::<Int64Type>().values().as_ptr();
            }
            Ok(())
        })
        .unwrap();
        let (longs, bytes, wide) = (rows.spare.take::<i64>(), rows.spare.take::<u8>(), rows.spare.take::<i128>());
        let is_back = longs.capacity() >= 300 && bytes.capacity() >= 300 && wide.capacity() >= 300;
        assert!(is_back != is_held && longs.is_empty() && bytes.is_empty() && wide.is_empty());
    }
    // A small column gives back no memory that a large one had.
    for (len, is_kept) in [(1_000_usize, false), (100_000, true)] {
        let mut values: Vec<i64> = Vec::with_capacity(200_000);
        values.resize(len, 7);
        rows.spare.take_back(vec![Arc::new(Int64Array::from(values))]);
        assert_eq!(rows.spare.take::<i64>().capacity() >= 200_000, is_kept, "{len}");
    }
    assert_eq!(held[0].as_primitive::<Int64Type>().values().as_ptr(), held_place);
    assert!(held[0].as_primitive::<Int64Type>().values().iter().copied().eq(0..300));
}

/// Chunks, with their arrays, take what they may, and no less than two threads and who takes the rows need.
#[test]
fn chunks_are_as_long_as_memory_allows() {
    let columns = columns(&[DataType::Integer]);
    let options = CsvOptions::default();
    let sample = b"1234567\n".repeat(1_000);
    for (memory, held) in [(u64::MAX, 192 << 20), (60 << 20, 60 << 20), (13 << 20, 13 << 20), (1, 6 << 20)] {
        let rows = FileRows::of_stream(&options, &columns).with_chunks_as(&sample, u64::MAX >> 8, 2, memory);
        let all = rows.held_bytes(2, usize::MAX);
        assert!((held - (6 << 20)..=held).contains(&all), "{all} of {memory}");
        // A file of one chunk has no second one.
        assert_eq!(rows.held_bytes(2, 1), rows.held_bytes(2, 2) / 2);
        // Short chunks are read ahead as far as there is room.
        let short = FileRows::of_stream(&options, &columns).with_chunks_as(&sample, 1, 2, memory);
        assert_eq!(short.held_bytes(2, usize::MAX), held.min(32 << 20) / (2 << 20) * (2 << 20));
    }
}

/// What is counted of a chunk is what its arrays take, too, where they have more bytes than the file: NULL values of
/// columns, and views of texts.
#[test]
fn chunks_are_counted_with_their_arrays() {
    let one = DataType::BigInt;
    let narrow = DataType::Decimal { precision: 12, scale: 2 };
    let text = DataType::Text { max_chars: None };
    for (types, row, is_load, times) in [
        (vec![one; 100], ",".repeat(99), true, 17.0),
        (vec![narrow; 100], ",".repeat(99), true, 17.0),
        (vec![narrow; 100], ",".repeat(99), false, 25.0),
        (vec![DataType::Time; 100], ",".repeat(99), true, 25.0),
        (vec![text; 10], ",".repeat(9), true, 14.0),
        (vec![text; 10], ",".repeat(9), false, 26.0),
        (vec![one; 2], "123456789012,123456789012".to_owned(), true, 2.0),
        (vec![text, one], format!("{},1", "long".repeat(100)), false, 2.1),
        (vec![one, text], format!("1,\"{}\"", ",\n".repeat(200)), false, 2.1),
    ] {
        let columns = columns(&types);
        // A long header, and a row that is cut, tell nothing.
        let header = format!("{}\n", "name,".repeat(2_000));
        let sample = format!("{header}{}{},,", format!("{row}\n").repeat(1_000), "1".repeat(5_000));
        let options = CsvOptions { header: true, ..CsvOptions::default() };
        let rows = FileRows::of_stream(&options, &columns).for_load(is_load);
        let rows = rows.with_chunks_as(sample.as_bytes(), 1, 1, u64::MAX);
        let counted = rows.held_bytes(1, 1) as f64 / CHUNK_BYTES_MIN as f64;
        assert!((counted - times).abs() <= 0.06, "{counted} for {types:?}, {is_load}");
        // And chunks are the shorter for it.
        let memory = 60 << 20;
        let long = FileRows::of_stream(&options, &columns).for_load(is_load);
        let long = long.with_chunks_as(sample.as_bytes(), u64::MAX >> 16, 1, memory);
        let held = long.held_bytes(1, usize::MAX);
        assert!(held <= memory && held > memory - 2 * rows.held_bytes(1, 1), "{held} for {types:?}");
        // Threads are as few as have room for chunks of the least length.
        let tight = FileRows::of_stream(&options, &columns).for_load(is_load);
        let tight = tight.with_chunks_as(sample.as_bytes(), 1, 8, 5 * rows.held_bytes(1, 1) + 1_000);
        assert_eq!((tight.threads_within_memory(8), tight.threads_within_memory(2)), (4, 2), "{types:?}");
    }
}

/// All threads have as many chunks, where these need not be much shorter for that; then each has all of its rows.
#[test]
fn threads_have_as_many_chunks() {
    let columns = columns(&[DataType::Integer]);
    let options = CsvOptions::default();
    for (bytes, threads, chunks) in [(9 << 20, 2, 6), (9 << 20, 3, 6), (10 << 20, 3, 6), (3 << 20, 2, 3), (8, 2, 1)] {
        let file = b"1234567\n".repeat(bytes / 8);
        let rows = FileRows::new(&file, bytes as u64, &options, &columns);
        // Two megabytes, or as many chunks as twice the threads.
        let rows = rows.with_chunks_of(&file, 1 << 18, threads, u64::MAX);
        assert_eq!(rows.chunks(), chunks, "{bytes} bytes, {threads} threads, chunks of {}", rows.chunk_bytes);
        let mut count = 0;
        let take = |part: Rows| {
            count += part.count;
            Ok(())
        };
        rows.read(threads, take).unwrap();
        assert_eq!(count, bytes / 8);
    }
}

/// A border of chunks at each byte.
#[test]
fn every_border_is_met() {
    let text = b"\xEF\xBB\xBFid,\"a \"\"long\"\"\nname\"\r\n1,\"x\ny\"\r\n2,\"say \"\"hi\"\"\"\r\n3,\r\n4,\"\"\r\n5,a\"b,c\"d\r\n6,end";
    let options = CsvOptions { header: true, ..CsvOptions::default() };
    let columns = columns(&[DataType::Integer, TEXT]);
    let (arrays, lines, _) = serially(text, &options, &columns, false).unwrap();
    assert_eq!((arrays[0].len(), lines.as_slice()), (6, &[3, 5, 6, 7, 8, 9][..]));
    check(text, &options, &columns, 1..=text.len() as u64 + 1);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let columns = columns(&[DataType::Integer, TEXT]);
    for (row, code, says) in [
        ("3", "22P04", "line 900: missing data for column \"c1\""),
        ("3,a,b", "22P04", "line 900: extra data"),
        ("3,\"never closed", "22P04", "line 900: unterminated quoted field"),
        ("x,a", "22P02", "line 900"),
        ("99999999999,a", "22003", "line 900"),
        ("3,a\rb", "22P04", "line 900: unquoted carriage return"),
    ] {
        let mut text: String = (0..450).map(|row| format!("{row},\"a\nb\"\n")).collect();
        text.truncate(text.rfind("449").unwrap());
        text += "0,a\n";
        text += row;
        text += "\n1,c\n";
        let file = text.clone().into_bytes();
        let options = CsvOptions::default();
        let rows = FileRows::new(&file, file.len() as u64, &options, &columns).with_chunks(100);
        let error = rows.read(2, |_| Ok(())).unwrap_err();
        assert_eq!(error.sqlstate(), code, "{row}: {error}");
        assert!(error.to_string().contains(says), "{row}: {error}");
        check(text.as_bytes(), &options, &columns, [37, 100, 1 << 20]);
    }
}

/// Chunks are read in pieces where they are plain, the first and the last one, too, whether they begin in quotes or
/// not; what others have to know of them is what all of their bytes say.
#[test]
fn plain_chunks_are_read_in_pieces() {
    let of = |row: usize, quoted: bool| match quoted {
        true => format!("{row},\"two\nlines {row}\"\n"),
        false => format!("{row},text {row}\n"),
    };
    for (header, quoted) in [("", false), ("", true), ("some,\"na\nmes\"\n", true), ("\u{feff}a,b\n", false)] {
        let mut text = header.to_owned() + &(0..400).map(|row| of(row, quoted)).collect::<String>();
        text.pop();
        let (file, options) = (text.into_bytes(), CsvOptions { header: !header.is_empty(), ..CsvOptions::default() });
        let columns = columns(&[DataType::Integer, TEXT]);
        let rows = FileRows::new(&file, file.len() as u64, &options, &columns).with_chunks(1_000);
        let (mut before, mut buffer, mut count, mut in_quotes) = (Before::FILE, Vec::new(), 0, 0);
        for number in 0..rows.chunks() {
            let read = pieces::InPieces::read(&rows, number, &mut buffer).unwrap();
            let chunk = chunk::Chunk::read(&rows, number, Vec::new()).unwrap();
            let behind = before.behind(chunk.seen());
            assert_eq!(before.behind(read.seen()), behind);
            count += read.rows(&rows, before).unwrap().count;
            in_quotes += usize::from(before.in_quotes);
            before = behind;
        }
        assert_eq!(count, 400);
        assert_eq!(in_quotes > 0, quoted);
    }
}

/// Rows in quotes that look like rows: what a chunk seems to begin with is not what it does.
#[test]
fn chunks_that_seem_to_begin_otherwise_are_read_rightly() {
    let columns = columns(&[DataType::Integer, TEXT]);
    let alike: String = (0..400).map(|row| format!("{row},\"two\nlines {row}, or so\"\n")).collect();
    let within = format!("1,\"{}\"\n2,b\n", "7,like a row\n".repeat(300));
    let around = format!("1,a\n2,\"{}\"\n", "x\n".repeat(600)) + &"3,\"c\"\n".repeat(300);
    for text in [alike, within, around] {
        check(text.as_bytes(), &CsvOptions::default(), &columns, [100, 333, 1_000, 2_500]);
    }
}

/// A quote that is never closed makes a row of all that follows.
#[test]
fn a_row_without_end_is_told_by_its_line() {
    let mut text = String::from("1,\"two\nlines\"\n2,a\n3,\"open");
    text += &"x\n".repeat(200_000);
    let (file, options) = (text.clone().into_bytes(), CsvOptions::default());
    let limited = CsvOptions { row_limit: RowLimit::of(100_000), ..options.clone() };
    let columns = columns(&[DataType::Integer, TEXT]);
    let rows = FileRows::new(&file, file.len() as u64, &limited, &columns).with_chunks(64);
    let error = rows.read(2, |_| Ok(())).unwrap_err();
    assert_eq!(error.sqlstate(), "53200");
    assert!(error.to_string().contains("line 4: a row is longer"), "{error}");
    check(text.as_bytes(), &options, &columns, [64, 100_000]);
}

/// A stream that fails, is canceled, or has a row without end.
#[test]
fn streams_that_end_early_are_told() {
    struct Fails<'a>(Trickle<'a>);
    impl io::Read for Fails<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match io::Read::read(&mut self.0, buffer)? {
                0 => Err(io::Error::other("the wire is cut")),
                read => Ok(read),
            }
        }
    }
    let options = CsvOptions { row_limit: RowLimit::of(10_000), ..CsvOptions::default() };
    let columns = columns(&[DataType::Integer, TEXT]);
    let rows = FileRows::of_stream(&options, &columns).with_chunks(100);
    let good: String = (0..5_000).map(|row| format!("{row},\"a\nb\"\n")).collect();
    let told = |text: &str, check: &dyn Fn() -> Result<()>| {
        let mut taken = 0;
        let read = rows.read_stream(Fails(Trickle(text.as_bytes(), 1)), 2, check, |part| {
            taken += part.count;
            Ok(())
        });
        (taken, read.unwrap_err().to_string())
    };
    let (taken, error) = told(&good, &|| Ok(()));
    assert!(taken == 5_000 && error.contains("the wire is cut"), "{taken} {error}");
    let (taken, error) = told(&(good.clone() + "1,\"half"), &|| Ok(()));
    assert!(taken == 5_000 && error.contains("the wire is cut"), "{taken} {error}");
    // What is wrong before is told first.
    let (_, error) = told(&good.replace("\n4990,", "\nx,"), &|| Ok(()));
    assert!(error.contains("line 9981"), "{error}");
    let (_, error) = told(&(good.clone() + "1,\"" + &"x\n".repeat(20_000)), &|| Ok(()));
    assert!(error.contains("line 10001: a row is longer"), "{error}");
    let asked = AtomicBool::new(false);
    let (taken, error) = told(&good, &|| match asked.swap(true, Ordering::AcqRel) {
        false => Ok(()),
        true => Err(Error::internal("canceled")),
    });
    assert!(taken < 5_000 && error.contains("canceled"), "{taken} {error}");
}

/// What was read waits to be taken in a few chunks, whatever the length of the stream.
#[test]
fn streams_are_read_as_far_as_rows_are_taken() {
    struct Counted<'a>(&'a [u8], &'a AtomicUsize);
    impl io::Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = io::Read::read(&mut self.0, buffer)?;
            self.1.fetch_add(read, Ordering::AcqRel);
            Ok(read)
        }
    }
    let text: Vec<u8> = (1_000_000..4_000_000).flat_map(|row| format!("{row},x\n").into_bytes()).collect();
    let (options, columns) = (CsvOptions::default(), columns(&[DataType::Integer, TEXT]));
    let rows = FileRows::of_stream(&options, &columns);
    let (read, mut taken) = (AtomicUsize::new(0), 0);
    rows.read_stream(Counted(&text, &read), 1, &|| Ok(()), |part| {
        let ahead = read.load(Ordering::Acquire) as u64 - taken;
        assert!(ahead <= AHEAD_BYTES + 2 * CHUNK_BYTES_MIN, "{ahead}");
        taken += 10 * part.count as u64;
        Ok(())
    })
    .unwrap();
    assert!(read.into_inner() == text.len() && text.len() as u64 > 2 * AHEAD_BYTES);
    assert_eq!(taken, text.len() as u64);
}

/// Who takes the rows may refuse them; the threads end.
#[test]
fn a_refusal_ends_the_reading() {
    let text: Vec<u8> = (0..5_000).flat_map(|row| format!("{row},x\n").into_bytes()).collect();
    let (options, columns) = (CsvOptions::default(), columns(&[DataType::Integer, TEXT]));
    let rows = FileRows::new(&text, text.len() as u64, &options, &columns).with_chunks(64);
    let mut taken = 0;
    let refused = rows.read(4, |part| {
        taken += part.count;
        if taken > 100 { Err(Error::internal("enough")) } else { Ok(()) }
    });
    assert!(refused.unwrap_err().to_string().contains("enough"));
    assert!(taken < 200, "{taken}");
}

/// A file whose end is gone when it is read.
struct Shrinks(Vec<u8>, AtomicBool);

impl ReadAt for Shrinks {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = if self.1.swap(true, Ordering::AcqRel) { self.0.len() / 2 } else { self.0.len() };
        self.0[..len].to_vec().read_at(buffer, offset)
    }
}

#[test]
fn files_that_change_are_told_or_read_to_their_end() {
    let text: Vec<u8> = (0..500).flat_map(|row| format!("{row},x\n").into_bytes()).collect();
    let (options, columns) = (CsvOptions::default(), columns(&[DataType::Integer, TEXT]));
    let bytes = text.len() as u64;
    let file = Shrinks(text.clone(), AtomicBool::new(false));
    let rows = FileRows::new(&file, bytes, &options, &columns).with_chunks(200);
    let error = rows.read(2, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("shorter"), "{error}");
    // One that has grown: its length was that of half of it.
    let mut count = 0;
    let rows = FileRows::new(&text, bytes / 2, &options, &columns).with_chunks(200);
    rows.read(2, |part| {
        count += part.count;
        Ok(())
    })
    .unwrap();
    assert_eq!(count, 500);
}

#[test]
fn only_files_whose_quotes_toggle_are_cut() {
    let of = |change: &dyn Fn(&mut CsvOptions)| {
        let mut options = CsvOptions::default();
        change(&mut options);
        can_be_cut(&options, 2)
    };
    assert!(of(&|_| {}) && of(&|o| o.delimiter = b'\t') && of(&|o| o.null = "\\N".into()));
    assert!(!of(&|o| o.escape = b'\\') && !of(&|o| o.delimiter = b'"') && !of(&|o| o.null = "a,b".into()));
    assert!(!of(&|o| o.delimiter = 0xE9) && !can_be_cut(&CsvOptions::default(), 0));
}

/// Batches are those of the columns' types, without a copy in between.
#[test]
fn rows_make_a_batch() {
    let (options, columns) = (CsvOptions::default(), columns(&TYPES));
    let text = b"1,a,1.5,2024-02-29,1e3,2,3,4.5,2024-01-01 00:00:00,t,abc,\\x00ff,12:00:00\n".to_vec();
    let rows = FileRows::new(&text, text.len() as u64, &options, &columns);
    rows.read(1, |part| {
        for (array, column) in part.columns.iter().zip(&columns) {
            assert_eq!(*array.data_type(), column.data_type.arrow());
        }
        assert_eq!(RecordBatch::try_from_iter(part.columns.iter().map(|c| ("c", c.clone()))).unwrap().num_rows(), 1);
        Ok(())
    })
    .unwrap();
}
