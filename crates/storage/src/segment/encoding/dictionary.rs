//! Dictionary: the distinct values, ascending, and for each row the position of its value in `ceil(log2(distinct))`
//! bits (HYRISE section 3). Because it is ordered, every comparison becomes one on codes.
//!
//! Sections: packed codes, then the values in plain form, with or without symbols. NULL slots hold code 0.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use hashbrown::HashMap;
use mainstem_kernels::hash::hash_u64;
use mainstem_kernels::{bitmap, bitpack, gather};

use super::super::sketch::DistinctSketch;
use super::condition::{Condition, on_dictionary, select_codes};
use super::form::Form;
use super::frame::{PLACES_BEHIND, codes_upto};
use super::native::Native;
use super::plain::{self, Plain, TextForm, partition};
use super::sections::{Damage, Sections, begin_section, make_room, padded};
use crate::error::Result;
use crate::predicate::Predicate;
use crate::row::Value;
use crate::schema::DataType;

/// Codes that are packed or unpacked at once: a multiple of 64, so that each part fills whole words.
const CODES: usize = 1024;

/// Codes into ascending distinct values.
#[derive(Debug)]
pub(crate) struct Dictionary {
    packed: Buffer,
    width: u32,
    values: Plain,
}

/// The bits of a code into `distinct` values.
pub(crate) fn code_width(distinct: usize) -> u32 {
    bitpack::bits_needed(distinct.saturating_sub(1) as u64)
}

/// Bytes that the codes of `rows` rows take, before the values.
pub(crate) fn code_bytes(rows: usize, distinct: usize) -> usize {
    padded(bitpack::packed_bytes(rows, code_width(distinct)))
}

/// Most distinct values of at least `value_bytes` bytes each with which a dictionary stays below `budget` bytes.
pub(crate) fn distinct_max(rows: usize, value_bytes: usize, budget: usize) -> usize {
    let mut best = 0;
    for width in 0..=bitpack::bits_needed(rows as u64) {
        let Some(left) = budget.checked_sub(padded(bitpack::packed_bytes(rows, width))) else { break };
        let by_size = left.checked_div(value_bytes).unwrap_or(usize::MAX);
        best = best.max(by_size.min(1 << width));
    }
    best
}

/// The distinct values of a column, ascending, and for each row the position of its value, 0 for NULL.
#[derive(Debug)]
pub(crate) struct Distinct<T> {
    /// The values.
    pub values: Vec<T>,
    /// The codes.
    pub codes: Vec<u32>,
}

/// Codes that a thread keeps room for at most: those of a common segment, twice.
const CODES_KEPT_MAX: usize = 256 << 10;

thread_local! {
    /// Memory of codes that were encoded: fresh memory has to be cleared by the system.
    static KEPT_CODES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// No codes yet, with room for those of `rows` rows.
pub(super) fn codes_of_rows(rows: usize) -> Vec<u32> {
    let mut codes = KEPT_CODES.take();
    codes.clear();
    codes.reserve(rows);
    codes
}

/// Keeps the memory of `codes` for those of other columns.
pub(super) fn keep_codes(codes: Vec<u32>) {
    if codes.capacity() <= CODES_KEPT_MAX {
        KEPT_CODES.set(codes);
    }
}

/// The number of no value.
const NO_VALUE: u32 = u32::MAX;

impl<T: Copy> Distinct<T> {
    /// Collects the values of `rows`, `None` for NULL, by `key`; gives up as soon as `fits` denies a new value. Those
    /// that were met lately are found by `recent`: a hash that costs next to nothing, and whether two values are the
    /// same.
    fn collect<K: Hash + Eq>(
        rows: impl ExactSizeIterator<Item = Option<T>>,
        key: impl Fn(T) -> K,
        order: impl Fn(&T, &T) -> Ordering,
        (hash, same): (impl Fn(T) -> u8, impl Fn(T, T) -> bool),
        mut fits: impl FnMut(usize, T) -> bool,
    ) -> Option<Self> {
        let mut numbers: HashMap<K, u32> = HashMap::new();
        let mut recent = [NO_VALUE; 1 << u8::BITS];
        let mut found: Vec<T> = Vec::new();
        // First each row gets its value's number in order of appearance; one look-up a row.
        let mut codes = codes_of_rows(rows.len());
        for row in rows {
            let Some(value) = row else {
                codes.push(NO_VALUE);
                continue;
            };
            let place = &mut recent[usize::from(hash(value))];
            if found.get(*place as usize).is_some_and(|known| same(*known, value)) {
                codes.push(*place);
                continue;
            }
            let next = found.len();
            let number = *numbers.entry(key(value)).or_insert(next as u32);
            *place = number;
            if number as usize == next {
                found.push(value);
                if !fits(found.len(), value) {
                    keep_codes(codes);
                    return None;
                }
            }
            codes.push(number);
        }
        Some(Self { values: found, codes }.ascending(order))
    }

    /// The same, with values that came in any order, by `order`. What is the code of no value becomes 0.
    pub(super) fn ascending(self, order: impl Fn(&T, &T) -> Ordering) -> Self {
        let Self { values: found, mut codes } = self;
        let mut ascending: Vec<u32> = (0..found.len() as u32).collect();
        ascending.sort_unstable_by(|a, b| order(&found[*a as usize], &found[*b as usize]));
        let mut places = vec![0u32; found.len()];
        ascending.iter().zip(0..).for_each(|(number, place)| places[*number as usize] = place);
        codes.iter_mut().for_each(|code| *code = places.get(*code as usize).copied().unwrap_or(0));
        Self { values: ascending.iter().map(|number| found[*number as usize]).collect(), codes }
    }
}

/// Bits of the bitmap of [`Marked`] for each row: beyond that it takes more memory than the values.
const MARKED_BITS_PER_ROW: usize = 8;

/// Bytes that a thread keeps at most for marks: those of a common segment.
const MARKS_KEPT_MAX: usize = 1 << 20;

thread_local! {
    /// Memory of marks that were counted: fresh memory has to be cleared by the system.
    static KEPT_MARKS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The distinct integers of a column whose least and greatest are near each other: a bit for each, which takes no
/// hashing, and tells the place of a value among all.
#[derive(Debug)]
pub(crate) struct Marked {
    reference: i128,
    /// For each value from `reference` on, whether it is there.
    bits: Vec<u64>,
    /// How many are there before each word of `bits`, and in all.
    before: Vec<u32>,
}

impl Marked {
    /// Marks `values`, which run from `least` to `greatest`; `None` where they are too far apart.
    pub fn of<N: Native>(values: &[N], nulls: Option<&NullBuffer>, least: i128, greatest: i128) -> Option<Self> {
        let spread = usize::try_from(greatest.checked_sub(least)?).ok()?;
        if spread / MARKED_BITS_PER_ROW >= values.len() {
            return None;
        }
        // A byte for each value first: to set it nothing is read, so that no value waits for the one before.
        let mut marks = KEPT_MARKS.take();
        marks.clear();
        marks.resize((spread + 1).next_multiple_of(64), 0);
        for (row, value) in values.iter().enumerate() {
            if let Some(mark) = marks.get_mut(place_of(*value, least))
                && nulls.is_none_or(|nulls| nulls.is_valid(row))
            {
                *mark = 1;
            }
        }
        let bits: Vec<u64> = marks.as_chunks::<64>().0.iter().map(word_of).collect();
        if marks.capacity() <= MARKS_KEPT_MAX {
            KEPT_MARKS.set(marks);
        }
        let mut before = Vec::with_capacity(bits.len() + 1);
        let mut count = 0;
        before.push(count);
        for word in &bits {
            count += word.count_ones();
            before.push(count);
        }
        Some(Self { reference: least, bits, before })
    }

    /// What is told of them where they make no dictionary.
    pub fn sketch(&self) -> DistinctSketch {
        let words = self.bits.iter().zip((self.reference..).step_by(64));
        let mut sketch = DistinctSketch::default();
        for (word, first) in words {
            let mut word = *word;
            while word != 0 {
                // Integers of all types have the same hash.
                sketch.add((first + i128::from(word.trailing_zeros())).hash());
                word &= word - 1;
            }
        }
        sketch
    }

    /// How many there are.
    pub fn distinct(&self) -> usize {
        self.before.last().map_or(0, |count| *count as usize)
    }

    /// Those of `values`, which were marked.
    pub fn distinct_numbers<N: Native>(&self, values: &[N], nulls: Option<&NullBuffer>) -> Distinct<N> {
        let mut found = vec![N::default(); self.distinct()];
        let mut codes = codes_of_rows(values.len());
        for (row, value) in values.iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                codes.push(0);
                continue;
            }
            let place = place_of(*value, self.reference);
            let word = self.bits.get(place / 64).copied().unwrap_or(0);
            let below = (word & ((1 << (place % 64)) - 1)).count_ones();
            let code = self.before.get(place / 64).copied().unwrap_or(0) + below;
            if let Some(found) = found.get_mut(code as usize) {
                *found = *value;
            }
            codes.push(code);
        }
        Distinct { values: found, codes }
    }
}

/// A bit for each of `marks`, which are 0 or 1.
fn word_of(marks: &[u8; 64]) -> u64 {
    let (eights, _) = marks.as_chunks::<8>();
    let bits = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    eights.iter().zip(0..).fold(0, |word, (eight, number)| word | bits(eight) << (8 * number))
}

/// What `value`, an integer, exceeds `least` by; of a NULL slot it may be anything.
#[inline]
fn place_of<N: Native>(value: N, least: i128) -> usize {
    value.integer().map_or(0, |wide| wide.wrapping_sub(least) as usize)
}

/// Rows that [`may_be_few`] looks at.
const SAMPLE_ROWS: usize = 2_048;
/// Fewer equal pairs to be expected say nothing.
const PAIRS_MIN: usize = 24;

/// Whether `values` may be `max` distinct ones or fewer. To collect that many in vain costs more than all else in an
/// encoding, so a sample is looked at first: of rows taken at random from `max` values, so many pairs are equal on
/// average, and more if some values are more frequent than others. Half as many say that there are more values; they do
/// so by mistake in less than one of a thousand columns that are near the limit, which a dictionary would have made but
/// little smaller.
pub(crate) fn may_be_few<N: Native>(values: &[N], valid: impl Fn(usize) -> bool, max: usize) -> bool {
    if max <= 2 * SAMPLE_ROWS || values.len() <= 2 * SAMPLE_ROWS {
        return true;
    }
    let mut seen: HashMap<N::Key, usize> = HashMap::with_capacity(SAMPLE_ROWS);
    let (mut looked_at, mut repeated) = (0, 0);
    for number in 0..SAMPLE_ROWS as u64 {
        let row = (hash_u64(number) % values.len() as u64) as usize;
        if valid(row) {
            looked_at += 1;
            // One row twice says nothing.
            repeated += usize::from(*seen.entry(values[row].key()).or_insert(row) != row);
        }
    }
    let pairs = looked_at * looked_at / 2 / max;
    pairs < PAIRS_MIN || repeated >= pairs / 2
}

/// The distinct numbers of `rows`; `None` if there are more than `max`.
pub(crate) fn distinct_numbers<N: Native>(
    rows: impl ExactSizeIterator<Item = Option<N>>,
    max: usize,
) -> Option<Distinct<N>> {
    let recent = (|value: N| (value.hash() >> 56) as u8, |a: N, b: N| a.key() == b.key());
    Distinct::collect(rows, N::key, |a, b| a.order(*b), recent, |count, _| count <= max)
}

/// The distinct texts of `rows`; `None` once a dictionary of them takes `budget` bytes.
pub(crate) fn distinct_texts<'a>(
    rows: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
    budget: usize,
) -> Option<Distinct<&'a [u8]>> {
    let (all, mut heap) = (rows.len(), 0);
    let fits = |count, text: &[u8]| {
        heap += text.len();
        heap + code_bytes(all, count) < budget
    };
    Distinct::collect(rows, |text| text, |a, b| a.cmp(b), (hash_of_ends, is_same_text), fits)
}

/// The first and the last bytes of `text`: all of them, if they are at most 16.
#[inline]
fn ends_of(text: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
    }
    (text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0)
}

/// A hash of the length of `text` and of its ends.
#[inline]
fn hash_of_ends(text: &[u8]) -> u8 {
    let (first, last) = ends_of(text);
    (hash_u64(first ^ last.rotate_left(32) ^ text.len() as u64) >> 56) as u8
}

#[inline]
fn is_same_text(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && ends_of(a) == ends_of(b) && (a.len() <= 16 || a == b)
}

/// Appends the section of codes, behind which about `value_bytes` bytes of values will come, and returns their width.
pub(crate) fn encode_codes(codes: Vec<u32>, distinct: usize, value_bytes: usize, body: &mut Vec<u8>) -> u8 {
    let width = code_width(distinct);
    begin_section(body);
    make_room(body, bitpack::packed_bytes(codes.len(), width) + value_bytes);
    let mut wide = [0; CODES];
    for codes in codes.chunks(CODES) {
        wide.iter_mut().zip(codes).for_each(|(to, code)| *to = u64::from(*code));
        bitpack::pack(wide.get(..codes.len()).unwrap_or_default(), width, body);
    }
    keep_codes(codes);
    width as u8
}

/// Bytes of a dictionary of texts with their codes.
pub(crate) fn text_bytes(rows: usize, distinct: &[&[u8]]) -> usize {
    let length_max = distinct.iter().map(|v| v.len()).max().unwrap_or(0);
    let heap = distinct.iter().map(|v| v.len()).sum();
    code_bytes(rows, distinct.len()) + plain::text_bytes(distinct.len(), length_max, heap)
}

impl Dictionary {
    /// Opens the sections of `rows` codes into `distinct` values and proves that the values ascend and the codes name
    /// them.
    pub fn open(
        data_type: DataType,
        sections: &mut Sections,
        rows: usize,
        distinct: u32,
        width: u8,
        form: TextForm,
    ) -> Result<Self, Damage> {
        let (distinct, width) = (distinct as usize, u32::from(width));
        if distinct == 0 || distinct > rows || width != code_width(distinct) {
            return Err(Damage::new(0, format!("{distinct} distinct values with codes of {width} bits")));
        }
        let at = sections.position();
        let packed = sections.take(bitpack::packed_bytes(rows, width))?;
        if !codes_upto(&packed, width, rows, distinct as u64 - 1) {
            return Err(Damage::new(at, "a code outside the dictionary"));
        }
        let at = sections.position();
        let values = Plain::open(data_type, sections, distinct, form, None)?;
        if !values.is_strictly_ascending() {
            return Err(Damage::new(at, "a dictionary out of order"));
        }
        Ok(Self { packed, width, values })
    }

    /// Distinct values.
    pub fn distinct(&self) -> usize {
        self.values.len()
    }

    /// Bytes of memory beside the block's own buffer.
    pub fn memory(&self) -> usize {
        self.values.memory()
    }

    /// Bytes of the values, where they are not those of the block.
    pub fn value_bytes(&self) -> usize {
        self.values.value_bytes()
    }

    /// Rows `rows` as an Arrow array, in [`Form::Codes`] as codes into the distinct values; text as views onto the
    /// dictionary.
    pub fn read(&self, target: (DataType, Form), rows: Range<usize>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut codes = vec![0u32; rows.len()];
        bitpack::unpack_u32(&self.packed, self.width, rows.start, &mut codes);
        self.array(target, codes, nulls)
    }

    /// Those of `rows` that `selection` has, `count` of them, without NULLs, as an Arrow array. Codes are left out
    /// before values are looked up.
    pub fn read_selected(
        &self,
        target: (DataType, Form),
        rows: Range<usize>,
        selection: &[u64],
        count: usize,
    ) -> Result<ArrayRef> {
        let (mut codes, mut kept) = ([0_u32; CODES], Vec::with_capacity(count + PLACES_BEHIND));
        for (start, selected) in rows.clone().step_by(CODES).zip(selection.chunks(CODES / 64)) {
            let codes = codes.get_mut(..CODES.min(rows.end - start)).unwrap_or_default();
            bitpack::unpack_u32(&self.packed, self.width, start, codes);
            gather::filter_numbers(codes, selected, &mut kept);
        }
        self.array(target, kept, None)
    }

    /// The sum of the values of those of `rows` that `selection` has; `None` if they are no integers.
    pub fn sum(&self, rows: Range<usize>, selection: &[u64]) -> Option<i128> {
        let (mut codes, mut all) = ([0_u32; CODES], 0_i128);
        for (start, selected) in rows.clone().step_by(CODES).zip(selection.chunks(CODES / 64)) {
            if bitmap::is_empty(selected) {
                continue;
            }
            let codes = codes.get_mut(..CODES.min(rows.end - start)).unwrap_or_default();
            bitpack::unpack_u32(&self.packed, self.width, start, codes);
            all = all.wrapping_add(self.values.sum_at(codes, selected)?);
        }
        Some(all)
    }

    /// The values at `offsets` as an Arrow array, as [`Dictionary::read`].
    pub fn gather(&self, target: (DataType, Form), offsets: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut codes = Vec::with_capacity(offsets.len());
        gather::gather_packed(&self.packed, self.width, offsets, &mut codes);
        self.array(target, codes.into_iter().map(|code| code as u32).collect(), nulls)
    }

    /// The values that `codes` name.
    fn array(&self, target: (DataType, Form), codes: Vec<u32>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let (data_type, Form::Codes) = target else { return self.values.take(target, codes, nulls) };
        let values = self.values.read((data_type, Form::Values), 0..self.distinct(), None)?;
        let codes = UInt32Array::try_new(codes.into(), nulls)?;
        Ok(Arc::new(DictionaryArray::try_new(codes, values)?))
    }

    /// The distinct values in order, and a NULL behind them.
    pub fn entries(&self, data_type: DataType) -> Result<ArrayRef> {
        let distinct = self.distinct();
        let is_value = BooleanBuffer::collect_bool(distinct + 1, |entry| entry < distinct);
        // The slot of the NULL has some value.
        let codes = (0..distinct as u32).chain([0]).collect();
        self.values.take((data_type, Form::Values), codes, Some(NullBuffer::new(is_value)))
    }

    /// Rows of `rows` whose codes meet `condition`.
    pub fn select_codes(&self, condition: &Condition<u64>, rows: Range<usize>) -> Vec<u64> {
        select_codes(&self.packed, self.width, rows.start, rows.len(), condition)
    }

    /// Value `i`, of a column whose values are [`Value::Int`], NULL or not.
    #[inline]
    pub fn whole(&self, i: usize) -> Option<i64> {
        self.values.whole(bitpack::get(&self.packed, self.width, i) as usize)
    }

    /// Value `i`, NULL or not.
    pub fn value(&self, i: usize) -> Result<Value> {
        self.values.value(bitpack::get(&self.packed, self.width, i) as usize)
    }

    /// Of the ascending values `rows`: where those equal to `value` begin and end.
    ///
    /// # Errors
    /// Internal when `value` is of another type.
    pub fn equal_range(&self, value: &Value, rows: Range<usize>) -> Result<(usize, usize)> {
        let (less, upto) = self.values.equal_range(value, 0..self.values.len())?;
        let code = |i: usize| bitpack::get(&self.packed, self.width, i) as usize;
        let first = partition(rows.start..rows.end, |i| code(i) < less);
        Ok((first, partition(first..rows.end, |i| code(i) < upto)))
    }

    /// Rows of `rows` that meet `predicate`, decided on codes; NULL slots come out either way.
    pub fn select(&self, predicate: &Predicate, rows: Range<usize>) -> Result<Vec<u64>> {
        let distinct = self.values.len();
        let condition = on_dictionary(predicate, distinct, |value| self.values.equal_range(value, 0..distinct))?;
        Ok(self.select_codes(&condition, rows))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Marked in a bitmap or collected by hashing: the same values, codes and sketch, whatever NULL slots hold.
        #[test]
        fn marked_values_are_those_collected(
            rows in prop::collection::vec((-70_i32..200, prop::bool::weighted(0.8)), 1..300),
            in_null in prop_oneof![Just(0), any::<i32>()],
            far in prop_oneof![3 => Just(0), 1 => -20_000..20_000],
        ) {
            let nulls = NullBuffer::from_iter(rows.iter().map(|(_, valid)| *valid));
            let value = |(value, valid): &(i32, bool)| if *valid { *value } else { in_null };
            let mut values: Vec<i32> = rows.iter().map(value).collect();
            if rows[0].1 {
                values[0] += far;
            }
            let present = || values.iter().enumerate().map(|(row, v)| nulls.is_valid(row).then_some(*v));
            let (Some(least), Some(greatest)) = (present().flatten().min(), present().flatten().max()) else {
                return Ok(());
            };
            let marked = Marked::of(&values, Some(&nulls), least.into(), greatest.into());
            let is_near = (greatest - least) as usize / MARKED_BITS_PER_ROW < values.len();
            prop_assert_eq!(marked.is_some(), is_near);
            if let Some(marked) = marked {
                let collected = distinct_numbers(present(), usize::MAX).unwrap();
                let found = marked.distinct_numbers(&values, Some(&nulls));
                prop_assert_eq!(marked.distinct(), collected.values.len());
                prop_assert_eq!((found.values, found.codes), (collected.values, collected.codes));
                prop_assert_eq!(marked.sketch(), DistinctSketch::of(present().flatten().map(Native::hash)));
            }
        }
    }

    /// A dictionary is given up without collecting its values only where there are too many of them, however they are
    /// spread.
    #[test]
    fn a_sample_tells_few_values_from_many() {
        const ROWS: i64 = 65_536;
        const MAX: usize = 30_000;
        let all = |value: &dyn Fn(i64) -> i64| (0..ROWS).map(value).collect::<Vec<_>>();
        let random = |distinct: u64| move |row: i64| (hash_u64(row as u64 + 1_000_000) % distinct) as i64;
        for few in [
            all(&random(20_000)),
            all(&random(29_000)),
            all(&|row| row / 4),
            all(&|row| row % 25_000),
            all(&|row| if row % 10 == 0 { row } else { random(3)(row) }),
        ] {
            assert!(may_be_few(&few, |_| true, MAX));
        }
        // Mostly NULL, with values that are all different but few.
        assert!(may_be_few(&all(&|row| row), |row| row % 10 == 0, MAX));
        for many in [all(&|row| row), all(&random(1 << 40)), all(&|row| row * 7 % ROWS)] {
            assert!(!may_be_few(&many, |_| true, MAX));
            assert!(may_be_few(&many, |_| true, 2 * SAMPLE_ROWS), "so few are collected at once");
        }
    }
}
