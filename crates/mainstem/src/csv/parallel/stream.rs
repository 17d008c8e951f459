//! The rows of a stream by several threads: a pipe, a compressed file, the STDIN of a COPY.
//!
//! Comes in: a stream that one thread reads. Goes out: the same rows as of a file.
//!
//! 1. The stream fills a chunk. Its quotes are counted as they come, so that whoever reads it knows whether it ends in
//!    quotes: the state of a file's chunks, which comes there from the chunks before.
//! 2. The chunk is cut behind its last row; what is left begins the next one. So a chunk has whole rows, and nobody has
//!    to read on behind it. A row longer than a chunk makes the chunk longer.
//! 3. Threads find the rows of a chunk and make columns of them, as those of a file.
//!
//! Invariants: a chunk begins with a row. Few chunks wait to be taken, whatever the length of the stream. What was
//! read before the stream failed is looked at before that is told. It does not own: streams whose lines end in carriage
//! returns, or whose quotes do not toggle ([`super::can_be_cut`]).

use std::io::{self, Read};

use mainstem_kernels::csv::{Marks, Summary, find_separators, summarise};
use mainstem_storage::schema::Column;
use mainstem_storage::threads::in_order;
use mainstem_storage::{Error, Result};
use parking_lot::Mutex;

use super::chunk::Chunk;
use super::{Before, FileRows, Lines, Rows};
use crate::read_at::ReadAt;
use crate::sql::{CsvOptions, RowLimit};

/// Bytes that are read at once: they are counted while they are in a core's share of the caches.
const READ_BYTES: usize = 256 << 10;
/// Bytes that are looked at first for the end of the last row.
const LOOK_BYTES: usize = 16 << 10;

/// What stands behind a chunk of whole rows.
pub(super) struct Nothing;

impl ReadAt for Nothing {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Ok(0)
    }
}

/// Whole rows of a stream.
pub(super) struct Piece {
    number: usize,
    bytes: Vec<u8>,
    summary: Summary,
    /// Lines and bytes before it.
    line_feeds: u64,
    before: u64,
}

impl Piece {
    /// Its rows, as `rows` wants them; `rows` gets its memory back when they are dropped.
    pub(super) fn rows(self, rows: &FileRows<'_>) -> Result<Vec<Rows>> {
        let Self { number, bytes, summary, line_feeds, before: start } = self;
        let before = Before { line_feeds, ..Before::FILE };
        let (mut parts, bytes) = rows.rows_of(Chunk::of_stream(number, bytes, start, summary), before)?;
        match parts.as_mut_slice() {
            // Its lines are counted when they are asked for.
            [Rows { lines, .. }] if matches!(lines, Lines::Within { .. }) => {
                if let Lines::Within { from, to, line } = *lines {
                    let range = (from - start) as usize..(to - start) as usize;
                    *lines = Lines::Kept { bytes, range, line };
                }
            }
            _ => rows.spare.take_back_chunk(bytes),
        }
        Ok(parts)
    }
}

/// Cuts a stream.
pub(crate) struct Cutter<R> {
    stream: R,
    marks: Marks,
    /// Bytes of a chunk, but for a row that is longer.
    chunk_bytes: usize,
    limit: RowLimit,
    /// What was read behind the last row that was handed out, and what it has.
    rest: Vec<u8>,
    in_rest: Summary,
    number: usize,
    line_feeds: u64,
    /// Bytes that were handed out.
    before: u64,
    ended: bool,
    /// Why the stream ended early.
    failed: Option<Error>,
}

impl<R: Read> Cutter<R> {
    /// Of `stream`, which looks like `options`, into chunks of `chunk_bytes`.
    pub(crate) fn new(stream: R, options: &CsvOptions, chunk_bytes: u64) -> Self {
        Self {
            stream,
            marks: Marks { delimiter: options.delimiter, quote: options.quote },
            chunk_bytes: chunk_bytes as usize,
            limit: options.row_limit,
            rest: Vec::new(),
            in_rest: Summary::default(),
            number: 0,
            line_feeds: 0,
            before: 0,
            ended: false,
            failed: None,
        }
    }

    /// Whether there is nothing behind what was handed out.
    pub(super) fn has_ended(&self) -> bool {
        self.ended && self.failed.is_none()
    }

    /// The next rows, by way of `buffer`; None at the end. `check` is asked between reads whether to go on.
    ///
    /// # Errors
    /// Io; 53200 for a row that is too long; those of `check`.
    pub(super) fn next(&mut self, buffer: Vec<u8>, check: &dyn Fn() -> Result<()>) -> Result<Option<Piece>> {
        if self.ended {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let mut bytes = buffer;
        bytes.clear();
        bytes.append(&mut self.rest);
        let mut summary = std::mem::take(&mut self.in_rest);
        // What is left of the chunk before has no end of a row.
        let (mut wanted, mut looked_at) = (self.chunk_bytes, bytes.len());
        let end = loop {
            self.fill(&mut bytes, wanted, &mut summary, check)?;
            if self.ended && self.failed.is_none() {
                break bytes.len();
            }
            if let Some(end) = end_of_rows(&bytes, looked_at, self.marks, summary.quotes % 2 == 1) {
                break end;
            }
            if self.ended {
                return self.failed.take().map_or(Ok(None), Err);
            }
            // As of a file: as much behind a chunk as a row may have in all.
            if bytes.len() > self.chunk_bytes + self.limit.bytes() {
                return Err(self.limit.error(format_args!("line {}: a row", self.line_feeds + 1)));
            }
            looked_at = bytes.len();
            wanted = bytes.len() + bytes.len().min(self.chunk_bytes);
        };
        self.rest.extend_from_slice(bytes.get(end..).unwrap_or_default());
        bytes.truncate(end);
        self.in_rest = summarise(&self.rest, self.marks.quote);
        let summary = Summary {
            quotes: summary.quotes - self.in_rest.quotes,
            line_feeds: summary.line_feeds - self.in_rest.line_feeds,
        };
        let handed_out = bytes.len() as u64;
        let piece = Piece { number: self.number, bytes, summary, line_feeds: self.line_feeds, before: self.before };
        self.number += 1;
        self.before += handed_out;
        self.line_feeds += summary.line_feeds;
        Ok(Some(piece))
    }

    /// Reads until `bytes` are `wanted`, or the stream ends.
    fn fill(
        &mut self,
        bytes: &mut Vec<u8>,
        wanted: usize,
        summary: &mut Summary,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let mut at = bytes.len();
        while at < wanted {
            check()?;
            // Memory is taken as the stream comes: it may be short.
            let end = wanted.min(at + READ_BYTES);
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            let part = bytes.get_mut(at..end).unwrap_or_default();
            match self.stream.read(part) {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    summary.add(summarise(part.get(..read).unwrap_or_default(), self.marks.quote));
                    at += read;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.ended = true;
                    self.failed = Some(Error::io("read", "the file", e));
                }
            }
            if self.ended {
                break;
            }
        }
        bytes.truncate(at);
        Ok(())
    }
}

/// Where the last row of `bytes` ends that has its end at `from` or behind it; `bytes` begin with a row, and end in
/// quotes or not.
fn end_of_rows(bytes: &[u8], from: usize, marks: Marks, mut in_quotes: bool) -> Option<usize> {
    let mut separators = Vec::new();
    let (mut end, mut step) = (bytes.len(), LOOK_BYTES);
    while end > from {
        let start = end.saturating_sub(step).max(from);
        let part = bytes.get(start..end).unwrap_or_default();
        in_quotes ^= summarise(part, marks.quote).quotes % 2 == 1;
        separators.clear();
        find_separators(part, marks, in_quotes, &mut separators);
        let is_line_feed = |at: &&u32| part.get(**at as usize) == Some(&b'\n');
        if let Some(line_feed) = separators.iter().rev().find(is_line_feed) {
            return Some(start + *line_feed as usize + 1);
        }
        (end, step) = (start, 2 * step);
    }
    None
}

impl<'a> FileRows<'a> {
    /// Those of a stream that looks like `options`, for `columns`.
    pub(crate) fn of_stream(options: &'a CsvOptions, columns: &'a [Column]) -> Self {
        Self::new(&Nothing, 0, options, columns)
    }

    /// Cuts `stream` into chunks as long as those of a file.
    pub(crate) fn cut<R: Read>(&self, stream: R) -> Cutter<R> {
        Cutter::new(stream, self.options, self.chunk_bytes)
    }

    /// The rows of the next chunk of `cutter`, by way of `buffer`; none at the end of the stream, and when another
    /// reader of it had an error.
    ///
    /// # Errors
    /// Of the stream and its rows.
    pub(crate) fn next_of<R: Read>(
        &self,
        cutter: &Mutex<Option<Cutter<R>>>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Vec<Rows>>> {
        let piece = match &mut *cutter.lock() {
            None => return Ok(None),
            Some(cutter) => cutter.next(std::mem::take(buffer), &|| Ok(())),
        };
        let rows = piece.and_then(|piece| piece.map(|piece| piece.rows(self)).transpose());
        if rows.is_err() {
            *cutter.lock() = None;
        }
        *buffer = self.spare.take_chunk();
        rows
    }

    /// Hands all rows of `stream` to `take`, in their order. This thread reads the stream and runs `take` and `check`,
    /// which says whether to go on; `threads` others find the rows.
    ///
    /// # Errors
    /// Of the stream, of its rows (22P04, 22021 and those of types, with line and column), of `take` and `check`. What
    /// is wrong with rows is told before what stands behind them.
    pub(crate) fn read_stream<R: Read>(
        &self,
        stream: R,
        threads: usize,
        check: &dyn Fn() -> Result<()>,
        mut take: impl FnMut(Rows) -> Result<()>,
    ) -> Result<()> {
        let mut cutter = self.cut(stream);
        let Some(first) = cutter.next(Vec::new(), check)? else { return Ok(()) };
        if cutter.has_ended() {
            return first.rows(self)?.into_iter().try_for_each(take);
        }
        let threads = threads.clamp(1, super::THREADS_MAX);
        let ahead = self.ahead(threads);
        let others = std::iter::from_fn(|| cutter.next(self.spare.take_chunk(), check).transpose());
        let pieces = std::iter::once(Ok(first)).chain(others);
        in_order(threads, ahead, pieces, |piece| piece.rows(self), |rows| rows.into_iter().try_for_each(&mut take))
    }
}

/// A stream whose first bytes were read.
pub(crate) struct Begun<R> {
    head: io::Cursor<Vec<u8>>,
    failed: Option<io::Error>,
    stream: R,
}

impl<R: Read> Begun<R> {
    /// Reads the first `bytes` of `stream`, or all if they are fewer. What fails is told when it is read again.
    pub(crate) fn new(mut stream: R, bytes: u64) -> Self {
        let mut head = Vec::new();
        let failed = (&mut stream).take(bytes).read_to_end(&mut head).err();
        Self { head: io::Cursor::new(head), failed, stream }
    }

    /// The bytes that were read.
    pub(crate) fn head(&self) -> &[u8] {
        self.head.get_ref()
    }
}

impl<R: Read> Read for Begun<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.head.read(buffer)? {
            0 => match self.failed.take() {
                Some(error) => Err(error),
                None => self.stream.read(buffer),
            },
            read => Ok(read),
        }
    }
}
