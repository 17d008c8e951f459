//! A chunk that is read in pieces which the caches hold: of each its rows become values before the next one is read. A
//! chunk that is read as a whole goes to memory, and comes back from there.
//!
//! 1. The first piece tells whether the chunk begins in quotes, most likely: its first rows have as many fields as
//!    there are columns, if they are told apart rightly.
//! 2. Each piece is cut into rows, behind what the one before has left of a row, and the columns grow by them.
//! 3. The last row is read on behind the chunk.
//!
//! Then the chunks before it tell whether it did begin in quotes ([`InPieces::rows`]): if not as was guessed, nothing
//! of this counts, so that the rows are exact whatever was guessed. The chunk is then read as a whole, by `chunk`, and
//! so is one that has anything which is not plain: malformed rows, or rows that are longer than some pieces. Behind a
//! few of these all are read as a whole, for that takes one reading in place of two.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use mainstem_kernels::csv::{Marks, Summary, find_separators, summarise};

use super::super::reader::BYTE_ORDER_MARK;
use super::blocks::RowForm;
use super::chunk::first_row;
use super::columns::Columns;
use super::{Before, FileRows, Lines, Rows, Seen};
use crate::read_at::read_full;

/// Pieces that the beginning of a row may be long.
const HELD_PIECES: usize = 4;
/// The most that a file may grow by while it is read; beyond that there is an error to tell.
const GROWN_BYTES_MAX: u64 = 1 << 20;
/// Bytes that are read behind a chunk for the end of its last row.
const READ_ON_BYTES: usize = 64 << 10;
/// Bytes in which rows are looked for to guess whether they begin in quotes.
const LOOK_BYTES: usize = 16 << 10;
/// Rows that are looked at.
const LOOK_ROWS: usize = 4;

/// The rows of a chunk, if it began as was guessed.
pub(super) struct InPieces {
    columns: Vec<ArrayRef>,
    count: usize,
    summary: Summary,
    /// Whether its last byte is a line feed.
    is_line_end: bool,
    first: First,
    /// Where the last row ends in the file.
    to: u64,
}

/// The first row of a chunk.
#[derive(Clone, Copy)]
struct First {
    /// Whether the chunk begins in quotes.
    in_quotes: bool,
    /// Where in the file the row begins.
    from: u64,
    /// Line feeds of the chunk before it.
    line_feeds: u64,
}

/// A chunk on its way.
struct Reading<'a, 'b> {
    rows: &'a FileRows<'a>,
    number: usize,
    is_last: bool,
    /// Where the chunk begins in the file, where it ends as far as is known, and what was read up to.
    start: u64,
    end: u64,
    at: u64,
    buffer: &'b mut Vec<u8>,
    /// Bytes of a row, at the beginning of the buffer, that do not end it, and what they have.
    held: usize,
    of_held: Summary,
    form: RowForm,
    separators: Vec<u32>,
    columns: Columns<'a>,
    summary: Summary,
    is_line_end: bool,
    first: Option<First>,
}

impl<'a, 'b> Reading<'a, 'b> {
    fn begin(rows: &'a FileRows<'a>, number: usize, buffer: &'b mut Vec<u8>) -> Option<Self> {
        let is_last = number + 1 == rows.chunks();
        let start = number as u64 * rows.chunk_bytes;
        let end = if is_last { rows.bytes } else { start + rows.chunk_bytes };
        let room = HELD_PIECES * rows.piece_bytes + rows.piece_bytes.max(READ_ON_BYTES);
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        Some(Self {
            rows,
            number,
            is_last,
            start,
            end,
            at: start,
            buffer,
            held: 0,
            of_held: Summary::default(),
            form: RowForm::behind(&[], rows.marks(), rows.columns.len())?,
            separators: Vec::new(),
            columns: Columns::new(rows, (end - start) as usize),
            summary: Summary::default(),
            is_line_end: false,
            first: None,
        })
    }

    /// Reads the next piece and appends its rows. Says whether more pieces come.
    fn next_piece(&mut self) -> Option<bool> {
        // The file may have grown: what is behind its end is of the last chunk.
        let left = if self.is_last { u64::MAX } else { self.end - self.at };
        let wanted = self.rows.piece_bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        let room = self.buffer.get_mut(self.held..self.held + wanted)?;
        let read = read_full(self.rows.file, room, self.at).ok()?;
        let is_short = read < wanted && (!self.is_last || self.at + (read as u64) < self.end);
        if is_short || self.at > self.end + GROWN_BYTES_MAX {
            return None;
        }
        let filled = self.held + read;
        let piece = self.buffer.get(self.held..filled)?;
        self.is_line_end = piece.last().map_or(self.is_line_end, |last| *last == b'\n');
        let quote = self.rows.marks().quote;
        let (mut begin, mut of_piece) = (0, None);
        if self.first.is_none() {
            of_piece = Some(summarise(piece, quote));
            begin = self.find_first(filled, of_piece?)?;
        }
        self.at += read as u64;
        let part = self.buffer.get(begin..filled)?;
        if let Some(found) = self.form.rows_in(part, &mut self.separators)? {
            // What was held was looked at once more.
            let quotes = found.summary.quotes + self.of_held.quotes;
            let line_feeds = found.summary.line_feeds - self.of_held.line_feeds;
            of_piece = of_piece.or(Some(Summary { quotes, line_feeds }));
            self.columns.append(&found.block(part, &self.separators)?)?;
            begin += found.bytes;
        }
        let piece = self.buffer.get(self.held..filled)?;
        self.summary.add(of_piece.unwrap_or_else(|| summarise(piece, quote)));
        self.hold(begin..filled)?;
        Some(read == wanted && (self.at < self.end || self.is_last))
    }

    /// Finds the first row, in the first piece, `filled` bytes of the buffer that have `of_piece`. Returns where it
    /// begins.
    fn find_first(&mut self, filled: usize, of_piece: Summary) -> Option<usize> {
        let (rows, marks) = (self.rows, self.rows.marks());
        let piece = self.buffer.get(..filled)?;
        let (mut begin, mut in_quotes) = (0, false);
        if self.number == 0 && rows.options.header {
            begin = first_row(piece, marks, false)?;
            self.form = RowForm::behind(piece.get(..begin)?, marks, rows.columns.len())?;
        } else if self.number == 0 {
            begin = if piece.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        } else {
            let mut before = [0];
            if read_full(rows.file, &mut before, self.start - 1).ok()? == 0 {
                return None;
            }
            in_quotes = of_piece.quotes > 0 && begins_in_quotes(piece, marks, rows.columns.len())?;
            if in_quotes || before != *b"\n" {
                begin = first_row(piece, marks, in_quotes)?;
            }
        }
        let line_feeds = summarise(piece.get(..begin)?, marks.quote).line_feeds;
        self.first = Some(First { in_quotes, from: self.start + begin as u64, line_feeds });
        Some(begin)
    }

    /// Holds the bytes at `rest`, which are the beginning of a row.
    fn hold(&mut self, rest: Range<usize>) -> Option<()> {
        self.held = rest.len();
        self.of_held = summarise(self.buffer.get(rest.clone())?, self.rows.marks().quote);
        self.buffer.copy_within(rest, 0);
        (self.held <= HELD_PIECES * self.rows.piece_bytes).then_some(())
    }

    /// Reads on to the end of the last row, if it is not read, and appends it. Returns where it ends in the file.
    fn end_last_row(&mut self) -> Option<u64> {
        if self.held == 0 {
            return Some(self.at);
        }
        let row = if self.is_last {
            // The end of the file ends a row, too, but not behind a carriage return.
            if self.buffer.get(self.held - 1) == Some(&b'\r') {
                return None;
            }
            *self.buffer.get_mut(self.held)? = b'\n';
            self.held + 1
        } else {
            let room = self.buffer.get_mut(self.held..self.held + READ_ON_BYTES)?;
            let read = read_full(self.rows.file, room, self.end).ok()?;
            first_row(self.buffer.get(..self.held + read)?, self.rows.marks(), false)?
        };
        let part = self.buffer.get(..row)?;
        let found = self.form.rows_in(part, &mut self.separators)?.filter(|found| found.bytes == row)?;
        self.columns.append(&found.block(part, &self.separators)?)?;
        Some(self.at + (row - self.held) as u64)
    }
}

impl InPieces {
    /// Chunk `number` of `rows`, by way of `buffer`; None where it is not plain.
    pub(super) fn read(rows: &FileRows<'_>, number: usize, buffer: &mut Vec<u8>) -> Option<Self> {
        let mut reading = Reading::begin(rows, number, buffer)?;
        while reading.next_piece()? {}
        let to = reading.end_last_row()?;
        let Reading { columns, summary, is_line_end, first, .. } = reading;
        if columns.count() == 0 {
            return None;
        }
        let (columns, count) = columns.finish()?;
        Some(Self { columns, count, summary, is_line_end, first: first?, to })
    }

    /// What those behind it have to know, whatever was guessed.
    pub(super) fn seen(&self) -> Seen {
        Seen { summary: self.summary, is_line_end: Some(self.is_line_end) }
    }

    /// Its rows, if what stands before it is what was guessed.
    pub(super) fn rows(self, rows: &FileRows<'_>, before: Before) -> Option<Rows> {
        let Self { columns, count, first: First { in_quotes, from, line_feeds }, to, .. } = self;
        let lines = Lines::Within { from, to, line: 1 + before.line_feeds + line_feeds };
        let spare = Arc::clone(&rows.spare);
        let found = Rows { columns, count, rejects: Vec::new(), lines, spare };
        (before.in_quotes == in_quotes).then_some(found)
    }
}

/// Whether `bytes`, which have quotes, begin in quotes, if the first rows of one of both are rows of `columns` fields.
fn begins_in_quotes(bytes: &[u8], marks: Marks, columns: usize) -> Option<bool> {
    let bytes = bytes.get(..LOOK_BYTES).unwrap_or(bytes);
    let mut separators = Vec::new();
    let mut are_rows = |in_quotes: bool| {
        separators.clear();
        find_separators(bytes, marks, in_quotes, &mut separators);
        let is_end = |at: &u32| bytes.get(*at as usize) == Some(&b'\n');
        // What stands before the first line feed may be a part of a row.
        let rows = separators.split_inclusive(is_end).skip(1).filter(|row| row.last().is_some_and(is_end));
        let mut rows = rows.take(LOOK_ROWS).peekable();
        rows.peek().is_some() && rows.all(|row| row.len() == columns)
    };
    [false, true].into_iter().find(|in_quotes| are_rows(*in_quotes))
}
