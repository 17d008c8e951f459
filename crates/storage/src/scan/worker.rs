//! One worker of a scan: takes pieces off the shared queue and turns them into batches.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use mainstem_kernels::bitmap;

use crate::error::Result;
use crate::ids::ColumnId;
use crate::scan::piece::{Piece, Selected};
use crate::scan::row_filter::arrange;
use crate::scan::vector::Vector;
use crate::scan::{Scan, form_of};
use crate::segment::{Form, is_dense};
use crate::version::Work;

/// Iterator over batches; `None` when the queue is empty or the limit is reached. A batch is empty where row filters
/// have left nothing of a piece: whoever asks may have to look at something else in the time that expressions take.
#[derive(Debug)]
pub struct ScanWorker {
    scan: Arc<Scan>,
    current: Option<Current>,
    emitted: EmittedRows,
}

/// Rows that a worker has returned, by where they live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmittedRows {
    /// In segments.
    pub main: u64,
    /// In deltas.
    pub delta: u64,
    /// In the transaction's own buffer.
    pub own: u64,
    /// Not returned for dynamic filters, wherever they live.
    pub dropped: u64,
    /// Not returned for row filters.
    pub filtered: u64,
}

/// The piece being emitted.
#[derive(Debug)]
struct Current {
    piece: usize,
    rows: Rows,
    /// Row filters that are still to be asked, by their place in the scan.
    filters: Vec<usize>,
    /// Whether these have left nothing so far.
    is_empty: bool,
}

#[derive(Debug)]
enum Rows {
    /// All rows from here to there, in place.
    Whole { next: u32, end: u32 },
    /// Of the rows from `first` on, those that `selection` has, from its bit `next` on; `bits` are all.
    Selected { selection: Vec<u64>, first: u32, next: usize, bits: usize },
}

impl Rows {
    /// The next vector, of at most `max` rows of `piece`.
    fn next<'p>(&mut self, piece: &'p Piece, max: usize) -> Option<Vector<'p>> {
        match self {
            Self::Whole { next, end } => {
                let range = *next..(*end).min(next.saturating_add(max as u32));
                *next = range.end;
                (!range.is_empty()).then(|| Vector::whole(piece, range))
            }
            Self::Selected { selection, first, next, bits } => {
                // Where many rows are selected, vectors begin and end where they would if all were: reading them costs
                // least there.
                while *next < *bits {
                    let window = *next..(*bits).min(*next + max);
                    let count = bitmap::count_range(selection, window.clone());
                    let rows = *first + window.start as u32..*first + window.end as u32;
                    if count == 0 {
                        *next = window.end;
                    } else if count == window.len() {
                        *next = window.end;
                        return Some(Vector::whole(piece, rows));
                    } else if is_dense(count, window.len()) {
                        *next = window.end;
                        return Some(Vector::dense(piece, rows, bitmap::copy_range(selection, window), count));
                    } else {
                        return Some(Vector::of(piece, sparse(selection, *first, next, *bits, max)));
                    }
                }
                None
            }
        }
    }
}

/// Rows by which a vector of few of them grows.
const STEP_ROWS: usize = 1024;

/// At most `max` of the rows from `first` on that `selection` has, from bit `next` of `bits` on, which then is the one
/// behind them.
fn sparse(selection: &[u64], first: u32, next: &mut usize, bits: usize, max: usize) -> Vec<u32> {
    let start = *next;
    let mut count = 0;
    while *next < bits {
        let step = *next..bits.min(*next + STEP_ROWS.min(max));
        count += bitmap::count_range(selection, step.clone());
        if count > max {
            break;
        }
        *next = step.end;
    }
    let mut offsets = Vec::with_capacity(count.min(max));
    bitmap::indices(&bitmap::copy_range(selection, start..*next), &mut offsets);
    offsets.iter_mut().for_each(|offset| *offset += first + start as u32);
    offsets
}

impl ScanWorker {
    pub(super) fn new(scan: Arc<Scan>) -> Self {
        Self { scan, current: None, emitted: EmittedRows::default() }
    }

    /// Rows returned so far.
    #[must_use]
    pub fn emitted(&self) -> EmittedRows {
        self.emitted
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = &mut self.current {
                let Some(piece) = self.scan.pieces.get(current.piece) else { return Ok(None) };
                if let Some(batch) = emit(&self.scan, piece, current, &mut self.emitted)? {
                    current.is_empty = false;
                    let rows = batch.num_rows() as u64;
                    match piece {
                        Piece::Segment { .. } => self.emitted.main += rows,
                        Piece::Delta { .. } => self.emitted.delta += rows,
                        Piece::Own { .. } => self.emitted.own += rows,
                    }
                    return Ok(Some(batch));
                }
                let was_vain = current.is_empty && !current.filters.is_empty();
                self.current = None;
                if was_vain {
                    return Ok(Some(RecordBatch::new_empty(self.scan.schema.clone())));
                }
            }
            let Some(index) = self.scan.next_index() else { return Ok(None) };
            let Some(piece) = self.scan.pieces.get(index) else { return Ok(None) };
            let rows = piece.rows();
            let Selected { selection, filters, dropped, filtered } = piece.select(&self.scan)?;
            self.emitted.dropped += dropped as u64;
            self.emitted.filtered += filtered as u64;
            let rows = match selection {
                None => Rows::Whole { next: rows.start, end: rows.end },
                Some(selection) if bitmap::count_ones(&selection) == rows.len() => {
                    Rows::Whole { next: rows.start, end: rows.end }
                }
                Some(selection) => Rows::Selected { selection, first: rows.start, next: 0, bits: rows.len() },
            };
            self.current = Some(Current { piece: index, rows, filters, is_empty: true });
        }
    }
}

/// The next batch of a piece, or `None` when it has no more rows or the limit is reached.
fn emit(scan: &Scan, piece: &Piece, current: &mut Current, emitted: &mut EmittedRows) -> Result<Option<RecordBatch>> {
    while let Some(mut vector) = current.rows.next(piece, scan.batch_rows) {
        let before = vector.len();
        filter(scan, &mut vector, &mut current.filters)?;
        emitted.filtered += (before - vector.len()) as u64;
        if vector.len() == 0 {
            continue;
        }
        let count = scan.take(vector.len());
        if count == 0 {
            return Ok(None);
        }
        vector.truncate(count);
        let mut columns = Vec::with_capacity(scan.columns.len() + 1);
        for column in &scan.columns {
            let form = form_of(&scan.forms, column.id);
            // A column that stands twice in its own form is read once.
            columns.push(if form == Form::Values { vector.column(column)? } else { vector.output(form, column)? });
        }
        if scan.row_refs {
            columns.push(vector.row_refs());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        return Ok(Some(RecordBatch::try_new_with_options(scan.schema.clone(), columns, &options)?));
    }
    Ok(None)
}

/// Drops the rows of `vector` that one of the row filters at `order` is not true for.
fn filter(scan: &Scan, vector: &mut Vector<'_>, order: &mut [usize]) -> Result<()> {
    arrange(&scan.row_filters, order);
    let filters = || order.iter().filter_map(|at| scan.row_filters.get(*at));
    for (number, filter) in filters().enumerate() {
        let columns = filter.columns.iter().map(|column| vector.column(column)).collect::<Result<Vec<_>>>()?;
        let selected = filter.select(vector.len(), columns)?;
        let later = || filters().skip(number + 1).flat_map(|filter| &filter.columns).chain(&scan.columns);
        vector.keep(&selected, |id: ColumnId| later().any(|column| column.id == id))?;
        if vector.len() == 0 {
            break;
        }
    }
    Ok(())
}

impl Iterator for ScanWorker {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let scan = self.scan.clone();
        let _at_work = scan.view.begin(Work::Thread);
        self.next_batch().transpose()
    }
}
