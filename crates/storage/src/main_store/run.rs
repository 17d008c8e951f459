//! One run.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;
use mainstem_kernels::bitmap;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::ids::{ColumnId, CommitTs, ContainerId, KeyId, RunId};
use crate::limits;
use crate::predicate::{Predicate, Prune, ValueRange};
use crate::row::key::KeyRange;
use crate::schema::TableSchema;
use crate::segment::Segment;

/// A segment of a run, as far as it is not consumed.
#[derive(Clone, Debug)]
pub struct RunSegment {
    /// The segment.
    pub segment: Arc<Segment>,
    /// Its rows that belong to the run. Starts above 0 once a merge has consumed the rows before.
    pub range: Range<u32>,
}

impl RunSegment {
    /// All rows of `segment`.
    #[must_use]
    pub fn whole(segment: Arc<Segment>) -> Self {
        let range = 0..segment.rows();
        Self { segment, range }
    }

    /// Rows.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.range.end - self.range.start
    }

    /// Whether no row was consumed: metadata is then about exactly these rows.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.range == (0..self.segment.rows())
    }

    /// Its rows that are deleted for a snapshot at `at`: deletes of consumed rows do not count.
    #[must_use]
    pub fn deleted_at(&self, at: CommitTs) -> u64 {
        let deletes = self.segment.deletes();
        let dead = deletes.count_at(at);
        if dead == 0 || self.is_whole() {
            return dead;
        }
        let (start, end) = (self.range.start as usize, self.range.end as usize);
        deletes.bitmap_at(at).map_or(0, |dead| bitmap::count_range(&dead, start..end) as u64)
    }
}

/// An immutable list of segments; in layout `sorted` in key order.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    segments: Vec<RunSegment>,
    rows: u64,
    /// Places in `segments` by container id, ascending.
    by_id: Vec<(ContainerId, u32)>,
    /// Where its keys are that it is not in the order of.
    indexes: Box<[RunIndex]>,
    /// Bounds of the columns somebody asked for.
    bounds: Mutex<HashMap<ColumnId, ColumnBounds>>,
}

/// The key index of a run for one key of its table (`key_index`).
#[derive(Clone, Debug)]
pub struct RunIndex {
    pub(super) key: KeyId,
    pub(super) entries: Arc<Run>,
    /// Of its entries.
    pub(super) schema: Arc<TableSchema>,
}

impl RunIndex {
    /// The key.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// A run of [`RunIndex::schema`]; empty if no row has the key.
    #[must_use]
    pub fn entries(&self) -> &Arc<Run> {
        &self.entries
    }
}

/// What zone maps tell of a column over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnBounds {
    /// No value is outside; `None` when a segment knows none.
    pub range: Option<ValueRange>,
    /// Whether both ends of every segment's bounds are values, rather than shortened ones, and no row was consumed.
    pub exact: bool,
}

impl Run {
    /// The run of `segments`, in order.
    ///
    /// # Errors
    /// Internal when ranges are empty or outside their segments, a segment comes twice, some have key bounds and others
    /// none, or the bounds do not ascend.
    pub fn new(id: RunId, segments: Vec<RunSegment>) -> Result<Self> {
        let mut by_id: Vec<_> = segments.iter().zip(0u32..).map(|(part, at)| (part.segment.id(), at)).collect();
        by_id.sort_unstable();
        let rows = segments.iter().map(|part| u64::from(part.rows())).sum();
        let run = Self { id, rows, segments, by_id, indexes: Box::default(), bounds: Mutex::default() };
        run.check()?;
        Ok(run)
    }

    /// The same run with `indexes` as its key indexes.
    #[must_use]
    pub fn with_indexes(self, indexes: impl Into<Box<[RunIndex]>>) -> Self {
        Self { indexes: indexes.into(), ..self }
    }

    /// Whether `load`, rows that come behind all of this run's in its order, may be a part of it, instead of a run
    /// beside it. The same must hold for each key index, which has an order of its own. Segments of `segment_rows` rows
    /// must be at least half full on average: small ones are for merges to join. There is a limit to segments, for each
    /// load makes a list of them.
    #[must_use]
    pub fn may_take(&self, load: &Self, segment_rows: u32) -> bool {
        let takes = |run: &Self, load: &Self| {
            let segments = (run.segments.len() + load.segments.len()) as u64;
            let rows = 2 * (run.rows + load.rows) + 2 * u64::from(segment_rows);
            segments * u64::from(segment_rows) <= rows && segments <= limits::EXTENDED_RUN_SEGMENTS_MAX
        };
        let index_takes = |index: &RunIndex| {
            load.index(index.key).is_some_and(|behind| {
                let are_alike = index.is_by_hash() == behind.is_by_hash();
                let either_is_empty = index.entries.is_empty() || behind.entries.is_empty();
                takes(&index.entries, &behind.entries)
                    && (either_is_empty || are_alike && behind.entries.follows(&index.entries))
            })
        };
        let have_same_indexes = self.indexes.len() == load.indexes.len();
        takes(self, load) && load.follows(self) && have_same_indexes && self.indexes.iter().all(index_takes)
    }

    /// Whether no key of this run lies below one of `before`, as far as their bounds tell.
    fn follows(&self, before: &Self) -> bool {
        let (Some(last), Some(first)) = (before.segments.last(), self.segments.first()) else { return false };
        match (&last.segment.meta().key_bounds, &first.segment.meta().key_bounds) {
            (None, None) => true,
            (Some(last), Some(first)) => last.max <= first.min,
            _ => false,
        }
    }

    /// This run with the segments of `load` behind its own, and those of its key indexes behind its own indexes'. No id
    /// changes.
    ///
    /// # Errors
    /// As [`Run::new`]; internal when `load` has other key indexes.
    pub fn extended_by(&self, load: &Self) -> Result<Self> {
        let segments = self.segments.iter().chain(&load.segments).cloned().collect();
        let extended = |index: &RunIndex| {
            let behind = load.index(index.key).ok_or_else(|| self.unlike_indexes(load))?;
            Ok(RunIndex::new(index.key, Arc::new(index.entries.extended_by(&behind.entries)?)))
        };
        if self.indexes.len() != load.indexes.len() {
            return Err(self.unlike_indexes(load));
        }
        let indexes = self.indexes.iter().map(extended).collect::<Result<Vec<_>>>()?;
        Ok(Self::new(self.id, segments)?.with_indexes(indexes))
    }

    fn unlike_indexes(&self, load: &Self) -> Error {
        Error::internal(format!("run {}: its extension {} has other key indexes", self.id, load.id))
    }

    /// The same under another id.
    #[must_use]
    pub fn with_id(&self, id: RunId) -> Self {
        let (segments, by_id, indexes) = (self.segments.clone(), self.by_id.clone(), self.indexes.clone());
        Self { id, segments, by_id, indexes, rows: self.rows, bounds: Mutex::default() }
    }

    /// What this run has that `then`, the same at an earlier time, had not, as a run; `None` if that is nothing.
    #[must_use]
    pub fn behind(&self, then: &Self) -> Option<Self> {
        let is_new = |part: &&RunSegment| then.segment(part.segment.id()).is_none();
        let segments: Vec<_> = self.segments.iter().filter(is_new).cloned().collect();
        if segments.is_empty() {
            return None;
        }
        // Some of what is in order is in order; else all of it is looked at.
        let index_behind = |index: &RunIndex| {
            let id = index.entries.id;
            let entries = match then.index(index.key).map(|known| index.entries.behind(&known.entries)) {
                Some(Some(behind)) => behind,
                Some(None) => Self::new(id, Vec::new()).unwrap_or_else(|_| index.entries.with_id(id)),
                None => index.entries.with_id(id),
            };
            RunIndex::new(index.key, Arc::new(entries))
        };
        Some(match Self::new(self.id, segments) {
            Ok(behind) => behind.with_indexes(self.indexes.iter().map(index_behind).collect::<Vec<_>>()),
            Err(_) => self.with_id(self.id),
        })
    }

    fn check(&self) -> Result<()> {
        let defect = |what: String| Err(Error::internal(format!("run {}: {what}", self.id)));
        for part in &self.segments {
            if part.range.start >= part.range.end || part.range.end > part.segment.rows() {
                let (rows, id) = (part.segment.rows(), part.segment.id());
                return defect(format!("rows {:?} of segment {id} of {rows}", part.range));
            }
        }
        if self.by_id.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return defect("a segment twice".to_owned());
        }
        for pair in self.segments.windows(2) {
            let [left, right] = pair else { continue };
            match (&left.segment.meta().key_bounds, &right.segment.meta().key_bounds) {
                (None, None) => {}
                (Some(l), Some(r))
                    if l.min <= r.min && l.max <= r.max && (l.max <= r.min || shares_prefix(&l.max, &r.min)) => {}
                _ => {
                    let (left, right) = (left.segment.id(), right.segment.id());
                    return defect(format!("segments {left} and {right} out of order"));
                }
            }
        }
        Ok(())
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Its segments in order.
    #[must_use]
    pub fn segments(&self) -> &[RunSegment] {
        &self.segments
    }

    /// Its key indexes.
    #[must_use]
    pub fn indexes(&self) -> &[RunIndex] {
        &self.indexes
    }

    /// Its index for `key`. Without one it is in the order of the key.
    #[must_use]
    pub fn index(&self, key: KeyId) -> Option<&RunIndex> {
        self.indexes.iter().find(|index| index.key() == key)
    }

    /// Its segments, and those of its key indexes: all whose files it needs.
    pub fn all_segments(&self) -> impl Iterator<Item = &RunSegment> {
        self.segments.iter().chain(self.index_segments())
    }

    /// The segments of its key indexes.
    pub fn index_segments(&self) -> impl Iterator<Item = &RunSegment> {
        self.indexes.iter().flat_map(|index| index.entries().segments())
    }

    /// Rows that are not consumed, deleted ones included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes of its segments' blocks, those of the key indexes and consumed rows included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.all_segments().map(|part| part.segment.meta().bytes()).sum()
    }

    /// The part with container id `id`. O(log segments).
    #[must_use]
    pub fn segment(&self, id: ContainerId) -> Option<&RunSegment> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.segments.get(self.by_id.get(at)?.1 as usize)
    }

    /// The segments that may hold the encoded sort key `key`: one, or those that meet at it. O(log segments). All of
    /// them in a run without keys.
    #[must_use]
    pub fn find_segments(&self, key: &[u8]) -> &[RunSegment] {
        let ends_before = |part: &RunSegment| part.segment.meta().key_bounds.as_ref().is_some_and(|b| *b.max < *key);
        let begins_upto = |part: &RunSegment| part.segment.meta().key_bounds.as_ref().is_none_or(|b| *b.min <= *key);
        let candidates = self.segments.split_at(self.segments.partition_point(ends_before)).1;
        candidates.split_at(candidates.partition_point(begins_upto)).0
    }

    /// The segments that may hold sort keys of `range`, in order. O(log segments). All of them in a run without keys.
    #[must_use]
    pub fn find_between(&self, range: &KeyRange) -> &[RunSegment] {
        let ends_before =
            |part: &RunSegment| part.segment.meta().key_bounds.as_ref().is_some_and(|b| *b.max < *range.from());
        let begins_in = |part: &RunSegment| {
            part.segment.meta().key_bounds.as_ref().zip(range.upto()).is_none_or(|(bounds, upto)| *bounds.min < *upto)
        };
        let candidates = self.segments.split_at(self.segments.partition_point(ends_before)).1;
        candidates.split_at(candidates.partition_point(begins_in)).0
    }

    /// The segments that may hold a sort key that begins with the bytes `prefix`. O(log segments). All of them in a run
    /// without keys.
    #[must_use]
    pub fn find_prefix(&self, prefix: &[u8]) -> &[RunSegment] {
        let ends_before = |part: &RunSegment| part.segment.meta().key_bounds.as_ref().is_some_and(|b| *b.max < *prefix);
        let begins_in = |part: &RunSegment| {
            part.segment.meta().key_bounds.as_ref().is_none_or(|b| *b.min <= *prefix || b.min.starts_with(prefix))
        };
        let candidates = self.segments.split_at(self.segments.partition_point(ends_before)).1;
        candidates.split_at(candidates.partition_point(begins_in)).0
    }

    /// Bounds of `column` over all segments. O(segments) the first time, O(1) later.
    #[must_use]
    pub fn bounds(&self, column: ColumnId) -> ColumnBounds {
        if let Some(known) = self.bounds.lock().get(&column) {
            return known.clone();
        }
        let mut bounds = ColumnBounds { range: None, exact: true };
        for part in &self.segments {
            let meta = part.segment.meta().column(column);
            bounds.exact &= part.is_whole() && meta.is_some_and(|meta| meta.zone.min_exact && meta.zone.max_exact);
            bounds.range = match (part.segment.zone_map(column), bounds.range.take()) {
                (None, _) => {
                    bounds.range = None;
                    break;
                }
                (Some(here), None) => Some(here),
                (Some(here), Some(before)) => Some(before.merge(here)),
            };
        }
        self.bounds.lock().insert(column, bounds.clone());
        bounds
    }

    /// The segments of which all of `predicates` together may select a row, each with what its zone maps tell.
    pub fn overlapping<'a>(
        &'a self,
        predicates: &'a [Predicate],
    ) -> impl Iterator<Item = (&'a RunSegment, Prune)> + 'a {
        self.segments
            .iter()
            .map(|part| (part, part.segment.prune(predicates)))
            .filter(|(_, prune)| *prune != Prune::None)
    }

    /// Proves what metadata cannot: that each segment is whole ([`Segment::verify`]), that each ends at or before the
    /// key where the next begins, and that each key index has each row that has the key once, under its key. Returns
    /// what is wrong, an error each.
    #[must_use]
    pub fn verify(&self, schema: &TableSchema) -> Vec<Error> {
        self.verify_with(schema, |segment| segment.verify(schema))
    }

    /// As [`Run::verify`], with another proof that a segment is whole.
    pub(crate) fn verify_with(
        &self,
        schema: &TableSchema,
        mut verify: impl FnMut(&Segment) -> Result<()>,
    ) -> Vec<Error> {
        let mut wrong: Vec<Error> = self.segments.iter().filter_map(|part| verify(&part.segment).err()).collect();
        if wrong.is_empty() {
            wrong.extend(self.verify_indexes(schema));
        }
        if schema.sort_key.is_empty() || !wrong.is_empty() {
            return wrong;
        }
        for pair in self.segments.windows(2) {
            let [left, right] = pair else { continue };
            let last = left.segment.sort_key(schema, left.segment.rows().saturating_sub(1));
            let first = right.segment.sort_key(schema, 0);
            match (last, first) {
                (Ok(last), Ok(first)) if last <= first => {}
                (Ok(_), Ok(_)) => {
                    let (left, right) = (left.segment.id(), right.segment.id());
                    wrong.push(Error::internal(format!("run {}: segments {left} and {right} overlap", self.id)));
                }
                (Err(e), _) | (_, Err(e)) => wrong.push(e),
            }
        }
        wrong
    }

    /// The run without its first `rows` rows, under the same id; `None` if nothing is left.
    ///
    /// # Errors
    /// Internal when it has fewer rows.
    pub fn without_front(&self, rows: u64) -> Result<Option<Self>> {
        if rows > self.rows {
            return Err(Error::internal(format!("{rows} rows taken off run {} of {}", self.id, self.rows)));
        }
        let mut left = rows;
        let mut segments = Vec::with_capacity(self.segments.len());
        for part in &self.segments {
            let consumed = left.min(u64::from(part.rows()));
            left -= consumed;
            // At most the rows of the part, which are 32 bits.
            let start = part.range.start + consumed as u32;
            if start < part.range.end {
                segments.push(RunSegment { segment: Arc::clone(&part.segment), range: start..part.range.end });
            }
        }
        if segments.is_empty() {
            return Ok(None);
        }
        // Entries of rows that are gone stay in the indexes: nobody finds a segment, or a range, for them.
        Ok(Some(Self::new(self.id, segments)?.with_indexes(self.indexes.clone())))
    }
}

/// Whether an upper bound lies above the next lower bound only because long keys are shortened.
fn shares_prefix(max: &[u8], min: &[u8]) -> bool {
    // Both were cut: the raised bound is the successor of a prefix of the other.
    max.len() <= min.len() && min.len() == crate::limits::KEY_BOUND_BYTES_MAX
}
