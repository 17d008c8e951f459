//! Rows a transaction has inserted and not written aside.
//!
//! They stand in chunks, shared with the views of earlier statements and with savepoints. A statement appends: in place
//! while nobody else holds the last chunk, else as a chunk of its own; small chunks are joined with those before them
//! that are no larger, so that a row is copied at most log2([`limits::OWN_CHUNK_ROWS`]) times, however many views live.

use std::sync::Arc;

use crate::ids::{ContainerId, RowRef};
use crate::limits;
use crate::memory::{Charge, MemoryBudget, MemoryKind};
use crate::row::{RowBuffer, RowLayout, RowView};

/// Where a transaction's own containers get their ids from. It stays as it is when the transaction goes back to a
/// savepoint: an id that was given out since is not given out again.
#[derive(Debug, Default)]
pub struct OwnContainers(u64);

impl OwnContainers {
    /// The next one.
    #[must_use]
    pub fn next_id(&mut self) -> ContainerId {
        self.0 += 1;
        ContainerId::own_rows(self.0 - 1)
    }
}

/// Some of the rows, one behind the other.
#[derive(Debug)]
pub struct OwnChunk {
    /// Offset of its first row.
    first: u32,
    rows: RowBuffer,
    charge: Charge,
}

impl OwnChunk {
    /// Offset of its first row among the transaction's own rows.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Its rows.
    #[must_use]
    pub fn rows(&self) -> &RowBuffer {
        &self.rows
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= limits::OWN_CHUNK_ROWS / 2 || self.rows.bytes() >= limits::OWN_CHUNK_BYTES / 2
    }

    fn append(&mut self, rows: &RowBuffer) {
        self.rows.push_rows(rows);
        self.charge.resize(self.rows.bytes());
    }
}

/// The rows, in the order in which they were inserted. Append-only; a clone costs O(log rows), and stays as it is.
#[derive(Clone, Debug)]
pub struct OwnRows {
    id: ContainerId,
    layout: Arc<RowLayout>,
    budget: Arc<MemoryBudget>,
    /// Chunks that take no rows any more.
    full: Arc<Vec<Arc<OwnChunk>>>,
    /// Behind them, each with more rows than the next.
    tail: Vec<Arc<OwnChunk>>,
    len: usize,
    bytes: usize,
}

impl OwnRows {
    /// No rows yet, of `layout`, as container `id`.
    #[must_use]
    pub fn new(id: ContainerId, layout: Arc<RowLayout>, budget: Arc<MemoryBudget>) -> Self {
        Self { id, layout, budget, full: Arc::default(), tail: Vec::new(), len: 0, bytes: 0 }
    }

    /// No rows yet, of the same layout, as container `id`.
    #[must_use]
    pub fn next(&self, id: ContainerId) -> Self {
        Self::new(id, self.layout.clone(), self.budget.clone())
    }

    /// The container their references name; another one after each spill.
    #[must_use]
    pub fn id(&self) -> ContainerId {
        self.id
    }

    /// The layout of the rows.
    #[must_use]
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// Rows, deleted ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the rows.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The chunks in order.
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<OwnChunk>> {
        self.full.iter().chain(&self.tail)
    }

    /// The rows from offset `from` on.
    pub fn rows_from(&self, from: u32) -> impl Iterator<Item = (u32, RowView<'_>)> {
        let ends_before = |chunk: &Arc<OwnChunk>| chunk.first + chunk.rows.len() as u32 <= from;
        let full = self.full.split_at(self.full.partition_point(ends_before)).1;
        let tail = self.tail.split_at(self.tail.partition_point(ends_before)).1;
        full.iter().chain(tail).flat_map(move |chunk| {
            let skip = from.saturating_sub(chunk.first) as usize;
            (skip..chunk.rows.len()).map(move |at| (chunk.first + at as u32, chunk.rows.row(at)))
        })
    }

    /// Row `offset`, if it is there.
    #[must_use]
    pub fn row(&self, offset: u32) -> Option<RowView<'_>> {
        let begins_upto = |chunk: &Arc<OwnChunk>| chunk.first <= offset;
        let chunks = match self.tail.first() {
            Some(first) if begins_upto(first) => &self.tail,
            _ => self.full.as_ref(),
        };
        let chunk = chunks.get(chunks.partition_point(begins_upto).checked_sub(1)?)?;
        let at = (offset - chunk.first) as usize;
        (at < chunk.rows.len()).then(|| chunk.rows.row(at))
    }

    /// Whether `rows` more fit the offsets of a container.
    #[must_use]
    pub fn has_room(&self, rows: usize) -> bool {
        self.len + rows <= RowRef::OFFSETS as usize
    }

    /// Appends `rows`, for which there is room.
    pub fn append(&mut self, rows: RowBuffer) {
        if rows.is_empty() {
            return;
        }
        debug_assert!(self.has_room(rows.len()), "{} rows and {} more", self.len, rows.len());
        let first = self.len as u32;
        self.len += rows.len();
        self.bytes += rows.bytes();
        if let Some(last) = self.tail.last_mut().and_then(Arc::get_mut) {
            last.append(&rows);
        } else {
            let charge = self.budget.charge(MemoryKind::WriteSets, rows.bytes());
            self.tail.push(Arc::new(OwnChunk { first, rows, charge }));
        }
        self.join_last();
        if self.tail.last().is_some_and(|chunk| chunk.is_full()) {
            Arc::make_mut(&mut self.full).append(&mut self.tail);
        }
    }

    /// Joins the last chunk with those before it that are no larger than what is joined so far, copying each once.
    fn join_last(&mut self) {
        let mut rows = 0;
        let fits = |chunk: &&Arc<OwnChunk>| {
            let joins = rows == 0 || chunk.rows.len() <= rows;
            rows += chunk.rows.len();
            joins
        };
        let joined = self.tail.iter().rev().take_while(fits).count();
        if joined < 2 {
            return;
        }
        let parts = self.tail.split_off(self.tail.len() - joined);
        let Some(first) = parts.first() else { return };
        let mut all = OwnChunk {
            first: first.first,
            rows: RowBuffer::new(self.layout.clone()),
            charge: self.budget.charge(MemoryKind::WriteSets, 0),
        };
        parts.iter().for_each(|part| all.append(&part.rows));
        self.tail.push(Arc::new(all));
    }
}
