//! The loader.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_cast::cast;
use arrow_schema::DataType as ArrowType;

use crate::disk::DeferredDisk;
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
use super::duplicate::duplicate_key;
use super::sort::SortBuffer;
use super::turn::LoadTurn;

/// Bytes that a sort takes for a row beside its key: its place in the order, and where its key ends.
const ORDER_BYTES: usize = 12;
/// Bytes that an entry of a key index takes beside its key, with what its sort takes.
const ENTRY_BYTES: usize = 2 * limits::KEY_INDEX_ENTRY_BYTES as usize;

/// What a segment of rows that came at once may lack: 1 / this of its rows. Chunks of a file have nine tenths of a
/// segment's rows, or three quarters of that where threads then have as many chunks.
const SEGMENT_LACKS_SHARE: usize = 3;

/// Bytes of texts that are joined as they are: half of what the offsets of an array tell.
const JOINED_TEXT_BYTES_MAX: i64 = 1 << 30;

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

    /// The same, with its memory taken from what loads share.
    #[must_use]
    pub fn in_turn(mut self, turn: LoadTurn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Counts what it holds now.
    fn recount(&mut self) {
        let entries = self.current.as_ref().map_or(0, |(writer, _)| writer.entry_bytes());
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
        if let Some((writer, _)) = &mut self.current {
            writer.put_entries_aside(&|| turn.waiting().go_on())?;
        }
        turn.set(0, 0);
        turn.begin(bytes as u64).map(|()| bytes)
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
            if self.rows == self.sort_rows {
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
        let Some(codec) = self.reader.codec() else { return Ok(true) };
        let arrays: Vec<ArrayRef> =
            self.reader.positions().iter().filter_map(|at| batch.columns().get(*at).cloned()).collect();
        let keys = codec.encode_arrays(&arrays)?;
        if !keys.is_sorted() || self.last_key.as_slice() > keys.get(0) {
            return Ok(false);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(keys.get(batch.num_rows() - 1));
        Ok(true)
    }

    /// Sorts and writes the first `rows` rows of the buffer.
    fn write(&mut self, rows: usize) -> Result<()> {
        let (head, rest) = split(std::mem::take(&mut self.buffer), rows);
        self.rows -= rows;
        let mut before = 0;
        self.bytes = 0;
        for batch in &rest {
            self.bytes += self.bytes_of(batch, before);
            before += batch.num_rows();
        }
        self.buffer = rest;
        let head = if can_be_joined(&head) {
            head
        } else {
            head.iter().map(|batch| with_own_types(batch, &self.schema)).collect::<Result<Vec<_>>>()?
        };
        let sorted = SortBuffer::new(&self.reader, head, self.threads)?;
        let ordered = self.schema.ordered_key();
        if let Some(id) = ordered
            && let Some(key) = sorted.first_duplicate()
        {
            return Err(duplicate_key(&self.schema, id, key));
        }
        let (mut writer, last) = match self.current.take() {
            Some((writer, last)) if last.as_slice() <= sorted.first_key() => {
                if let Some(id) = ordered
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
        let mut last = last;
        let waiting = self.turn.as_ref().map(|turn| turn.waiting().clone()).unwrap_or_default();
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
        drop(sorted);
        if let Some(turn) = &mut self.turn {
            turn.borrow(0);
        }
        self.recount();
        Ok(())
    }

    fn end_run(&mut self, writer: RunWriter) -> Result<()> {
        let go_on = || self.turn.as_ref().map_or(Ok(()), |turn| turn.waiting().go_on());
        let written = writer.finish_while(&go_on)?;
        self.runs.extend(written.map(|written| written.run));
        Ok(())
    }

    /// Writes what is left and returns the runs, oldest rows first; none without rows.
    ///
    /// # Errors
    /// As [`Loader::push`].
    pub fn finish(mut self) -> Result<Vec<Arc<Run>>> {
        if self.rows > 0 {
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

/// Whether columns of `batches` are of the same types, and have no more texts than the offsets of one array tell.
fn can_be_joined(batches: &[RecordBatch]) -> bool {
    let Some((first, others)) = batches.split_first() else { return true };
    let types = |batch: &RecordBatch| -> Vec<ArrowType> {
        batch.columns().iter().map(|column| column.data_type().clone()).collect()
    };
    let of_first = types(first);
    // Codes of different dictionaries would have to be translated.
    let has_codes = of_first.iter().any(|data_type| matches!(data_type, ArrowType::Dictionary(..)));
    let text_bytes = |batch: &RecordBatch, at: usize| {
        let texts = batch.columns().get(at).and_then(|column| column.as_string_opt::<i32>());
        texts.and_then(|texts| texts.value_offsets().last()?.checked_sub(*texts.value_offsets().first()?))
    };
    let is_bounded = |at: usize| {
        let bytes = batches.iter().filter_map(|batch| text_bytes(batch, at)).map(i64::from).sum::<i64>();
        bytes <= JOINED_TEXT_BYTES_MAX
    };
    let are_alike = || !has_codes && others.iter().all(|batch| types(batch) == of_first);
    others.is_empty() || are_alike() && (0..of_first.len()).all(is_bounded)
}

/// `batch` with columns of `schema`'s types: texts as views, decimals in 128 bits.
fn with_own_types(batch: &RecordBatch, schema: &TableSchema) -> Result<RecordBatch> {
    let own = schema.arrow();
    if batch
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.data_type())
        .eq(own.fields().iter().map(|field| field.data_type()))
    {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(own.fields()).map(|(column, field)| {
        Ok(match column.as_string_opt::<i32>() {
            Some(texts) => Arc::new(StringViewArray::from(texts)) as ArrayRef,
            None if column.data_type() == field.data_type() => column.clone(),
            None => cast(column, field.data_type())?,
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(own, columns)?)
}

/// The first `rows` rows of `batches`, and the others.
fn split(batches: Vec<RecordBatch>, rows: usize) -> (Vec<RecordBatch>, Vec<RecordBatch>) {
    let (mut head, mut rest) = (Vec::new(), Vec::new());
    let mut left = rows;
    for batch in batches {
        let take = left.min(batch.num_rows());
        if take > 0 {
            head.push(batch.slice(0, take));
        }
        if take < batch.num_rows() {
            rest.push(batch.slice(take, batch.num_rows() - take));
        }
        left -= take;
    }
    (head, rest)
}

/// The sum of the `count` largest of `sizes`.
fn largest(sizes: &[usize], count: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.iter().rev().take(count).sum()
}
