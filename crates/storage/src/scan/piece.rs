//! A piece of a scan: some rows of one container.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt64Array};
use mainstem_kernels::bitmap;

use crate::delta_store::DeltaGeneration;
use crate::error::Result;
use crate::ids::{ContainerId, RowRef};
use crate::limits;
use crate::main_store::RunSegment;
use crate::predicate::{Predicate, Prune};
use crate::scan::Scan;
use crate::scan::dynamic_filter::ColumnFilter;
use crate::schema::Column;
use crate::segment::{Form, Segment, sum_of_array};
use crate::write_set::OwnChunk;

/// Rows of a segment a worker takes at once: a multiple of a batch, small enough that two cores finish together.
const PIECE_ROWS: u32 = 4 * limits::BATCH_ROWS as u32;
/// One row in so many, selected, makes reading all of a piece cheaper than reading those rows.
const DENSE_OF: usize = 4;

/// What is known of a piece before its rows are read.
#[derive(Debug, Default)]
pub(super) struct Selected {
    /// A bitmap over the piece, or `None` for all of its rows.
    pub(super) selection: Option<Vec<u64>>,
    /// Row filters that are still to be asked, by their place in the scan.
    pub(super) filters: Vec<usize>,
    /// Rows that dynamic filters have left out.
    pub(super) dropped: usize,
    /// Rows that row filters have left out.
    pub(super) filtered: usize,
}

impl Selected {
    fn and(&mut self, rows: Vec<u64>) {
        match &mut self.selection {
            Some(all) => bitmap::and_in_place(all, &rows),
            None => self.selection = Some(rows),
        }
    }

    fn is_empty(&self) -> bool {
        self.selection.as_ref().is_some_and(|selection| bitmap::is_empty(selection))
    }
}

/// Rows of one container.
#[derive(Debug)]
pub(super) enum Piece {
    /// Rows of a segment; `enclosed` when zone maps say that all of them satisfy the predicates.
    Segment { segment: Arc<Segment>, rows: Range<u32>, enclosed: bool },
    /// Rows of one block of a delta.
    Delta { delta: Arc<DeltaGeneration>, rows: Range<u32> },
    /// Some of the transaction's own buffered rows.
    Own { id: ContainerId, chunk: Arc<OwnChunk>, rows: Range<u32> },
}

impl Piece {
    pub(super) fn of_segment(part: &RunSegment, enclosed: bool) -> impl Iterator<Item = Self> {
        let segment = part.segment.clone();
        let (start, end) = (part.range.start, part.range.end);
        (start..end).step_by(PIECE_ROWS as usize).map(move |from| Self::Segment {
            segment: segment.clone(),
            rows: from..end.min(from.saturating_add(PIECE_ROWS)),
            enclosed,
        })
    }

    pub(super) fn of_own_rows(id: ContainerId, chunk: &Arc<OwnChunk>) -> impl Iterator<Item = Self> {
        let (start, end) = (chunk.first(), chunk.first() + chunk.rows().len() as u32);
        (start..end).step_by(limits::BATCH_ROWS).map(move |from| Self::Own {
            id,
            chunk: chunk.clone(),
            rows: from..end.min(from + limits::BATCH_ROWS as u32),
        })
    }

    pub(super) fn rows(&self) -> Range<u32> {
        match self {
            Self::Segment { rows, .. } | Self::Delta { rows, .. } | Self::Own { rows, .. } => rows.clone(),
        }
    }

    fn container(&self) -> ContainerId {
        match self {
            Self::Segment { segment, .. } => segment.id(),
            Self::Delta { delta, .. } => delta.id(),
            Self::Own { id, .. } => *id,
        }
    }

    /// Which rows are selected, as far as that is known before they are read.
    pub(super) fn select(&self, scan: &Scan) -> Result<Selected> {
        let mut selected = Selected::default();
        // Bounds of dynamic filters cost least where they leave nothing.
        let is_outside = |filter: &ColumnFilter| {
            filter.predicates().is_some_and(|predicates| self.prune(filter, &predicates) == Prune::None)
        };
        if scan.filters.iter().any(is_outside) {
            selected.selection = Some(vec![0; bitmap::words(self.rows().len())]);
            selected.dropped = self.rows().len();
            return Ok(selected);
        }
        let enclosed = matches!(self, Self::Segment { enclosed: true, .. });
        if !enclosed {
            for (predicate, column) in &scan.predicates {
                selected.and(self.evaluate(predicate, column)?);
                if selected.is_empty() {
                    return Ok(selected);
                }
            }
        }
        self.select_entries(scan, &mut selected)?;
        if selected.is_empty() {
            return Ok(selected);
        }
        self.clear_deleted(scan, &mut selected.selection);
        if scan.filters.is_empty() {
            return Ok(selected);
        }
        let before = self.count(selected.selection.as_deref());
        if self.narrow(scan, &mut selected.selection)? {
            self.ask(scan, &mut selected.selection)?;
        }
        selected.dropped = before.saturating_sub(self.count(selected.selection.as_deref()));
        Ok(selected)
    }

    /// Asks row filters about entries, where the rows are codes of such; the others are left for later.
    fn select_entries(&self, scan: &Scan, selected: &mut Selected) -> Result<()> {
        for (at, filter) in scan.row_filters.iter().enumerate() {
            let Self::Segment { segment, rows, .. } = self else {
                selected.filters.push(at);
                continue;
            };
            let before = self.count(selected.selection.as_deref());
            match filter.of_entries(segment, before)? {
                Some((column, entries)) => {
                    selected.and(segment.select_entries(column, &entries, rows.clone())?);
                    selected.filtered += before - self.count(selected.selection.as_deref());
                }
                None => selected.filters.push(at),
            }
        }
        Ok(())
    }

    /// Rows that are selected; all of them without a selection.
    fn count(&self, selection: Option<&[u64]>) -> usize {
        selection.map_or(self.rows().len(), bitmap::count_ones)
    }

    /// Drops rows outside the bounds of dynamic filters; false when none is left.
    fn narrow(&self, scan: &Scan, selection: &mut Option<Vec<u64>>) -> Result<bool> {
        for filter in &scan.filters {
            let Some(predicates) = filter.predicates() else { continue };
            match self.prune(filter, &predicates) {
                Prune::All => continue,
                Prune::None => *selection = Some(vec![0; bitmap::words(self.rows().len())]),
                Prune::Some => {
                    for predicate in predicates.iter() {
                        let selected = self.evaluate(predicate, &filter.column)?;
                        match selection.as_mut() {
                            Some(all) => bitmap::and_in_place(all, &selected),
                            None => *selection = Some(selected),
                        }
                    }
                }
            }
            if selection.as_ref().is_some_and(|selection| bitmap::is_empty(selection)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What `predicates`, which `filter` says, leave of the piece.
    fn prune(&self, filter: &ColumnFilter, predicates: &[Predicate]) -> Prune {
        let range = match self {
            Self::Segment { segment, .. } => segment.zone_map(filter.column.id),
            Self::Delta { .. } | Self::Own { .. } => None,
        };
        if filter.keeps_nulls() && range.is_none_or(|range| range.has_nulls) {
            return Prune::All;
        }
        match self {
            Self::Segment { segment, .. } => segment.prune(predicates),
            Self::Delta { .. } | Self::Own { .. } => Prune::Some,
        }
    }

    /// When the piece is read, if `filter` wants some rows first: those first of which nothing is known.
    pub(super) fn rank(&self, filter: &ColumnFilter) -> Option<i64> {
        let Self::Segment { segment, .. } = self else { return None };
        let range = segment.zone_map(filter.column.id)?;
        filter.rank_of(&range.min, &range.max)
    }

    /// Drops rows whose values are not among the keys of dynamic filters.
    fn ask(&self, scan: &Scan, selection: &mut Option<Vec<u64>>) -> Result<()> {
        for filter in scan.filters.iter().filter(|filter| filter.is_worth_asking()) {
            let (rows, before) = (self.rows(), self.count(selection.as_deref()));
            if before == 0 {
                return Ok(());
            }
            if before >= rows.len() / DENSE_OF {
                let Some(selected) = filter.select(&*self.read(Form::Values, &filter.column, rows)?)? else { continue };
                match selection.as_mut() {
                    Some(all) => bitmap::and_in_place(all, &selected),
                    None => *selection = Some(selected),
                }
            } else if let Some(selection) = selection.as_mut() {
                let mut offsets = Vec::with_capacity(before);
                bitmap::indices(selection, &mut offsets);
                offsets.iter_mut().for_each(|offset| *offset += rows.start);
                let Some(selected) = filter.select(&*self.gather(Form::Values, &filter.column, &offsets)?)? else {
                    continue;
                };
                for (at, offset) in offsets.iter().enumerate() {
                    if !bitmap::get(&selected, at) {
                        bitmap::clear(selection, (offset - rows.start) as usize);
                    }
                }
            }
            filter.count(before, self.count(selection.as_deref()));
        }
        Ok(())
    }

    fn evaluate(&self, predicate: &Predicate, column: &Column) -> Result<Vec<u64>> {
        match self {
            Self::Segment { segment, rows, .. } => segment.select(predicate, column, rows.clone()),
            Self::Delta { .. } | Self::Own { .. } => {
                let array = self.read(Form::Values, column, self.rows())?;
                predicate.evaluate(array.as_ref(), column.data_type)
            }
        }
    }

    /// Clears the rows deleted at the view's timestamp, and those the transaction deleted itself.
    fn clear_deleted(&self, scan: &Scan, selection: &mut Option<Vec<u64>>) {
        let rows = self.rows();
        let len = rows.len();
        let deletes = match self {
            Self::Segment { segment, .. } => Some(segment.deletes()),
            Self::Delta { delta, .. } => Some(delta.deletes()),
            Self::Own { .. } => None,
        };
        let all = || {
            let mut words = vec![0; bitmap::words(len)];
            bitmap::set_range(&mut words, 0..len);
            words
        };
        if let Some(dead) = deletes.and_then(|log| log.bitmap_at(scan.view.ts())) {
            let dead = bitmap::copy_range(&dead, rows.start as usize..rows.end as usize);
            if bitmap::count_ones(&dead) > 0 {
                bitmap::and_not_in_place(selection.get_or_insert_with(all), &dead);
            }
        }
        let Some(own) = scan.view.own() else { return };
        for own_deleted in own.deletes().sets_of(self.container()) {
            if own_deleted.range_cardinality(rows.clone()) == 0 {
                continue;
            }
            let words = selection.get_or_insert_with(all);
            for offset in own_deleted.range(rows.clone()) {
                bitmap::clear(words, (offset - rows.start) as usize);
            }
        }
    }

    /// Of its rows that `selection` has: how many values of `column` are not NULL, and their sum, if it is asked for.
    pub(super) fn sum(&self, column: &Column, selection: &[u64], with_sum: bool) -> Result<(u64, i128)> {
        match self {
            Self::Segment { segment, rows, .. } => segment.sum(column, rows.clone(), selection, with_sum),
            Self::Delta { .. } | Self::Own { .. } => {
                let array = self.read(Form::Values, column, self.rows())?;
                sum_of_array(array.as_ref(), selection, with_sum)
                    .ok_or_else(|| crate::Error::internal(format!("the sum of column {}", column.name)))
            }
        }
    }

    /// Decodes `rows` (of the container) of `column`, in `form`.
    pub(super) fn read(&self, form: Form, column: &Column, rows: Range<u32>) -> Result<ArrayRef> {
        let values = match self {
            Self::Segment { segment, .. } => return segment.read_in(form, column, rows),
            Self::Delta { delta, .. } => delta.read(column, rows),
            Self::Own { chunk, .. } => {
                let rows = (rows.start - chunk.first()) as usize..(rows.end - chunk.first()) as usize;
                the_one(chunk.rows().to_arrays(&[column.id], rows)?)
            }
        };
        form.of(values?, column.data_type)
    }

    /// Decodes those of `rows` (of the container) that `selection` has, `count` of them; `None` where it is no better
    /// to read all and filter them.
    pub(super) fn read_selected(
        &self,
        form: Form,
        column: &Column,
        rows: Range<u32>,
        selection: &[u64],
        count: usize,
    ) -> Result<Option<ArrayRef>> {
        match self {
            Self::Segment { segment, .. } => segment.read_selected(form, column, rows, selection, count),
            Self::Delta { .. } | Self::Own { .. } => Ok(None),
        }
    }

    /// Decodes the rows at `offsets` (of the container, ascending) of `column`, in `form`.
    pub(super) fn gather(&self, form: Form, column: &Column, offsets: &[u32]) -> Result<ArrayRef> {
        let values = match self {
            Self::Segment { segment, .. } => return segment.gather_in(form, column, offsets),
            Self::Delta { delta, .. } => delta.gather(column, offsets),
            Self::Own { chunk, .. } => {
                let places: Vec<u32> = offsets.iter().map(|offset| offset - chunk.first()).collect();
                the_one(chunk.rows().take_arrays(&[column.id], &places)?)
            }
        };
        form.of(values?, column.data_type)
    }

    /// References of the rows at `offsets`.
    pub(super) fn row_refs(&self, offsets: impl Iterator<Item = u32>) -> ArrayRef {
        let container = self.container();
        let array: UInt64Array = offsets.map(|offset| RowRef::new(container, offset).to_bits()).collect();
        debug_assert!(array.null_count() == 0);
        Arc::new(array)
    }
}

fn the_one(arrays: Vec<ArrayRef>) -> Result<ArrayRef> {
    arrays.into_iter().next().ok_or_else(|| crate::Error::internal("own rows without a column"))
}
