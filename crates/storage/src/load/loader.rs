//! The loader.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::disk::{DeferredDisk, Disk};
use crate::error::{Error, Result};
use crate::ids::KeyId;
use crate::limits;
use crate::main_store::Run;
use crate::order::{Cursor, KeyReader, Part, first_repeated_key};
use crate::row::bytes_of_array;
use crate::run_writer::RunWriter;
use crate::schema::TableSchema;
use crate::segment::encoded_at_once;

use super::LoadTarget;
use super::batches::{joinable, split};
use super::duplicate::duplicate_key;
use super::sort::{SortBuffer, SortOrder};
use super::spill::{Range, Ranges, Spill, Spiller};
use super::turn::{LoadTurn, Waiting};

/// Bytes that a sort takes for a row beside its key: its place in the order, and where its key ends.
const ORDER_BYTES: usize = 12;
/// Bytes that an entry of a key index takes beside its key, with what its sort takes.
const ENTRY_BYTES: usize = 2 * limits::KEY_INDEX_ENTRY_BYTES as usize;

/// What a segment of rows that came at once may lack: 1 / this of its rows. Chunks of a file have nine tenths of a
/// segment's rows, or three quarters of that where threads then have as many chunks.
const SEGMENT_LACKS_SHARE: usize = 3;

/// What a range of rows put aside takes, in bytes of its blocks: they are read, and sorted; then a part of them is
/// gathered and encoded, a segment at a time.
const RANGE_COPIES: usize = 3;
/// What is left of a range without a whole segment waits for the next one if it has at most 1 / this of a sort's bytes.
const REST_SHARE: usize = 3;

/// Turns rows into runs.
#[derive(Debug)]
pub struct Loader {
    schema: Arc<TableSchema>,
    target: LoadTarget,
    /// That of the target: what is written is made durable at the end.
    disk: Arc<DeferredDisk>,
    reader: KeyReader,
    segment_rows: usize,
    /// Rows of a full sort.
    sort_rows: usize,
    sort_bytes: usize,
    /// Keys that are not the order, and the positions of their columns.
    indexed_keys: usize,
    indexed_columns: Vec<usize>,
    /// Threads that sort and encode.
    threads: usize,
    buffer: Vec<RecordBatch>,
    rows: usize,
    /// Bytes of the rows, and of what will be beside them, about: what their sort takes, their entries of key indexes.
    bytes: usize,
    /// What it may collect beside other loads.
    turn: Option<LoadTurn>,
    /// Whether all rows so far came in the order of their keys.
    comes_in_order: bool,
    /// The key of the last one, as long as they do.
    last_key: Vec<u8>,
    /// Whether rows in no order may go to a temporary file.
    may_spill: bool,
    /// Those that did.
    spill: Option<Spill>,
    /// Bytes of what is known of those that are read again.
    ranges_bytes: usize,
    /// The run being written, and its last key.
    current: Option<(RunWriter, Vec<u8>)>,
    runs: Vec<Arc<Run>>,
}

impl Loader {
    /// A load into `schema`'s table that writes segments of `segment_rows` rows to `target`.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>, target: LoadTarget, segment_rows: u32) -> Self {
        let segment_rows = segment_rows.clamp(limits::SEGMENT_ROWS_MIN, limits::SEGMENT_ROWS_MAX) as usize;
        let reader = KeyReader::of_sort_key(&schema);
        let sort_rows = match reader.codec() {
            Some(_) => (limits::LOAD_SORT_ROWS / segment_rows).max(1) * segment_rows,
            None => segment_rows,
        };
        let sort_bytes = limits::LOAD_SORT_BYTES;
        let (buffer, runs) = (Vec::new(), Vec::new());
        let disk = DeferredDisk::new(target.disk.clone());
        let target = LoadTarget { disk: disk.clone(), ..target };
        Self {
            indexed_keys: schema.indexed_keys().count(),
            indexed_columns: schema
                .indexed_keys()
                .flat_map(|id| schema.key_columns(id))
                .filter_map(|id| schema.position(*id))
                .collect(),
            schema,
            target,
            disk,
            reader,
            segment_rows,
            sort_rows,
            sort_bytes,
            threads: 1,
            buffer,
            rows: 0,
            bytes: 0,
            turn: None,
            comes_in_order: true,
            last_key: Vec::new(),
            may_spill: false,
            spill: None,
            ranges_bytes: 0,
            current: None,
            runs,
        }
    }

    /// The same with at most `rows` rows (rounded up to whole segments) and about `bytes` bytes in a sort.
    #[must_use]
    pub fn with_sort_limits(mut self, rows: usize, bytes: usize) -> Self {
        self.sort_rows = self.sort_rows.min(rows.max(1).next_multiple_of(self.segment_rows));
        self.sort_bytes = self.sort_bytes.min(bytes);
        self
    }

    /// The same with `threads` threads for columns, beside which it has little to do.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The same; rows that come in no order at all go to a temporary file, where there are such files, until all are
    /// there: they become one run.
    #[must_use]
    pub fn with_spill(mut self) -> Self {
        self.may_spill = true;
        self
    }

    /// The same, with its memory taken from what loads share.
    #[must_use]
    pub fn in_turn(mut self, turn: LoadTurn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Counts what it holds now.
    fn recount(&mut self) {
        let entries = self.current.as_ref().map_or(0, |(writer, _)| writer.entry_bytes());
        let entries = entries + self.known_bytes();
        if let Some(turn) = &mut self.turn {
            turn.set(self.bytes as u64, entries as u64);
        }
    }

    /// The first rows of `batch` that are taken at once, few enough for a turn of this load, and their bytes.
    fn taken_at_once(&mut self, batch: &RecordBatch) -> (RecordBatch, usize) {
        let head = batch.slice(0, batch.num_rows().min(self.sort_rows - self.rows));
        let bytes = self.bytes_of(&head, self.rows);
        let wanted = self.turn.as_ref().map_or(u64::MAX, LoadTurn::rows_at_once);
        let is_segment = self.rows == 0 && self.comes_in_order && self.make_segments(head.num_rows());
        let takes = |turn: &mut LoadTurn| turn.try_take(bytes as u64);
        if bytes as u64 <= wanted || is_segment && self.turn.as_mut().is_some_and(takes) {
            return (head, bytes);
        }
        let head = head.slice(0, (head.num_rows() as u64 * wanted / bytes as u64).max(1) as usize);
        let bytes = self.bytes_of(&head, self.rows);
        (head, bytes)
    }

    /// Has room for the rows of `batch`, too, which have `bytes`: writes what is collected if there is none, then waits
    /// for its turn, holding nothing. Returns their bytes, which are others if they are the first now.
    fn make_room(&mut self, batch: &RecordBatch, bytes: usize) -> Result<usize> {
        let wanted = (self.bytes + bytes) as u64;
        let Some(turn) = &mut self.turn else { return Ok(bytes) };
        let mut bytes = bytes;
        if self.rows > 0 && (turn.is_wanted() && wanted > turn.rows_at_once() || !turn.grow(wanted)) {
            self.write(self.rows)?;
            bytes = self.bytes_of(batch, self.rows);
        }
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.bytes() < bytes as u64) else { return Ok(bytes) };
        if self.rows > 0 || turn.try_begin(bytes as u64) {
            return Ok(bytes);
        }
        self.wait_for_turn(bytes).map(|()| bytes)
    }

    /// Waits until it may hold `bytes`, while it holds nothing but what is known of rows put aside.
    fn wait_for_turn(&mut self, bytes: usize) -> Result<()> {
        let known = self.known_bytes();
        let Some(turn) = &mut self.turn else { return Ok(()) };
        if let Some((writer, _)) = &mut self.current {
            writer.put_entries_aside(&|| turn.waiting().go_on())?;
        }
        turn.set(0, 0);
        turn.begin((bytes + known) as u64)?;
        if known > 0 {
            turn.set(bytes as u64, known as u64);
        }
        Ok(())
    }

    /// Bytes of what is known of rows put aside.
    fn known_bytes(&self) -> usize {
        self.spill.as_ref().map_or(0, Spill::memory) + self.ranges_bytes
    }

    /// Bytes of the values of `batch`, before which `before` rows were collected, and of what will be beside them:
    /// their keys, encoded, and their order in the sort; then the columns that are being joined, a copy for each
    /// thread, or those of a segment in their order and what is encoded of them at once; their entries of key indexes.
    fn bytes_of(&self, batch: &RecordBatch, before: usize) -> usize {
        let rows = batch.num_rows().max(1);
        let columns: Vec<usize> = batch.columns().iter().map(bytes_of_array).collect();
        let values: usize = columns.iter().sum();
        let joined = if self.reader.codec().is_some() { largest(&columns, self.threads) } else { 0 };
        // One segment is written at a time: those of later ones take what the first has left.
        let of_segment = rows.min(self.segment_rows.saturating_sub(before));
        let written = (values + largest(&columns, encoded_at_once(self.threads))) * of_segment / rows;
        let keys = self.reader.positions().iter().filter_map(|at| batch.columns().get(*at));
        let keys: usize = keys.map(|array| bytes_of_array(array) + batch.num_rows()).sum();
        let order = if self.reader.codec().is_some() { batch.num_rows() * ORDER_BYTES } else { 0 };
        let entries = self.indexed_columns.iter().filter_map(|at| batch.columns().get(*at)).map(bytes_of_array);
        let entries = entries.sum::<usize>() + batch.num_rows() * self.indexed_keys * ENTRY_BYTES;
        values + joined.max(written) + keys + order + entries
    }

    /// Takes the rows of `batch`: columns as in the schema, checked by [`crate::row::check_batch`].
    ///
    /// # Errors
    /// Constraint (23505) for a key that the load has twice, as far as it shows yet; Io or Full. The load is then over.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.schema.columns.len() {
            let (got, due) = (batch.num_columns(), self.schema.columns.len());
            return Err(Error::internal(format!("a batch of {got} columns for {due}")));
        }
        let mut batch = batch.clone();
        while batch.num_rows() > 0 {
            let (head, bytes) = self.taken_at_once(&batch);
            let take = head.num_rows();
            batch = batch.slice(take, batch.num_rows() - take);
            let bytes = self.make_room(&head, bytes)?;
            self.rows += take;
            self.bytes += bytes;
            self.comes_in_order = self.comes_in_order && self.follows(&head)?;
            self.buffer.push(head);
            let whole = match self.is_segment() {
                true => self.rows,
                false => self.rows / self.segment_rows * self.segment_rows,
            };
            let is_worth_writing = |spill: &Spill| self.bytes >= spill.bytes_at_once();
            if self.rows == self.sort_rows || self.spill.as_ref().is_some_and(is_worth_writing) {
                self.write(self.rows)?;
            } else if self.comes_in_order && whole > 0 {
                // There is nothing to be sorted, and what is written early needs no more memory.
                self.write(whole)?;
            } else if self.bytes >= self.sort_bytes {
                self.write(if whole == 0 { self.rows } else { whole })?;
            }
        }
        Ok(())
    }

    /// Whether `rows` rows that come at once make a segment, or two, as they are: nothing has to be joined then, and a
    /// segment that is nearly full is as good as one that is.
    fn make_segments(&self, rows: usize) -> bool {
        let least = self.segment_rows - self.segment_rows / SEGMENT_LACKS_SHARE;
        (least..=self.segment_rows + least).contains(&rows)
    }

    /// Whether the rows that are collected are such.
    fn is_segment(&self) -> bool {
        self.buffer.len() == 1 && self.make_segments(self.rows)
    }

    /// Whether the rows of `batch` are in the order of their keys, behind those before them.
    fn follows(&mut self, batch: &RecordBatch) -> Result<bool> {
        let Some(keys) = self.reader.keys_of(batch)? else { return Ok(true) };
        if !keys.is_sorted() || self.last_key.as_slice() > keys.get(0) {
            return Ok(false);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(keys.get(batch.num_rows() - 1));
        Ok(true)
    }

    /// Sorts the first `rows` rows of the buffer, and writes them to a run, or puts them aside.
    fn write(&mut self, rows: usize) -> Result<()> {
        let head = self.take_first(rows);
        if self.spill.is_some() {
            self.put_aside(head)?;
            return if self.spill.as_ref().is_some_and(Spill::is_full) { self.write_spilled() } else { Ok(()) };
        }
        let order = SortOrder::of(&self.reader, &head)?;
        if let Some(id) = self.schema.ordered_key()
            && let Some(key) = order.first_duplicate()
        {
            return Err(duplicate_key(&self.schema, id, key));
        }
        if self.may_spill && order.is_shuffled() {
            self.begin_spill();
            if self.spill.is_some() {
                drop(order);
                return self.put_aside(head);
            }
        }
        let sorted = SortBuffer::new(order, joinable(head, &self.schema)?, self.threads)?;
        self.write_sorted(&sorted)?;
        drop(sorted);
        self.recount();
        Ok(())
    }

    /// Has rows put aside from now on, where there are temporary files.
    fn begin_spill(&mut self) {
        let by = Spiller {
            schema: self.schema.clone(),
            reader: self.reader.clone(),
            threads: self.threads,
            waiting: self.waiting(),
        };
        let file = self.disk.temporary_file().unwrap_or_else(|e| {
            tracing::warn!("a load in no order makes several runs, for it has no temporary file: {e}");
            None
        });
        self.spill = file.map(|file| Spill::new(by, file, self.sort_bytes));
        self.may_spill = self.spill.is_some();
    }

    /// Puts `rows` aside with those that are.
    fn put_aside(&mut self, rows: Vec<RecordBatch>) -> Result<()> {
        let Some(spill) = &mut self.spill else { return Err(Error::internal("nowhere to put rows aside")) };
        let repeated = spill.push(rows)?;
        self.recount();
        match (self.schema.ordered_key(), repeated) {
            (Some(id), Some(key)) => Err(duplicate_key(&self.schema, id, &key)),
            _ => Ok(()),
        }
    }

    /// Takes the first `rows` rows from the buffer.
    fn take_first(&mut self, rows: usize) -> Vec<RecordBatch> {
        let (head, rest) = split(std::mem::take(&mut self.buffer), rows);
        self.rows -= rows;
        let mut before = 0;
        self.bytes = 0;
        for batch in &rest {
            self.bytes += self.bytes_of(batch, before);
            before += batch.num_rows();
        }
        self.buffer = rest;
        head
    }

    fn waiting(&self) -> Waiting {
        self.turn.as_ref().map(|turn| turn.waiting().clone()).unwrap_or_default()
    }

    /// Writes rows that are sorted, and have no key twice, to the current run, or to a new one if they do not belong
    /// behind its rows.
    fn write_sorted(&mut self, sorted: &SortBuffer) -> Result<()> {
        let (mut writer, mut last) = match self.current.take() {
            Some((writer, last)) if last.as_slice() <= sorted.first_key() => {
                if let Some(id) = self.schema.ordered_key()
                    && last.as_slice() == sorted.first_key()
                {
                    return Err(duplicate_key(&self.schema, id, &last));
                }
                (writer, last)
            }
            other => {
                if let Some((writer, _)) = other {
                    self.end_run(writer)?;
                }
                let writer = RunWriter::new(self.schema.clone(), self.target.clone());
                (writer.with_threads(self.threads), Vec::new())
            }
        };
        let (rows, waiting) = (sorted.rows(), self.waiting());
        let segment_rows = rows.div_ceil(rows.div_ceil(self.segment_rows).max(1)).max(1);
        for start in (0..rows).step_by(segment_rows) {
            let end = rows.min(start + segment_rows);
            let columns = sorted.columns(start..end)?;
            let kept = self.turn.as_mut().map(|turn| turn.borrow(limits::WRITTEN_BLOCKS_KEPT_BYTES as u64));
            let kept = kept.map_or(limits::WRITTEN_BLOCKS_KEPT_BYTES, |bytes| bytes as usize);
            writer.write_while(&columns, kept, &|| waiting.go_on())?;
        }
        last.clear();
        last.extend_from_slice(sorted.last_key());
        self.current = Some((writer, last));
        if let Some(turn) = &mut self.turn {
            turn.borrow(0);
        }
        Ok(())
    }

    /// Writes all rows that were put aside, and those collected, to a run.
    fn write_spilled(&mut self) -> Result<()> {
        if self.rows > 0 {
            let rows = self.take_first(self.rows);
            self.put_aside(rows)?;
        }
        let Some(spill) = self.spill.take() else { return Ok(()) };
        let mut ranges = Ranges::new(spill);
        self.ranges_bytes = ranges.memory();
        while let Some(range) = self.range_with_room(&ranges)? {
            let sorted = ranges.read(&range)?;
            if let Some(id) = self.schema.ordered_key()
                && let Some(key) = sorted.first_repeated
            {
                return Err(duplicate_key(&self.schema, id, &key));
            }
            for batch in sorted.batches {
                self.bytes += self.bytes_of(&batch, self.rows);
                self.rows += batch.num_rows();
                self.buffer.push(batch);
            }
            self.write_ordered(self.rows / self.segment_rows * self.segment_rows)?;
            // Where a segment is much of the memory there is, they have fewer rows.
            if self.bytes > self.sort_bytes / REST_SHARE {
                self.write_ordered(self.rows)?;
            }
        }
        self.write_ordered(self.rows)?;
        drop(ranges);
        self.ranges_bytes = 0;
        self.recount();
        Ok(())
    }

    /// The next of `ranges` that it has room for, beside what it has collected; a smaller one where others hold much.
    /// Without room for the least it writes what it has collected, and waits for its turn.
    fn range_with_room(&mut self, ranges: &Ranges) -> Result<Option<Range>> {
        let entry_bytes = self.indexed_keys * ENTRY_BYTES;
        let needs = |range: &Range| RANGE_COPIES * range.bytes + range.rows * entry_bytes;
        let own = self.turn.as_ref().map_or(0, |turn| turn.rows_at_once() as usize) / RANGE_COPIES;
        let mut bytes = self.sort_bytes.saturating_sub(self.bytes + self.ranges_bytes) / RANGE_COPIES;
        loop {
            let Some(range) = ranges.next(bytes, own) else { return Ok(None) };
            let Some(turn) = &mut self.turn else { return Ok(Some(range)) };
            if !turn.is_wanted() && turn.grow((self.bytes + needs(&range)) as u64) {
                return Ok(Some(range));
            }
            // No smaller one is to be had.
            if range.bytes > bytes || bytes <= own {
                self.write_ordered(self.rows)?;
                if !self.turn.as_mut().is_some_and(|turn| turn.try_begin(needs(&range) as u64)) {
                    self.wait_for_turn(needs(&range))?;
                }
                return Ok(Some(range));
            }
            bytes /= 2;
        }
    }

    /// Writes the first `rows` rows of the buffer, which are in order, and have no key twice.
    fn write_ordered(&mut self, rows: usize) -> Result<()> {
        if rows > 0 {
            let rows = self.take_first(rows);
            let rows = joinable(rows, &self.schema)?;
            let sorted = SortBuffer::of_ordered(&self.reader, rows, self.threads)?;
            self.write_sorted(&sorted)?;
        }
        self.recount();
        Ok(())
    }

    fn end_run(&mut self, writer: RunWriter) -> Result<()> {
        let waiting = self.waiting();
        let written = writer.finish_while(&|| waiting.go_on())?;
        self.runs.extend(written.map(|written| written.run));
        Ok(())
    }

    /// Writes what is left and returns the runs, oldest rows first; none without rows.
    ///
    /// # Errors
    /// As [`Loader::push`].
    pub fn finish(mut self) -> Result<Vec<Arc<Run>>> {
        if self.spill.is_some() {
            self.write_spilled()?;
        } else if self.rows > 0 {
            // None will follow among them.
            self.may_spill = false;
            self.write(self.rows)?;
        }
        if let Some((writer, _)) = self.current.take() {
            self.end_run(writer)?;
        }
        if let Some(id) = self.schema.ordered_key()
            && self.runs.len() > 1
        {
            self.check_unique(id)?;
        }
        self.disk.sync_all()?;
        for id in self.schema.indexed_keys() {
            if let Some(key) = first_repeated_key(&self.schema, id, &self.runs)? {
                return Err(duplicate_key(&self.schema, id, &key));
            }
        }
        Ok(self.runs)
    }

    /// One pass over the keys of all runs; segments that no other run reaches into are not read.
    fn check_unique(&self, id: KeyId) -> Result<()> {
        let whole = |run: &Arc<Run>| -> Vec<Part> {
            let parts = run.segments().iter();
            parts.map(|part| Part::segment(part.segment.clone(), part.range.clone()).keep_whole()).collect()
        };
        let cursor = Cursor::new(self.reader.clone(), self.runs.iter().map(whole).collect())?;
        match cursor.first_duplicate()? {
            Some(key) => Err(duplicate_key(&self.schema, id, &key)),
            None => Ok(()),
        }
    }
}

/// The sum of the `count` largest of `sizes`.
fn largest(sizes: &[usize], count: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.iter().rev().take(count).sum()
}
