//! A chunk of the file: the rows that begin in it.
//!
//! A row begins at the start of the file, and behind each line feed that is not in quotes. Who has its first byte has
//! the row, wherever it ends.

use std::io;
use std::ops::Range;

use mainstem_kernels::csv::{Marks, Summary, find_separators, summarise};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::super::reader::BYTE_ORDER_MARK;
use super::{Before, FileRows, Seen};
use crate::read_at::{ReadAt, read_full};

/// Bytes that are read at once: they are looked at while they are in a core's share of the caches.
const READ_BYTES: usize = 256 << 10;
/// Bytes that are looked at first for the end of a row.
const LOOK_BYTES: usize = 4 << 10;
/// Bytes that are read at once behind a chunk for the end of its last row.
const READ_ON_BYTES: usize = 64 << 10;
/// And at most at once.
const READ_ON_BYTES_MAX: usize = 16 << 20;
/// The most that a file may grow by while it is read: places in a chunk have 32 bits.
const GROWN_BYTES_MAX: usize = 1 << 30;

/// Bytes of the file, and where they stand.
pub(super) struct Chunk {
    number: usize,
    /// The chunk, and later what its last row has behind it.
    bytes: Vec<u8>,
    /// Where it begins in the file.
    start: u64,
    /// Whether it is the last one, or one whose rows end in it.
    is_last: bool,
    summary: Summary,
}

/// The rows that begin in a chunk.
pub(super) struct FoundRows {
    /// Of the chunk's bytes.
    bytes: Range<usize>,
    /// The line of the first one.
    pub(super) line: u64,
    /// Whether the header of the file stands in front of them: then they begin with it.
    pub(super) has_header: bool,
    /// Where behind a header the rows begin.
    first: usize,
    /// Whether the last one ends as a row does.
    pub(super) is_whole: bool,
}

impl Chunk {
    /// Reads chunk `number` of `rows` into `buffer`.
    ///
    /// # Errors
    /// Io; a file that has become shorter.
    pub(super) fn read(rows: &FileRows<'_>, number: usize, buffer: Vec<u8>) -> Result<Self> {
        let start = number as u64 * rows.chunk_bytes;
        let is_last = number + 1 == rows.chunks();
        let end = if is_last { rows.bytes } else { start + rows.chunk_bytes };
        let mut bytes = buffer;
        bytes.resize((end - start) as usize, 0);
        let mut summary = Summary::default();
        let mut at = start;
        for part in bytes.chunks_mut(READ_BYTES) {
            if read_full(rows.file, part, at)? < part.len() {
                return Err(shorter());
            }
            summary.add(summarise(part, rows.options.quote));
            at += part.len() as u64;
        }
        if is_last {
            let known = bytes.len();
            read_to_end(rows.file, &mut bytes, end)?;
            summary.add(summarise(bytes.get(known..).unwrap_or_default(), rows.options.quote));
        }
        Ok(Self { number, bytes, start, is_last, summary })
    }

    /// Whole rows of a stream, or its last ones; `summary` is theirs, and `before` bytes stand before them.
    pub(super) fn of_stream(number: usize, bytes: Vec<u8>, before: u64, summary: Summary) -> Self {
        Self { number, bytes, start: before, is_last: true, summary }
    }

    /// What those behind it have to know.
    pub(super) fn seen(&self) -> Seen {
        Seen { summary: self.summary, is_line_end: self.bytes.last().map(|last| *last == b'\n') }
    }

    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    /// Finds the rows that begin in the chunk, and reads on to the end of the last one; none if none begins here.
    ///
    /// # Errors
    /// Io; 53200 for a row that is too long.
    pub(super) fn find_rows(&mut self, rows: &FileRows<'_>, before: Before) -> Result<Option<FoundRows>> {
        let marks = rows.marks();
        let is_header = self.number == 0 && rows.options.header;
        let mark = if self.number == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let first = match before.at_row && !is_header {
            true => mark,
            false => match first_row(&self.bytes, marks, before.in_quotes) {
                Some(first) => first,
                None if is_header => return self.long_header(rows, marks, before),
                None => return Ok(None),
            },
        };
        let has_return = |part: &[u8]| part.contains(&b'\r');
        // What is behind a mark is a row of this chunk, even if it is in the next one.
        if first >= self.bytes.len() && (mark == 0 || self.is_last) {
            // A header may be malformed, too.
            let is_malformed = is_header && has_return(&self.bytes);
            return Ok(is_malformed.then(|| self.irregular()));
        }
        let behind = before.behind(self.seen());
        let (mut in_quotes, mut is_whole) = (behind.in_quotes, true);
        if in_quotes || self.bytes.last() != Some(&b'\n') {
            let known = self.bytes.len();
            let read = self.read_on(rows, marks, in_quotes);
            (in_quotes, is_whole) = read.map_err(|error| {
                let row = last_row(self.bytes.get(..known).unwrap_or_default(), marks, before.in_quotes).max(first);
                error.context(format_args!("line {}", self.line_of(row, marks, before)))
            })?;
        }
        let start = if is_header { 0 } else { first };
        Ok(Some(FoundRows {
            bytes: start..self.bytes.len(),
            line: self.line_of(start, marks, before),
            has_header: is_header,
            first,
            is_whole: is_whole && !in_quotes,
        }))
    }

    /// The line on which the byte at `place` stands.
    fn line_of(&self, place: usize, marks: Marks, before: Before) -> u64 {
        1 + before.line_feeds + summarise(self.bytes.get(..place).unwrap_or_default(), marks.quote).line_feeds
    }

    /// A header that does not end in the chunk, which then has no rows; it may be malformed.
    fn long_header(&mut self, rows: &FileRows<'_>, marks: Marks, before: Before) -> Result<Option<FoundRows>> {
        let in_quotes = before.behind(self.seen()).in_quotes;
        let (in_quotes, _) = self.read_on(rows, marks, in_quotes)?;
        let is_malformed = in_quotes || self.bytes.contains(&b'\r');
        Ok(is_malformed.then(|| self.irregular()))
    }

    /// All of the first chunk, for others to tell what is wrong with it.
    fn irregular(&self) -> FoundRows {
        FoundRows { bytes: 0..self.bytes.len(), line: 1, has_header: true, first: 0, is_whole: false }
    }

    /// Reads on behind the chunk, which ends in quotes or not, until its last row ends. Returns whether it ends in
    /// quotes, and whether it ends as a row does.
    fn read_on(&mut self, rows: &FileRows<'_>, marks: Marks, mut in_quotes: bool) -> Result<(bool, bool)> {
        let mut step = READ_ON_BYTES;
        let mut separators = Vec::new();
        while !self.is_last {
            let from = self.bytes.len();
            // As much behind the chunk as a row may have in all.
            let limit = rows.options.row_limit;
            if from as u64 > rows.chunk_bytes + limit.bytes() as u64 {
                return Err(limit.error("a row"));
            }
            self.bytes.resize(from + step, 0);
            let at = self.start + from as u64;
            let read = read_full(rows.file, self.bytes.get_mut(from..).unwrap_or_default(), at)?;
            self.bytes.truncate(from + read);
            separators.clear();
            let part = self.bytes.get(from..).unwrap_or_default();
            let found = find_separators(part, marks, in_quotes, &mut separators);
            if let Some(line_feed) = separators.iter().find(|at| part.get(**at as usize) == Some(&b'\n')) {
                self.bytes.truncate(from + *line_feed as usize + 1);
                return Ok((false, true));
            }
            in_quotes = found.in_quotes;
            if read < step {
                if at + (read as u64) < rows.bytes {
                    return Err(shorter());
                }
                break;
            }
            step = (2 * step).min(READ_ON_BYTES_MAX);
        }
        // The end of the file ends a row, too.
        let is_whole = self.bytes.last() != Some(&b'\r');
        if !in_quotes && is_whole {
            self.bytes.push(b'\n');
        }
        Ok((in_quotes, is_whole))
    }

    /// The bytes of `found`.
    pub(super) fn bytes_of(&self, found: &FoundRows) -> &[u8] {
        self.bytes.get(found.bytes.clone()).unwrap_or_default()
    }

    /// Where in the file the bytes of `found` begin.
    pub(super) fn start_of(&self, found: &FoundRows) -> u64 {
        self.start + found.bytes.start as u64
    }

    /// The bytes of the header before the rows of `found`, and those of the rows.
    pub(super) fn header_and_rows(&self, found: &FoundRows) -> (&[u8], &[u8]) {
        self.bytes_of(found).split_at_checked(found.first - found.bytes.start).unwrap_or_default()
    }

    /// Where in the file the rows of `found` stand, and the line of the first one.
    pub(super) fn place_of(&self, found: &FoundRows, marks: Marks) -> (Range<u64>, u64) {
        let (header, _) = self.header_and_rows(found);
        let range = self.start + found.first as u64..self.start + found.bytes.end as u64;
        (range, found.line + summarise(header, marks.quote).line_feeds)
    }
}

/// Where in `bytes`, which begin in quotes or not, the first row begins that is not begun before.
pub(super) fn first_row(bytes: &[u8], marks: Marks, mut in_quotes: bool) -> Option<usize> {
    let mut separators = Vec::new();
    let (mut at, mut step) = (0, LOOK_BYTES);
    while at < bytes.len() {
        let part = bytes.get(at..bytes.len().min(at + step)).unwrap_or_default();
        separators.clear();
        in_quotes = find_separators(part, marks, in_quotes, &mut separators).in_quotes;
        if let Some(line_feed) = separators.iter().find(|place| part.get(**place as usize) == Some(&b'\n')) {
            return Some(at + *line_feed as usize + 1);
        }
        at += part.len();
        step = (2 * step).min(READ_ON_BYTES_MAX);
    }
    None
}

/// Where the last row of `bytes` begins.
fn last_row(bytes: &[u8], marks: Marks, in_quotes: bool) -> usize {
    let mut separators = Vec::new();
    find_separators(bytes, marks, in_quotes, &mut separators);
    let line_feed = separators.iter().rev().find(|at| bytes.get(**at as usize) == Some(&b'\n'));
    line_feed.map_or(0, |at| *at as usize + 1)
}

fn shorter() -> Error {
    let message = "it has become shorter since it was opened";
    Error::io("read", "the file", io::Error::new(io::ErrorKind::UnexpectedEof, message))
}

/// Appends what the file has from `offset` on: a file may have grown since it was opened.
fn read_to_end(file: &dyn ReadAt, bytes: &mut Vec<u8>, offset: u64) -> Result<()> {
    let known = bytes.len();
    loop {
        let from = bytes.len();
        if from - known > GROWN_BYTES_MAX {
            return Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, "the file grows too fast while it is read"));
        }
        bytes.resize(from + READ_ON_BYTES, 0);
        let read = read_full(file, bytes.get_mut(from..).unwrap_or_default(), offset + (from - known) as u64)?;
        bytes.truncate(from + read);
        if read == 0 {
            return Ok(());
        }
    }
}
