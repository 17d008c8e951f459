//! Conditions that only whoever asks for rows can evaluate: an expression over values of a row.
//!
//! Comes in: [`RowFilter`]s beside the request. Goes out: the rows that all of them are true for.
//!
//! 1. A filter on one column is asked once for each entry, where a segment has the column as codes of few distinct
//!    values; its rows are then selected by their codes, before anything is decoded ([`PlannedFilter::of_entries`]).
//! 2. Others are asked vector by vector, of the rows that are left, with the columns that they need; the columns of
//!    the output are read for the rows that are left then (late materialisation; Abadi et al., ICDE 2007).
//! 3. Of several filters the one that drops the most rows for its time is asked first, as measured so far; those that
//!    may fail come last.
//!
//! Invariants: a row is returned if and only if each filter is true for it; a filter that may fail is asked about rows
//! of the view alone, of which all else is true. It does not own: what an expression means.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::ids::{ColumnId, ContainerId};
use crate::schema::Column;
use crate::segment::{EntrySelection, Segment};

/// A condition on values of a row, evaluated by whoever asks for the rows.
pub trait RowFilter: Debug + Send + Sync {
    /// The columns whose values it needs, each once.
    fn columns(&self) -> &[ColumnId];

    /// Whether it has an answer for whatever values: it may then be asked about values that no row of the view has.
    fn is_total(&self) -> bool;

    /// The rows that it is true for, of `rows` with the values of its columns in their order.
    ///
    /// # Errors
    /// What evaluating it ends in.
    fn select(&self, rows: usize, columns: Vec<ArrayRef>) -> Result<BooleanBuffer>;
}

/// One entry at most for so many rows of a segment: asking about entries is then a small part of reading rows.
const ROWS_PER_ENTRY: usize = 4;
/// Segments whose entries are remembered: the pieces of one are taken one after the other.
const SEGMENTS_REMEMBERED: usize = 8;

/// A filter with what a scan has to know of it.
#[derive(Debug)]
pub(super) struct PlannedFilter {
    filter: Arc<dyn RowFilter>,
    pub(super) columns: Vec<Column>,
    /// Of the segments asked last; `None` of those whose rows are no codes.
    entries: Mutex<Vec<(ContainerId, Option<Arc<EntrySelection>>)>>,
    /// Rows that it was asked about, those that it left, and the time that took.
    asked: AtomicU64,
    kept: AtomicU64,
    nanoseconds: AtomicU64,
}

impl PlannedFilter {
    pub(super) fn new(filter: Arc<dyn RowFilter>, columns: Vec<Column>) -> Self {
        let (asked, kept, nanoseconds) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self { filter, columns, entries: Mutex::default(), asked, kept, nanoseconds }
    }

    /// Which entries of its column it is true for, if it has one column and `segment` has that as codes of at most
    /// `max`.
    pub(super) fn of_entries(&self, segment: &Segment, max: usize) -> Result<Option<(&Column, Arc<EntrySelection>)>> {
        let ([column], true) = (self.columns.as_slice(), self.filter.is_total()) else { return Ok(None) };
        let remembered = |known: &[(ContainerId, Option<Arc<EntrySelection>>)]| {
            known.iter().find(|(id, _)| *id == segment.id()).map(|(_, selection)| selection.clone())
        };
        if let Some(known) = remembered(&self.entries.lock()) {
            return Ok(known.map(|selection| (column, selection)));
        }
        let worth = segment.rows() as usize / ROWS_PER_ENTRY;
        let selection = match segment.entries(column, max.min(worth))? {
            Some(entries) => {
                let wanted = self.answer(entries.len(), vec![entries])?;
                Some(Arc::new(EntrySelection::of(wanted.len(), |entry| wanted.value(entry))))
            }
            // Of more rows it may be asked later.
            None if max < worth => return Ok(None),
            None => None,
        };
        let mut known = self.entries.lock();
        if known.len() >= SEGMENTS_REMEMBERED {
            known.remove(0);
        }
        known.push((segment.id(), selection.clone()));
        Ok(selection.map(|selection| (column, selection)))
    }

    /// The rows that it is true for, of `rows` with the values of its columns.
    pub(super) fn select(&self, rows: usize, columns: Vec<ArrayRef>) -> Result<BooleanBuffer> {
        let begin = Instant::now();
        let selected = self.answer(rows, columns)?;
        self.count(rows, selected.count_set_bits(), begin.elapsed());
        Ok(selected)
    }

    fn answer(&self, rows: usize, columns: Vec<ArrayRef>) -> Result<BooleanBuffer> {
        let selected = self.filter.select(rows, columns)?;
        if selected.len() == rows {
            return Ok(selected);
        }
        Err(Error::internal(format!("a filter of {rows} rows answered for {}", selected.len())))
    }

    fn count(&self, asked: usize, kept: usize, time: Duration) {
        self.asked.fetch_add(asked as u64, Ordering::Relaxed);
        self.kept.fetch_add(kept as u64, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Smaller for what is to be asked earlier: whether it may fail, and the time for each row that it drops.
    fn rank(&self) -> (bool, u64) {
        let (asked, kept) = (self.asked.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed));
        let dropped = asked.saturating_sub(kept);
        let time = self.nanoseconds.load(Ordering::Relaxed);
        // Picoseconds: a comparison takes less than a nanosecond for a row.
        let cost = if asked == 0 { 0 } else { time.saturating_mul(1_000) / dropped.max(1) };
        (!self.filter.is_total(), cost)
    }
}

/// Puts those of `filters` at `order` in the order in which they are asked.
pub(super) fn arrange(filters: &[PlannedFilter], order: &mut [usize]) {
    // Most scans have one.
    if order.len() > 1 {
        order.sort_by_cached_key(|at| filters.get(*at).map(PlannedFilter::rank));
    }
}

#[cfg(test)]
mod tests;
