//! The rows of a CSV file by several threads, in the order of the file (Muehlbauer et al., "Instant Loading for Main
//! Memory Databases", VLDB 2013, sections 3.2 to 3.4).
//!
//! Comes in: a file, and the columns that its fields are for. Goes out: batches of those columns' types, to the calling
//! thread.
//!
//! 1. The file is cut into chunks of equal length, wherever that is in a row: of about as many rows as a segment has,
//!    so that nothing has to be joined later. A thread takes the next chunk, reads it and counts its quotes.
//! 2. The quotes of all chunks before it tell whether it begins in quotes: exact, and no pass over the file (the
//!    paper's safe mode has one, its fast mode guesses).
//! 3. `chunk` finds the rows that begin in it, the paper's orphan before them left to the chunk before, the widow at
//!    its end read on to its end.
//! 4. `columns` makes columns of them: of a block of rows that the caches hold, the fields of a column at a time.
//!
//! Most chunks are plain: `pieces` takes all four steps with one part of them after the other, before these leave the
//! caches, and asks at the end whether the chunk began as it seemed to.
//!
//! What is not plain goes another way, which knows more: a column with a field of some other form by way of texts and
//! [`assign`](mainstem_postgres::cast::assign), a chunk with malformed rows by way of the [`CsvReader`], which tells
//! what is wrong and where. So both ways give the same rows and the same errors, but for what is too long: the one
//! takes what stands behind a chunk for the length of its last row ([`crate::sql::RowLimit`]).
//!
//! Invariants: few chunks wait to be taken, whatever the length of the file. No thread outlives the call. An error is
//! that of the first chunk that has one.
//!
//! Streams, which cannot be read in several places at once, are cut into such chunks by the thread that reads them
//! (`stream`). It does not own: defaults, constraints and the table.

mod spare;
mod blocks;
mod columns;
mod chunk;
mod memory;
mod pieces;
mod stream;

#[cfg(any(test, feature = "fuzzing"))]
mod oracle;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::ArrayRef;
use mainstem_kernels::csv::{Marks, Summary};
use mainstem_storage::schema::Column;
use mainstem_storage::{Error, Result};
use parking_lot::{Condvar, Mutex};

use self::memory::RowSizes;
use self::spare::Spare;
use super::CsvReader;
use super::convert::{Conversion, Reject};
use crate::read_at::{ReadAt, read_full};
use crate::sql::{CsvOptions, LineEnd};
#[cfg(feature = "fuzzing")]
pub use oracle::read_alike;
pub(crate) use stream::Begun;
pub(super) use stream::Cutter;

/// Bytes of a chunk at least: enough rows for a batch, and few of them for what it costs to begin one.
const CHUNK_BYTES_MIN: u64 = 1 << 20;
/// And at most, however long its rows are.
const CHUNK_BYTES_MAX: u64 = 32 << 20;
/// A chunk may be shorter by one of so many parts for all threads to have as many: not by more, for a chunk is to be a
/// segment as it is.
const EVEN_CHUNK_PARTS: u64 = 4;
/// Bytes at the beginning of a file that tell how long its rows are.
pub(crate) const SAMPLE_BYTES: usize = 64 << 10;
/// Bytes of chunks that are read or wait to be taken, for each thread; but a chunk for each and one more. More of them
/// take memory from the caches.
const AHEAD_BYTES: u64 = 8 << 20;
/// Chunks that are not plain behind which none is read in pieces any more.
const IRREGULAR_CHUNKS_MAX: usize = 4;
/// Chunks that a buffer may have room for when it is used again.
const BUFFER_CHUNKS_MAX: u64 = 4;
/// Threads beyond which one that takes the rows has enough to do, and memory better uses.
const THREADS_MAX: usize = 16;
/// Rows of a batch that is read by way of texts.
const TEXT_ROWS: usize = 8_192;

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
    /// Bytes of a chunk that are read at once.
    piece_bytes: usize,
    /// Bytes that chunks should take at most with their arrays.
    memory: u64,
    sizes: RowSizes,
    /// Whether columns are in the form that storage takes for a load.
    is_load: bool,
    spare: Arc<Spare>,
}

/// Some rows of the file.
pub(crate) struct Rows {
    /// An array for each column that is wanted, of its type, or of texts as the file's rows want them.
    pub(crate) columns: Vec<ArrayRef>,
    /// How many they are.
    pub(crate) count: usize,
    /// Rows that are left out for their values.
    pub(crate) rejects: Vec<Reject>,
    lines: Lines,
    spare: Arc<Spare>,
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.spare.take_back(std::mem::take(&mut self.columns));
        if let Lines::Kept { bytes, .. } = &mut self.lines {
            self.spare.take_back_chunk(std::mem::take(bytes));
        }
    }
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
    /// They are those in `range` of `bytes`, the first on line `line`.
    Kept {
        bytes: Vec<u8>,
        range: Range<usize>,
        line: u64,
    },
}

/// What is known of the file before a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before {
    in_quotes: bool,
    /// Whether a row begins with the chunk.
    at_row: bool,
    line_feeds: u64,
}

impl Before {
    /// Before the file.
    const FILE: Self = Self { in_quotes: false, at_row: true, line_feeds: 0 };

    /// Before the next chunk.
    fn behind(self, Seen { summary, is_line_end }: Seen) -> Self {
        let in_quotes = self.in_quotes ^ (summary.quotes % 2 == 1);
        let at_row = is_line_end.map_or(self.at_row, |is_line_end| is_line_end && !in_quotes);
        Self { in_quotes, at_row, line_feeds: self.line_feeds + summary.line_feeds }
    }
}

/// What a chunk has, whatever stands before it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    summary: Summary,
    /// Whether its last byte is a line feed, if it has bytes.
    is_line_end: Option<bool>,
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
        Self {
            file,
            bytes,
            options,
            columns,
            conversion: Conversion::of_all(columns),
            names,
            chunk_bytes: CHUNK_BYTES_MIN,
            piece_bytes: columns::BLOCK_BYTES,
            memory: u64::MAX,
            sizes: RowSizes::UNKNOWN,
            is_load: false,
            spare: Arc::default(),
        }
    }

    /// The same, whose texts become values as `conversion` says.
    pub(crate) fn converted_by(mut self, conversion: Conversion<'a>) -> Self {
        self.conversion = conversion;
        self
    }

    /// The same, of which `threads` threads should hold at most `memory` bytes: in chunks of about `rows` rows, as far
    /// as the first rows of `file` tell how long they are, or fewer, so that there is something to do for all.
    pub(crate) fn with_chunks_of(self, file: &dyn ReadAt, rows: u64, threads: usize, memory: u64) -> Self {
        let mut sample = vec![0; SAMPLE_BYTES];
        // A file that cannot be read is told of by who reads it.
        let read = read_full(file, &mut sample, 0).unwrap_or(0);
        sample.truncate(read);
        let share = self.bytes.div_ceil(2 * threads.max(1) as u64);
        self.in_chunks(&sample, rows, share, (threads, memory)).in_even_chunks(threads)
    }

    /// The same with as many chunks for each of `threads` threads as for the others, if that makes chunks little
    /// shorter: else threads have nothing to do while others read the last ones.
    fn in_even_chunks(mut self, threads: usize) -> Self {
        let chunks = self.bytes.div_ceil(self.chunk_bytes).next_multiple_of(threads.max(1) as u64);
        let even = self.bytes.div_ceil(chunks.max(1)).max(CHUNK_BYTES_MIN);
        if EVEN_CHUNK_PARTS * even >= (EVEN_CHUNK_PARTS - 1) * self.chunk_bytes {
            self.chunk_bytes = even;
        }
        self
    }

    /// The same of a stream that begins with `sample`.
    pub(crate) fn with_chunks_as(self, sample: &[u8], rows: u64, threads: usize, memory: u64) -> Self {
        self.in_chunks(sample, rows, u64::MAX, (threads, memory))
    }

    /// The same in chunks of about `rows` rows as long as those of `sample`, at most `bytes` bytes.
    fn in_chunks(mut self, sample: &[u8], rows: u64, bytes: u64, (threads, memory): (usize, u64)) -> Self {
        self.memory = memory;
        self.sizes = RowSizes::of_sample(sample, self.options, &self.conversion, self.is_load);
        let bytes = bytes.min(self.sizes.within(memory / (threads as u64 + 1)));
        let Some(row_bytes) = self.sizes.row_bytes else { return self };
        self.chunk_bytes = (row_bytes * rows).min(bytes).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        self
    }

    /// The same in chunks of `bytes` bytes, if that is given.
    pub(crate) fn with_chunk_bytes(self, bytes: Option<u64>) -> Self {
        Self { chunk_bytes: bytes.unwrap_or(self.chunk_bytes), ..self }
    }

    /// The same, if `is_load`, as storage takes columns for a load: texts as Utf8, offsets and bytes, and decimals of
    /// at most 18 digits in 64 bits.
    pub(crate) fn for_load(self, is_load: bool) -> Self {
        Self { is_load, ..self }
    }

    fn marks(&self) -> Marks {
        Marks { delimiter: self.options.delimiter, quote: self.options.quote }
    }

    #[cfg(any(test, feature = "fuzzing"))]
    fn with_chunks(mut self, bytes: u64) -> Self {
        // A mark is looked for in the first chunk, and there in its first piece.
        self.chunk_bytes = bytes.max(3);
        self.piece_bytes = self.piece_bytes.min(self.chunk_bytes as usize / 3).max(3);
        self
    }

    pub(crate) fn chunks(&self) -> usize {
        self.bytes.div_ceil(self.chunk_bytes).max(1) as usize
    }

    /// Chunks that `threads` threads read and hold, and that wait to be taken.
    fn ahead(&self, threads: usize) -> usize {
        let wanted = (AHEAD_BYTES / self.chunk_bytes) * threads as u64;
        let room = self.memory / self.sizes.held(self.chunk_bytes).max(1);
        wanted.min(room).max(threads as u64 + 1) as usize
    }

    /// How many of `threads` threads have room for a chunk each, and one more that waits: at least one.
    pub(crate) fn threads_within_memory(&self, threads: usize) -> usize {
        let chunks = self.memory / self.sizes.held(self.chunk_bytes).max(1);
        threads.min(usize::try_from(chunks).unwrap_or(usize::MAX).saturating_sub(1)).max(1)
    }

    /// Bytes that `threads` threads hold while they read `chunks` chunks, about.
    pub(crate) fn held_bytes(&self, threads: usize, chunks: usize) -> u64 {
        let threads = threads.clamp(1, chunks.clamp(1, THREADS_MAX));
        self.sizes.held(self.chunk_bytes) * self.ahead(threads).min(chunks) as u64
    }

    /// Hands all rows to `take`, which this thread runs, in their order; `threads` others read them.
    ///
    /// # Errors
    /// Of the file, of its rows (22P04, 22021 and those of types, with line and column), and of `take`.
    pub(crate) fn read(&self, threads: usize, mut take: impl FnMut(Rows) -> Result<()>) -> Result<()> {
        let chunks = self.chunks();
        if chunks == 1 {
            let chunk = chunk::Chunk::read(self, 0, Vec::new())?;
            return self.rows_of(chunk, Before::FILE)?.0.into_iter().try_for_each(take);
        }
        let threads = threads.clamp(1, chunks.min(THREADS_MAX));
        let queue = Queue::new(chunks, self.ahead(threads));
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
        Some((number, self.rows_at(queue, number, buffer)))
    }

    /// The rows of chunk `number`, by way of `buffer`.
    fn rows_at(&self, queue: &Queue, number: usize, buffer: &mut Vec<u8>) -> Result<Vec<Rows>> {
        let mut known = None;
        if !queue.is_irregular() {
            if let Some(read) = pieces::InPieces::read(self, number, buffer) {
                let Some(before) = queue.before(number, read.seen()) else { return Ok(Vec::new()) };
                if let Some(rows) = read.rows(self, before) {
                    return Ok(vec![rows]);
                }
                known = Some(before);
            }
            queue.note_irregular();
        }
        let chunk = chunk::Chunk::read(self, number, std::mem::take(buffer))?;
        let Some(before) = known.or_else(|| queue.before(number, chunk.seen())) else { return Ok(Vec::new()) };
        let (rows, used) = self.rows_of(chunk, before)?;
        // That of a long row is not kept for the others.
        if used.capacity() as u64 <= BUFFER_CHUNKS_MAX * self.chunk_bytes {
            *buffer = used;
        }
        Ok(rows)
    }

    /// The rows that begin in `chunk`; gives its buffer back.
    fn rows_of(&self, mut chunk: chunk::Chunk, before: Before) -> Result<(Vec<Rows>, Vec<u8>)> {
        let Some(found) = chunk.find_rows(self, before)? else { return Ok((Vec::new(), chunk.into_buffer())) };
        let rows = match columns::columns_of(self, &chunk, &found) {
            Some((columns, count)) => {
                let (Range { start: from, end: to }, line) = chunk.place_of(&found, self.marks());
                let lines = Lines::Within { from, to, line };
                vec![Rows { columns, count, rejects: Vec::new(), lines, spare: self.spare.clone() }]
            }
            None => self.by_text(chunk.bytes_of(&found), (found.line, chunk.start_of(&found)), found.has_header)?,
        };
        Ok((rows, chunk.into_buffer()))
    }

    /// The rows of `bytes`, the first of which begins on line `line` behind `before` bytes, by way of texts; the first
    /// line of all may be a header.
    fn by_text(&self, bytes: &[u8], (line, before): (u64, u64), has_header: bool) -> Result<Vec<Rows>> {
        let mut reader = CsvReader::new(bytes, self.options.clone(), self.names.clone()).behind(before);
        if !has_header {
            reader = reader.at_line(line);
        }
        let mut all = Vec::new();
        while let Some(batch) = reader.next_batch(TEXT_ROWS)? {
            let (columns, lines, rejects) = self.conversion.rows(batch)?;
            let (count, lines, spare) = (lines.len(), Lines::Known(lines), self.spare.clone());
            all.push(Rows { columns, count, rejects, lines, spare });
        }
        Ok(all)
    }

    /// The line on which each of `rows` begins, as far as the file still tells.
    pub(crate) fn lines(&self, rows: &Rows) -> Vec<u64> {
        match &rows.lines {
            Lines::Known(lines) => lines.clone(),
            Lines::Within { from, to, line } => {
                let mut bytes = vec![0; (to - from) as usize];
                let read = read_full(self.file, &mut bytes, *from).unwrap_or(0);
                bytes.truncate(read);
                self.lines_of(&bytes, *line, rows.count)
            }
            Lines::Kept { bytes, range, line } => {
                self.lines_of(bytes.get(range.clone()).unwrap_or_default(), *line, rows.count)
            }
        }
    }

    /// The line on which each of the `rows` rows of `bytes` begins, the first of them on line `line`.
    fn lines_of(&self, bytes: &[u8], line: u64, rows: usize) -> Vec<u64> {
        let mut reader = CsvReader::new(bytes, self.options.clone(), self.names.clone()).at_line(line);
        let mut lines = Vec::with_capacity(rows);
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
    /// Chunks that were not plain: to read such in pieces is to read them twice.
    irregular: AtomicUsize,
}

#[derive(Default)]
struct State {
    claimed: usize,
    taken: usize,
    /// Of the file before each chunk, as far as all chunks before it were counted.
    before: Vec<Before>,
    /// Of chunks behind them.
    seen: BTreeMap<usize, Seen>,
    done: BTreeMap<usize, Result<Vec<Rows>>>,
    stopped: bool,
}

impl Queue {
    /// That of a file of `chunks` chunks, of which `ahead` may be claimed beyond those taken.
    pub(super) fn new(chunks: usize, ahead: usize) -> Self {
        let irregular = AtomicUsize::new(0);
        Self { state: Mutex::default(), changed: Condvar::new(), chunks, ahead, irregular }
    }

    fn is_irregular(&self) -> bool {
        self.irregular.load(Ordering::Relaxed) >= IRREGULAR_CHUNKS_MAX
    }

    fn note_irregular(&self) {
        self.irregular.fetch_add(1, Ordering::Relaxed);
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

    /// Tells what chunk `number` has, and waits for those of all before it, which their threads tell without
    /// waiting for anything but their own reads and what they make of them. None if that is of no use any more.
    fn before(&self, number: usize, seen: Seen) -> Option<Before> {
        let mut state = self.state.lock();
        state.seen.insert(number, seen);
        if state.before.is_empty() {
            state.before.push(Before::FILE);
        }
        loop {
            let next = state.before.len() - 1;
            let (Some(seen), Some(before)) = (state.seen.remove(&next), state.before.last().copied()) else { break };
            state.before.push(before.behind(seen));
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
