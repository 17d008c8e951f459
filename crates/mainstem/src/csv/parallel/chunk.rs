//! A chunk of the file: the rows that begin in it.
//!
//! A row begins at the start of the file, and behind each line feed that is not in quotes. Who has its first byte has
//! the row, wherever it ends.

use std::io;
use std::ops::Range;

use mainstem_kernels::csv::{Fields, Marks, Structure, Summary, find_separators, summarise};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::super::reader::BYTE_ORDER_MARK;
use super::{Before, FileRows, ReadAt};

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
    /// The byte before it.
    previous: Option<u8>,
    /// Whether it is the last one.
    is_last: bool,
    quote: u8,
    separators: Vec<u32>,
}

/// The rows that begin in a chunk.
pub(super) struct FoundRows {
    /// Of the chunk's bytes.
    bytes: Range<usize>,
    /// Of its separators.
    separators: Range<usize>,
    columns: usize,
    /// The line of the first one.
    pub(super) line: u64,
    /// Whether the header of the file stands in front of them: then they begin with it.
    pub(super) has_header: bool,
    pub(super) has_quotes: bool,
    has_carriage_returns: bool,
    /// Where behind a header the rows begin.
    first: usize,
    /// Whether all rows have as many fields as there are columns, and end in the same way.
    pub(super) is_regular: bool,
}

impl FoundRows {
    /// How many they are, if they are regular.
    pub(super) fn count(&self) -> usize {
        self.separators.len() / self.columns
    }
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
        let ahead = usize::from(number > 0);
        let mut bytes = buffer;
        // The byte before comes along, and is taken away again.
        bytes.resize(((end - start) as usize) + ahead, 0);
        let found = read_full(rows.file, &mut bytes, start - ahead as u64)?;
        if found < bytes.len() {
            return Err(shorter());
        }
        let previous = if ahead > 0 { bytes.first().copied() } else { None };
        bytes.drain(..ahead);
        if is_last {
            read_to_end(rows.file, &mut bytes, end)?;
        }
        Ok(Self { number, bytes, start, previous, is_last, quote: rows.options.quote, separators: Vec::new() })
    }

    /// What the chunks behind it have to know.
    pub(super) fn summary(&self) -> Summary {
        summarise(&self.bytes, self.quote)
    }

    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    /// Finds the rows that begin in the chunk, and reads on to the end of the last one; none if none begins here.
    ///
    /// # Errors
    /// Io; 22P04 for a row that is too long.
    pub(super) fn find_rows(&mut self, rows: &FileRows<'_>, before: Before) -> Result<Option<FoundRows>> {
        let marks = Marks { delimiter: rows.options.delimiter, quote: rows.options.quote };
        let begun = find_separators(&self.bytes, marks, before.in_quotes, &mut self.separators);
        let is_header = self.number == 0 && rows.options.header;
        let starts_with_row = match self.previous {
            None => true,
            Some(previous) => previous == b'\n' && !before.in_quotes,
        };
        let mark = if self.number == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let (first, skipped) = if starts_with_row && !is_header {
            (mark, 0)
        } else {
            let line_feed = self.separators.iter().position(|at| self.is_line_feed(*at));
            let Some(at) = line_feed else {
                return if is_header { self.long_header(rows, marks, begun) } else { Ok(None) };
            };
            (self.separators.get(at).map_or(0, |at| *at as usize + 1), at + 1)
        };
        // What is behind a mark is a row of this chunk, even if it is in the next one.
        if first >= self.bytes.len() && (mark == 0 || self.is_last) {
            // A header may be malformed, too.
            return Ok((is_header && begun.carriage_returns > 0).then(|| self.irregular(rows)));
        }
        let line_feeds = |part: &[u8]| summarise(part, marks.quote).line_feeds;
        let mut in_quotes = begun.in_quotes;
        let (mut has_quotes, mut has_returns) = (begun.has_quotes, begun.carriage_returns > 0);
        let mut is_whole = true;
        if in_quotes || self.bytes.last() != Some(&b'\n') {
            let last_row = self.separators.iter().rev().find(|at| self.is_line_feed(**at));
            let last_row = last_row.map_or(0, |at| *at as usize + 1).max(first).min(self.bytes.len());
            let line = 1 + before.line_feeds + line_feeds(self.bytes.get(..last_row).unwrap_or_default());
            let read = self.read_on(rows, marks, in_quotes, &mut has_quotes, &mut has_returns);
            (in_quotes, is_whole) = read.map_err(|error| error.context(format_args!("line {line}")))?;
        }
        let start = if is_header { 0 } else { first };
        let mut found = FoundRows {
            bytes: start..self.bytes.len(),
            separators: skipped..self.separators.len(),
            columns: rows.columns.len(),
            line: 1 + before.line_feeds + line_feeds(self.bytes.get(..start).unwrap_or_default()),
            has_header: is_header,
            has_quotes,
            has_carriage_returns: has_returns,
            first,
            is_regular: is_whole && !in_quotes,
        };
        found.is_regular = found.is_regular && self.is_regular(&found);
        if found.has_header && found.is_regular {
            // The rows alone, which begin on a line of their own.
            found.line += line_feeds(self.bytes.get(..first).unwrap_or_default());
            found.bytes.start = first;
            found.has_header = false;
        }
        Ok(Some(found))
    }

    /// A header that does not end in the chunk, which then has no rows; it may be malformed.
    fn long_header(&mut self, rows: &FileRows<'_>, marks: Marks, begun: Structure) -> Result<Option<FoundRows>> {
        let mut has_returns = begun.carriage_returns > 0;
        let (in_quotes, _) = self.read_on(rows, marks, begun.in_quotes, &mut true, &mut has_returns)?;
        Ok((in_quotes || has_returns).then(|| self.irregular(rows)))
    }

    /// All of the first chunk, for others to tell what is wrong with it.
    fn irregular(&self, rows: &FileRows<'_>) -> FoundRows {
        FoundRows {
            bytes: 0..self.bytes.len(),
            separators: 0..0,
            columns: rows.columns.len(),
            line: 1,
            has_header: true,
            has_quotes: true,
            has_carriage_returns: true,
            first: 0,
            is_regular: false,
        }
    }

    /// Reads on behind the chunk until its last row ends. Returns whether it ends in quotes, and whether it ends as a
    /// row does.
    fn read_on(
        &mut self,
        rows: &FileRows<'_>,
        marks: Marks,
        mut in_quotes: bool,
        has_quotes: &mut bool,
        has_returns: &mut bool,
    ) -> Result<(bool, bool)> {
        let mut step = READ_ON_BYTES;
        while !self.is_last {
            let from = self.bytes.len();
            // As much behind the chunk as a row may have in all.
            if from as u64 > rows.chunk_bytes + rows.row_bytes {
                return Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, "a row is longer than 1 GiB"));
            }
            self.bytes.resize(from + step, 0);
            let at = self.start + from as u64;
            let read = read_full(rows.file, self.bytes.get_mut(from..).unwrap_or_default(), at)?;
            self.bytes.truncate(from + read);
            let known = self.separators.len();
            let part = self.bytes.get(from..).unwrap_or_default();
            let more = find_separators(part, marks, in_quotes, &mut self.separators);
            self.separators.iter_mut().skip(known).for_each(|at| *at += from as u32);
            *has_quotes |= more.has_quotes;
            *has_returns |= more.carriage_returns > 0;
            let line_feed = self.separators.iter().skip(known).position(|at| self.is_line_feed(*at));
            if let Some(at) = line_feed {
                self.separators.truncate(known + at + 1);
                let end = self.separators.last().map_or(from, |at| *at as usize + 1);
                self.bytes.truncate(end);
                return Ok((false, true));
            }
            in_quotes = more.in_quotes;
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
            self.separators.push(self.bytes.len() as u32);
            self.bytes.push(b'\n');
        }
        Ok((in_quotes, is_whole))
    }

    fn is_line_feed(&self, at: u32) -> bool {
        self.bytes.get(at as usize) == Some(&b'\n')
    }

    /// Whether each row of `found` has a field for each column, and all or none of them, and the header, have a
    /// carriage return before their line feed, and no others.
    fn is_regular(&self, found: &FoundRows) -> bool {
        let ends = self.separators.get(found.separators.clone()).unwrap_or_default();
        let (rows, rest) = (ends.chunks_exact(found.columns.max(1)), ends.len() % found.columns.max(1));
        let has_fields = |row: &[u32]| {
            row.split_last().is_some_and(|(last, others)| {
                self.is_line_feed(*last) && others.iter().all(|at| !self.is_line_feed(*at))
            })
        };
        if rest > 0 || !rows.clone().all(has_fields) {
            return false;
        }
        if !found.has_carriage_returns {
            return true;
        }
        let before = |at: usize| self.bytes.get(at.wrapping_sub(1)) == Some(&b'\r');
        let ended = rows.filter(|row| row.last().is_some_and(|at| before(*at as usize))).count();
        let count =
            |part: Range<usize>| self.bytes.get(part).unwrap_or_default().iter().filter(|byte| **byte == b'\r').count();
        // One of the header stands before its line feed.
        let of_header = if found.has_header { usize::from(before(found.first - 1)) } else { 0 };
        let is_header_regular = !found.has_header || count(0..found.first) == of_header;
        ended == found.count() && count(found.first..self.bytes.len()) == ended && is_header_regular
    }

    /// The fields of column `column` of `found`, which are regular.
    pub(super) fn fields(&self, found: &FoundRows, column: usize) -> Fields<'_> {
        let ends = self.separators.get(found.separators.clone()).unwrap_or_default();
        Fields::new(&self.bytes, ends, found.first, (found.columns, column), found.has_carriage_returns)
    }

    /// The bytes of `found`.
    pub(super) fn bytes_of(&self, found: &FoundRows) -> &[u8] {
        self.bytes.get(found.bytes.clone()).unwrap_or_default()
    }

    /// Where in the file the bytes of `found` stand.
    pub(super) fn range_of(&self, found: &FoundRows) -> (u64, u64) {
        (self.start + found.bytes.start as u64, self.start + found.bytes.end as u64)
    }
}

fn shorter() -> Error {
    let message = "it has become shorter since it was opened";
    Error::io("read", "the file", io::Error::new(io::ErrorKind::UnexpectedEof, message))
}

/// Reads as much of `buffer` at `offset` as there is.
pub(in crate::csv) fn read_full(file: &dyn ReadAt, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read", "the file", e)),
        }
    }
    Ok(read)
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
