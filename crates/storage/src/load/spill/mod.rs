//! Sorted rows in a temporary file: those of a load in no order, until all of it are there.
//!
//! Comes in: batches, as many at a time as the load's memory holds. Goes out: the same rows in the order of all keys,
//! a range that fits memory at a time (`ranges`). So rows are encoded once, as one run, however many there are: what
//! section 3.5 of Instant Loading does by a buffer for each partition, where partitions are not known before.
//!
//! 1. Batches become *sorts*: one of each batch that is large, whose columns a core's cache holds while they are
//!    gathered, and one of several that are not. With many sorts there already, later ones are larger.
//! 2. A sort is written as *blocks* of neighbours in its order (`block`). The first key of each block stays in memory,
//!    with its place and checksum.
//! 3. When no more come, [`Ranges`] of all blocks are read.
//!
//! Invariants: the file has no name, and goes with the spill. Blocks of all sorts have about the same size, and there
//! are at most so many sorts that a block of each is a small part of the load's memory: that much is read for a range
//! beside its own blocks. Sorts are numbered as their rows came, which is the order of rows with equal keys. Codes of
//! texts are never joined with texts. It does not own: what memory a load may use (`turn`), runs (`loader`).

mod block;
mod ranges;
mod texts;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use parking_lot::Mutex;

use self::block::{Columns, FILE};
use self::texts::{Dictionaries, Texts};
use super::batches::{can_be_joined, joinable};
use super::sort::{SortBuffer, SortOrder};
use super::turn::Waiting;
use crate::codec::Encoder;
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::limits;
use crate::order::KeyReader;
use crate::row::{batch_of, bytes_of_array};
use crate::schema::TableSchema;
use crate::threads::in_parallel;

pub(super) use ranges::{Range, Ranges};

/// Who puts rows aside.
#[derive(Clone, Debug)]
pub(super) struct Spiller {
    pub schema: Arc<TableSchema>,
    pub reader: KeyReader,
    /// Threads that sort, write and read.
    pub threads: usize,
    /// Whether to go on is asked by each of them, now and then.
    pub waiting: Waiting,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Spill {
    by: Spiller,
    file: BlockFile,
    sorts: Vec<Sort>,
    texts: Dictionaries,
    /// What a sort may have in memory, and what a block should have.
    sort_bytes: usize,
    block_bytes: usize,
    /// Bytes of all that is known of blocks.
    memory: usize,
    /// Bytes of the largest block of each sort, together: as many may be read beside a range.
    reaching: usize,
}

/// Rows in order.
#[derive(Debug)]
struct Sort {
    columns: Columns,
    /// Its rows, in their order.
    blocks: Vec<Block>,
}

/// Rows of one sort, neighbours in its order.
#[derive(Debug)]
struct Block {
    first_key: Box<[u8]>,
    rows: usize,
    /// What they and their keys take when they are read.
    bytes: usize,
    /// Where they stand in the file, and how many bytes they have there.
    at: u64,
    len: usize,
    checksum: u32,
}

/// The file of blocks, which ends at a byte.
#[derive(Debug)]
struct BlockFile {
    file: Arc<dyn DiskFile>,
    end: Mutex<u64>,
}

impl Spill {
    /// An empty one in `file`, which is empty, by a load whose sorts may take `sort_bytes`.
    pub fn new(by: Spiller, file: Arc<dyn DiskFile>, sort_bytes: usize) -> Self {
        let block_bytes = (sort_bytes / limits::SPILL_BLOCKS).max(limits::SPILL_BLOCK_BYTES_MIN);
        let (file, texts) = (BlockFile { file, end: Mutex::new(0) }, Dictionaries::new(by.schema.columns.len()));
        Self { by, file, sorts: Vec::new(), texts, sort_bytes, block_bytes, memory: 0, reaching: 0 }
    }

    /// Bytes that it takes in memory.
    pub fn memory(&self) -> usize {
        self.memory + self.texts.memory()
    }

    /// Whether it has as many sorts as ranges can be read from.
    pub fn is_full(&self) -> bool {
        self.reaching >= self.sort_bytes / limits::SPILL_REACHING_SHARE
            || self.memory() >= self.sort_bytes / limits::SPILL_KNOWN_SHARE
    }

    /// Whether sorts are as large as memory has room for.
    fn has_many_sorts(&self) -> bool {
        self.reaching >= self.sort_bytes / limits::SPILL_REACHING_SHARE / 3
    }

    /// Bytes of rows, and of what is beside them, that are worth writing: a sort.
    pub fn bytes_at_once(&self) -> usize {
        if self.has_many_sorts() { self.sort_bytes } else { self.sort_bytes / limits::SPILL_SORT_SHARE }
    }

    /// Takes the rows of `batches`. Returns a key that is there twice, if one is: then the load is over.
    ///
    /// # Errors
    /// Io or Full; why not to go on.
    pub fn push(&mut self, batches: Vec<RecordBatch>) -> Result<Option<Vec<u8>>> {
        let least = if self.has_many_sorts() { usize::MAX } else { self.sort_bytes / limits::SPILL_SORT_SHARE / 4 };
        let mut of_sorts: Vec<(Vec<RecordBatch>, usize)> = Vec::new();
        for batch in batches {
            let bytes = batch.columns().iter().map(bytes_of_array).sum::<usize>();
            match of_sorts.last_mut().filter(|(_, before)| *before < least) {
                Some((batches, before)) => {
                    batches.push(batch);
                    *before += bytes;
                }
                None => of_sorts.push((vec![batch], bytes)),
            }
        }
        let of_sorts: Vec<_> = of_sorts.into_iter().map(|(batches, _)| Mutex::new(batches)).collect();
        // A sort by all threads, or each by one.
        let threads = if of_sorts.len() > 1 { 1 } else { self.by.threads };
        let sorts = in_parallel(self.by.threads, of_sorts.len(), |sort| {
            let batches = of_sorts.get(sort).map(|batches| std::mem::take(&mut *batches.lock())).unwrap_or_default();
            let batches = self.coded(batches)?;
            let order = SortOrder::of(&self.by.reader, &batches)?;
            let repeated = order.first_duplicate().map(<[u8]>::to_vec);
            let sorted = SortBuffer::new(order, batches, threads)?;
            Ok((repeated, self.write(&sorted, threads)?))
        })?;
        let mut repeated = None;
        for (of_sort, sort) in sorts {
            repeated = repeated.or(of_sort);
            self.add(sort);
        }
        Ok(repeated.filter(|_| self.by.schema.ordered_key().is_some()))
    }

    /// The rows of `batches` in a form in which they can be joined, with codes where there are few texts.
    fn coded(&self, batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
        let code = |batch: &RecordBatch| self.texts.coded(batch, self.by.reader.positions());
        let coded = batches.iter().map(code).collect::<Result<Vec<_>>>()?;
        if can_be_joined(&coded) {
            return Ok(coded);
        }
        // From now on there are texts alone, those that came as codes of other dictionaries included.
        self.texts.close();
        joinable(batches.iter().map(code).collect::<Result<_>>()?, &self.by.schema)
    }

    fn add(&mut self, sort: Sort) {
        self.reaching += sort.blocks.iter().map(|block| block.bytes).max().unwrap_or(0);
        self.memory += sort.blocks.iter().map(|block| size_of::<Block>() + block.first_key.len()).sum::<usize>();
        self.sorts.push(sort);
    }

    /// Writes the rows of `sorted`, by `threads` threads.
    fn write(&self, sorted: &SortBuffer, threads: usize) -> Result<Sort> {
        let rows = sorted.rows();
        let bytes = (sorted.bytes() + rows * sorted.first_key().len()).max(1) as u64;
        let of_block = (rows as u64 * self.block_bytes as u64 / bytes).clamp(1, rows.max(1) as u64) as usize;
        let at_once = of_block * limits::SPILL_BLOCKS_AT_ONCE;
        let columns = Columns::of(&batch_of(sorted.columns_alone(0..rows.min(1))?)?);
        let blocks = in_parallel(threads, rows.div_ceil(at_once), |number| {
            self.by.waiting.go_on()?;
            let (first, end) = (number * at_once, rows.min((number + 1) * at_once));
            let gathered = batch_of(sorted.columns_alone(first..end)?)?;
            let (mut blocks, mut encoded) = (Vec::new(), Encoder::new());
            let mut parts: Vec<_> = (first..end).step_by(of_block).map(|at| at..end.min(at + of_block)).collect();
            parts.reverse();
            while let Some(rows) = parts.pop() {
                let part = gathered.slice(rows.start - first, rows.len());
                let first_key = self.first_key(&part)?;
                let bytes = part.columns().iter().map(bytes_of_array).sum::<usize>() + rows.len() * first_key.len();
                // Some rows may be much wider than others.
                if bytes > 2 * self.block_bytes && rows.len() > 1 {
                    let middle = rows.start.midpoint(rows.end);
                    parts.extend([middle..rows.end, rows.start..middle]);
                    continue;
                }
                let at = encoded.len();
                columns.write(&part, &mut encoded)?;
                let written = encoded.as_slice().get(at..).unwrap_or_default();
                let (len, checksum) = (written.len(), crc32c::crc32c(written));
                blocks.push(Block { first_key, rows: rows.len(), bytes, at: at as u64, len, checksum });
            }
            let begin = self.file.append(encoded.as_slice())?;
            blocks.iter_mut().for_each(|block| block.at += begin);
            Ok(blocks)
        })?;
        Ok(Sort { columns, blocks: blocks.into_iter().flatten().collect() })
    }

    fn first_key(&self, rows: &RecordBatch) -> Result<Box<[u8]>> {
        let keys = self.by.reader.keys_of(&rows.slice(0, 1))?;
        Ok(keys.map(|keys| keys.get(0).into()).unwrap_or_default())
    }
}

impl BlockFile {
    /// Appends `bytes`, and tells where they begin.
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let mut end = self.end.lock();
        self.file.append(bytes)?;
        let begin = *end;
        *end += bytes.len() as u64;
        Ok(begin)
    }

    /// The rows of `block`, whose columns are `columns`.
    ///
    /// # Errors
    /// Io; Corrupt when they are not those that were written.
    fn read(&self, columns: &Columns, block: &Block, texts: &[Option<Texts>]) -> Result<RecordBatch> {
        let mut bytes = Vec::new();
        self.file.read_into(block.at, block.len, &mut bytes)?;
        if crc32c::crc32c(&bytes) != block.checksum {
            let message = "rows that a load had put aside do not match their checksum";
            return Err(Error::corrupt(FILE, block.at, message));
        }
        columns.read(&Buffer::from_vec(bytes), block.rows, block.at, texts)
    }
}
