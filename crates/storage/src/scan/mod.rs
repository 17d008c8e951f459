//! Rows of one view as Arrow batches.
//!
//! Comes in: a [`TableView`] and a [`ScanRequest`] (plain data: projection, predicates,
//! limit). Goes out: batches in no particular order, from any number of [`ScanWorker`]s; or in key order, from one
//! [`OrderedScan`].
//!
//! 1. Plan: each segment is pruned by its zone maps (MemSQL section III: elimination and full enclosure); what is left,
//!    the delta blocks and the transaction's own rows are cut into pieces on one shared queue, so that cores finish
//!    together.
//! 2. Select: per piece, predicates are evaluated on codes where the encoding allows. Expressions of whoever asks
//!    ([`RowFilter`]) are evaluated once for each distinct value where rows are codes of few. Deleted rows are cleared,
//!    and what has become known meanwhile ([`DynamicFilter`]) drops further rows.
//! 3. Filter: other expressions are evaluated vector by vector.
//! 4. Gather: only rows that are left are decoded; a vector that is wholly selected is read in place. Columns may be
//!    asked for as codes, or decimals in 64 bits ([`Form`]).
//!
//! For an aggregation, segments that metadata or codes answer for are left out ([`zone_aggregates`]).
//!
//! Few rows of a range of keys are found without looking at others ([`by_key`]), for whoever asks for that.
//!
//! Invariants: a worker never blocks on a writer or a merge; every live row of the view that satisfies all predicates
//! appears in exactly one batch, unless a dynamic filter says that nobody needs it. It does not own: aggregation, what
//! a predicate means (`predicate`).

mod by_key;
mod dynamic_filter;
mod ordered;
mod piece;
mod range_of_order;
mod row_filter;
mod statistics;
mod vector;
mod worker;
mod zone_aggregates;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::ids::ColumnId;
use crate::limits;
use crate::main_store::RunSegment;
use crate::predicate::{CompareOp, Predicate, Prune};
use crate::row::Value;
use crate::row::key::KeyCodec;
use crate::schema::{Column, TableSchema};
use crate::segment::Form;
use crate::version::TableView;

pub use by_key::{KeyRows, compares_key};
use dynamic_filter::ColumnFilter;
pub use dynamic_filter::{DynamicFilter, FirstRows, KeySet};
pub use ordered::OrderedScan;
use piece::Piece;
use row_filter::PlannedFilter;
pub use row_filter::RowFilter;
pub use statistics::{ColumnStatistics, TableStatistics};
pub use worker::{EmittedRows, ScanWorker};
pub use zone_aggregates::{AggregateScan, ZoneAggregate, ZoneAggregates, ZoneValue};
use zone_aggregates::{Answer, can_add_up};

#[cfg(test)]
mod tests;

/// Name of the extra column that carries row references.
pub const ROW_REF_COLUMN: &str = "_row_ref";

/// What to read: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanRequest {
    /// Columns of the batches, in this order.
    pub columns: Vec<ColumnId>,
    /// Conditions that must all be true.
    pub predicates: Vec<Predicate>,
    /// Most rows to return, of all workers together.
    pub limit: Option<usize>,
    /// Whether a last UInt64 column carries each row's reference.
    pub row_refs: bool,
    /// Rows of a batch at most; 0 means the default.
    pub batch_rows: usize,
    /// Of the columns, those that come in another form than [`Form::Values`]. Scans in key order know no other.
    pub forms: Vec<(ColumnId, Form)>,
    /// Aggregates that are asked for in the place of rows. Without columns: the number of rows. A scan leaves out the
    /// rows that [`TableView::zone_aggregates`] and [`TableView::aggregate_scan`] answer for, of the same request.
    /// Scans in key order do not know of it.
    pub zone_aggregates: Option<Vec<(ColumnId, ZoneAggregate)>>,
}

impl ScanRequest {
    /// All rows of `columns`.
    #[must_use]
    pub fn all(columns: Vec<ColumnId>) -> Self {
        Self {
            columns,
            predicates: Vec::new(),
            limit: None,
            row_refs: false,
            batch_rows: limits::BATCH_ROWS,
            forms: Vec::new(),
            zone_aggregates: None,
        }
    }

    fn rows_of_batch(&self) -> usize {
        if self.batch_rows == 0 { limits::BATCH_ROWS } else { self.batch_rows }
    }
}

/// How a scan's segments fared, for EXPLAIN and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounts {
    /// Segments of the view.
    pub segments: usize,
    /// Of them, those no row of which can match.
    pub segments_pruned: usize,
    /// Of them, those all rows of which match.
    pub segments_enclosed: usize,
    /// Of those that may match, those left out because metadata answers for them.
    pub segments_from_metadata: usize,
    /// Of those that may match, those left out because their codes are added up.
    pub segments_on_codes: usize,
    /// Rows in deltas at the snapshot that are read, deleted ones included.
    pub delta_rows: u64,
}

/// A planned scan, shared by its workers.
#[derive(Debug)]
pub struct Scan {
    view: Arc<TableView>,
    columns: Vec<Column>,
    predicates: Vec<(Predicate, Column)>,
    schema: SchemaRef,
    row_refs: bool,
    batch_rows: usize,
    forms: Vec<(ColumnId, Form)>,
    pieces: Vec<Piece>,
    next: AtomicUsize,
    /// Rows that may still be returned.
    left: AtomicUsize,
    counts: ScanCounts,
    filters: Vec<ColumnFilter>,
    row_filters: Vec<PlannedFilter>,
    zone_aggregates: Option<Vec<(Column, ZoneAggregate)>>,
}

/// Conditions beside a request, which know more than data: contract 5 keeps them out of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveFilters<'f> {
    /// Keys that become known while the scan runs, of integer columns.
    pub keys: &'f [(ColumnId, Arc<DynamicFilter>)],
    /// What whoever asks for rows evaluates.
    pub rows: &'f [Arc<dyn RowFilter>],
}

impl TableView {
    /// Plans a scan.
    ///
    /// # Errors
    /// Internal when the request names a column the table does not have; Io or Corrupt when metadata cannot be read.
    pub fn scan(self: &Arc<Self>, request: &ScanRequest) -> Result<Arc<Scan>> {
        self.filtered_scan(request, LiveFilters::default())
    }

    /// Plans a scan that leaves out rows whose values of integer columns are not among the keys of `filters`, as far
    /// as those become known before the rows are read. It leaves out rows that one of its row filters is not true for.
    /// A limit counts what is left.
    ///
    /// # Errors
    /// As [`TableView::scan`].
    pub fn filtered_scan(self: &Arc<Self>, request: &ScanRequest, filters: LiveFilters<'_>) -> Result<Arc<Scan>> {
        let mut scan = Scan::unplanned(self, request, filters)?;
        scan.plan();
        Ok(Arc::new(scan))
    }
}
/// The column `id` of a scan.
fn column(view: &TableView, id: ColumnId) -> Result<Column> {
    view.schema().column(id).cloned().ok_or_else(|| Error::internal(format!("scan of unknown column {id}")))
}

/// The form that `forms` have column `id` in.
fn form_of(forms: &[(ColumnId, Form)], id: ColumnId) -> Form {
    forms.iter().find(|(of, _)| *of == id).map(|(_, form)| *form).unwrap_or_default()
}

/// The columns and the conditions of `request` with their columns, and the schema of its batches.
fn resolve(view: &TableView, request: &ScanRequest) -> Result<Resolved> {
    let columns = request.columns.iter().map(|&id| column(view, id)).collect::<Result<Vec<_>>>()?;
    let predicates = request.predicates.iter().map(|p| Ok((p.clone(), column(view, p.column())?)));
    let predicates = predicates.collect::<Result<Vec<_>>>()?;
    let data_type = |column: &Column| form_of(&request.forms, column.id).arrow(column.data_type);
    let mut fields: Vec<Field> = columns.iter().map(|c| Field::new(&c.name, data_type(c), c.nullable)).collect();
    if request.row_refs {
        fields.push(Field::new(ROW_REF_COLUMN, ArrowType::UInt64, false));
    }
    Ok((columns, predicates, Arc::new(Schema::new(fields))))
}

type Resolved = (Vec<Column>, Vec<(Predicate, Column)>, SchemaRef);

impl Scan {
    /// A scan of `view` without pieces.
    fn unplanned(view: &Arc<TableView>, request: &ScanRequest, filters: LiveFilters<'_>) -> Result<Self> {
        let (columns, predicates, schema) = resolve(view, request)?;
        let keys = filters.keys.iter();
        let keys = keys.map(|(id, filter)| Ok(ColumnFilter::new(filter.clone(), column(view, *id)?)));
        let row_filters = filters.rows.iter().map(|filter| {
            let columns = filter.columns().iter().map(|id| column(view, *id)).collect::<Result<Vec<_>>>()?;
            Ok(PlannedFilter::new(filter.clone(), columns))
        });
        Ok(Self {
            view: view.clone(),
            columns,
            predicates,
            schema,
            row_refs: request.row_refs,
            batch_rows: request.rows_of_batch(),
            forms: request.forms.clone(),
            pieces: Vec::new(),
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(request.limit.unwrap_or(usize::MAX)),
            counts: ScanCounts::default(),
            filters: keys.collect::<Result<_>>()?,
            row_filters: row_filters.collect::<Result<_>>()?,
            zone_aggregates: zone_aggregates::columns_asked(view, request)?,
        })
    }

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

    /// A worker on the shared queue. Any number may run, on any threads.
    #[must_use]
    pub fn worker(self: &Arc<Self>) -> ScanWorker {
        ScanWorker::new(self.clone())
    }

    /// The pieces that become rows.
    fn plan(&mut self) {
        self.plan_segments(|answer, counts| match answer {
            Answer::Metadata(..) => {
                counts.segments_from_metadata += 1;
                false
            }
            Answer::Codes => {
                counts.segments_on_codes += 1;
                false
            }
            Answer::Rows => true,
        });
        if !self.adds_up() {
            self.plan_deltas();
        }
        // The earlier a limit finds rows that it keeps, the more of the others it leaves out.
        if let Some(filter) = self.filters.iter().find(|filter| filter.is_of_first_rows()) {
            self.pieces.sort_by_cached_key(|piece| piece.rank(filter));
        }
    }

    /// The pieces whose values are added up.
    fn plan_aggregates(&mut self) {
        self.plan_segments(|answer, _| matches!(answer, Answer::Codes));
        if self.adds_up() {
            self.plan_deltas();
        }
    }

    /// Whether values are added up in the place of rows.
    fn adds_up(&self) -> bool {
        self.zone_aggregates.as_ref().is_some_and(|asked| can_add_up(asked))
    }

    /// The pieces of deltas and of the transaction's buffer.
    fn plan_deltas(&mut self) {
        let view = self.view.clone();
        for delta in &view.version().deltas {
            let rows = view.delta_rows(delta);
            self.counts.delta_rows += u64::from(rows);
            self.pieces.extend(delta.block_ranges(rows).map(|rows| Piece::Delta { delta: delta.clone(), rows }));
        }
        if let Some(own) = view.own() {
            self.pieces.extend(own.rows().chunks().flat_map(|chunk| Piece::of_own_rows(own.rows().id(), chunk)));
        }
    }

    /// The pieces of segments that may have rows and whose answer to what is asked for is `wanted`.
    fn plan_segments(&mut self, wanted: impl Fn(&Answer, &mut ScanCounts) -> bool) {
        let view = self.view.clone();
        let predicates: Vec<Predicate> = self.predicates.iter().map(|(p, _)| p.clone()).collect();
        let own_runs = view.own().into_iter().flat_map(|own| own.runs());
        let runs = view.version().runs.iter().chain(own_runs);
        let prefix = key_prefix(view.schema(), &predicates);
        let candidates = runs.flat_map(|run| {
            let found = if prefix.is_empty() { run.segments() } else { run.find_prefix(&prefix) };
            self.counts.segments += run.segments().len();
            self.counts.segments_pruned += run.segments().len() - found.len();
            found
        });
        let candidates: Vec<&RunSegment> = candidates.collect();
        for part in candidates {
            let enclosed = match part.segment.prune(&predicates) {
                Prune::None => {
                    self.counts.segments_pruned += 1;
                    continue;
                }
                Prune::Some => false,
                Prune::All => {
                    self.counts.segments_enclosed += 1;
                    true
                }
            };
            let asked = self.zone_aggregates.as_ref();
            let answer = |asked: &Vec<_>| zone_aggregates::answer(&view, part, &self.predicates, asked);
            if wanted(&asked.map_or(Answer::Rows, answer), &mut self.counts) {
                self.pieces.extend(Piece::of_segment(part, enclosed));
            }
        }
    }

    /// The next piece nobody has taken; `None` when there is none, or the limit is reached.
    fn next_index(&self) -> Option<usize> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < self.pieces.len())
    }

    /// Takes up to `rows` off the limit; returns how many were left.
    fn take(&self, rows: usize) -> usize {
        let mut left = self.left.load(Ordering::Relaxed);
        loop {
            if left == usize::MAX {
                return rows;
            }
            let taken = rows.min(left);
            match self.left.compare_exchange_weak(left, left - taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return taken,
                Err(now) => left = now,
            }
        }
    }
}

/// The bytes that the sort keys of all rows selected by `predicates` begin with, as far as they are asked to equal
/// constants: in a run such rows are found without looking at all of its segments.
fn key_prefix(schema: &TableSchema, predicates: &[Predicate]) -> Vec<u8> {
    let constant = |id: &ColumnId| {
        predicates.iter().find_map(|predicate| match predicate {
            Predicate::Compare { column, op: CompareOp::Eq, value } if column == id => Some(value.clone()),
            _ => None,
        })
    };
    let values: Vec<Value> = schema.sort_key.iter().map_while(constant).collect();
    let mut prefix = Vec::new();
    // A value that is none of the column's, or NULL, selects nothing: pruning sees to that.
    if KeyCodec::new(schema, &schema.sort_key).encode_prefix(&values, &mut prefix).is_err() {
        prefix.clear();
    }
    prefix
}
