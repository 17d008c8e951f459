//! Some of a file: its first bytes, and pieces from the rest of it.
//!
//! A piece begins anywhere. Where its first row begins is known if nothing in it is a quote, and no text of the first
//! bytes has several lines; or if its rows look like those of the first bytes when it is read from outside of quotes,
//! and do not when it is read from inside. A piece of which that is not known says nothing.

use std::collections::HashMap;
use std::io::Read;

use mainstem_storage::{Error, Result};

use super::Field;
use crate::csv::reader::BYTE_ORDER_MARK;
use crate::read_at::{ReadAt, read_full};
use crate::sql::{CsvOptions, LineEnd};

/// Bytes from the start of a file.
const HEAD_BYTES: usize = 1 << 20;
/// Pieces from the rest of it, the last one from its end.
const PIECES: u64 = 8;
/// Bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    head: Vec<u8>,
    /// Whether the file ends with `head`.
    is_all: bool,
    pieces: Vec<Vec<u8>>,
}

impl Sample {
    /// Of a file of `bytes` bytes.
    ///
    /// # Errors
    /// Io.
    pub(crate) fn of_file(file: &dyn ReadAt, bytes: u64) -> Result<Self> {
        Self::with_sizes(file, bytes, HEAD_BYTES, PIECE_BYTES)
    }

    /// Of the first bytes of a file alone.
    ///
    /// # Errors
    /// Io.
    pub(crate) fn first_of_file(file: &dyn ReadAt) -> Result<Self> {
        let head = read(file, 0, PIECE_BYTES)?;
        let is_all = head.len() < PIECE_BYTES;
        Ok(Self { is_all, ..Self::of_head(head) })
    }

    pub(super) fn with_sizes(file: &dyn ReadAt, bytes: u64, head_bytes: usize, piece_bytes: usize) -> Result<Self> {
        let head = read(file, 0, head_bytes)?;
        let is_all = head.len() as u64 >= bytes;
        let mut sample = Self { is_all, ..Self::of_head(head) };
        let rest = bytes.saturating_sub(head_bytes as u64);
        for number in 1..=PIECES {
            let end = head_bytes as u64 + rest * number / PIECES;
            let start = end.saturating_sub(piece_bytes as u64).max(head_bytes as u64);
            if !is_all && start < end {
                sample.pieces.push(read(file, start, (end - start) as usize)?);
            }
        }
        Ok(sample)
    }

    /// Of a stream, which gives but its first bytes. They are gone then, and returned beside.
    ///
    /// # Errors
    /// Io.
    pub(crate) fn of_stream(stream: &mut dyn Read) -> Result<Self> {
        let mut head = Vec::new();
        let read = stream.take(HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|e| Error::io("read", "the file", e))?;
        let is_all = head.len() < HEAD_BYTES;
        Ok(Self { is_all, ..Self::of_head(head) })
    }

    fn of_head(mut head: Vec<u8>) -> Self {
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        Self { head, ..Self::default() }
    }

    /// Whether the file ends with the sample.
    pub(super) fn is_all(&self) -> bool {
        self.is_all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// The first bytes.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Bytes of a row, about, if the first bytes and the pieces have `rows`.
    pub(super) fn row_bytes(&self, rows: usize) -> u64 {
        let bytes = self.head.len() + self.pieces.iter().map(Vec::len).sum::<usize>();
        (bytes / rows.max(1)).max(1) as u64
    }

    /// How lines end: by the first end of a line that is not in quotes.
    pub(crate) fn line_end(&self, quote: u8) -> LineEnd {
        first_line_end(&self.head, self.is_all, quote).unwrap_or_default()
    }

    /// The rows of the sample, those of the first bytes first. What may be half a row is left out, and empty lines.
    pub(super) fn rows(&self, options: &CsvOptions) -> Vec<Vec<Field>> {
        let mut rows = split(&self.head, options, self.is_all).rows;
        let Some(width) = most_frequent(rows.iter().map(Vec::len)) else { return rows };
        let has_long = rows.iter().flatten().any(|field| field.text.contains(&options.line_end.byte()));
        for piece in &self.pieces {
            rows.extend(rows_of_piece(piece, options, (width, has_long)));
        }
        rows
    }
}

/// How the first line of a file ends that begins with `bytes`, or is them, as far as they tell.
pub(crate) fn first_line_end(bytes: &[u8], is_all: bool, quote: u8) -> Option<LineEnd> {
    let mut in_quotes = false;
    for (at, byte) in bytes.iter().enumerate() {
        match *byte {
            byte if byte == quote => in_quotes = !in_quotes,
            b'\n' if !in_quotes => return Some(LineEnd::LineFeed),
            b'\r' if !in_quotes => {
                return match bytes.get(at + 1) {
                    Some(b'\n') => Some(LineEnd::Both),
                    // Perhaps the first half of an end.
                    None if !is_all => None,
                    _ => Some(LineEnd::CarriageReturn),
                };
            }
            _ => {}
        }
    }
    None
}

/// The number that occurs most often among `numbers`, the largest of several.
pub(super) fn most_frequent(numbers: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    numbers.for_each(|number| *counts.entry(number).or_default() += 1);
    counts.into_iter().max_by_key(|(number, count)| (*count, *number)).map(|(number, _)| number)
}

fn read(file: &dyn ReadAt, offset: u64, bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    let found = read_full(file, &mut buffer, offset)?;
    buffer.truncate(found);
    Ok(buffer)
}

/// The rows of a piece that have `width` fields, if it is known which bytes of it stand in quotes.
fn rows_of_piece(piece: &[u8], options: &CsvOptions, (width, has_long): (usize, bool)) -> Vec<Vec<Field>> {
    let end = options.line_end.byte();
    let Some(first) = piece.iter().position(|byte| *byte == end) else { return Vec::new() };
    let piece = piece.get(first + 1..).unwrap_or_default();
    let outside = split(piece, options, false);
    let fits = |rows: &[Vec<Field>]| !rows.is_empty() && rows.iter().all(|row| row.len() == width);
    if !piece.contains(&options.quote) {
        // Where texts have several lines, it may be all of one.
        if has_long {
            return Vec::new();
        }
        return outside.rows.into_iter().filter(|row| row.len() == width).collect();
    }
    let inside: Vec<u8> = std::iter::once(options.quote).chain(piece.iter().copied()).collect();
    let inside = split(&inside, options, false);
    // Of the first row only the end is there then.
    let inside_is_wrong = inside.strays > 0 || inside.rows.iter().skip(1).any(|row| row.len() != width);
    if inside_is_wrong && outside.strays == 0 && fits(&outside.rows) { outside.rows } else { Vec::new() }
}

/// Rows of some bytes.
#[derive(Debug, Default)]
pub(super) struct Split {
    pub(super) rows: Vec<Vec<Field>>,
    /// Quotes that stand in the middle of a field, and one that is never closed.
    pub(super) strays: usize,
    /// Fields in quotes.
    pub(super) quoted: usize,
}

/// Cuts `bytes` into rows and fields as the reader does; `is_all` says that their end ends a row. Empty lines are no
/// rows.
pub(super) fn split(bytes: &[u8], options: &CsvOptions, is_all: bool) -> Split {
    let mut splitter = Splitter { split: Split::default(), row: Vec::new(), field: Vec::new(), is_quoted: false };
    let CsvOptions { delimiter, quote, escape, line_end, .. } = options;
    let (end, mut at, mut in_quotes) = (line_end.byte(), 0, false);
    while let Some(byte) = bytes.get(at).copied() {
        let next = bytes.get(at + 1).copied();
        at += 1;
        if in_quotes {
            let escapes = byte == *escape && next.is_some_and(|next| next == *quote || next == *escape);
            if escapes {
                splitter.field.extend(next);
                at += 1;
            } else if byte == *quote {
                in_quotes = false;
                let ends = next.is_none_or(|next| next == *delimiter || next == b'\n' || next == b'\r');
                splitter.split.strays += usize::from(!ends);
            } else {
                splitter.field.push(byte);
            }
        } else if byte == *quote {
            in_quotes = true;
            splitter.split.strays += usize::from(!splitter.field.is_empty() || splitter.is_quoted);
            splitter.is_quoted = true;
        } else if byte == *delimiter {
            splitter.end_field();
        } else if byte == end {
            splitter.end_row();
        } else if !(byte == b'\r' && next == Some(b'\n')) {
            splitter.field.push(byte);
        }
    }
    if is_all {
        splitter.split.strays += usize::from(in_quotes);
        splitter.end_row();
    }
    splitter.split
}

struct Splitter {
    split: Split,
    row: Vec<Field>,
    field: Vec<u8>,
    is_quoted: bool,
}

impl Splitter {
    fn end_field(&mut self) {
        let is_quoted = std::mem::take(&mut self.is_quoted);
        self.split.quoted += usize::from(is_quoted);
        self.row.push(Field { text: std::mem::take(&mut self.field), is_quoted });
    }

    fn end_row(&mut self) {
        if self.row.is_empty() && self.field.is_empty() && !self.is_quoted {
            return;
        }
        self.end_field();
        self.split.rows.push(std::mem::take(&mut self.row));
    }
}
