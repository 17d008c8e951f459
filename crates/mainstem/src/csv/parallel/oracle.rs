//! What all ways of reading have to agree on: rows in chunks and as a stream, and one reader that goes byte by byte.
//!
//! Comes in: the bytes of a file, options, columns and lengths of chunks; or bytes that say all of it. Goes out: a
//! panic where one way gives other rows, other lines or another error. For tests, and for the target of `fuzz/`.

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

/// What a reading gave: all columns and lines, or the error, as it would be shown.
type Outcome = Result<(Vec<ArrayRef>, Vec<u64>), String>;

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

/// By one reader, a byte after the other: what has to come out.
pub(super) fn serially(text: &[u8], options: &CsvOptions, columns: &[Column]) -> Outcome {
    let names = columns.iter().map(|column| column.name.clone()).collect();
    let mut reader = CsvReader::new(text, options.clone(), names);
    let (mut parts, mut lines) = (Vec::new(), Vec::new());
    while let Some(batch) = reader.next_batch(TEXT_ROWS).map_err(|e| e.to_string())? {
        let (part, of_part, _) = Conversion::of_all(columns).rows(batch).map_err(|e| e.to_string())?;
        parts.push(part);
        lines.extend(of_part);
    }
    Ok((joined(parts, columns), lines))
}

/// In the form of a load if `is_load`.
fn in_chunks(text: &[u8], options: &CsvOptions, columns: &[Column], chunk_bytes: u64, is_load: bool) -> Outcome {
    let file = text.to_vec();
    let rows = FileRows::new(&file, text.len() as u64, options, columns).with_chunks(chunk_bytes).for_load(is_load);
    let (mut parts, mut lines) = (Vec::new(), Vec::new());
    let read = rows.read(3, |part| {
        lines.extend(rows.lines(&part));
        assert!(part.columns.iter().all(|column| column.len() == part.count));
        let own = |(array, column): (&ArrayRef, &Column)| cast(array, &column.data_type.arrow()).unwrap();
        parts.push(part.columns.iter().zip(columns).map(own).collect());
        Ok(())
    });
    read.map_err(|e| e.to_string())?;
    Ok((joined(parts, columns), lines))
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
fn as_stream(text: &[u8], options: &CsvOptions, columns: &[Column], chunk_bytes: u64) -> Outcome {
    let rows = FileRows::of_stream(options, columns).with_chunks(chunk_bytes.min(text.len() as u64 + 1));
    let (mut parts, mut lines) = (Vec::new(), Vec::new());
    let read = rows.read_stream(Trickle(text, 1), 3, &|| Ok(()), |part| {
        lines.extend(rows.lines(&part));
        assert!(part.columns.iter().all(|column| column.len() == part.count));
        parts.push(part.columns.clone());
        Ok(())
    });
    read.map_err(|e| e.to_string())?;
    Ok((joined(parts, columns), lines))
}

/// Of several errors, that of the first chunk is told, where one reader tells that of the first batch of rows.
fn same(found: &Outcome, expected: &Outcome, is_one_chunk: bool) -> bool {
    match (found, expected) {
        (Ok(found), Ok(expected)) => found == expected,
        (Err(found), Err(expected)) => found == expected || !is_one_chunk,
        _ => false,
    }
}

pub(super) fn check(text: &[u8], options: &CsvOptions, columns: &[Column], chunks: impl IntoIterator<Item = u64>) {
    let expected = serially(text, options, columns);
    for chunk_bytes in chunks.into_iter().chain([u64::MAX]) {
        let file = in_chunks(text, options, columns, chunk_bytes, false);
        let load = in_chunks(text, options, columns, chunk_bytes, true);
        let stream = as_stream(text, options, columns, chunk_bytes);
        let shown = String::from_utf8_lossy(text);
        for (found, of) in [(file, "file"), (load, "load"), (stream, "stream")] {
            assert!(
                same(&found, &expected, chunk_bytes == u64::MAX),
                "{shown:?} as a {of} in chunks of {chunk_bytes}: {found:?} instead of {expected:?}"
            );
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
