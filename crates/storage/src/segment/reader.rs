//! A segment: a container of immutable rows, read column by column.
//!
//! Comes in: a [`SegmentMeta`]. Goes out: Arrow arrays of row ranges and row lists, selections, single values. Opening
//! a segment reads nothing; blocks are loaded through the [`BlockCache`] when they are first asked for, and single rows
//! are read without their blocks until those are worth it ([`super::pages`]).
//!
//! Invariants: a segment answers for the columns it was written with, and with [`Column::missing_value`] for later
//! ones; damage is a Corrupt error that names file and byte.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use mainstem_kernels::bitmap;

use super::block::ColumnBlock;
use super::cache::{BlockCache, OpenBlock, OpenBlocks, Place};
use super::encoding::{ALIGN, Damage, EntrySelection, Form, sum_of_array, wide_value};
use super::file::SegmentFile;
use super::format::{BlockRef, ColumnMeta, SegmentMeta, body_bytes};
use crate::deletes::DeleteLog;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, ContainerId, FileId, SchemaVersion};
use crate::limits;
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
    open: Arc<OpenBlocks>,
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
        let files: Vec<_> = meta.files().into_iter().map(|id| (id, cache.files().file(id, &disk))).collect();
        files.iter().for_each(|(_, file)| file.list());
        Arc::new(Self {
            ranges: meta.columns.iter().map(|c| c.range(meta.rows)).collect(),
            deletes: DeleteLog::new(meta.rows),
            files,
            cache,
            open: OpenBlocks::of(&meta),
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

    /// Bounds of column `id` over all rows, deleted ones included; `None` if the segment lacks it. Whether a bound
    /// occurs stands in [`ColumnMeta::zone`].
    #[must_use]
    pub fn zone_map(&self, id: ColumnId) -> Option<ValueRange> {
        self.range(id).cloned()
    }

    fn range(&self, id: ColumnId) -> Option<&ValueRange> {
        let at = self.meta.columns.iter().position(|c| c.id == id)?;
        self.ranges.get(at)
    }

    /// What all of `predicates` together select of the segment, as far as zone maps tell (MemSQL section III). A column
    /// that the segment lacks counts as unknown.
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

    /// Rows `rows` of `column` as an array of type `column.data_type.arrow()`. Text is views onto the block where it
    /// stands.
    ///
    /// # Errors
    /// Corrupt, Io; Internal for rows that are not there or a column of another type.
    pub fn read(&self, column: &Column, rows: Range<u32>) -> Result<ArrayRef> {
        self.read_in(Form::Values, column, rows)
    }

    /// The same rows as an array in `form`. Errors as [`Segment::read`].
    pub(crate) fn read_in(&self, form: Form, column: &Column, rows: Range<u32>) -> Result<ArrayRef> {
        let rows = self.checked(&rows)?;
        match self.column(column)? {
            Some(at) => self.block(at)?.read(form, rows),
            None => form.of(constant_array(&column.missing_value, column.data_type, rows.len())?, column.data_type),
        }
    }

    /// Those of the rows that `selection` has, `count` of them, in `form`; `None` where it is no better to read all and
    /// filter them. Errors as [`Segment::read`].
    pub(crate) fn read_selected(
        &self,
        form: Form,
        column: &Column,
        rows: Range<u32>,
        selection: &[u64],
        count: usize,
    ) -> Result<Option<ArrayRef>> {
        match self.column(column)? {
            Some(at) => self.block(at)?.read_selected(form, self.checked(&rows)?, selection, count),
            None => Ok(None),
        }
    }

    /// The rows at `offsets`, in their order, of `column`. Errors as [`Segment::read`].
    pub fn gather(&self, column: &Column, offsets: &[u32]) -> Result<ArrayRef> {
        self.gather_in(Form::Values, column, offsets)
    }

    /// The rows at `offsets`, in their order, of `column` in `form`. Errors as [`Segment::read`].
    pub(crate) fn gather_in(&self, form: Form, column: &Column, offsets: &[u32]) -> Result<ArrayRef> {
        let values = match self.column(column)? {
            Some(at) => match self.gather_pages(at, offsets)? {
                Some(few) => few,
                None => return self.block(at)?.gather(form, offsets),
            },
            None => constant_array(&column.missing_value, column.data_type, offsets.len())?,
        };
        form.of(values, column.data_type)
    }

    /// The rows of `rows` for which `predicate`, which must be on `column`, is true: bit `i` of the answer is row
    /// `rows.start + i`. Decided on codes where the encoding allows. Errors as [`Segment::read`].
    pub fn select(&self, predicate: &Predicate, column: &Column, rows: Range<u32>) -> Result<Vec<u64>> {
        let rows = self.checked(&rows)?;
        debug_assert_eq!(predicate.column(), column.id);
        match self.column(column)? {
            Some(at) => self.block(at)?.select(predicate, rows),
            None if predicate.matches(&column.missing_value) => Ok(bitmap::full(rows.len())),
            None => Ok(vec![0; bitmap::words(rows.len())]),
        }
    }

    /// Of those of `rows` that `selection` has: how many values of `column` are not NULL, and their sum, if it is asked
    /// for: an unscaled decimal. Decided on codes where the encoding allows. Errors as [`Segment::read`]; Internal for
    /// sums of types that have none of 128 bits.
    pub(crate) fn sum(
        &self,
        column: &Column,
        rows: Range<u32>,
        selection: &[u64],
        with_sum: bool,
    ) -> Result<(u64, i128)> {
        let checked = self.checked(&rows)?;
        if let Some(at) = self.column(column)? {
            let count = bitmap::count_ones(selection);
            let nulls = self.column_meta(at)?.null_count;
            if nulls == self.meta.rows || (nulls == 0 && !with_sum) {
                return Ok((if nulls == 0 { count as u64 } else { 0 }, 0));
            }
            if let Some(few) = self.gather_few(at, &rows, selection, count)? {
                let sum = sum_of_array(few.as_ref(), &bitmap::full(count), with_sum);
                return sum.ok_or_else(|| Error::internal(format!("the sum of column {}", column.name)));
            }
            return self.block(at)?.sum(checked, selection, with_sum);
        }
        let count = if column.missing_value.is_null() { 0 } else { bitmap::count_ones(selection) };
        let sum = wide_value(&column.missing_value).and_then(|value| value.checked_mul(count as i128));
        match sum {
            _ if count == 0 || !with_sum => Ok((count as u64, 0)),
            Some(sum) => Ok((count as u64, sum)),
            None => Err(Error::internal(format!("the sum of column {}", column.name))),
        }
    }

    /// Those of `rows` that `selection` has, of the column at position `at`, if they are so few, `count`, that they are
    /// read without their block.
    fn gather_few(&self, at: usize, rows: &Range<u32>, selection: &[u64], count: usize) -> Result<Option<ArrayRef>> {
        if count > limits::GATHER_PAGES_MAX {
            return Ok(None);
        }
        let mut offsets = Vec::with_capacity(count);
        bitmap::indices(selection, &mut offsets);
        offsets.iter_mut().for_each(|offset| *offset += rows.start);
        self.gather_pages(at, &offsets)
    }

    /// The distinct values that the rows of `column` are codes of, if there are at most `max` of them, and a NULL
    /// behind them. Errors as [`Segment::read`].
    pub(crate) fn entries(&self, column: &Column, max: usize) -> Result<Option<ArrayRef>> {
        match self.column(column)? {
            Some(at) => self.block(at)?.entries(max),
            None => Ok(None),
        }
    }

    /// The rows of `rows` whose values are among `entries`, which are those of `column`. Errors as [`Segment::read`].
    pub(crate) fn select_entries(
        &self,
        column: &Column,
        entries: &EntrySelection,
        rows: Range<u32>,
    ) -> Result<Vec<u64>> {
        let rows = self.checked(&rows)?;
        match self.column(column)? {
            Some(at) => self.block(at)?.select_entries(entries, rows),
            None => Err(Error::internal(format!("segment {} has no entries of {}", self.meta.id, column.id))),
        }
    }

    /// Row `offset` of `column`. Errors as [`Segment::read`].
    pub fn value(&self, column: &Column, offset: u32) -> Result<Value> {
        match self.column(column)? {
            Some(at) => {
                if let Some(block) = self.open.hold().column(at) {
                    return block.value(offset as usize);
                }
                self.value_unopened(at, offset, &mut Vec::new())
            }
            None => Ok(column.missing_value.clone()),
        }
    }

    /// Marks the segment as dropped for good: no version lists it any more and the record that dropped it is fsynced,
    /// or it was never listed at all. Its files go when no other segment lists them and the last reader is done.
    pub fn drop_when_unreferenced(&self) {
        if !self.dropped.swap(true, Ordering::AcqRel) {
            self.files.iter().for_each(|(_, file)| file.unlist());
        }
    }

    /// Takes [`Segment::drop_when_unreferenced`] back: segments are written under that mark, and what lists them takes
    /// it off.
    pub fn keep(&self) {
        if self.dropped.swap(false, Ordering::AcqRel) {
            self.files.iter().for_each(|(_, file)| file.list());
        }
    }

    /// Gives its files their final names, unless they have them; returns whether one had not.
    ///
    /// # Errors
    /// Io: some may have theirs.
    pub fn take_names(&self) -> Result<bool> {
        self.files.iter().try_fold(false, |some, (_, file)| Ok(file.take_name()? || some))
    }

    fn checked(&self, rows: &Range<u32>) -> Result<Range<usize>> {
        if rows.start <= rows.end && rows.end <= self.meta.rows {
            return Ok(rows.start as usize..rows.end as usize);
        }
        Err(Error::internal(format!("rows {rows:?} of segment {} of {}", self.meta.id, self.meta.rows)))
    }

    /// Where in the metadata `column` is; `None` if the segment was written without it.
    pub(super) fn column(&self, column: &Column) -> Result<Option<usize>> {
        let at = self.meta.columns.iter().position(|c| c.id == column.id);
        match at.and_then(|at| self.meta.columns.get(at)) {
            Some(meta) if meta.data_type.arrow() != column.data_type.arrow() => Err(Error::internal(format!(
                "column {} is {:?}, segment {} has it as {:?}",
                column.name, column.data_type, self.meta.id, meta.data_type
            ))),
            _ => Ok(at),
        }
    }

    /// The metadata of the column at position `at`.
    pub(super) fn column_meta(&self, at: usize) -> Result<&ColumnMeta> {
        let column = self.meta.columns.get(at);
        column.ok_or_else(|| Error::internal(format!("segment {} has no column {at}", self.meta.id)))
    }

    /// The open block of the column at position `at` of the metadata.
    pub(super) fn block(&self, at: usize) -> Result<Arc<ColumnBlock>> {
        if let Some(block) = self.open.column(at) {
            return Ok(block);
        }
        let column = self.column_meta(at)?;
        let Some(block) = &column.block else {
            return self.open_block(column, Buffer::from_vec(Vec::<u8>::new())).map(Arc::new);
        };
        self.cache.count_block(block.len);
        let opened = Arc::new(self.load_column(column, block)?);
        self.cache.put(&self.open, Place::Column(at), OpenBlock::Column(opened.clone()));
        Ok(opened)
    }

    /// Opens `blocks`, the segment's own in the order of [`SegmentMeta::blocks`] with what stands behind them, as far
    /// as the cache has room. What has to be decoded waits until somebody reads it.
    pub(super) fn fill(&self, blocks: Vec<Buffer>) -> Result<()> {
        let columns = (0..self.meta.columns.len()).map(Place::Column);
        let blocks =
            columns.chain([Place::Filter]).filter_map(|place| Some((place, self.block_at(place)?))).zip(blocks);
        for ((place, at), mut bytes) in blocks {
            if let Place::Column(position) = place
                && !self.column_meta(position)?.encoding.is_read_in_place()
            {
                continue;
            }
            let body = body_bytes(at.len).filter(|body| *body <= bytes.len());
            let (Some(body), true) = (body, at.len <= self.cache.room()) else { return Ok(()) };
            if bytes.as_ptr().align_offset(ALIGN) != 0 {
                bytes = Buffer::from(bytes.as_slice());
            }
            let body = bytes.slice_with_length(0, body);
            let block = match place {
                Place::Column(position) => {
                    OpenBlock::Column(Arc::new(self.open_block(self.column_meta(position)?, body)?))
                }
                Place::Filter => OpenBlock::Filter(Arc::new(self.open_filter(at, &body)?)),
            };
            // Texts weigh more than their block when they are open.
            if block.memory() > self.cache.room() {
                return Ok(());
            }
            self.cache.put(&self.open, place, block);
        }
        Ok(())
    }

    /// Where the block for `place` is, if there is one.
    fn block_at(&self, place: Place) -> Option<&BlockRef> {
        match place {
            Place::Column(at) => self.meta.columns.get(at)?.block.as_ref(),
            Place::Filter => self.meta.key_filter.as_ref(),
        }
    }

    /// Reads and opens the block of `column` at `at`, past the cache.
    pub(super) fn load_column(&self, column: &ColumnMeta, at: &BlockRef) -> Result<ColumnBlock> {
        self.open_block(column, self.file(at)?.read_block(at)?)
    }

    pub(super) fn open_block(&self, column: &ColumnMeta, body: Buffer) -> Result<ColumnBlock> {
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

    /// Its blocks that are open.
    pub(super) fn open_blocks(&self) -> &Arc<OpenBlocks> {
        &self.open
    }

    /// Its files, as far as somebody still holds them later.
    pub(crate) fn weak_files(&self) -> impl Iterator<Item = Weak<SegmentFile>> {
        self.files.iter().map(|(_, file)| Arc::downgrade(file))
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

impl Drop for Segment {
    fn drop(&mut self) {
        self.cache.forget(&self.open);
    }
}
