#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Read;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray};

use super::*;
use crate::sql::CsvOptions;

/// Gives out its bytes a few at a time, so that every boundary is met.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let step = self.1.min(self.0.len()).min(buffer.len());
        buffer[..step].copy_from_slice(&self.0[..step]);
        self.0 = &self.0[step..];
        Ok(step)
    }
}

type Row = (u64, Vec<Option<String>>);

fn read(text: &[u8], columns: usize, options: &CsvOptions, step: usize) -> Result<Vec<Row>, mainstem_storage::Error> {
    let names = (0..columns).map(|n| format!("c{n}")).collect();
    let mut reader = CsvReader::new(Dribble(text, step), options.clone(), names);
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch(2)? {
        for (row, line) in batch.lines.iter().enumerate() {
            let value = |column: &ArrayRef| {
                let column = column.as_string::<i32>();
                column.is_valid(row).then(|| column.value(row).to_string())
            };
            rows.push((*line, batch.columns.iter().map(value).collect()));
        }
    }
    Ok(rows)
}

fn row(line: u64, values: &[Option<&str>]) -> Row {
    (line, values.iter().map(|v| v.map(ToString::to_string)).collect())
}

#[test]
fn quotes_tell_null_from_empty() {
    let text = b"a,,\"\"\r\n\"x\ny\",\"q\"\"q\",\n\"\",b\"c,d\"e,\"NULL\"";
    let expected = [
        row(1, &[Some("a"), None, Some("")]),
        row(2, &[Some("x\ny"), Some("q\"q"), None]),
        row(4, &[Some(""), Some("bc,de"), Some("NULL")]),
    ];
    for step in 1..=text.len() {
        assert_eq!(read(text, 3, &CsvOptions::default(), step).unwrap(), expected, "{step} bytes at a time");
    }
}

#[test]
fn headers_marks_and_other_characters() {
    let options = CsvOptions {
        header: true,
        delimiter: b';',
        quote: b'\'',
        escape: b'\\',
        null: "\\N".into(),
        ..CsvOptions::default()
    };
    let text = b"\xEF\xBB\xBF'one\nname';two\n\\N;'it\\'s \\\\ \\n'\n;x\n";
    let expected = [row(3, &[None, Some("it's \\ \\n")]), row(4, &[Some(""), Some("x")])];
    assert_eq!(read(text, 2, &options, 3).unwrap(), expected);
    assert_eq!(read(b"\n\nx\n", 1, &CsvOptions::default(), 1).unwrap().len(), 3, "an empty line is a NULL");
    assert!(read(b"", 2, &CsvOptions::default(), 1).unwrap().is_empty());
    assert!(read(b"only,header\n", 2, &CsvOptions { header: true, ..CsvOptions::default() }, 1).unwrap().is_empty());
}

#[test]
fn malformed_records_are_named() {
    for (text, code, says) in [
        (&b"1,2\n3\n"[..], "22P04", "line 2: missing data for column \"c1\""),
        (b"1,2\n3,4,5\n", "22P04", "line 2: extra data"),
        (b"1,2\n3,\"4\n5\n", "22P04", "line 2: unterminated quoted field in column \"c1\""),
        (b"1,2\r3,4\n", "22P04", "line 1: unquoted carriage return"),
        (b"1,2\n3,\xFF\n", "22021", "line 2, column \"c1\""),
        // A character that the end of a row cuts: the bytes of the column are UTF-8 all the same.
        (b"a,2\n\xC3,4\n\xA9,6\n", "22021", "line 2, column \"c0\""),
        (b"1,2\n\n", "22P04", "line 2: missing data"),
    ] {
        let error = read(text, 2, &CsvOptions::default(), 8).unwrap_err();
        assert_eq!(error.sqlstate(), code);
        assert!(error.message().contains(says), "{error}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let texts =
        [Some("plain"), Some(""), None, Some("a,b"), Some("say \"hi\""), Some("two\nlines"), Some("\\."), Some("cr\r")];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("t", Arc::new(StringArray::from(texts.to_vec()))),
        ("n", Arc::new(Int64Array::from((0..8).map(|n| (n != 3).then_some(n)).collect::<Vec<_>>()))),
        ("b", Arc::new(BooleanArray::from(vec![true; 8]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for options in [
        CsvOptions { header: true, ..CsvOptions::default() },
        CsvOptions { escape: b'\\', null: "NULL".into(), ..CsvOptions::default() },
        CsvOptions { delimiter: b'\t', quote: b'\'', escape: b'\'', ..CsvOptions::default() },
    ] {
        let format = LineFormat::Csv(options.clone());
        let mut bytes = Vec::new();
        format.header(&batch.schema(), &mut bytes);
        format.rows(&batch, &mut bytes).unwrap();
        let rows = read(&bytes, 3, &options, 5).unwrap();
        let back: Vec<Option<&str>> = rows.iter().map(|(_, values)| values[0].as_deref()).collect();
        assert_eq!(back, texts);
        assert_eq!(rows[3].1[1..], [None, Some("t".to_string())]);
    }
}
