//! Rows of a range of keys, in their order.
//!
//! Comes in: a range of a key. Goes out: what the caller makes of its live rows, in key order, forwards or backwards,
//! up to a limit.
//!
//! 1. Sources: of each run the rows that lie in the range, side by side, or the entries of its key index that do, where
//!    the run is in another order; of each delta its lists in key order; of the transaction's own rows those in the
//!    range, sorted here.
//! 2. Each source gives rows until it has given as many as are wanted: they are live, and the caller takes them.
//! 3. What came of several sources is put in order by the keys of the rows, and cut to the limit.
//!
//! Dead rows cost a step each. They are counted, so that a merge leaves them out before readers have spent more on them
//! than it does.
//!
//! For few rows: whoever asks for more than [`RangeRequest::steps_max`] gets none, and scans. So does who asks for keys
//! of which indexes of an older format know but hashes; merges write them anew. Rows that are without the key are not
//! found by it: [`has_all_rows`] says which ranges name rows that may be.

use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::delta_store::{DeltaGeneration, OrderedRows};
use crate::error::{Error, Result};
use crate::ids::{ColumnId, ContainerId, KeyId, RowRef};
use crate::main_store::{Run, RunSegment};
use crate::row::key::{KeyRange, TableKey};
use crate::schema::TableSchema;
use crate::version::TableView;
use crate::write_set::OwnRows;

/// Dead rows of a container on the way to the live ones from which on they are noted: merges leave them out if they are
/// stepped over often.
const NOTED_DEAD_STEPS: u64 = 8;

/// Dead rows of one container that were looked at one after the other.
#[derive(Default)]
struct DeadSteps {
    container: Option<ContainerId>,
    steps: u64,
}

impl DeadSteps {
    /// One more, of `container`.
    fn add(&mut self, view: &TableView, container: ContainerId) {
        if self.container != Some(container) {
            self.note(view);
            self.container = Some(container);
        }
        self.steps += 1;
    }

    /// Tells the container, if they were some.
    fn note(&mut self, view: &TableView) {
        let steps = std::mem::take(&mut self.steps);
        if steps >= NOTED_DEAD_STEPS
            && let Some(container) = self.container.and_then(|container| view.version().container(container))
        {
            container.deletes().note_dead_steps(steps);
        }
    }
}

/// Which rows are asked for.
#[derive(Clone, Copy, Debug)]
pub struct RangeRequest<'a> {
    /// The key.
    pub id: KeyId,
    /// Which keys.
    pub range: &'a KeyRange,
    /// The greatest first.
    pub backwards: bool,
    /// Most rows.
    pub limit: usize,
    /// Most rows to look at, dead ones included.
    pub steps_max: usize,
}

/// Rows in key order.
enum Source<'a> {
    /// Of a run.
    Segments(Vec<(&'a RunSegment, Range<u32>)>),
    /// Of a run in another order: entries of its key index.
    Entries(&'a Run, Vec<(&'a RunSegment, Range<u32>)>),
    Delta(&'a Arc<DeltaGeneration>, OrderedRows),
    /// Offsets of the transaction's own.
    Own(&'a OwnRows, Vec<u32>),
}

impl Source<'_> {
    /// The delta, of whose keys some have no row at a snapshot.
    fn delta(&self) -> Option<ContainerId> {
        match self {
            Self::Delta(delta, _) => Some(delta.id()),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Segments(parts) | Self::Entries(_, parts) => parts.iter().map(|(_, rows)| rows.len()).sum(),
            Self::Delta(_, rows) => rows.len(),
            Self::Own(_, rows) => rows.len(),
        }
    }
}

/// Whether no row that fulfils the conditions of a range of the key of `columns` is without that key: the range has
/// values for the first `compared` of them, or bounds, and all columns behind those are NOT NULL.
#[must_use]
pub fn has_all_rows(schema: &TableSchema, columns: &[ColumnId], compared: usize) -> bool {
    let never_null = |id: &ColumnId| schema.column(*id).is_some_and(|column| !column.nullable);
    columns.iter().skip(compared).all(never_null)
}

/// How many columns of the key `range` compares with something.
fn compared(range: &KeyRange) -> usize {
    let is_bound = !matches!((range.low(), range.high()), (Bound::Unbounded, Bound::Unbounded));
    range.equal().len() + usize::from(is_bound)
}

/// What `take` makes of the live rows that `request` names, in the order of their keys: those that it takes. `None` if
/// that would be too many rows to look at, or some of them stand where they have no order: a scan finds them.
///
/// # Errors
/// Io or Corrupt when key blocks cannot be read; Internal for a key that is not there; those of `take`.
pub fn rows_between<T>(
    view: &TableView,
    request: RangeRequest<'_>,
    mut take: impl FnMut(RowRef) -> Result<Option<T>>,
) -> Result<Option<Vec<T>>> {
    if !has_all_rows(view.schema(), view.schema().key_columns(request.id), compared(request.range)) {
        return Ok(None);
    }
    let Some(sources) = sources(view, request)? else { return Ok(None) };
    let all: usize = sources.iter().map(Source::len).sum();
    if request.limit > all && all > request.steps_max {
        return Ok(None);
    }
    let mut taken: Vec<(RowRef, T)> = Vec::new();
    let (mut steps, mut given_by) = (0, 0);
    for source in &sources {
        let before = taken.len();
        let mut dead = DeadSteps::default();
        let enough = before.saturating_add(request.limit);
        // `None` ends the source: it has given enough, or no more may be looked at.
        each(source, request, view, &mut |row| {
            steps += 1;
            if steps > request.steps_max {
                return Ok(false);
            }
            let live = row.filter(|row| view.is_live(*row));
            if live.is_none()
                && let Some(container) = row.map(RowRef::container).or(source.delta())
            {
                dead.add(view, container);
            }
            if let Some(row) = live
                && let Some(of_row) = take(row)?
            {
                taken.push((row, of_row));
            }
            Ok(taken.len() < enough)
        })?;
        dead.note(view);
        if steps > request.steps_max {
            return Ok(None);
        }
        given_by += usize::from(taken.len() > before);
    }
    if given_by > 1 {
        taken = in_order(view, request, taken)?;
    }
    taken.truncate(request.limit);
    Ok(Some(taken.into_iter().map(|(_, of_row)| of_row).collect()))
}

fn sources<'a>(view: &'a TableView, request: RangeRequest<'_>) -> Result<Option<Vec<Source<'a>>>> {
    let (mut sources, schema) = (Vec::new(), view.schema());
    for run in &view.version().runs {
        let source = match run.index(request.id) {
            None if !schema.is_order(schema.key_columns(request.id)) => {
                return Err(run.without_index(schema, request.id));
            }
            None => Source::Segments(rows_in(run, schema, request.range)?),
            Some(index) if index.is_by_hash() => return Ok(None),
            Some(index) => Source::Entries(run, rows_in(index.entries(), index.schema(), request.range)?),
        };
        if source.len() > 0 {
            sources.push(source);
        }
    }
    for delta in &view.version().deltas {
        sources.extend(delta.key_range(request.id, request.range)?.into_iter().map(|rows| Source::Delta(delta, rows)));
    }
    let Some(own) = view.own() else { return Ok(Some(sources)) };
    if !own.runs().is_empty() || own.rows().len() > request.steps_max {
        return Ok(None);
    }
    let key = TableKey::of(view.schema(), request.id);
    let key = key.ok_or_else(|| Error::internal(format!("a range of key {}, which is not there", request.id)))?;
    let mut rows: Vec<(Vec<u8>, u32)> = Vec::new();
    for (offset, row) in own.live_rows_from(0) {
        let mut encoded = Vec::with_capacity(16);
        if key.encode_row(row, &mut encoded) && request.range.contains(&encoded) {
            rows.push((encoded, offset));
        }
    }
    rows.sort_unstable();
    if !rows.is_empty() {
        sources.push(Source::Own(own.rows(), rows.into_iter().map(|(_, offset)| offset).collect()));
    }
    Ok(Some(sources))
}

/// The rows of `run`, which is in the order of a key, whose keys are in `range`.
fn rows_in<'a>(run: &'a Run, schema: &TableSchema, range: &KeyRange) -> Result<Vec<(&'a RunSegment, Range<u32>)>> {
    let mut parts = Vec::new();
    for part in run.find_between(range) {
        let rows = part.segment.find_key_range(schema, range)?;
        let rows = rows.start.max(part.range.start)..rows.end.min(part.range.end);
        if !rows.is_empty() {
            parts.push((part, rows));
        }
    }
    Ok(parts)
}

/// Gives `step` the rows of `source` one by one, as long as it wants more: `None` for one that is not there at the
/// snapshot of `view`.
fn each(
    source: &Source<'_>,
    request: RangeRequest<'_>,
    view: &TableView,
    step: &mut dyn FnMut(Option<RowRef>) -> Result<bool>,
) -> Result<()> {
    let backwards = request.backwards;
    match source {
        Source::Segments(parts) => {
            for (part, rows) in directed(parts.iter(), backwards) {
                for offset in directed(rows.clone(), backwards) {
                    if !step(Some(RowRef::new(part.segment.id(), offset)))? {
                        return Ok(());
                    }
                }
            }
        }
        Source::Entries(run, parts) => {
            for (part, entries) in directed(parts.iter(), backwards) {
                for entry in directed(entries.clone(), backwards) {
                    if !step(run.indexed_row(&part.segment, entry)?.map(|(_, row)| row))? {
                        return Ok(());
                    }
                }
            }
        }
        Source::Delta(delta, rows) => {
            for first in directed(rows.offsets(), backwards) {
                let offset = delta.version_at(request.id, first, view.ts())?;
                if !step(offset.map(|offset| RowRef::new(delta.id(), offset)))? {
                    return Ok(());
                }
            }
        }
        Source::Own(own, rows) => {
            for offset in directed(rows.iter(), backwards) {
                if !step(Some(RowRef::new(own.id(), *offset)))? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// `items`, the last first if `backwards`.
fn directed<I: DoubleEndedIterator>(mut items: I, backwards: bool) -> impl Iterator<Item = I::Item> {
    std::iter::from_fn(move || if backwards { items.next_back() } else { items.next() })
}

/// `taken` in the order of the keys.
fn in_order<T>(view: &TableView, request: RangeRequest<'_>, taken: Vec<(RowRef, T)>) -> Result<Vec<(RowRef, T)>> {
    let key = |(row, of_row)| Ok((key_of(view, request.id, row)?, row, of_row));
    let mut keyed = taken.into_iter().map(key).collect::<Result<Vec<_>>>()?;
    keyed.sort_by(|(a, ..), (b, ..)| if request.backwards { b.cmp(a) } else { a.cmp(b) });
    Ok(keyed.into_iter().map(|(_, row, of_row)| (row, of_row)).collect())
}

/// The encoded key `id` of `row`.
fn key_of(view: &TableView, id: KeyId, row: RowRef) -> Result<Vec<u8>> {
    let lost = || Error::internal(format!("a row of container {}, which has no key", row.container()));
    let mut key = Vec::with_capacity(16);
    if let Some(own) = view.own().filter(|own| own.rows().id() == row.container()) {
        let values = own.rows().row(row.offset()).ok_or_else(lost)?;
        TableKey::of(view.schema(), id).ok_or_else(lost)?.encode_row(values, &mut key);
        return Ok(key);
    }
    if let Some(delta) = view.version().deltas.iter().find(|delta| delta.id() == row.container()) {
        delta.key_of(id, row.offset(), &mut key)?;
        return Ok(key);
    }
    let part = view.version().runs.iter().find_map(|run| run.segment(row.container())).ok_or_else(lost)?;
    part.segment.key_of(view.schema(), id, row.offset())?.ok_or_else(lost)
}
