//! A segment: a container of immutable rows, read column by column.
//!
//! Comes in: a [`SegmentMeta`]. Goes out: Arrow arrays of row ranges and row lists, selections, single values. Opening a
//! segment reads nothing; blocks are loaded through the [`BlockCache`] when they are first asked for.
//!
//! Invariants: a segment answers for the columns it was written with, and with [`Column::missing_value`] for later ones; damage
//! is a Corrupt error that names file and byte.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use mainstem_kernels::bitmap;

use super::block::ColumnBlock;
use super::cache::{BlockCache, OpenBlock};
use super::encoding::Damage;
use super::file::SegmentFile;
use super::format::{BlockRef, ColumnMeta, SegmentMeta};
use crate::deletes::DeleteLog;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, ContainerId, FileId, SchemaVersion};
use crate::predicate::{Predicate, Prune, ValueRange};
use crate::row::{Value, constant_array};
use crate::schema::Column;

/// An immutable container of rows with a delete log.
pub struct Segment {
    meta: SegmentMeta,
    ranges: Vec<ValueRange>,
    deletes: DeleteLog,
    files: Vec<(FileId, Arc<SegmentFile>)>,
    cache: Arc<BlockCache>,
    dropped: AtomicBool,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment({}, {} rows)", self.meta.id, self.meta.rows)
    }
}

impl Segment {
    /// The segment that `meta` describes, with no row deleted. Reads nothing.
    #[must_use]
    pub fn open(meta: SegmentMeta, disk: Arc<dyn Disk>, cache: Arc<BlockCache>) -> Arc<Self> {
        let files: Vec<_> = meta.files().into_iter().map(|id| (id, cache.file(id, &disk))).collect();
        files.iter().for_each(|(_, file)| file.list());
        Arc::new(Self {
            ranges: meta.columns.iter().map(|c| c.range(meta.rows)).collect(),
            deletes: DeleteLog::new(meta.rows),
            files,
            cache,
            dropped: AtomicBool::new(false),
            meta,
        })
    }

    /// Its container id.
    #[must_use]
    pub fn id(&self) -> ContainerId {
        self.meta.id
    }

    /// Its rows, deleted ones included.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.meta.rows
    }

    /// What is known of it without reading.
    #[must_use]
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The schema it was written under.
    #[must_use]
    pub fn schema_version(&self) -> SchemaVersion {
        self.meta.schema_version
    }

    /// Which of its rows are deleted, since when.
    #[must_use]
    pub fn deletes(&self) -> &DeleteLog {
        &self.deletes
    }

    /// Whether the segment was written with column `id`.
    #[must_use]
    pub fn has_column(&self, id: ColumnId) -> bool {
        self.meta.column(id).is_some()
    }

    /// Bounds of column `id` over all rows, deleted ones included; `None` if the segment lacks it. Whether a bound occurs stands in
    /// [`ColumnMeta::zone`].
    #[must_use]
    pub fn zone_map(&self, id: ColumnId) -> Option<ValueRange> {
        self.range(id).cloned()
    }

    fn range(&self, id: ColumnId) -> Option<&ValueRange> {
        let at = self.meta.columns.iter().position(|c| c.id == id)?;
        self.ranges.get(at)
    }

    /// What all of `predicates` together select of the segment, as far as zone maps tell (MemSQL section III). A column that the
    /// segment lacks counts as unknown.
    #[must_use]
    pub fn prune(&self, predicates: &[Predicate]) -> Prune {
        let mut answer = Prune::All;
        for predicate in predicates {
            match self.range(predicate.column()).map_or(Prune::Some, |range| predicate.may_match(range)) {
                Prune::None => return Prune::None,
                Prune::Some => answer = Prune::Some,
                Prune::All => {}
            }
        }
        answer
    }

    /// Rows `rows` of `column` as an array of type `column.data_type.arrow()`. Text is views onto the block where it stands.
    ///
    /// # Errors
    /// Corrupt, Io; Internal for rows that are not there or a column of another type.
    pub fn read(&self, column: &Column, rows: Range<u32>) -> Result<ArrayRef> {
        let rows = self.checked(&rows)?;
        match self.column(column)? {
            Some(meta) => self.block(meta)?.read(rows),
            None => constant_array(&column.missing_value, column.data_type, rows.len()),
        }
    }

    /// The rows at `offsets`, in their order, of `column`. Errors as [`Segment::read`].
    pub fn gather(&self, column: &Column, offsets: &[u32]) -> Result<ArrayRef> {
        match self.column(column)? {
            Some(meta) => self.block(meta)?.gather(offsets),
            None => constant_array(&column.missing_value, column.data_type, offsets.len()),
        }
    }

    /// The rows of `rows` for which `predicate`, which must be on `column`, is true: bit `i` of the answer is row
    /// `rows.start + i`. Decided on codes where the encoding allows. Errors as [`Segment::read`].
    pub fn select(&self, predicate: &Predicate, column: &Column, rows: Range<u32>) -> Result<Vec<u64>> {
        let rows = self.checked(&rows)?;
        debug_assert_eq!(predicate.column(), column.id);
        match self.column(column)? {
            Some(meta) => self.block(meta)?.select(predicate, rows),
            None if predicate.matches(&column.missing_value) => Ok(bitmap::full(rows.len())),
            None => Ok(vec![0; bitmap::words(rows.len())]),
        }
    }

    /// Row `offset` of `column`. Errors as [`Segment::read`].
    pub fn value(&self, column: &Column, offset: u32) -> Result<Value> {
        match self.column(column)? {
            Some(meta) => self.block(meta)?.value(offset as usize),
            None => Ok(column.missing_value.clone()),
        }
    }

    /// Marks the segment as dropped for good: no version lists it any more and the record that dropped it is fsynced, or it was
    /// never listed at all. Its files go when no other segment lists them and the last reader is done.
    pub fn drop_when_unreferenced(&self) {
        if !self.dropped.swap(true, Ordering::AcqRel) {
            self.files.iter().for_each(|(_, file)| file.unlist());
        }
    }

    /// Takes [`Segment::drop_when_unreferenced`] back: segments are written under that mark, and what lists them takes it off.
    pub fn keep(&self) {
        if self.dropped.swap(false, Ordering::AcqRel) {
            self.files.iter().for_each(|(_, file)| file.list());
        }
    }

    fn checked(&self, rows: &Range<u32>) -> Result<Range<usize>> {
        if rows.start <= rows.end && rows.end <= self.meta.rows {
            return Ok(rows.start as usize..rows.end as usize);
        }
        Err(Error::internal(format!("rows {rows:?} of segment {} of {}", self.meta.id, self.meta.rows)))
    }

    /// What the segment has of `column`.
    fn column(&self, column: &Column) -> Result<Option<&ColumnMeta>> {
        match self.meta.column(column.id) {
            Some(meta) if meta.data_type.arrow() != column.data_type.arrow() => Err(Error::internal(format!(
                "column {} is {:?}, segment {} has it as {:?}",
                column.name, column.data_type, self.meta.id, meta.data_type
            ))),
            found => Ok(found),
        }
    }

    /// The open block of `column`.
    pub(super) fn block(&self, column: &ColumnMeta) -> Result<Arc<ColumnBlock>> {
        let Some(at) = &column.block else {
            return self.open_block(column, Buffer::from_vec(Vec::<u8>::new())).map(Arc::new);
        };
        let load = || self.load_column(column, at).map(|block| OpenBlock::Column(Arc::new(block)));
        match self.cache.get(at.file, at.offset, load)? {
            OpenBlock::Column(block) if block.is(column.data_type, self.meta.rows) => Ok(block),
            _ => Err(self.corrupt(at, Damage::new(0, "two columns claim one block"))),
        }
    }

    /// The block of `column` for somebody whose own entry of the cache weighs it: taken from the cache, but not put there a
    /// second time.
    pub(super) fn block_aside(&self, column: &ColumnMeta) -> Result<Arc<ColumnBlock>> {
        let Some(at) = &column.block else { return self.block(column) };
        match self.cache.peek(at.file, at.offset) {
            Some(_) => self.block(column),
            None => self.load_column(column, at).map(Arc::new),
        }
    }

    /// Reads and opens the block of `column` at `at`, past the cache.
    pub(super) fn load_column(&self, column: &ColumnMeta, at: &BlockRef) -> Result<ColumnBlock> {
        self.open_block(column, self.file(at)?.read_block(at)?)
    }

    fn open_block(&self, column: &ColumnMeta, body: Buffer) -> Result<ColumnBlock> {
        ColumnBlock::open(column.data_type, self.meta.rows, column.null_count, &column.encoding, body).map_err(
            |damage| match &column.block {
                Some(at) => self.corrupt(at, damage),
                None => Error::internal(format!("segment {}, column {}: {}", self.meta.id, column.id, damage.what)),
            },
        )
    }

    /// The file that `block` is in.
    pub(super) fn file(&self, block: &BlockRef) -> Result<&Arc<SegmentFile>> {
        let file = self.files.iter().find(|(id, _)| *id == block.file);
        file.map(|(_, file)| file).ok_or_else(|| Error::internal(format!("segment {} lacks its file", self.meta.id)))
    }

    /// The cache that its blocks go through.
    pub(super) fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// Its files.
    pub(super) fn files(&self) -> &[(FileId, Arc<SegmentFile>)] {
        &self.files
    }

    /// The error for `damage` in `block`.
    pub(super) fn corrupt(&self, block: &BlockRef, damage: Damage) -> Error {
        Error::corrupt(super::segment_path(block.file), block.offset + damage.at as u64, damage.what)
    }
}
