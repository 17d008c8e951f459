//! A delta generation: appending, what a snapshot sees of it, and reading columns.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use arrow_array::ArrayRef;
use parking_lot::Mutex;

use super::arrays::Gather;
use super::block::{Block, BlockWriter};
use super::column::{BLOCK_ROWS, ColumnBlock};
use super::directory::Directory;
use super::key_order::KeyOrder;
use super::order::SortOrder;
use super::point_access::KeyIndex;
use crate::deletes::DeleteLog;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, ContainerId, KeyId, RowRef};
use crate::limits;
use crate::memory::{Charge, MemoryBudget, MemoryKind};
use crate::row::key::{KeyHashes, RowKeys};
use crate::row::{RowBuffer, constant_array};
use crate::schema::{Column, TableSchema};

/// Recent rows of one table, append-only in commit order (contract 1). A container.
pub struct DeltaGeneration {
    id: ContainerId,
    schema: Arc<TableSchema>,
    /// Rows published.
    rows: AtomicU32,
    /// Bytes of them, as rows.
    bytes: AtomicU64,
    frozen: AtomicBool,
    pub(super) blocks: Directory<Block>,
    deletes: DeleteLog,
    /// In the order of [`TableSchema::keys`].
    pub(super) keys: Box<[KeyIndex]>,
    pub(super) order: SortOrder,
    /// For each of `keys`.
    pub(super) key_orders: Box<[KeyOrder]>,
    writer: Mutex<Writer>,
    /// What it counts as, once it is frozen.
    charge: Mutex<Option<Charge>>,
}

/// What the one writer keeps from one append to the next.
#[derive(Default)]
struct Writer {
    /// Number of the open block, and what appends to it.
    open: Option<(usize, BlockWriter)>,
    /// An append failed half-way: the blocks are out of step, and nothing may follow.
    broken: bool,
}

impl DeltaGeneration {
    /// An empty generation for rows of `schema`.
    #[must_use]
    pub fn new(id: ContainerId, schema: Arc<TableSchema>) -> Self {
        Self {
            id,
            rows: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            frozen: AtomicBool::new(false),
            blocks: Directory::new(),
            deletes: DeleteLog::growing(RowRef::OFFSETS),
            keys: KeyIndex::all(&schema),
            order: SortOrder::new(&schema),
            key_orders: schema.keys().map(|_| KeyOrder::default()).collect(),
            writer: Mutex::default(),
            charge: Mutex::default(),
            schema,
        }
    }

    /// Its container id.
    #[must_use]
    pub fn id(&self) -> ContainerId {
        self.id
    }

    /// The schema version of its rows.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Rows published.
    #[inline]
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows.load(Ordering::Acquire)
    }

    /// Its delete log.
    #[must_use]
    pub fn deletes(&self) -> &DeleteLog {
        &self.deletes
    }

    /// Rows that began at or before `at`: the prefix that a snapshot at `at` sees, before deletes.
    #[must_use]
    pub fn rows_at(&self, at: CommitTs) -> u32 {
        let rows = self.rows();
        if rows == 0 || self.begin_of(rows - 1).is_some_and(|last| last <= at) {
            return rows;
        }
        let begun = |number: usize| {
            let published = (rows as usize - number * BLOCK_ROWS).min(BLOCK_ROWS);
            self.blocks.get(number).map_or(0, |block| block.begun(published, at))
        };
        // The block where the prefix ends is the first whose first row began later, less one.
        let (mut low, mut high) = (0, (rows as usize).div_ceil(BLOCK_ROWS));
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if begun(middle) > 0 { low = middle } else { high = middle }
        }
        (low * BLOCK_ROWS + begun(low)) as u32
    }

    /// When row `offset` began; `None` if it is not published.
    #[inline]
    #[must_use]
    pub fn begin_of(&self, offset: u32) -> Option<CommitTs> {
        if offset >= self.rows() {
            return None;
        }
        self.blocks.get(offset as usize / BLOCK_ROWS)?.begin(offset as usize % BLOCK_ROWS)
    }

    /// Whether row `offset` is live for a snapshot at `at`.
    #[must_use]
    pub fn is_visible(&self, offset: u32, at: CommitTs) -> bool {
        self.begin_of(offset).is_some_and(|begin| begin <= at) && !self.deletes.is_deleted(offset, at)
    }

    /// Ends appends for good. For the holder of the commit lock.
    pub fn freeze(&self) {
        self.frozen.store(true, Ordering::Release);
    }

    /// Whether appends have ended.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// Whether `rows` more rows of `bytes` bytes can be appended.
    #[must_use]
    pub fn has_room(&self, rows: usize, bytes: usize) -> bool {
        let rows = u64::from(self.rows()) + rows as u64;
        let bytes = self.bytes_of_rows() + bytes as u64;
        !self.is_frozen() && rows <= u64::from(RowRef::OFFSETS) && bytes <= limits::DELTA_BYTES_HARD_MAX
    }

    /// Whether it has as many rows or bytes as its table wants in one generation, and should be frozen.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.rows() >= self.schema.options.delta_rows || self.bytes_of_rows() >= limits::DELTA_BYTES_MAX
    }

    /// Bytes of its rows, as rows: what the log has of them.
    #[must_use]
    pub fn bytes_of_rows(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes held, the delete log and the key hashes included; pages reserved and not yet written are left out.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let rows = self.rows() as usize;
        let of_block = |(number, block): (usize, &Block)| {
            block.memory_bytes(rows.saturating_sub(number * BLOCK_ROWS).min(BLOCK_ROWS))
        };
        size_of::<Self>()
            + self.blocks.iter().enumerate().map(of_block).sum::<usize>()
            + self.deletes.memory_bytes()
            + self.keys.iter().map(KeyIndex::memory_bytes).sum::<usize>()
            + self.order.memory_bytes()
            + self.key_orders.iter().map(KeyOrder::memory_bytes).sum::<usize>()
    }

    /// Counts its bytes as `kind` from now on, for as long as anybody holds it.
    pub fn count_as(&self, budget: &Arc<MemoryBudget>, kind: MemoryKind) {
        let charge = budget.charge(kind, self.memory_bytes());
        *self.charge.lock() = Some(charge);
    }

    /// Counts its bytes again, if they are counted here.
    pub fn recount(&self) {
        if let Some(charge) = self.charge.lock().as_mut() {
            charge.resize(self.memory_bytes());
        }
    }

    /// Appends `rows` with begin `ts` and publishes them together; returns their offsets. Only for the holder of the
    /// commit lock, in commit order, for rows of this schema version, after [`DeltaGeneration::has_room`].
    ///
    /// Errors: Internal when that was not kept. Then no row was published.
    pub fn append(&self, rows: &RowBuffer, ts: CommitTs) -> Result<Range<u32>> {
        let keys: Box<[RowKeys]> = self.keys.iter().map(|key| key.keys_of(rows)).collect();
        let hashes = |id| keys.iter().find(|keys| keys.id() == id).map(KeyHashes::Of);
        self.append_hashed(rows, hashes, ts)
    }

    /// As [`DeltaGeneration::append`], where `hashes` gives those of each key of the table.
    ///
    /// Errors: as [`DeltaGeneration::append`]; Internal, too, when those of a key are missing.
    pub fn append_hashed<'k>(
        &self,
        rows: &RowBuffer,
        hashes: impl Fn(KeyId) -> Option<KeyHashes<'k>>,
        ts: CommitTs,
    ) -> Result<Range<u32>> {
        let Some(mut writer) = self.writer.try_lock() else {
            return Err(Error::internal(format!("delta {} has two writers", self.id)));
        };
        let writer = &mut *writer;
        let start = self.rows();
        if rows.is_empty() {
            return Ok(start..start);
        }
        self.check_append(rows, ts, start, writer)?;
        writer.broken = true;
        let end = start + rows.len() as u32;
        // Before the rows can be seen, and so before they can be deleted.
        self.deletes.cover(end);
        self.write(writer, rows, hashes, ts, start)?;
        let bytes = rows.bytes_of(0..rows.len()) as u64;
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
        // Publishes columns, begin, chain and hash entries of these rows to whoever loads the count.
        self.rows.store(end, Ordering::Release);
        writer.broken = false;
        Ok(start..end)
    }

    fn check_append(&self, rows: &RowBuffer, ts: CommitTs, start: u32, writer: &Writer) -> Result<()> {
        let theirs = rows.layout().schema();
        let last = start.checked_sub(1).and_then(|last| self.begin_of(last)).unwrap_or(CommitTs::ZERO);
        let what = if (theirs.id, theirs.version) != (self.schema.id, self.schema.version) {
            "takes rows of another schema version"
        } else if writer.broken {
            "was broken by an earlier append"
        } else if !self.has_room(rows.len(), 0) {
            "is frozen or full"
        } else if ts < last {
            "takes rows out of commit order"
        } else {
            return Ok(());
        };
        Err(Error::internal(format!("delta {} {what}", self.id)))
    }

    /// Writes and links `rows`, which are to stand at `start` on, block by block.
    fn write<'k>(
        &self,
        writer: &mut Writer,
        rows: &RowBuffer,
        hashes: impl Fn(KeyId) -> Option<KeyHashes<'k>>,
        ts: CommitTs,
        start: u32,
    ) -> Result<()> {
        let mut written = 0;
        while written < rows.len() as u32 {
            let at = start + written;
            let (number, first) = (at as usize / BLOCK_ROWS, at as usize % BLOCK_ROWS);
            if number == self.blocks.len() {
                self.blocks.push(Block::new(&self.schema));
            }
            let block = self.blocks.get(number).ok_or_else(|| Error::internal("a delta has no room for a block"))?;
            let open = match &mut writer.open {
                Some((of, open)) if *of == number => open,
                open => {
                    let new = block.writer().ok_or_else(|| Error::internal("a delta block has two writers"))?;
                    &mut open.insert((number, new)).1
                }
            };
            let part = written..(written + (BLOCK_ROWS - first) as u32).min(rows.len() as u32);
            block.append(open, rows, part.clone(), first, ts)?;
            for index in &self.keys {
                let missing = || Error::internal(format!("delta {} takes rows with other keys", self.id));
                index.link(&self.blocks, open, rows, part.clone(), at, hashes(index.id()).ok_or_else(missing)?)?;
            }
            written = part.end;
        }
        Ok(())
    }

    /// The published rows below `upto` in pieces that lie in one block each, in order: [`DeltaGeneration::read`] copies
    /// nothing for such a piece.
    pub fn block_ranges(&self, upto: u32) -> impl Iterator<Item = Range<u32>> + use<> {
        let upto = upto.min(self.rows());
        let step = limits::DELTA_BLOCK_ROWS;
        (0..upto).step_by(step as usize).map(move |start| start..(start + step).min(upto))
    }

    /// The published rows `rows` of `column` as an array of its Arrow type. Within one block nothing is copied (a
    /// Boolean is packed). A column that this generation lacks reads as its missing value. Errors: Internal if rows are
    /// not published.
    pub fn read(&self, column: &Column, rows: Range<u32>) -> Result<ArrayRef> {
        let published = self.rows();
        if rows.start > rows.end || rows.end > published {
            return Err(Error::internal(format!("read of rows {rows:?} of {published} in delta {}", self.id)));
        }
        let Some(position) = self.schema.position(column.id) else {
            return constant_array(&column.missing_value, column.data_type, rows.len());
        };
        if rows.is_empty() {
            return Ok(arrow_array::new_empty_array(&column.data_type.arrow()));
        }
        let blocks = rows.start as usize / BLOCK_ROWS..(rows.end as usize).div_ceil(BLOCK_ROWS);
        let mut arrays = Vec::with_capacity(blocks.len());
        for number in blocks {
            let first = number * BLOCK_ROWS;
            let within = (rows.start as usize).max(first) - first..(rows.end as usize).min(first + BLOCK_ROWS) - first;
            let block = self.column_block(number, position)?;
            arrays.push(block.array(within, first + BLOCK_ROWS <= published as usize)?);
        }
        if let [one] = arrays.as_slice() {
            return Ok(Arc::clone(one));
        }
        let parts: Vec<&dyn arrow_array::Array> = arrays.iter().map(AsRef::as_ref).collect();
        Ok(arrow_select::concat::concat(&parts)?)
    }

    /// The published rows that `offsets` names, in that order, of `column`. Errors as [`DeltaGeneration::read`].
    pub fn gather(&self, column: &Column, offsets: &[u32]) -> Result<ArrayRef> {
        let published = self.rows();
        if let Some(outside) = offsets.iter().find(|&&offset| offset >= published) {
            return Err(Error::internal(format!("read of row {outside} of {published} in delta {}", self.id)));
        }
        let Some(position) = self.schema.position(column.id) else {
            return constant_array(&column.missing_value, column.data_type, offsets.len());
        };
        let block = |number: usize| self.blocks.get(number)?.columns.get(position);
        let nullable = self.schema.columns.get(position).is_none_or(|own| own.nullable);
        Gather { block, offsets, data_type: column.data_type, nullable }.array()
    }

    fn column_block(&self, number: usize, position: usize) -> Result<&ColumnBlock> {
        let column = self.blocks.get(number).and_then(|block| block.columns.get(position));
        column.ok_or_else(|| Error::internal(format!("delta {} has no block {number}", self.id)))
    }
}

impl std::fmt::Debug for DeltaGeneration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = if self.is_frozen() { ", frozen" } else { "" };
        write!(f, "DeltaGeneration({} of {}, {} rows{state})", self.id, self.schema.name, self.rows())
    }
}
