//! Rows put aside by a load, read by ranges of their keys, in order.
//!
//! Comes in: sorts, as blocks whose first keys are known. Goes out: all rows in the order of their keys, equal ones as
//! they came, as many at a time as memory is given for.
//!
//! 1. The blocks of all sorts are put in the order of where they begin: by first key, sort, and place in the sort. A
//!    *cut* is where a block begins: a row is before it or not by its key; by its sort, if it has the key of the cut.
//! 2. A *range* is what lies between two cuts: as many blocks as fit memory, and of each sort the block before the
//!    first cut, which may reach into it ([`Ranges::next`]).
//! 3. Its blocks are read, then parts of it between cuts are sorted, all by all threads ([`Ranges::read`]).
//!
//! Invariants: each row is in one range and one part, for cuts order as rows do; a range has at least one row, that at
//! its first cut. Where many rows have one key, their sort and place tell them apart, so that a range of them is no
//! larger than others. It does not own: memory (`loader` counts it), what becomes of the rows.

use arrow_array::{ArrayRef, RecordBatch};

use super::block::Columns;
use super::texts::Texts;
use super::{Block, BlockFile, Spill, Spiller};
use crate::error::{Error, Result};
use crate::limits;
use crate::load::batches::{can_be_joined, joinable};
use crate::load::sort::{SortBuffer, SortOrder};
use crate::row::key::Keys;
use crate::row::{batch_of, compact};
use crate::threads::in_parallel;

/// See the module.
#[derive(Debug)]
pub(in crate::load) struct Ranges {
    by: Spiller,
    file: BlockFile,
    /// Of each sort.
    columns: Vec<Columns>,
    /// What codes name, for each column.
    texts: Vec<Option<Texts>>,
    /// In the order of where they begin.
    blocks: Vec<Placed>,
    /// The first block of what is not read yet.
    next: usize,
    /// The last block of each sort before that.
    before: Vec<Option<usize>>,
    /// The last key read.
    last_key: Option<Vec<u8>>,
    /// Bytes of all that is known of blocks.
    memory: usize,
}

#[derive(Debug)]
struct Placed {
    block: Block,
    sort: usize,
}

/// Which rows are read next: those from the cut of the first block not read yet on.
#[derive(Debug)]
pub(in crate::load) struct Range {
    /// To before the cut of this block.
    end: usize,
    /// Bytes of all blocks that are read for it, and their rows.
    pub bytes: usize,
    pub rows: usize,
}

/// Rows of a range, in order.
#[derive(Debug)]
pub(in crate::load) struct SortedRange {
    pub batches: Vec<RecordBatch>,
    /// The first key that two rows have, of these and the last one before.
    pub first_repeated: Option<Vec<u8>>,
}

/// A block in memory.
struct Loaded {
    /// Which one.
    at: usize,
    rows: RecordBatch,
    keys: Keys,
}

/// Rows between two cuts, in order.
struct SortedPart {
    rows: RecordBatch,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    first_repeated: Option<Vec<u8>>,
}

impl Ranges {
    /// Of all rows of `spill`.
    pub fn new(spill: Spill) -> Self {
        let memory = spill.memory();
        let Spill { by, file, sorts, texts, .. } = spill;
        let before = vec![None; sorts.len()];
        let (mut columns, mut blocks) = (Vec::with_capacity(sorts.len()), Vec::new());
        for (number, sort) in sorts.into_iter().enumerate() {
            columns.push(sort.columns);
            blocks.extend(sort.blocks.into_iter().map(|block| Placed { block, sort: number }));
        }
        // Blocks of a sort with one first key stay as they are.
        blocks.sort_by(|a, b| a.block.first_key.cmp(&b.block.first_key).then(a.sort.cmp(&b.sort)));
        Self { by, file, columns, texts: texts.into_texts(), blocks, next: 0, before, last_key: None, memory }
    }

    /// Bytes that it takes in memory.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Bytes of blocks that are read for the next range, and may have no more than a row of it, and their rows.
    fn reaching(&self) -> (usize, usize) {
        let reaching = self.before.iter().flatten().filter_map(|at| self.blocks.get(*at));
        reaching.fold((0, 0), |(bytes, rows), placed| (bytes + placed.block.bytes, rows + placed.block.rows))
    }

    /// The range that is to be read next, whose blocks have at most `bytes` bytes; a larger one if these are but those
    /// that reach into it, and `own` bytes; `None` when all rows were read.
    pub fn next(&self, bytes: usize, own: usize) -> Option<Range> {
        let (mut total, mut rows) = self.reaching();
        let (mut end, most) = (self.next, bytes.max(total + own));
        for placed in self.blocks.get(self.next..)? {
            if end > self.next && total + placed.block.bytes > most {
                break;
            }
            total += placed.block.bytes;
            rows += placed.block.rows;
            end += 1;
        }
        (end > self.next).then_some(Range { end, bytes: total, rows })
    }

    /// The rows of `range`, which [`Ranges::next`] said.
    ///
    /// # Errors
    /// Io; Corrupt when they are not those that were put aside; why not to go on.
    pub fn read(&mut self, range: &Range) -> Result<SortedRange> {
        let wanted: Vec<usize> = self.before.iter().copied().flatten().chain(self.next..range.end).collect();
        let load = |number: usize| {
            self.by.waiting.go_on()?;
            self.load(wanted.get(number).copied().unwrap_or_default())
        };
        let mut of_sorts: Vec<Vec<Loaded>> = self.before.iter().map(|_| Vec::new()).collect();
        for loaded in in_parallel(self.by.threads, wanted.len(), load)? {
            let of_sort = self.blocks.get(loaded.at).and_then(|placed| of_sorts.get_mut(placed.sort));
            of_sort.ok_or_else(|| Error::internal("a block of no sort"))?.push(loaded);
        }
        let cuts = self.cuts(range);
        let parts = in_parallel(self.by.threads, cuts.len().saturating_sub(1), |part| {
            self.by.waiting.go_on()?;
            self.sorted(&of_sorts, (cuts[part], cuts[part + 1]))
        })?;
        let mut sorted = SortedRange { batches: Vec::with_capacity(parts.len()), first_repeated: None };
        for part in parts {
            let follows_itself = self.last_key.as_ref().is_some_and(|last| *last == part.first_key);
            let repeated = if follows_itself { Some(part.first_key) } else { part.first_repeated };
            sorted.first_repeated = sorted.first_repeated.or(repeated);
            self.last_key = Some(part.last_key);
            sorted.batches.push(part.rows);
        }
        for at in self.next..range.end {
            if let Some(before) = self.blocks.get(at).and_then(|placed| self.before.get_mut(placed.sort)) {
                *before = Some(at);
            }
        }
        self.next = range.end;
        Ok(sorted)
    }

    /// Blocks at whose beginnings `range` is cut, its ends included.
    fn cuts(&self, range: &Range) -> Vec<usize> {
        let mut cuts = vec![self.next];
        let mut rows = 0;
        for at in self.next..range.end {
            if rows >= limits::SPILL_RANGE_ROWS {
                cuts.push(at);
                rows = 0;
            }
            rows += self.blocks.get(at).map_or(0, |placed| placed.block.rows);
        }
        cuts.push(range.end);
        cuts
    }

    fn load(&self, at: usize) -> Result<Loaded> {
        let placed = self.blocks.get(at).and_then(|placed| Some((placed, self.columns.get(placed.sort)?)));
        let (placed, columns) = placed.ok_or_else(|| Error::internal("no such block"))?;
        let rows = self.file.read(columns, &placed.block, &self.texts)?;
        let keys = self.by.reader.keys_of(&rows)?.ok_or_else(|| Error::internal("rows put aside without a key"))?;
        Ok(Loaded { at, rows, keys })
    }

    /// The rows between the cuts at blocks `from` and `to`.
    fn sorted(&self, of_sorts: &[Vec<Loaded>], (from, to): (usize, usize)) -> Result<SortedPart> {
        let mut pieces = Vec::new();
        for blocks in of_sorts {
            // Of those that begin before only the last one may reach behind the cut.
            let first = blocks.partition_point(|loaded| loaded.at < from).saturating_sub(1);
            for loaded in blocks.iter().skip(first).take_while(|loaded| loaded.at < to) {
                let (start, end) = (self.rows_before(loaded, from), self.rows_before(loaded, to));
                if start < end {
                    pieces.push(loaded.rows.slice(start, end - start));
                }
            }
        }
        let order = SortOrder::of(&self.by.reader, &pieces)?;
        let first_repeated = order.first_duplicate().map(<[u8]>::to_vec);
        // Codes say what they name before they become other types.
        if !can_be_joined(&pieces) {
            pieces = joinable(pieces.iter().map(|piece| self.named(piece)).collect::<Result<_>>()?, &self.by.schema)?;
        }
        let sorted = SortBuffer::new(order, pieces, 1)?;
        // Views let go of the blocks that they were read from.
        let rows = batch_of(sorted.columns_alone(0..sorted.rows())?.into_iter().map(compact).collect())?;
        Ok(SortedPart {
            rows: self.named(&rows)?,
            first_key: sorted.first_key().to_vec(),
            last_key: sorted.last_key().to_vec(),
            first_repeated,
        })
    }

    /// `rows` with columns as a load takes them.
    fn named(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let column = |(column, texts): (&ArrayRef, &Option<Texts>)| match texts {
            Some(texts) => texts.column(column.clone()),
            None => Ok(column.clone()),
        };
        batch_of(rows.columns().iter().zip(&self.texts).map(column).collect::<Result<_>>()?)
    }

    /// How many rows of `loaded` are before the cut at block `cut`.
    fn rows_before(&self, loaded: &Loaded, cut: usize) -> usize {
        if cut <= loaded.at {
            return 0;
        }
        let cut_and_own = self.blocks.get(cut).zip(self.blocks.get(loaded.at));
        let Some((cut, own)) = cut_and_own.filter(|(cut, own)| cut.sort != own.sort) else { return loaded.keys.len() };
        let key = &*cut.block.first_key;
        loaded.keys.partition_point(|of_row| if own.sort < cut.sort { of_row <= key } else { of_row < key })
    }
}
