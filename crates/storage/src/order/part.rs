//! What a stream is made of, and its keys.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::ScalarBuffer;

use crate::delta_store::DeltaGeneration;
use crate::error::Result;
use crate::ids::{ColumnId, ContainerId, RowRef};
use crate::row::key::{KeyCodec, Keys};
use crate::schema::{Column, TableSchema};
use crate::segment::Segment;

use super::replacements::Replacements;

/// Where the rows of a part are.
#[derive(Clone, Debug)]
pub enum PartRows {
    /// These rows of a segment, which are in key order.
    Segment(Arc<Segment>, Range<u32>),
    /// So many rows of a delta generation from its start, taken in the order of its permutation.
    Delta(Arc<DeltaGeneration>, u32),
    /// These rows of a delta generation, which are in key order.
    DeltaRows(Arc<DeltaGeneration>, Arc<[u32]>),
}

/// One piece of a stream.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its rows.
    pub rows: PartRows,
    /// Offsets that are passed over.
    pub dead: Option<Arc<[u64]>>,
    /// Whether it may be passed on whole, if no row of another stream belongs between its own.
    pub keep_whole: bool,
    /// Rows of it that are others', see [`super::Cursor::replacing`]; they are not dead.
    pub(super) replacements: Replacements,
}

impl Part {
    /// All rows of `segment` in `range`.
    #[must_use]
    pub fn segment(segment: Arc<Segment>, range: Range<u32>) -> Self {
        Self {
            rows: PartRows::Segment(segment, range),
            dead: None,
            keep_whole: false,
            replacements: Replacements::default(),
        }
    }

    /// The first `rows` rows of `delta`.
    #[must_use]
    pub fn delta(delta: Arc<DeltaGeneration>, rows: u32) -> Self {
        Self {
            rows: PartRows::Delta(delta, rows),
            dead: None,
            keep_whole: false,
            replacements: Replacements::default(),
        }
    }

    /// Rows `offsets` of `delta`, which are in key order.
    #[must_use]
    pub fn delta_rows(delta: Arc<DeltaGeneration>, offsets: Arc<[u32]>) -> Self {
        Self {
            rows: PartRows::DeltaRows(delta, offsets),
            dead: None,
            keep_whole: false,
            replacements: Replacements::default(),
        }
    }

    /// The same without the rows whose bit is on in `dead`.
    #[must_use]
    pub fn without(mut self, dead: Option<Arc<[u64]>>) -> Self {
        self.dead = dead;
        self
    }

    /// The same, to be kept whole if it can.
    #[must_use]
    pub fn keep_whole(mut self) -> Self {
        self.keep_whole = true;
        self
    }

    /// The container.
    #[must_use]
    pub fn container(&self) -> ContainerId {
        match &self.rows {
            PartRows::Segment(segment, _) => segment.id(),
            PartRows::Delta(delta, _) | PartRows::DeltaRows(delta, _) => delta.id(),
        }
    }

    /// The offsets of its rows, dead ones included; of some rows of a delta those that they are among.
    #[must_use]
    pub fn range(&self) -> Range<u32> {
        match &self.rows {
            PartRows::Segment(_, range) => range.clone(),
            PartRows::Delta(_, rows) => 0..*rows,
            PartRows::DeltaRows(delta, _) => 0..delta.rows(),
        }
    }

    /// Whether row `offset` is passed over.
    #[inline]
    #[must_use]
    pub fn is_dead(&self, offset: u32) -> bool {
        let word = |dead: &Arc<[u64]>| dead.get(offset as usize / 64).copied().unwrap_or(0);
        self.dead.as_ref().is_some_and(|dead| word(dead) >> (offset % 64) & 1 == 1)
    }

    /// Up to `max` rows of `offsets` that are not passed over, as ranges.
    pub(crate) fn live_rows(&self, offsets: Range<u32>, max: u32) -> LiveRows<'_> {
        LiveRows { dead: self.dead.as_deref().unwrap_or_default(), next: offsets.start, end: offsets.end, left: max }
    }

    /// The reference of row `offset`.
    #[must_use]
    pub fn row_ref(&self, offset: u32) -> RowRef {
        RowRef::new(self.container(), offset)
    }

    /// Bounds of its keys, if they are known without reading.
    pub(super) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        match &self.rows {
            PartRows::Segment(segment, _) => {
                segment.meta().key_bounds.as_ref().map(|bounds| (&*bounds.min, &*bounds.max))
            }
            PartRows::Delta(..) | PartRows::DeltaRows(..) => None,
        }
    }

    /// Rows `rows` of `column`. A column that the container lacks reads as its missing value.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn read(&self, column: &Column, rows: Range<u32>) -> Result<ArrayRef> {
        match &self.rows {
            PartRows::Segment(segment, _) => segment.read(column, rows),
            PartRows::Delta(delta, _) | PartRows::DeltaRows(delta, _) => delta.read(column, rows),
        }
    }
}

/// Iterator over ranges of live rows.
#[derive(Debug)]
pub(crate) struct LiveRows<'a> {
    dead: &'a [u64],
    next: u32,
    end: u32,
    left: u32,
}

impl LiveRows<'_> {
    /// The offset behind the rows returned so far, and those passed over.
    pub(super) fn next_offset(&self) -> u32 {
        self.next
    }

    /// The first offset from `from` on whose row is dead, or is not; the end if there is none.
    fn first_from(&self, from: u32, is_dead: bool) -> u32 {
        let mut at = from;
        while at < self.end {
            let word = self.dead.get(at as usize / 64).copied().unwrap_or(0);
            let wanted = if is_dead { word } else { !word } >> (at % 64);
            if wanted != 0 {
                return self.end.min(at + wanted.trailing_zeros());
            }
            at = (at | 63).saturating_add(1);
        }
        self.end
    }
}

impl Iterator for LiveRows<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        if self.left == 0 {
            return None;
        }
        let first = self.first_from(self.next, false);
        let end = self.first_from(first, true).min(first.saturating_add(self.left));
        self.next = end;
        self.left -= end - first;
        (first < end).then_some(first..end)
    }
}

/// Reads keys of one set of columns.
#[derive(Clone, Debug)]
pub struct KeyReader {
    /// `None` without key columns: rows stay as they come.
    codec: Option<KeyCodec>,
    columns: Vec<Column>,
    /// Their places in the schema.
    positions: Vec<usize>,
    /// Bytes of the keys, where they are but the beginning of the sort key, by which parts are bounded.
    beginning: Option<usize>,
}

impl KeyReader {
    /// For the keys of `columns`, which are columns of `schema`.
    #[must_use]
    pub fn new(schema: &TableSchema, columns: &[ColumnId]) -> Self {
        let codec = (!columns.is_empty()).then(|| KeyCodec::new(schema, columns));
        let positions: Vec<usize> = columns.iter().filter_map(|id| schema.position(*id)).collect();
        let columns = positions.iter().filter_map(|at| schema.columns.get(*at)).cloned().collect();
        Self { codec, columns, positions, beginning: None }
    }

    /// For `schema`'s sort key.
    #[must_use]
    pub fn of_sort_key(schema: &TableSchema) -> Self {
        Self::new(schema, &schema.sort_key)
    }

    /// For the first column of `schema`'s sort key; `None` if its values have no fixed width.
    #[must_use]
    pub fn of_leading_column(schema: &TableSchema) -> Option<Self> {
        let mut reader = Self::new(schema, schema.sort_key.get(..1)?);
        reader.beginning = Some(reader.codec()?.fixed_width()?);
        Some(reader)
    }

    /// Bounds of the keys of `part`, if they are known without reading.
    pub(super) fn bounds<'a>(&self, part: &'a Part) -> Option<(&'a [u8], &'a [u8])> {
        let (min, max) = part.bounds()?;
        match self.beginning {
            None => Some((min, max)),
            Some(width) => Some((min.get(..width)?, max.get(..width)?)),
        }
    }

    /// The codec, unless there are no key columns.
    #[must_use]
    pub fn codec(&self) -> Option<&KeyCodec> {
        self.codec.as_ref()
    }

    /// The key columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Places of the key columns among the schema's.
    #[must_use]
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// The keys of the rows of `batch`, whose columns are the schema's; `None` without key columns.
    ///
    /// # Errors
    /// Internal.
    pub fn keys_of(&self, batch: &RecordBatch) -> Result<Option<Keys>> {
        let Some(codec) = &self.codec else { return Ok(None) };
        let arrays: Vec<ArrayRef> = self.positions.iter().filter_map(|at| batch.columns().get(*at).cloned()).collect();
        codec.encode_arrays(&arrays).map(Some)
    }

    /// Whether the first eight bytes of a key are all of it.
    pub(super) fn is_short(&self) -> bool {
        self.codec.as_ref().is_none_or(|codec| codec.fixed_width().is_some_and(|width| width <= 8))
    }

    /// The places, in the order of `part`, of keys at or above `from` and below `to`.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn places_between(&self, part: &Part, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<Range<u32>> {
        if let (PartRows::Delta(delta, rows), Some(codec)) = (&part.rows, &self.codec) {
            // A few of its keys tell, and each is read by itself.
            let order = delta.sorted_offsets(*rows)?;
            let is_below = |offset: u32, key: &[u8]| {
                let columns = self.columns.iter().map(|column| delta.gather(column, &[offset]));
                let own = codec.encode_arrays(&columns.collect::<Result<Vec<_>>>()?)?;
                Ok(own.get(0) < key)
            };
            let place = |key: &[u8]| partition_point(order.len() as u32, |at| is_below(order[at as usize], key));
            return Ok(from.map_or(Ok(0), place)?..to.map_or(Ok(order.len() as u32), place)?);
        }
        let rows = self.load(part)?;
        let first = from.map_or(0, |key| rows.seek(0, key));
        Ok(first..to.map_or(rows.len, |key| rows.seek(first, key)))
    }

    /// Reads the keys of `part`.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub(super) fn load(&self, part: &Part) -> Result<LoadedPart> {
        #[cfg(test)]
        testing::LOADS.set(testing::LOADS.get() + 1);
        let rows = part.range();
        let order = match (&part.rows, &self.codec) {
            (PartRows::Delta(delta, rows), Some(_)) => Some(delta.sorted_offsets(*rows)?),
            (PartRows::DeltaRows(_, offsets), _) => Some(offsets.clone()),
            _ => None,
        };
        let read = |column: &Column| match (&part.rows, &order) {
            (PartRows::Delta(delta, _) | PartRows::DeltaRows(delta, _), Some(order)) => delta.gather(column, order),
            _ => part.read(column, rows.clone()),
        };
        let keys = match &self.codec {
            None => LoadedKeys::None,
            Some(codec) => {
                let arrays = self.columns.iter().map(read).collect::<Result<Vec<_>>>()?;
                match (codec.is_plain_bigint(), arrays.as_slice()) {
                    (true, [numbers]) if let Some(numbers) = numbers.as_primitive_opt::<Int64Type>() => {
                        LoadedKeys::Numbers(numbers.values().clone())
                    }
                    _ => LoadedKeys::Encoded(codec.encode_arrays(&arrays)?),
                }
            }
        };
        let len = order.as_ref().map_or(rows.len(), |order| order.len());
        Ok(LoadedPart { keys, order, first: rows.start, len: len as u32 })
    }
}

/// The keys of a part, by position: its place in the part's order.
#[derive(Debug)]
pub(super) struct LoadedPart {
    keys: LoadedKeys,
    /// Offset at each position, if they are not in offset order.
    order: Option<Arc<[u32]>>,
    first: u32,
    pub len: u32,
}

#[derive(Debug)]
enum LoadedKeys {
    /// There are no key columns.
    None,
    /// Numbers as the column has them: their keys are made when they are asked for.
    Numbers(ScalarBuffer<i64>),
    Encoded(Keys),
}

/// The key of a row, which is its bytes.
#[derive(Clone, Copy, Debug)]
pub enum KeyAt<'a> {
    /// Of one BIGINT.
    Number([u8; 8]),
    /// Of any other columns.
    Encoded(&'a [u8]),
}

impl PartialEq for KeyAt<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a == b,
            _ => **self == **other,
        }
    }
}

impl std::ops::Deref for KeyAt<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Number(number) => number,
            Self::Encoded(key) => key,
        }
    }
}

impl LoadedPart {
    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        let order = self.order.as_ref().map_or(0, |order| size_of_val::<[u32]>(order));
        let keys = match &self.keys {
            LoadedKeys::None => 0,
            LoadedKeys::Numbers(numbers) => size_of_val::<[i64]>(numbers),
            LoadedKeys::Encoded(keys) => keys.memory(),
        };
        keys + order
    }

    /// The offset at a position below `len`.
    #[inline]
    pub fn offset(&self, position: u32) -> u32 {
        match &self.order {
            Some(order) => order[position as usize],
            None => self.first + position,
        }
    }

    /// The offset of the first row, if the others follow in the order of their offsets.
    #[inline]
    pub fn first_in_order(&self) -> Option<u32> {
        self.order.is_none().then_some(self.first)
    }

    /// The key at a position below `len`; empty without key columns.
    #[inline]
    pub fn key(&self, position: u32) -> KeyAt<'_> {
        match &self.keys {
            LoadedKeys::None => KeyAt::Encoded(&[]),
            LoadedKeys::Numbers(numbers) => KeyAt::Number(KeyCodec::key_of_bigint(numbers[position as usize])),
            LoadedKeys::Encoded(keys) => KeyAt::Encoded(keys.get(position as usize)),
        }
    }

    /// The first position at or after `from` whose key is at or above `key`.
    pub fn seek(&self, from: u32, key: &[u8]) -> u32 {
        if let (LoadedKeys::Numbers(numbers), Some(bound)) = (&self.keys, KeyCodec::bigint_of_key(key)) {
            return self.seek_by(from, |position| numbers[position as usize] < bound);
        }
        // Most comparisons end in the first bytes.
        let first = prefix(key);
        self.seek_by(from, |position| {
            let other = self.key(position);
            match prefix(&other).cmp(&first) {
                Ordering::Equal => *other < *key,
                order => order.is_lt(),
            }
        })
    }

    /// The first position at or after `from` whose key is not below, which those behind it are not either.
    #[inline]
    fn seek_by(&self, from: u32, is_below: impl Fn(u32) -> bool) -> u32 {
        let (mut low, mut high) = (from, self.len);
        // Most seeks are short: doubling steps first.
        let mut step = 1;
        while low < high {
            let probe = low.saturating_add(step - 1).min(high - 1);
            if !is_below(probe) {
                high = probe;
                break;
            }
            low = probe + 1;
            step *= 2;
        }
        while low < high {
            let middle = low.midpoint(high);
            if is_below(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The first position at or after `from` whose key is above `key`.
    pub fn seek_behind(&self, from: u32, key: &[u8]) -> u32 {
        self.seek_by(self.seek(from, key), |position| *self.key(position) <= *key)
    }
}

/// The first place below `len` that is not below, as those behind it are not either; `len` if all are.
fn partition_point(len: u32, is_below: impl Fn(u32) -> Result<bool>) -> Result<u32> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        if is_below(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The first eight bytes of a key as a number that orders as they do.
#[inline]
pub(super) fn prefix(key: &[u8]) -> u64 {
    match (key.first_chunk(), key) {
        (Some(head), _) => u64::from_be_bytes(*head),
        (None, [a, b, c, d]) => u64::from(u32::from_be_bytes([*a, *b, *c, *d])) << 32,
        (None, _) => {
            key.iter().zip([56, 48, 40, 32, 24, 16, 8, 0]).map(|(byte, shift)| u64::from(*byte) << shift).sum()
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::cell::Cell;

    thread_local! {
        /// Parts whose keys this thread has read.
        pub(crate) static LOADS: Cell<usize> = const { Cell::new(0) };
    }
}
