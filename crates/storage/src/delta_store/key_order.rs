//! The keys of a generation in order, for ranges of keys; made by those who ask, as far as they ask.
//!
//! Comes in: the published rows of a generation. Goes out: the rows whose keys are in a range, in key order, one of
//! each key: the first that the generation got of it. Its later versions are found by hash
//! ([`DeltaGeneration::version_at`]), so that a row that is updated again and again stands here once.
//!
//! 1. A *level* lists rows in key order. Levels are of different sizes, each at least [`FANOUT`] times the next.
//! 2. Rows behind those that levels cover are looked at one by one, up to [`UNORDERED_MAX`]. When there are more,
//!    whoever asks sorts them into a new level, and merges levels until their sizes are right: a row is moved
//!    O(log rows) times.
//!
//! Writers know nothing of this, and pay nothing. Each key of the table has an order of its own, which is there once
//! somebody has asked for a range of it. Rows without a key are not in its order.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};

use parking_lot::Mutex;

use super::generation::DeltaGeneration;
use super::point_access::KeyIndex;
use crate::error::{Error, Result};
use crate::ids::KeyId;
use crate::row::key::KeyRange;

/// Most rows that are looked at one by one.
const UNORDERED_MAX: u32 = 32;
/// A level has at least so many times the rows of the next.
const FANOUT: usize = 4;
/// Most words of a key, of 8 bytes, that are kept with its row: keys of five BIGINT are whole.
const HEAD_WORDS_MAX: usize = 5;
/// Words of a key that may be of any length.
const HEAD_WORDS_OF_TEXTS: usize = 4;

/// What is ordered of a generation by one key so far.
#[derive(Default)]
pub(super) struct KeyOrder {
    levels: Mutex<Levels>,
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Levels {
    /// Rows below it are in a level, if they are the first of their key.
    covered: u32,
    /// The largest first.
    levels: Vec<Arc<Level>>,
}

/// Rows in key order.
#[derive(Debug, Default)]
struct Level {
    /// Of each row.
    head_words: usize,
    /// The first bytes of each key, as numbers that order as they do.
    heads: Vec<u64>,
    offsets: Vec<u32>,
}

impl Level {
    fn with_capacity(head_words: usize, rows: usize) -> Self {
        Self { head_words, heads: Vec::with_capacity(rows * head_words), offsets: Vec::with_capacity(rows) }
    }

    fn push(&mut self, head: &[u64], offset: u32) {
        self.heads.extend_from_slice(head);
        self.offsets.push(offset);
    }

    fn push_key(&mut self, key: &[u8], offset: u32) {
        let head = Head::of(key, self.head_words);
        self.push(head.words(), offset);
    }

    fn len(&self) -> usize {
        self.offsets.len()
    }

    /// That of the row at `at`.
    fn head(&self, at: usize) -> &[u64] {
        self.heads.get(at * self.head_words..(at + 1) * self.head_words).unwrap_or_default()
    }

    /// The first of `places` whose head is not below `head`, or not below and not equal to it.
    fn position(&self, places: Range<usize>, head: &Head, behind_equal: bool) -> usize {
        let heads = self.heads.get(places.start * self.head_words..places.end * self.head_words).unwrap_or_default();
        let after = match self.head_words {
            1 => position::<1>(heads, head, behind_equal),
            2 => position::<2>(heads, head, behind_equal),
            3 => position::<3>(heads, head, behind_equal),
            4 => position::<4>(heads, head, behind_equal),
            _ => position::<HEAD_WORDS_MAX>(heads, head, behind_equal),
        };
        places.start + after
    }

    /// Places from `start` on, behind which, or at the end of which, is the first head that is not below `head`; none
    /// in front of `start` is.
    fn near(&self, start: usize, head: &Head) -> Range<usize> {
        let mut length = 4;
        while start + length < self.len() && self.head(start + length) < head.words() {
            length *= 4;
        }
        start..self.len().min(start + length)
    }

    fn bytes(&self) -> usize {
        size_of_val(self.heads.as_slice()) + size_of_val(self.offsets.as_slice())
    }
}

/// As [`Level::position`], of heads of `N` words: how many lie in front of it.
fn position<const N: usize>(heads: &[u64], head: &Head, behind_equal: bool) -> usize {
    let (heads, _) = heads.as_chunks::<N>();
    let mut wanted = [0; N];
    wanted.iter_mut().zip(head.words()).for_each(|(to, from)| *to = *from);
    match behind_equal {
        false => heads.partition_point(|of_key| *of_key < wanted),
        true => heads.partition_point(|of_key| *of_key <= wanted),
    }
}

/// The first bytes of a key.
struct Head {
    words: [u64; HEAD_WORDS_MAX],
    length: usize,
}

impl Head {
    /// `length` words of `key`; what it lacks counts as zeros.
    fn of(key: &[u8], length: usize) -> Self {
        let mut words = [0; HEAD_WORDS_MAX];
        for (word, bytes) in words.iter_mut().zip(key.chunks(size_of::<u64>())).take(length) {
            let mut whole = [0; size_of::<u64>()];
            whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            *word = u64::from_be_bytes(whole);
        }
        Self { words, length }
    }

    fn words(&self) -> &[u64] {
        self.words.get(..self.length).unwrap_or_default()
    }
}

/// Some rows of a generation in key order, no two of one key.
#[derive(Debug)]
pub struct OrderedRows {
    level: Arc<Level>,
    range: Range<usize>,
}

impl OrderedRows {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Their offsets.
    pub fn offsets(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.level.offsets.get(self.range.clone()).unwrap_or_default().iter().copied()
    }
}

impl KeyOrder {
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.load(Memory::Relaxed)
    }
}

impl DeltaGeneration {
    /// The rows whose key `id` is in `range`, as of now: lists in key order, no key twice, each key by the first row
    /// that has it. Later than a snapshot, too.
    ///
    /// # Errors
    /// Internal for a key that the table has not.
    pub fn key_range(&self, id: KeyId, range: &KeyRange) -> Result<Vec<OrderedRows>> {
        let index = self.index(id).ok_or_else(|| Error::internal(format!("{self:?} has no key {id}")))?;
        let keys = OrderedKeys { delta: self, index, head_words: head_words(index), is_whole: is_whole(index) };
        let rows = self.rows();
        let (levels, covered) = keys.levels(rows)?;
        let mut found = Vec::with_capacity(levels.len() + 1);
        for level in levels {
            let first = keys.position(&level, 0..level.len(), range.from())?;
            let end = match range.upto() {
                // Mostly a range is short.
                Some(upto) => keys.position(&level, level.near(first, &Head::of(upto, level.head_words)), upto)?,
                None => level.offsets.len(),
            };
            if first < end {
                found.push(OrderedRows { level, range: first..end });
            }
        }
        let unordered = keys.sorted(covered.min(rows)..rows, Some(range))?;
        if !unordered.offsets.is_empty() {
            let range = 0..unordered.offsets.len();
            found.push(OrderedRows { level: Arc::new(unordered), range });
        }
        Ok(found)
    }
}

/// Whether the head of a key is the whole of it.
fn is_whole(index: &KeyIndex) -> bool {
    index.codec().fixed_width().is_some_and(|width| width <= head_words(index) * size_of::<u64>())
}

fn head_words(index: &KeyIndex) -> usize {
    let of_width = |width: usize| width.div_ceil(size_of::<u64>()).clamp(1, HEAD_WORDS_MAX);
    index.codec().fixed_width().map_or(HEAD_WORDS_OF_TEXTS, of_width)
}

/// The keys of one index of a generation.
struct OrderedKeys<'a> {
    delta: &'a DeltaGeneration,
    index: &'a KeyIndex,
    head_words: usize,
    /// Whether the head of a key is the whole of it.
    is_whole: bool,
}

impl OrderedKeys<'_> {
    /// The levels, and the rows that they cover: all but a few of `rows`.
    fn levels(&self, rows: u32) -> Result<(Vec<Arc<Level>>, u32)> {
        let order = self.delta.key_orders.get(self.index.number());
        let order = order.ok_or_else(|| Error::internal("a key without a place for its order"))?;
        let mut ordered = order.levels.lock();
        if rows.saturating_sub(ordered.covered) > UNORDERED_MAX {
            let mut new = self.level_of(ordered.covered..rows)?;
            let mut kept = ordered.levels.len();
            while let Some(last) = kept.checked_sub(1).and_then(|at| ordered.levels.get(at))
                && last.offsets.len() < FANOUT * new.offsets.len()
            {
                new = self.merged(last, &new)?;
                kept -= 1;
            }
            ordered.levels.truncate(kept);
            if !new.offsets.is_empty() {
                ordered.levels.push(Arc::new(new));
            }
            ordered.covered = rows;
            order.bytes.store(ordered.levels.iter().map(|level| level.bytes()).sum(), Memory::Relaxed);
        }
        Ok((ordered.levels.clone(), ordered.covered))
    }

    /// The first rows of their keys among `rows`, in order.
    fn level_of(&self, rows: Range<u32>) -> Result<Level> {
        if rows.len() <= 2 * UNORDERED_MAX as usize {
            return self.sorted(rows, None);
        }
        let offsets: Vec<u32> = rows.filter(|offset| self.index.is_first(&self.delta.blocks, *offset)).collect();
        let columns = self.index.positions().iter().filter_map(|at| self.delta.schema().columns.get(*at));
        let arrays = columns.map(|column| self.delta.gather(column, &offsets)).collect::<Result<Vec<_>>>()?;
        let (keys, rows) = self.index.keys_of_arrays(&arrays)?;
        let mut level = Level::with_capacity(self.head_words, offsets.len());
        for nth in keys.sorted_permutation() {
            let offset = offsets.get(rows.row(nth) as usize).copied();
            level.push_key(keys.get(nth as usize), offset.ok_or_else(|| Error::internal("a key without a row"))?);
        }
        Ok(level)
    }

    /// As [`OrderedKeys::level_of`], of few rows, those whose key is in `wanted` or all.
    fn sorted(&self, rows: Range<u32>, wanted: Option<&KeyRange>) -> Result<Level> {
        let mut keys: Vec<(Vec<u8>, u32)> = Vec::new();
        let mut key = Vec::with_capacity(self.head_words * size_of::<u64>());
        let blocks = &self.delta.blocks;
        for offset in rows.filter(|offset| self.index.is_first(blocks, *offset)) {
            // Nearly all rows fail here, before their keys are made.
            if wanted.is_some_and(|range| !self.index.has_key(blocks, offset, range.equal())) {
                continue;
            }
            key.clear();
            let has_key = self.delta.key_of(self.index.id(), offset, &mut key)?;
            if has_key && wanted.is_none_or(|range| range.contains(&key)) {
                keys.push((key.clone(), offset));
            }
        }
        keys.sort_unstable();
        let mut level = Level::with_capacity(self.head_words, keys.len());
        keys.iter().for_each(|(key, offset)| level.push_key(key, *offset));
        Ok(level)
    }

    fn merged(&self, left: &Level, right: &Level) -> Result<Level> {
        match self.head_words {
            1 => self.merged_by::<1>(left, right),
            2 => self.merged_by::<2>(left, right),
            3 => self.merged_by::<3>(left, right),
            4 => self.merged_by::<4>(left, right),
            _ => self.merged_by::<HEAD_WORDS_MAX>(left, right),
        }
    }

    /// As [`OrderedKeys::merged`], where heads have `N` words.
    fn merged_by<const N: usize>(&self, left: &Level, right: &Level) -> Result<Level> {
        let mut level = Level::with_capacity(self.head_words, left.len() + right.len());
        let ((left_heads, _), (right_heads, _)) = (left.heads.as_chunks::<N>(), right.heads.as_chunks::<N>());
        let mut left = left_heads.iter().zip(&left.offsets).peekable();
        let mut right = right_heads.iter().zip(&right.offsets).peekable();
        loop {
            let is_left = match (left.peek(), right.peek()) {
                (None, None) => return Ok(level),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(a), Some(b)) => match a.0.cmp(b.0) {
                    Ordering::Equal if !self.is_whole => self.key(*a.1)? < self.key(*b.1)?,
                    order => order.is_lt(),
                },
            };
            if let Some((head, offset)) = if is_left { left.next() } else { right.next() } {
                level.push(head, *offset);
            }
        }
    }

    /// The first place in `level` whose key is not below `bound`; it is known that its head is found in `places`, or
    /// behind them.
    fn position(&self, level: &Level, places: Range<usize>, bound: &[u8]) -> Result<usize> {
        let head = Head::of(bound, self.head_words);
        let mut low = level.position(places, &head, false);
        if self.is_whole {
            // What a bound lacks of a key's bytes counts as zeros: no key lies between.
            return Ok(low);
        }
        let mut high = level.position(low..level.len(), &head, true);
        while low < high {
            let middle = usize::midpoint(low, high);
            let offset = level.offsets.get(middle).copied().unwrap_or_default();
            if self.key(offset)?.as_slice() < bound { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    fn key(&self, offset: u32) -> Result<Vec<u8>> {
        let mut key = Vec::with_capacity(2 * self.head_words * size_of::<u64>());
        self.delta.key_of(self.index.id(), offset, &mut key)?;
        Ok(key)
    }
}
