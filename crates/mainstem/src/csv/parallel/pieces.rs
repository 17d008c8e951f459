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
//! so is one that has anything which is not plain: malformed rows, or rows that are longer than some pieces.

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

impl InPieces {
    /// Chunk `number` of `rows`, by way of `buffer`; None where it is not plain.
    pub(super) fn read(rows: &FileRows<'_>, number: usize, buffer: &mut Vec<u8>) -> Option<Self> {
        let is_last = number + 1 == rows.chunks();
        let start = number as u64 * rows.chunk_bytes;
        let end = if is_last { rows.bytes } else { start + rows.chunk_bytes };
        let (marks, columns) = (rows.marks(), rows.columns.len());
        let held_max = HELD_PIECES * rows.piece_bytes;
        let room = held_max + rows.piece_bytes.max(READ_ON_BYTES);
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let mut byte = [b'\n'];
        if number > 0 && read_full(rows.file, &mut byte, start - 1).ok()? == 0 {
            return None;
        }
        let is_behind_line_end = byte == *b"\n";

        let mut form = RowForm::behind(&[], marks, columns)?;
        let mut all = Columns::new(rows, rows.chunk_bytes as usize);
        let mut separators = Vec::new();
        let (mut summary, mut is_line_end, mut first) = (Summary::default(), false, None);
        // Bytes of a row, at the beginning of the buffer, that do not end it.
        let (mut held, mut of_held) = (0, Summary::default());
        let mut at = start;
        // The file may have grown: what is behind its end is of the last chunk.
        while at < end || is_last {
            let left = if is_last { u64::MAX } else { end - at };
            let wanted = rows.piece_bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = read_full(rows.file, buffer.get_mut(held..held + wanted)?, at).ok()?;
            if read < wanted && (!is_last || at + (read as u64) < end) || at > end + GROWN_BYTES_MAX {
                return None;
            }
            let filled = held + read;
            let piece = buffer.get(held..filled)?;
            is_line_end = piece.last().map_or(is_line_end, |last| *last == b'\n');
            let mut begin = 0;
            let mut of_piece = None;
            if first.is_none() {
                let of_piece = *of_piece.insert(summarise(piece, marks.quote));
                let in_quotes = number > 0 && of_piece.quotes > 0 && begins_in_quotes(piece, marks, columns)?;
                if number == 0 && piece.starts_with(BYTE_ORDER_MARK) {
                    begin = BYTE_ORDER_MARK.len();
                }
                if number == 0 && rows.options.header {
                    begin = first_row(piece, marks, false)?;
                    form = RowForm::behind(piece.get(..begin)?, marks, columns)?;
                } else if in_quotes || !is_behind_line_end {
                    begin = first_row(piece, marks, in_quotes)?;
                }
                let line_feeds = summarise(piece.get(..begin)?, marks.quote).line_feeds;
                first = Some(First { in_quotes, from: start + begin as u64, line_feeds });
            }
            at += (filled - held) as u64;
            let part = buffer.get(begin..filled)?;
            if let Some(found) = form.rows_in(part, &mut separators)? {
                // What was held was looked at once more.
                let quotes = found.summary.quotes + of_held.quotes;
                let line_feeds = found.summary.line_feeds - of_held.line_feeds;
                of_piece = of_piece.or(Some(Summary { quotes, line_feeds }));
                all.append(&found.block(part, &separators)?)?;
                begin += found.bytes;
            }
            summary.add(of_piece.unwrap_or_else(|| summarise(piece, marks.quote)));
            held = filled - begin;
            if held > held_max {
                return None;
            }
            of_held = summarise(buffer.get(begin..filled)?, marks.quote);
            buffer.copy_within(begin..filled, 0);
            if read < wanted {
                break;
            }
        }
        let mut to = at;
        if held > 0 && is_last {
            // The end of the file ends a row, too, but not behind a carriage return.
            if buffer.get(held - 1) == Some(&b'\r') {
                return None;
            }
            *buffer.get_mut(held)? = b'\n';
            let part = buffer.get(..=held)?;
            let found = form.rows_in(part, &mut separators)?.filter(|found| found.bytes == part.len())?;
            all.append(&found.block(part, &separators)?)?;
        } else if held > 0 {
            let read = read_full(rows.file, buffer.get_mut(held..held + READ_ON_BYTES)?, end).ok()?;
            let row = first_row(buffer.get(..held + read)?, marks, false)?;
            let part = buffer.get(..row)?;
            let found = form.rows_in(part, &mut separators)?.filter(|found| found.bytes == row)?;
            all.append(&found.block(part, &separators)?)?;
            to += (row - held) as u64;
        }
        if all.count() == 0 {
            return None;
        }
        let (columns, count) = all.finish()?;
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
