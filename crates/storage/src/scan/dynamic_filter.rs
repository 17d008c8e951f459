//! Conditions that become known while a scan runs: the keys that the other side of a join has, and the bound of the
//! rows that a limit keeps.
//!
//! Comes in: integers, from whoever reads the other side, and at some moment the word that these were all. Goes out: to
//! the scan, bounds for zone maps and codes, and which rows have one of the keys.
//!
//! 1. [`KeySet::of`] takes the keys: their bounds, and one bit for each number between them where those are not too
//!    many; few keys far from one another are hashed.
//! 2. [`DynamicFilter::publish`] hands the set to the scans that hold the filter. Until then they read everything.
//! 3. A scan asks for each piece: bounds first, by zone map and on codes; then the bits, of the rows that are left, for
//!    as long as that drops a share of rows worth its cost.
//!
//! A limit's bound tightens while rows are read ([`DynamicFilter::tighten`]); each piece meets the bound of its moment,
//! and those whose zone maps promise the first rows are read first.
//!
//! Invariants: a row that has one of the keys passes; a NULL never does, unless it comes first. A scan's request stays
//! plain data (contract 5): filters stand beside it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::Array;
use hashbrown::HashSet;
use mainstem_kernels::bitmap;

use crate::error::Result;
use crate::ids::ColumnId;
use crate::predicate::{CompareOp, Predicate};
use crate::row::{TypedValues, Value};
use crate::schema::{Column, DataType};

/// Bits that a set may take whatever its number of keys, 2 MiB: they are cleared in the time of a few batches.
const BITS_ALWAYS: u64 = 1 << 24;
/// Bits for each key above that.
const BITS_PER_KEY: u64 = 64;
/// Bits of a set at most: 16 MiB.
const BITS_MAX: u64 = 1 << 27;
/// Keys of a hash table at most; one with more costs a miss of the cache for each row.
const HASHED_MAX: usize = 1 << 16;
/// Bytes of a hash table for each key, about.
const HASHED_BYTES: usize = 2 * size_of::<i64>();
/// Rows after which a filter that drops few is not asked any more.
const ROWS_TRIED: u64 = 1 << 16;
/// Rows that have to be dropped, of so many, for asking to be worth it.
const DROPPED_OF: u64 = 8;

/// The keys of one side of a join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    /// Least and greatest; none without any key.
    bounds: Option<(i64, i64)>,
    /// None where that would take too much room.
    members: Option<Members>,
}

/// Which numbers between the bounds are keys.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Members {
    /// Bit `k - least` of each key `k`.
    Bits(Vec<u64>),
    /// Few keys far from one another.
    Hashed(HashSet<i64>),
}

impl KeySet {
    /// The set of `keys`, in slices as they came. `room` is asked before bytes are taken.
    #[must_use]
    pub fn of(keys: &[impl AsRef<[i64]>], room: impl Fn(usize) -> bool) -> Self {
        let slices = || keys.iter().map(AsRef::as_ref).filter(|keys| !keys.is_empty());
        let least = slices().filter_map(|keys| keys.iter().min()).min();
        let greatest = slices().filter_map(|keys| keys.iter().max()).max();
        let (Some(&least), Some(&greatest)) = (least, greatest) else { return Self::default() };
        let bounds = Some((least, greatest));
        let count = slices().map(|keys| keys.len() as u64).sum::<u64>();
        let most = count.saturating_mul(BITS_PER_KEY).clamp(BITS_ALWAYS, BITS_MAX);
        let bits = greatest.abs_diff(least).checked_add(1).filter(|bits| *bits <= most);
        let members = match bits.map(|bits| bitmap::words(bits as usize)) {
            Some(words) if room(words * size_of::<u64>()) => {
                let mut bits = vec![0; words];
                for key in slices().flatten() {
                    bitmap::set(&mut bits, key.abs_diff(least) as usize);
                }
                Some(Members::Bits(bits))
            }
            None if count as usize <= HASHED_MAX && room(count as usize * HASHED_BYTES) => {
                Some(Members::Hashed(slices().flatten().copied().collect()))
            }
            _ => None,
        };
        Self { bounds, members }
    }

    /// Conditions on `column` that each key meets.
    fn predicates(&self, column: ColumnId) -> Vec<Predicate> {
        let Some((least, greatest)) = self.bounds else {
            return vec![Predicate::In { column, values: Vec::new() }];
        };
        let bound = |op, key| Predicate::Compare { column, op, value: Value::Int(key) };
        match least == greatest {
            true => vec![bound(CompareOp::Eq, least)],
            false => vec![bound(CompareOp::GtEq, least), bound(CompareOp::LtEq, greatest)],
        }
    }

    /// Which rows of `array`, of type `column.data_type.arrow()`, have one of the keys; `None` where only the bounds
    /// are known.
    fn select(&self, array: &dyn Array, column: &Column) -> Result<Option<Vec<u64>>> {
        let (Some((least, _)), Some(members)) = (self.bounds, &self.members) else { return Ok(None) };
        let mut selection = match TypedValues::of(array, column.data_type)? {
            TypedValues::Int16(values) => members.select(values, least),
            TypedValues::Int32(values) => members.select(values, least),
            TypedValues::Int64(values) => members.select(values, least),
            _ => return Ok(None),
        };
        if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
            for (row, is_valid) in nulls.iter().enumerate() {
                if !is_valid {
                    bitmap::clear(&mut selection, row);
                }
            }
        }
        Ok(Some(selection))
    }
}

impl Members {
    /// The bitmap of the `values` that are keys.
    fn select<T: Copy + Into<i64>>(&self, values: &[T], least: i64) -> Vec<u64> {
        match self {
            Self::Bits(bits) => words_of(values, |value| {
                // What is below the least key wraps to beyond the last word.
                let bit = value.wrapping_sub(least) as u64;
                bits.get((bit >> 6) as usize).map_or(0, |word| (word >> (bit & 63)) & 1)
            }),
            Self::Hashed(keys) => words_of(values, |value| u64::from(keys.contains(&value))),
        }
    }
}

/// The bitmap of what `bit` says of each value: 0 or 1.
fn words_of<T: Copy + Into<i64>>(values: &[T], bit: impl Fn(i64) -> u64) -> Vec<u64> {
    let word = |values: &[T]| values.iter().enumerate().fold(0, |word, (at, value)| word | bit((*value).into()) << at);
    values.chunks(64).map(word).collect()
}

/// Which rows of an order are wanted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstRows {
    /// Those of the greatest values.
    pub descending: bool,
    /// NULLs come before all values.
    pub nulls_first: bool,
}

/// The keys that a column's rows must be among, once they are known, or the bound of the first rows. Shared by whoever
/// finds them out and the scans that use them.
#[derive(Debug, Default)]
pub struct DynamicFilter {
    keys: OnceLock<KeySet>,
    first_rows: Option<FirstRows>,
    /// How far the bound is from the first value there can be: ascending, the bound itself.
    bound: OnceLock<AtomicI64>,
}

impl DynamicFilter {
    /// A filter that leaves out rows behind a bound that tightens.
    #[must_use]
    pub fn of_first_rows(first_rows: FirstRows) -> Self {
        Self { first_rows: Some(first_rows), ..Self::default() }
    }

    /// Tells that rows whose values come behind `value` are not needed. Bounds that are wider than others before count
    /// for nothing.
    pub fn tighten(&self, value: i64) {
        let Some(first_rows) = self.first_rows else { return };
        let bound = first_rows.rank(value);
        self.bound.get_or_init(|| AtomicI64::new(bound)).fetch_min(bound, Ordering::Relaxed);
    }

    /// The condition that rows must meet as of now.
    fn bound(&self, column: &Column) -> Option<Predicate> {
        let first_rows = self.first_rows?;
        let bound = first_rows.rank(self.bound.get()?.load(Ordering::Relaxed));
        let op = if first_rows.descending { CompareOp::GtEq } else { CompareOp::LtEq };
        let value = match column.data_type {
            DataType::Decimal { .. } => Value::Decimal(bound.into()),
            _ => Value::Int(bound),
        };
        Some(Predicate::Compare { column: column.id, op, value })
    }

    /// Whether the keys were told.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.keys.get().is_some()
    }

    /// Tells the keys, all of them. Only the first time counts.
    pub fn publish(&self, keys: KeySet) {
        let _ = self.keys.set(keys);
    }
}

impl FirstRows {
    /// A number that is smaller for a value that comes earlier; and back.
    fn rank(self, value: i64) -> i64 {
        if self.descending { !value } else { value }
    }
}

/// A filter on a column of a scan.
#[derive(Debug)]
pub(super) struct ColumnFilter {
    filter: Arc<DynamicFilter>,
    pub(super) column: Column,
    predicates: OnceLock<Vec<Predicate>>,
    /// Rows that the bits were asked for, and those that they left.
    asked: AtomicU64,
    kept: AtomicU64,
}

impl ColumnFilter {
    pub(super) fn new(filter: Arc<DynamicFilter>, column: Column) -> Self {
        let (asked, kept) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { filter, column, predicates: OnceLock::new(), asked, kept }
    }

    /// What every row must meet, as far as it is known.
    pub(super) fn predicates(&self) -> Option<Cow<'_, [Predicate]>> {
        match self.filter.keys.get() {
            Some(keys) => Some(Cow::Borrowed(self.predicates.get_or_init(|| keys.predicates(self.column.id)))),
            None => Some(Cow::Owned(vec![self.filter.bound(&self.column)?])),
        }
    }

    /// Whether rows that are NULL pass, whatever the predicates say.
    pub(super) fn keeps_nulls(&self) -> bool {
        self.filter.first_rows.is_some_and(|first_rows| first_rows.nulls_first)
    }

    /// Of rows that a limit wants first: how early the first of those with values between `min` and `max` comes.
    pub(super) fn rank_of(&self, min: &Value, max: &Value) -> Option<i64> {
        let first_rows = self.filter.first_rows?;
        match if first_rows.descending { max } else { min } {
            Value::Int(value) => Some(first_rows.rank(*value)),
            Value::Decimal(value) => i64::try_from(*value).ok().map(|value| first_rows.rank(value)),
            _ => None,
        }
    }

    /// Whether it is of rows that a limit wants first.
    pub(super) fn is_of_first_rows(&self) -> bool {
        self.filter.first_rows.is_some()
    }

    /// Whether the bits drop enough rows, as far as was seen.
    pub(super) fn is_worth_asking(&self) -> bool {
        let has_bits = self.filter.keys.get().is_some_and(|keys| keys.members.is_some());
        let (asked, kept) = (self.asked.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed));
        has_bits && (asked < ROWS_TRIED || asked.saturating_sub(kept) >= asked / DROPPED_OF)
    }

    /// Which rows of `array` pass; `None` if nothing is known of them.
    pub(super) fn select(&self, array: &dyn Array) -> Result<Option<Vec<u64>>> {
        let Some(keys) = self.filter.keys.get() else { return Ok(None) };
        keys.select(array, &self.column)
    }

    /// Counts what the bits were asked for, and what they left.
    pub(super) fn count(&self, asked: usize, kept: usize) {
        self.asked.fetch_add(asked as u64, Ordering::Relaxed);
        self.kept.fetch_add(kept as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int16Array, Int64Array};

    use super::*;

    fn column(data_type: DataType) -> Column {
        Column::new(ColumnId(1), "c", data_type, true)
    }

    #[test]
    fn a_set_has_its_keys_and_no_other() {
        let keys = [vec![5_i64, -3], vec![], vec![70, 5]];
        let set = KeySet::of(&keys, |_| true);
        let values =
            Int64Array::from(vec![Some(-3), Some(-4), None, Some(5), Some(70), Some(71), Some(i64::MIN), Some(6)]);
        let selection = set.select(&values, &column(DataType::BigInt)).unwrap().unwrap();
        assert_eq!(selection, [0b1_1001]);
        let narrow = Int16Array::from(vec![70, -3, 0]);
        assert_eq!(set.select(&narrow, &column(DataType::SmallInt)).unwrap().unwrap(), [0b11]);
        let at = ColumnId(1);
        let bound = |op, key| Predicate::Compare { column: at, op, value: Value::Int(key) };
        assert_eq!(set.predicates(at), [bound(CompareOp::GtEq, -3), bound(CompareOp::LtEq, 70)]);
    }

    #[test]
    fn wide_sets_are_hashed_and_those_without_room_have_bounds_alone() {
        let far = [[i64::MIN, i64::MAX]];
        let hashed = KeySet::of(&far, |_| true);
        assert!(matches!(hashed.members, Some(Members::Hashed(_))));
        let values = Int64Array::from(vec![i64::MAX, 0, i64::MIN]);
        assert_eq!(hashed.select(&values, &column(DataType::BigInt)).unwrap().unwrap(), [0b101]);
        let many: Vec<i64> = (0..=HASHED_MAX as i64).map(|key| key << 32).collect();
        assert_eq!(KeySet::of(&[many], |_| true).members, None);
        assert_eq!(KeySet::of(&[[1, 2]], |_| false).bounds, Some((1, 2)));
        assert_eq!(KeySet::of(&[[1, 2]], |_| false).members, None);
        let none: [[i64; 0]; 1] = [[]];
        let empty = KeySet::of(&none, |_| true);
        assert_eq!(empty.predicates(ColumnId(1)), [Predicate::In { column: ColumnId(1), values: vec![] }]);
    }

    #[test]
    fn a_bound_only_tightens() {
        let at = ColumnId(1);
        for (descending, wider, narrower, op) in [(false, 9, 5, CompareOp::LtEq), (true, -5, 3, CompareOp::GtEq)] {
            let filter = Arc::new(DynamicFilter::of_first_rows(FirstRows { descending, nulls_first: false }));
            let of_column = ColumnFilter::new(filter.clone(), column(DataType::BigInt));
            assert!(of_column.predicates().is_none() && !of_column.is_worth_asking());
            for bound in [wider, narrower, wider] {
                filter.tighten(bound);
            }
            let bound = Predicate::Compare { column: at, op, value: Value::Int(narrower) };
            assert_eq!(of_column.predicates().as_deref(), Some([bound].as_slice()));
            // What comes earlier has the smaller rank.
            let rank = |min, max| of_column.rank_of(&Value::Int(min), &Value::Decimal(max)).unwrap();
            assert!(rank(0, 9) < rank(5, 8));
        }
        let keys = DynamicFilter::default();
        keys.tighten(1);
        assert!(keys.bound.get().is_none(), "there are no first rows of a join");
    }

    #[test]
    fn a_filter_that_drops_little_is_not_asked_for_long() {
        let filter = Arc::new(DynamicFilter::default());
        let of_column = ColumnFilter::new(filter.clone(), column(DataType::BigInt));
        assert!(of_column.predicates().is_none() && !of_column.is_worth_asking());
        filter.publish(KeySet::of(&[[1, 2]], |_| true));
        filter.publish(KeySet::default());
        assert_eq!(of_column.predicates().map(|predicates| predicates.len()), Some(2));
        assert!(of_column.is_worth_asking());
        of_column.count(ROWS_TRIED as usize, ROWS_TRIED as usize - 1);
        assert!(!of_column.is_worth_asking());
        of_column.count(ROWS_TRIED as usize, 0);
        assert!(of_column.is_worth_asking());
    }
}
