//! What all ways of reading have to agree on: rows in chunks and as a stream, and one reader that goes byte by byte.
//!
//! Comes in: the bytes of a file, options, columns and lengths of chunks; or bytes that say all of it. Goes out: a
//! panic where one way gives other rows, other lines, another error or leaves other rows out. For tests, and for the
//! target of `fuzz/`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{cast, concat};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::DataType;

use super::*;

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.get(offset as usize..).unwrap_or_default();
        // Some at a time, as a file may.
        let count = rest.len().min(buffer.len()).min(1_000);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

pub(super) const TYPES: [DataType; 13] = [
    DataType::Integer,
    DataType::Text { max_chars: None },
    DataType::Decimal { precision: 12, scale: 2 },
    DataType::Date,
    DataType::Double,
    DataType::BigInt,
    DataType::SmallInt,
    DataType::Real,
    DataType::Timestamp,
    DataType::Boolean,
    DataType::Char { chars: 5 },
    DataType::Bytea,
    DataType::Time,
];

pub(super) fn columns(types: &[DataType]) -> Vec<Column> {
    types.iter().enumerate().map(|(at, t)| Column::new(ColumnId(at as u32), format!("c{at}"), *t, true)).collect()
}

/// What a reading gave: all columns, lines and rows that were left out, or the error, as it would be shown.
type Outcome = Result<(Vec<ArrayRef>, Vec<u64>, Vec<Reject>), String>;

fn joined(parts: Vec<Vec<ArrayRef>>, columns: &[Column]) -> Vec<ArrayRef> {
    let of_column = |at: usize| {
        let arrays: Vec<&dyn Array> = parts.iter().map(|part| part[at].as_ref()).collect();
        match arrays.as_slice() {
            [] => arrow::array::new_empty_array(&columns[at].data_type.arrow()),
            arrays => concat(arrays).unwrap(),
        }
    };
    (0..columns.len()).map(of_column).collect()
}

fn reader<'t>(text: &'t [u8], options: &CsvOptions, columns: &[Column]) -> CsvReader<&'t [u8]> {
    let names = columns.iter().map(|column| column.name.clone()).collect();
    CsvReader::new(text, options.clone(), names)
}

/// By one reader, a byte after the other: what has to come out.
pub(super) fn serially(text: &[u8], options: &CsvOptions, columns: &[Column], ignores: bool) -> Outcome {
    let mut reader = reader(text, options, columns);
    let (mut parts, mut lines, mut rejects) = (Vec::new(), Vec::new(), Vec::new());
    let conversion = Conversion::of_all(columns).ignoring(ignores);
    while let Some(batch) = reader.next_batch(TEXT_ROWS).map_err(|e| e.to_string())? {
        let (part, of_part, left_out) = conversion.rows(batch).map_err(|e| e.to_string())?;
        parts.push(part);
        lines.extend(of_part);
        rejects.extend(left_out);
    }
    Ok((joined(parts, columns), lines, rejects))
}

/// What is wrong with a row: what is told of some rows is the least.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wrong {
    kind: Kind,
    column: usize,
    /// The bytes before its row.
    place: u64,
    error: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Malformed,
    NoText,
    NoValue,
}

/// All that is wrong up to the first malformed row, row after row: no values if `ignores`.
fn all_wrong(text: &[u8], options: &CsvOptions, columns: &[Column], ignores: bool) -> Vec<Wrong> {
    let mut reader = reader(text, options, columns);
    let mut all = Vec::new();
    // Steps over what stands before the first row, so that its place is known.
    if let Err(error) = reader.next_batch(0) {
        return vec![Wrong { kind: Kind::Malformed, column: 0, place: 0, error: error.to_string() }];
    }
    loop {
        let place = reader.place();
        match reader.next_batch(1) {
            Ok(None) => return all,
            Err(error) => {
                // The one error that does not end the reading names its column: there may be a malformed row behind.
                let message = error.to_string();
                let column = message.split("column \"c").nth(1).and_then(|rest| rest.split('"').next());
                let column = column.and_then(|number| number.parse().ok()).unwrap_or_default();
                let is_malformed = error.sqlstate() != "22021";
                let kind = if is_malformed { Kind::Malformed } else { Kind::NoText };
                all.push(Wrong { kind, column, place, error: message });
                if is_malformed {
                    return all;
                }
            }
            Ok(Some(row)) => {
                for column in 0..columns.len() {
                    let conversion = Conversion::of_all(columns).ignoring(ignores);
                    if let Err(error) = conversion.of_some(&[column]).rows(row.clone()) {
                        all.push(Wrong { kind: Kind::NoValue, column, place, error: error.to_string() });
                    }
                }
            }
        }
    }
}

/// Whether `found` is what is told of the first rows with something wrong, as many as one chunk has: those that begin
/// in the same `chunk_bytes`, or some of them where nobody knows where chunks end.
fn is_of_first_chunk(found: &str, wrong: &[Wrong], chunk_bytes: Option<u64>) -> bool {
    let told = |wrong: &[Wrong]| wrong.iter().min().is_some_and(|least| least.error == found);
    match (chunk_bytes, wrong.first()) {
        (Some(bytes), Some(first)) => {
            let is_behind = |wrong: &Wrong| wrong.place / bytes != first.place / bytes;
            told(&wrong[..wrong.iter().position(is_behind).unwrap_or(wrong.len())])
        }
        _ => (1..=wrong.len()).any(|count| told(&wrong[..count])),
    }
}

/// In the form of a load if `is_load`.
fn in_chunks(rows: &FileRows<'_>, columns: &[Column], is_load: bool) -> Outcome {
    let (mut parts, mut lines, mut rejects) = (Vec::new(), Vec::new(), Vec::new());
    let read = rows.read(3, |mut part| {
        lines.extend(rows.lines(&part));
        rejects.append(&mut part.rejects);
        assert!(part.columns.iter().all(|column| column.len() == part.count));
        let own = |(array, column): (&ArrayRef, &Column)| match is_load {
            true => cast(array, &column.data_type.arrow()).unwrap(),
            false => array.clone(),
        };
        parts.push(part.columns.iter().zip(columns).map(own).collect());
        Ok(())
    });
    read.map_err(|e| e.to_string())?;
    Ok((joined(parts, columns), lines, rejects))
}

/// Gives some bytes at a time.
pub(super) struct Trickle<'a>(pub(super) &'a [u8], pub(super) usize);

impl io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 * 7 % 1_009;
        let count = buffer.len().min(1 + self.1);
        io::Read::read(&mut self.0, &mut buffer[..count])
    }
}

/// As a stream, whose chunks are cut by who reads it.
fn as_stream(rows: &FileRows<'_>, text: &[u8], columns: &[Column]) -> Outcome {
    let (mut parts, mut lines, mut rejects) = (Vec::new(), Vec::new(), Vec::new());
    let read = rows.read_stream(Trickle(text, 1), 3, &|| Ok(()), |mut part| {
        lines.extend(rows.lines(&part));
        rejects.append(&mut part.rejects);
        assert!(part.columns.iter().all(|column| column.len() == part.count));
        parts.push(part.columns.clone());
        Ok(())
    });
    read.map_err(|e| e.to_string())?;
    Ok((joined(parts, columns), lines, rejects))
}

pub(super) fn check(text: &[u8], options: &CsvOptions, columns: &[Column], chunks: impl IntoIterator<Item = u64>) {
    let expected = [false, true].map(|ignores| serially(text, options, columns, ignores));
    let wrong = [false, true].map(|ignores| all_wrong(text, options, columns, ignores));
    let bytes = text.len() as u64;
    for chunk_bytes in chunks.into_iter().chain([u64::MAX]) {
        for (ignores, (expected, wrong)) in [false, true].into_iter().zip(expected.iter().zip(&wrong)) {
            let conversion = Conversion::of_all(columns).ignoring(ignores);
            let file = text.to_vec();
            let file = |is_load| {
                let rows = FileRows::new(&file, bytes, options, columns).converted_by(conversion);
                in_chunks(&rows.with_chunks(chunk_bytes).for_load(is_load), columns, is_load)
            };
            let stream = FileRows::of_stream(options, columns).converted_by(conversion);
            let stream = as_stream(&stream.with_chunks(chunk_bytes.min(bytes + 1)), text, columns);
            let of_file = Some(chunk_bytes.max(3));
            for (found, of, told_within) in
                [(file(false), "file", of_file), (file(true), "load", of_file), (stream, "stream", None)]
            {
                let may_differ = chunk_bytes != u64::MAX && expected.is_err();
                let is_other_error = || found.as_ref().is_err_and(|found| is_of_first_chunk(found, wrong, told_within));
                assert!(
                    found == *expected || may_differ && is_other_error(),
                    "{:?} as a {of} in chunks of {chunk_bytes}, {ignores}: {found:?} instead of {expected:?}",
                    String::from_utf8_lossy(text)
                );
            }
        }
    }
}

/// Reads what `input` says in all ways: its first three bytes are options, the longest chunk, and which types columns
/// have from then on; the others are the file.
pub fn read_alike(input: &[u8]) {
    let [looks, chunk_bytes, types, text @ ..] = input else { return };
    let quote = *[b'"', b'\'', b'|', b'"'].get(usize::from(looks >> 1 & 3)).unwrap_or(&b'"');
    let options = CsvOptions {
        header: looks & 1 == 1,
        quote,
        escape: quote,
        delimiter: if looks & 8 == 0 { b',' } else { b'\t' },
        null: ["", "NULL", "1", "\\N"][usize::from(looks >> 4 & 3)].to_owned(),
        ..CsvOptions::default()
    };
    let width = usize::from(looks >> 6) + 1;
    let types: Vec<DataType> = TYPES.iter().cycle().skip(usize::from(types % 13)).take(width).copied().collect();
    if can_be_cut(&options, width) {
        check(text, &options, &columns(&types), [u64::from(*chunk_bytes).max(1)]);
    }
}
