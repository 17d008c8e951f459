//! Rows of one view in the order of the table's sort key.
//!
//! Comes in: a [`TableView`] and a [`ScanRequest`]. Goes out: batches in key order (NULLs last; rows with equal keys in
//! any order), from one iterator.
//!
//! 1. Each run that can have rows selected is a stream of its segments, each delta one of its sorted permutation.
//! 2. The cursor of merges picks stretches of rows of all streams in key order; a segment into which no other stream
//!    reaches is read in place, but for deleted rows.
//! 3. What is picked is gathered a column at a time; conditions are evaluated on that, since the order has to be known
//!    first.
//!
//! Only the first segment of each run is read before the first row comes: a small limit costs little, however large the
//! table. Conditions that zone maps know nothing of are better served by a scan without order.
//!
//! A range of the sort key's leading column can be had in the order of that column alone: its border segments and the
//! deltas are cut by their keys, which then are short, and no row is asked for its bounds.
//!
//! It holds the keys of one segment of each run and of all deltas, which whoever scans counts
//! ([`OrderedScan::memory`]).
//!
//! It does not own: the transaction's own buffered rows, which have no order: with some there is no ordered scan.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter;
use mainstem_kernels::bitmap;

use crate::error::Result;
use crate::ids::{ContainerId, RowRef};
use crate::main_store::{Run, RunSegment};
use crate::order::{Cursor, Gather, KeyReader, Part, PartRows, Picks, Stop};
use crate::predicate::{Predicate, Prune};
use crate::row::Value;
use crate::schema::Column;
use crate::segment::{Segment, is_dense};
use crate::version::{TableView, Work};

use super::range_of_order::Between;
use super::worker::EmittedRows;
use super::{ScanCounts, ScanRequest, key_prefix, resolve};

/// A scan in key order.
#[derive(Debug)]
pub struct OrderedScan {
    view: Arc<TableView>,
    columns: Vec<Column>,
    predicates: Vec<(Predicate, Column)>,
    schema: SchemaRef,
    row_refs: bool,
    batch_rows: usize,
    /// Rows that may still be returned.
    left: usize,
    cursor: Cursor,
    picks: Picks,
    /// What is left of the segment being read in place.
    whole: Option<(u32, Range<u32>)>,
    counts: ScanCounts,
    emitted: EmittedRows,
}

/// Which rows.
struct Wanted<'a> {
    /// What all their keys begin with.
    prefix: Vec<u8>,
    conditions: Vec<Predicate>,
    between: Option<&'a Between>,
}

impl TableView {
    /// Whether this view can be scanned in key order: its table has a sort key, and the transaction has no rows in its
    /// buffer.
    #[must_use]
    pub fn has_order(&self) -> bool {
        !self.schema().sort_key.is_empty() && self.own().is_none_or(|own| own.rows().is_empty())
    }

    /// Plans a scan in the order of the sort key; `None` if there is none, see [`TableView::has_order`].
    ///
    /// # Errors
    /// As [`TableView::scan`]; Io or Corrupt when the first keys cannot be read.
    pub fn scan_in_order(self: &Arc<Self>, request: &ScanRequest) -> Result<Option<OrderedScan>> {
        if !self.has_order() {
            return Ok(None);
        }
        self.ordered(request, KeyReader::of_sort_key(self.schema()), None).map(Some)
    }

    /// As [`TableView::scan_in_order`], in the order of the leading column of the sort key alone unless `by_whole_key`,
    /// of those rows whose values in it are at or above `from` and below `to`. The column is an integer, never NULL.
    ///
    /// # Errors
    /// As [`TableView::scan_in_order`]; Internal for another column.
    pub fn scan_range_in_order(
        self: &Arc<Self>,
        request: &ScanRequest,
        from: Option<i64>,
        to: Option<i64>,
        by_whole_key: bool,
    ) -> Result<Option<OrderedScan>> {
        if !self.has_order() {
            return Ok(None);
        }
        let between = Between::new(self.schema(), from, to)?;
        let reader = if by_whole_key { KeyReader::of_sort_key(self.schema()) } else { between.reader().clone() };
        self.ordered(request, reader, Some(&between)).map(Some)
    }

    fn ordered(
        self: &Arc<Self>,
        request: &ScanRequest,
        reader: KeyReader,
        between: Option<&Between>,
    ) -> Result<OrderedScan> {
        let _at_work = self.begin(Work::Thread);
        let (columns, predicates, schema) = resolve(self, request)?;
        let mut counts = ScanCounts::default();
        let conditions: Vec<Predicate> = predicates.iter().map(|(p, _)| p.clone()).collect();
        let wanted = Wanted { prefix: key_prefix(self.schema(), &conditions), conditions, between };
        let own_runs = self.own().into_iter().flat_map(|own| own.runs());
        let mut streams = Vec::new();
        for run in self.version().runs.iter().chain(own_runs) {
            streams.push(self.stream_of(run, &wanted, &mut counts)?);
        }
        for delta in &self.version().deltas {
            let rows = self.delta_rows(delta);
            if rows == 0 {
                continue;
            }
            counts.delta_rows += u64::from(rows);
            let part = Part::delta(delta.clone(), rows);
            let part = between.map_or(Ok(Some(part.clone())), |between| between.of_delta(&part))?;
            let Some(part) = part else { continue };
            let dead = self.dead(delta.id(), delta.deletes().bitmap_at(self.ts()), rows);
            streams.push(vec![part.without(dead)]);
        }
        streams.retain(|stream| !stream.is_empty());
        Ok(OrderedScan {
            view: self.clone(),
            columns,
            predicates,
            schema,
            row_refs: request.row_refs,
            batch_rows: request.rows_of_batch(),
            left: request.limit.unwrap_or(usize::MAX),
            // A reference to a row names where it is.
            cursor: if request.row_refs { Cursor::new(reader, streams)? } else { Cursor::replacing(reader, streams)? },
            picks: Picks::default(),
            whole: None,
            counts,
            emitted: EmittedRows::default(),
        })
    }

    /// Whether rows stand in the order of the sort key, or nearly: no delta has any, and runs follow one another.
    #[must_use]
    pub fn stands_in_order(&self) -> bool {
        let own_runs = self.own().into_iter().flat_map(|own| own.runs());
        let runs = self.version().runs.iter().chain(own_runs);
        let bounds = |run: &Arc<Run>| {
            let (first, last) = (run.segments().first()?, run.segments().last()?);
            let (first, last) = (first.segment.meta().key_bounds.as_ref()?, last.segment.meta().key_bounds.as_ref()?);
            Some((first.min.clone(), last.max.clone()))
        };
        let Some(mut bounds) = runs.map(bounds).collect::<Option<Vec<_>>>() else { return false };
        bounds.sort_unstable();
        let follow = bounds.windows(2).all(|pair| matches!(pair, [before, next] if before.1 <= next.0));
        follow && self.version().deltas.iter().all(|delta| self.delta_rows(delta) == 0)
    }

    /// Values of the first column of the sort key, ascending, that cut the rows of all runs into at most `parts` parts
    /// of about as many rows each. None where that column is no integer, or all rows stand in deltas.
    #[must_use]
    pub fn cuts_of_sort_key(&self, parts: usize) -> Vec<i64> {
        let Some(&first) = self.schema().sort_key.first() else { return Vec::new() };
        let starts = self.version().runs.iter().flat_map(|run| run.segments()).filter_map(|part| {
            match part.segment.zone_map(first)?.min {
                Value::Int(least) => Some((least, u64::from(part.rows()))),
                _ => None,
            }
        });
        let mut starts: Vec<(i64, u64)> = starts.collect();
        starts.sort_unstable();
        let total: u64 = starts.iter().map(|(_, rows)| rows).sum();
        let (mut cuts, mut before): (Vec<i64>, u64) = (Vec::new(), 0);
        for (least, rows) in starts {
            let wanted = total * (cuts.len() as u64 + 1) / parts.max(1) as u64;
            let is_above = cuts.last().is_none_or(|last| *last < least);
            if before > 0 && before >= wanted && is_above && cuts.len() + 1 < parts {
                cuts.push(least);
            }
            before += rows;
        }
        cuts
    }

    /// The segments of `run` that can have rows that are wanted.
    fn stream_of(&self, run: &Run, wanted: &Wanted<'_>, counts: &mut ScanCounts) -> Result<Vec<Part>> {
        let Wanted { prefix, conditions, between } = wanted;
        let found = if prefix.is_empty() { run.segments() } else { run.find_prefix(prefix) };
        counts.segments += run.segments().len();
        counts.segments_pruned += run.segments().len() - found.len();
        let mut parts = Vec::with_capacity(found.len());
        for RunSegment { segment, range } in found {
            let range = between.map_or(Ok(range.clone()), |between| between.of_segment(segment, range))?;
            if range.is_empty() {
                counts.segments_pruned += 1;
                continue;
            }
            match segment.prune(conditions) {
                Prune::None => {
                    counts.segments_pruned += 1;
                    continue;
                }
                Prune::Some => {}
                Prune::All => counts.segments_enclosed += 1,
            }
            let dead = self.dead(segment.id(), segment.deletes().bitmap_at(self.ts()), range.end);
            let part = Part::segment(segment.clone(), range);
            parts.push(part.without(dead).keep_whole());
        }
        Ok(parts)
    }

    /// The deleted ones among the first `rows` rows of `container`, for this view: a bitmap, or `None` without any.
    fn dead(&self, container: ContainerId, deleted: Option<Arc<[u64]>>, rows: u32) -> Option<Arc<[u64]>> {
        let mut dead = deleted.filter(|words| words.iter().any(|word| *word != 0));
        for set in self.own().into_iter().flat_map(|own| own.deletes().sets_of(container)) {
            let mut words = dead.map_or_else(Vec::new, |words| words.to_vec());
            words.resize(words.len().max(bitmap::words(rows as usize)), 0);
            set.iter().filter(|offset| *offset < rows).for_each(|offset| bitmap::set(&mut words, offset as usize));
            dead = Some(words.into());
        }
        dead
    }
}

impl OrderedScan {
    /// Schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How pruning went.
    #[must_use]
    pub fn counts(&self) -> ScanCounts {
        self.counts
    }

    /// Bytes of the keys that it holds now: of a segment of each run, and of whole deltas. For whoever counts memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.cursor.memory()
    }

    /// Rows returned so far.
    #[must_use]
    pub fn emitted(&self) -> EmittedRows {
        self.emitted
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let wanted = self.batch_rows.min(if self.predicates.is_empty() { self.left } else { usize::MAX });
            if let Some((part, rows)) = self.whole.take().filter(|(_, rows)| !rows.is_empty()) {
                let end = rows.end.min(rows.start.saturating_add(u32::try_from(wanted).unwrap_or(u32::MAX)));
                self.whole = Some((part, end..rows.end));
                if let Some(batch) = self.of_whole(part, rows.start..end)? {
                    return Ok(Some(batch));
                }
                continue;
            }
            let stop = self.cursor.next(wanted - self.picks.len().min(wanted), &mut self.picks)?;
            if self.picks.is_empty() {
                match stop {
                    Stop::Whole(part) => {
                        self.whole = Some((part, self.cursor.part(part)?.range()));
                        self.cursor.skip_whole()?;
                        continue;
                    }
                    Stop::End => return Ok(None),
                    Stop::Full => continue,
                }
            }
            if let Some(batch) = self.gathered()? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// The live ones of `rows` of a part that no other reaches into.
    fn of_whole(&mut self, part: u32, rows: Range<u32>) -> Result<Option<RecordBatch>> {
        let source = self.cursor.part(part)?.clone();
        if source.dead.is_none() {
            return self.in_place(&source, rows);
        }
        source.live_rows(rows, u32::MAX).for_each(|live| self.picks.push_rows(part, live));
        if self.picks.is_empty() { Ok(None) } else { self.gathered() }
    }

    /// Rows `rows` of a part, as they stand.
    fn in_place(&mut self, source: &Part, rows: Range<u32>) -> Result<Option<RecordBatch>> {
        if let PartRows::Segment(segment, _) = &source.rows
            && !self.predicates.is_empty()
        {
            return self.selected(segment, rows);
        }
        let count = rows.len();
        let refs = rows.clone().map(|offset| source.row_ref(offset));
        let read = |column: &Column| source.read(column, rows.clone());
        let batch = self.batch(count, read, refs)?;
        Ok(batch.map(|(batch, _)| self.emit(batch, 0)))
    }

    /// Those of `rows` of a segment that the conditions hold for, which are decided on codes.
    fn selected(&mut self, segment: &Arc<Segment>, rows: Range<u32>) -> Result<Option<RecordBatch>> {
        let mut selection = bitmap::full(rows.len());
        for (predicate, column) in &self.predicates {
            bitmap::and_in_place(&mut selection, &segment.select(predicate, column, rows.clone())?);
        }
        let mut offsets = Vec::new();
        bitmap::indices(&selection, &mut offsets);
        offsets.truncate(self.left);
        offsets.iter_mut().for_each(|offset| *offset += rows.start);
        if offsets.is_empty() {
            return Ok(None);
        }
        let is_all = offsets.len() == rows.len();
        let is_dense = is_dense(offsets.len(), rows.len());
        let kept = BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(selection), 0, rows.len()), None);
        let read = |column: &Column| -> Result<ArrayRef> {
            if is_all {
                return segment.read(column, rows.clone());
            }
            if is_dense {
                let kept = filter(segment.read(column, rows.clone())?.as_ref(), &kept)?;
                return Ok(kept.slice(0, offsets.len()));
            }
            segment.gather(column, &offsets)
        };
        let mut columns = self.columns.iter().map(read).collect::<Result<Vec<_>>>()?;
        if self.row_refs {
            let refs = offsets.iter().map(|offset| RowRef::new(segment.id(), *offset).to_bits());
            columns.push(Arc::new(refs.collect::<UInt64Array>()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(offsets.len()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        Ok(Some(self.emit(batch, 0)))
    }

    /// The rows picked.
    fn gathered(&mut self) -> Result<Option<RecordBatch>> {
        let picks = std::mem::take(&mut self.picks);
        let parts = self.cursor.parts();
        let gather = Gather::new(parts, &picks)?;
        let refs = picks.iter().filter_map(|pick| Some(parts.get(pick.part as usize)?.row_ref(pick.offset)));
        let batch = self.batch(picks.len(), |column| gather.column(parts, column), refs)?;
        let is_of_delta =
            |part: u32| !matches!(parts.get(part as usize).map(|part| &part.rows), Some(PartRows::Segment(..)));
        let Some((batch, passed)) = batch else { return Ok(None) };
        let from_delta = match passed {
            Some(passed) => {
                let passed = gather.parts_of_rows().zip(&passed).filter(|(_, passed)| *passed);
                passed.take(batch.num_rows()).filter(|(part, _)| is_of_delta(*part)).count()
            }
            None => gather.count(is_of_delta),
        };
        Ok(Some(self.emit(batch, from_delta)))
    }

    /// A batch of `count` rows, and which of them it has (all, without a bitmap); `None` if that is none.
    fn batch(
        &self,
        count: usize,
        read: impl Fn(&Column) -> Result<ArrayRef>,
        refs: impl Iterator<Item = RowRef>,
    ) -> Result<Option<Batch>> {
        let mut selection: Option<Vec<u64>> = None;
        for (predicate, column) in &self.predicates {
            let selected = predicate.evaluate(read(column)?.as_ref(), column.data_type)?;
            match &mut selection {
                Some(all) => bitmap::and_in_place(all, &selected),
                None => selection = Some(selected),
            }
        }
        let passed = selection.map(|words| BooleanBuffer::new(Buffer::from_vec(words), 0, count));
        let rows = passed.as_ref().map_or(count, BooleanBuffer::count_set_bits);
        if rows == 0 {
            return Ok(None);
        }
        let mut columns = self.columns.iter().map(read).collect::<Result<Vec<_>>>()?;
        if self.row_refs {
            columns.push(Arc::new(refs.map(RowRef::to_bits).collect::<UInt64Array>()));
        }
        if let Some(passed) = passed.as_ref().filter(|_| rows < count) {
            let passed = BooleanArray::new(passed.clone(), None);
            columns = columns.iter().map(|column| Ok(filter(column.as_ref(), &passed)?)).collect::<Result<_>>()?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        let kept = rows.min(self.left);
        Ok(Some((batch.slice(0, kept), passed)))
    }

    /// Counts the rows of `batch` by where they live.
    fn emit(&mut self, batch: RecordBatch, from_delta: usize) -> RecordBatch {
        self.left -= batch.num_rows();
        self.emitted.delta += from_delta as u64;
        self.emitted.main += (batch.num_rows() - from_delta) as u64;
        batch
    }
}

/// Rows, and which of those read they are.
type Batch = (RecordBatch, Option<BooleanBuffer>);

impl Iterator for OrderedScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let view = self.view.clone();
        let _at_work = view.begin(Work::Thread);
        self.next_batch().transpose()
    }
}
