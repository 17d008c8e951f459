//! The rows of a CSV file by several threads, in the order of the file (Muehlbauer et al., "Instant Loading for Main
//! Memory Databases", VLDB 2013, sections 3.2 to 3.4).
//!
//! Comes in: a file, and the columns that its fields are for. Goes out: batches of those columns' types, to the calling
//! thread.
//!
//! 1. The file is cut into chunks of equal length, wherever that is in a row. A thread takes the next chunk, reads it
//!    and counts its quotes.
//! 2. The quotes of all chunks before it tell whether it begins in quotes: exact, and no pass over the file (the
//!    paper's safe mode has one, its fast mode guesses).
//! 3. `chunk` finds the rows that begin in it, the paper's orphan before them left to the chunk before, the widow at
//!    its end read on to its end.
//! 4. `columns` makes a column at a time of their fields.
//!
//! What is not plain goes another way, which knows more: a column with a field of some other form by way of texts and
//! [`assign`](mainstem_postgres::cast::assign), a chunk with malformed rows by way of the [`CsvReader`], which tells
//! what is wrong and where. So both ways give the same rows and the same errors, but for what is too long: the one asks
//! that a row has at most 1 GiB, the other that a field has.
//!
//! Invariants: few chunks wait to be taken, whatever the length of the file. No thread outlives the call. An error is
//! that of the first chunk that has one.
//!
//! It does not own: streams, which cannot be read in several places at once; defaults, constraints and the table.

mod columns;
mod chunk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow::array::ArrayRef;
use mainstem_kernels::csv::Summary;
use mainstem_storage::schema::Column;
use mainstem_storage::{Error, Result};
use parking_lot::{Condvar, Mutex};

use super::CsvReader;
use super::convert::{Conversion, Reject};
use super::reader::ROW_BYTES_MAX;
use crate::sql::{CsvOptions, LineEnd};
pub(super) use chunk::read_full;

/// Bytes of a chunk: within a core's share of the caches, and enough rows for a batch (section 3.3 of the paper, figure
/// 13).
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks for each thread that are read or wait to be taken.
const CHUNKS_AHEAD: usize = 8;
/// Chunks that a buffer may have room for when it is used again.
const BUFFER_CHUNKS_MAX: u64 = 4;
/// Threads beyond which one that takes the rows has enough to do, and memory better uses.
const THREADS_MAX: usize = 16;
/// Rows of a batch that is read by way of texts.
const TEXT_ROWS: usize = 8_192;

/// What can be read at any place by any thread.
pub(crate) trait ReadAt: Sync {
    /// Reads some bytes at `offset` into `buffer`, none at the end.
    ///
    /// # Errors
    /// Io.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }
}

/// A file from its start on, as a stream.
pub(crate) struct FromStart {
    file: Arc<dyn ReadAt + Send + Sync>,
    at: u64,
}

impl FromStart {
    /// Of `file`.
    pub(crate) fn new(file: Arc<dyn ReadAt + Send + Sync>) -> Self {
        Self { file, at: 0 }
    }
}

impl io::Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A file of rows.
pub(crate) struct FileRows<'a> {
    file: &'a dyn ReadAt,
    /// Its length, as far as is known: what is behind is of the last chunk.
    bytes: u64,
    options: &'a CsvOptions,
    columns: &'a [Column],
    conversion: Conversion<'a>,
    names: Vec<String>,
    chunk_bytes: u64,
    /// The longest row.
    row_bytes: u64,
}

/// Some rows of the file.
pub(crate) struct Rows {
    /// An array for each column that is wanted, of its type.
    pub(crate) columns: Vec<ArrayRef>,
    /// How many they are.
    pub(crate) count: usize,
    /// Rows that are left out for their values.
    pub(crate) rejects: Vec<Reject>,
    lines: Lines,
}

/// On which lines rows begin.
enum Lines {
    Known(Vec<u64>),
    /// They begin in the file at `from`, on line `line`, and end before `to`.
    Within {
        from: u64,
        to: u64,
        line: u64,
    },
}

/// What is known of the file before a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Before {
    in_quotes: bool,
    line_feeds: u64,
}

/// Whether the rows of a file that looks like `options` can be told apart at any place: a quote that stands behind an
/// escape would toggle nothing, and rows without `columns` have no fields that end. Values are read before quotes are
/// looked for: these may be no part of a value.
pub(crate) fn can_be_cut(options: &CsvOptions, columns: usize) -> bool {
    let CsvOptions { delimiter, quote, escape, null, line_end, latin1, .. } = options;
    let is_mark = |byte: u8| byte == *quote || byte == *delimiter || byte == b'\n' || byte == b'\r';
    let marks = [*delimiter, *quote];
    let may_be_of_value = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.: ".contains(&byte);
    columns > 0
        && *line_end != LineEnd::CarriageReturn
        && !latin1
        && !may_be_of_value(*quote)
        && escape == quote
        && delimiter != quote
        && marks.iter().all(|mark| mark.is_ascii() && *mark != b'\n' && *mark != b'\r')
        && !null.bytes().any(is_mark)
}

impl<'a> FileRows<'a> {
    /// The rows of `file`, of `bytes` bytes, which looks like `options`, for `columns`.
    pub(crate) fn new(file: &'a dyn ReadAt, bytes: u64, options: &'a CsvOptions, columns: &'a [Column]) -> Self {
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let (conversion, row_bytes) = (Conversion::of_all(columns), ROW_BYTES_MAX as u64);
        Self { file, bytes, options, columns, conversion, names, chunk_bytes: CHUNK_BYTES, row_bytes }
    }

    /// The same, whose texts become values as `conversion` says.
    pub(crate) fn converted_by(mut self, conversion: Conversion<'a>) -> Self {
        self.conversion = conversion;
        self
    }

    #[cfg(test)]
    fn with_chunks(mut self, bytes: u64) -> Self {
        // A mark is looked for in the first chunk.
        self.chunk_bytes = bytes.max(3);
        self
    }

    #[cfg(test)]
    fn with_rows_of(mut self, bytes: u64) -> Self {
        self.row_bytes = bytes;
        self
    }

    pub(super) fn chunks(&self) -> usize {
        self.bytes.div_ceil(self.chunk_bytes).max(1) as usize
    }

    /// Hands all rows to `take`, which this thread runs, in their order; `threads` others read them.
    ///
    /// # Errors
    /// Of the file, of its rows (22P04, 22021 and those of types, with line and column), and of `take`.
    pub(crate) fn read(&self, threads: usize, mut take: impl FnMut(Rows) -> Result<()>) -> Result<()> {
        let chunks = self.chunks();
        if chunks == 1 {
            let chunk = chunk::Chunk::read(self, 0, Vec::new())?;
            return self.rows_of(chunk, Before::default())?.0.into_iter().try_for_each(take);
        }
        let threads = threads.clamp(1, chunks.min(THREADS_MAX));
        let queue = Queue::new(chunks, CHUNKS_AHEAD * threads);
        std::thread::scope(|scope| {
            let _stop = StopAtEnd(&queue);
            let worker = || {
                // A panic must not leave others waiting.
                let _stop = StopAtPanic(&queue);
                self.work(&queue);
            };
            for number in 0..threads {
                let started = std::thread::Builder::new().name("mainstem csv".into()).spawn_scoped(scope, worker);
                if let Err(e) = started
                    && number == 0
                {
                    return Err(Error::io("start", "a thread", e));
                }
            }
            (0..chunks).try_for_each(|number| queue.take(number)?.into_iter().try_for_each(&mut take))
        })
    }

    /// Reads chunks until there are no more.
    fn work(&self, queue: &Queue) {
        let mut buffer = Vec::new();
        while let Some((number, done)) = self.step(queue, &mut buffer) {
            queue.deliver(number, done);
        }
    }

    /// Reads the next chunk, by way of `buffer`; none when there are no more.
    pub(super) fn step(&self, queue: &Queue, buffer: &mut Vec<u8>) -> Option<(usize, Result<Vec<Rows>>)> {
        let number = queue.claim()?;
        let read = chunk::Chunk::read(self, number, std::mem::take(buffer));
        let done = read.and_then(|chunk| {
            let Some(before) = queue.before(number, chunk.summary()) else { return Ok(Vec::new()) };
            let (rows, used) = self.rows_of(chunk, before)?;
            // That of a long row is not kept for the others.
            if used.capacity() as u64 <= BUFFER_CHUNKS_MAX * self.chunk_bytes {
                *buffer = used;
            }
            Ok(rows)
        });
        Some((number, done))
    }

    /// The rows that begin in `chunk`; gives its buffer back.
    fn rows_of(&self, mut chunk: chunk::Chunk, before: Before) -> Result<(Vec<Rows>, Vec<u8>)> {
        let Some(found) = chunk.find_rows(self, before)? else { return Ok((Vec::new(), chunk.into_buffer())) };
        let rows = match columns::columns_of(self, &chunk, &found) {
            Some(columns) => {
                let (from, to) = chunk.range_of(&found);
                let lines = Lines::Within { from, to, line: found.line };
                vec![Rows { columns, count: found.count(), rejects: Vec::new(), lines }]
            }
            None => self.by_text(chunk.bytes_of(&found), found.line, found.has_header)?,
        };
        Ok((rows, chunk.into_buffer()))
    }

    /// The rows of `bytes`, the first of which begins on line `line`, by way of texts; the first line of all may be a
    /// header.
    fn by_text(&self, bytes: &[u8], line: u64, has_header: bool) -> Result<Vec<Rows>> {
        let mut reader = CsvReader::new(bytes, self.options.clone(), self.names.clone());
        if !has_header {
            reader = reader.at_line(line);
        }
        let mut all = Vec::new();
        while let Some(batch) = reader.next_batch(TEXT_ROWS)? {
            let (columns, lines, rejects) = self.conversion.rows(batch)?;
            all.push(Rows { columns, count: lines.len(), rejects, lines: Lines::Known(lines) });
        }
        Ok(all)
    }

    /// The line on which each of `rows` begins, as far as the file still tells.
    pub(crate) fn lines(&self, rows: &Rows) -> Vec<u64> {
        let (from, to, line) = match &rows.lines {
            Lines::Known(lines) => return lines.clone(),
            Lines::Within { from, to, line } => (*from, *to, *line),
        };
        let mut bytes = vec![0; (to - from) as usize];
        let read = chunk::read_full(self.file, &mut bytes, from).unwrap_or(0);
        bytes.truncate(read);
        let mut reader = CsvReader::new(bytes.as_slice(), self.options.clone(), self.names.clone()).at_line(line);
        let mut lines = Vec::with_capacity(rows.count);
        while let Ok(Some(batch)) = reader.next_batch(TEXT_ROWS) {
            lines.extend(batch.lines);
        }
        lines
    }
}

/// The chunks that are read, and what of them is waited for.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    chunks: usize,
    /// Chunks that may be claimed beyond those taken.
    ahead: usize,
}

#[derive(Default)]
struct State {
    claimed: usize,
    taken: usize,
    /// Of the file before each chunk, as far as all chunks before it were counted.
    before: Vec<Before>,
    /// Of chunks behind them.
    counted: BTreeMap<usize, Summary>,
    done: BTreeMap<usize, Result<Vec<Rows>>>,
    stopped: bool,
}

impl Queue {
    /// That of a file of `chunks` chunks, of which `ahead` may be claimed beyond those taken.
    pub(super) fn new(chunks: usize, ahead: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), chunks, ahead }
    }

    /// The next chunk to read, when there is room for it; none when there are no more.
    fn claim(&self) -> Option<usize> {
        let mut state = self.state.lock();
        while !state.stopped && state.claimed < self.chunks && state.claimed >= state.taken + self.ahead {
            self.changed.wait(&mut state);
        }
        if state.stopped || state.claimed == self.chunks {
            return None;
        }
        state.claimed += 1;
        Some(state.claimed - 1)
    }

    /// Tells the `summary` of chunk `number`, and waits for those of all before it, which their threads tell without
    /// waiting for anything but their own reads. None if that is of no use any more.
    fn before(&self, number: usize, summary: Summary) -> Option<Before> {
        let mut state = self.state.lock();
        state.counted.insert(number, summary);
        if state.before.is_empty() {
            state.before.push(Before::default());
        }
        loop {
            let next = state.before.len() - 1;
            let (Some(summary), Some(before)) = (state.counted.remove(&next), state.before.last().copied()) else {
                break;
            };
            state.before.push(Before {
                in_quotes: before.in_quotes ^ (summary.quotes % 2 == 1),
                line_feeds: before.line_feeds + summary.line_feeds,
            });
        }
        self.changed.notify_all();
        loop {
            if state.stopped || state.done.range(..number).any(|(_, done)| done.is_err()) {
                return None;
            }
            if let Some(before) = state.before.get(number) {
                return Some(*before);
            }
            self.changed.wait(&mut state);
        }
    }

    fn deliver(&self, number: usize, done: Result<Vec<Rows>>) {
        self.state.lock().done.insert(number, done);
        self.changed.notify_all();
    }

    /// The rows of chunk `number`, the next in order.
    fn take(&self, number: usize) -> Result<Vec<Rows>> {
        let mut state = self.state.lock();
        loop {
            if let Some(done) = state.done.remove(&number) {
                state.taken = number + 1;
                self.changed.notify_all();
                return done;
            }
            if state.stopped {
                return Err(Error::internal("a thread that reads a file has panicked"));
            }
            self.changed.wait(&mut state);
        }
    }

    /// Whoever reads has no more to read.
    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }
}

struct StopAtEnd<'a>(&'a Queue);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

pub(super) struct StopAtPanic<'a>(pub(super) &'a Queue);

impl Drop for StopAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
