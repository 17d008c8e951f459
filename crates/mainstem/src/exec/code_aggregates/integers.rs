//! Groups of rows by one integer whose values lie near each other, as those of keys do: a perfect hash, in which the
//! distance from the least value is the place.
//!
//! Comes in: a column of integers or days, and the range in which its values are expected. Goes out: for each row the
//! number of its group; at the end the values of all groups.
//!
//! The table is cut into pages, which are made when the first of their values comes. A value beyond the range is
//! hashed, and so are all without a page once pages have few values: an estimate that is wrong costs time, and few
//! bytes.
//!
//! Invariant: groups are numbered from 0 without gaps. It does not own: what is computed for a group.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Date32Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::GroupValues;
use hashbrown::HashMap;

/// Values of a page.
const PAGE: usize = 1 << 10;
/// Values of a range at most: the list of pages takes 512 KiB then.
const RANGE_MAX: u64 = 1 << 26;
/// Values of a range for each row of the table, at most.
const VALUES_OF_ROW: u64 = 16;
/// Rows that a table is taken to have at least.
const ROWS_MIN: u64 = 1 << 14;
/// Places of pages for each group, beyond which no more are made.
const PLACES_OF_GROUP: usize = 32;
/// Pages that are made in any case.
const PAGES_MIN: usize = 64;

/// The values that an integer is expected to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) struct IntegerRange {
    least: i64,
    /// How many there are.
    values: u64,
}

impl IntegerRange {
    /// That of values from `least` to `greatest` in a table of `rows` rows; `None` if they are too far from each other
    /// for as many.
    pub(super) fn of(least: i64, greatest: i64, rows: u64) -> Option<Self> {
        let values = u64::try_from(greatest.checked_sub(least)?).ok()?.checked_add(1)?;
        let is_near = values <= RANGE_MAX && values / VALUES_OF_ROW <= rows.max(ROWS_MIN);
        is_near.then_some(Self { least, values })
    }
}

/// See the module. 0 is no group where groups are noted, others are one more than theirs.
pub(in crate::exec) struct IntegerGroups {
    data_type: DataType,
    least: i64,
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    pages_made: usize,
    /// Whether no more pages are made: a value that was hashed has no page later.
    is_sparse: bool,
    /// Groups of values without a page.
    others: HashMap<i64, u32>,
    null: u32,
    /// The value of each group.
    values: Vec<i64>,
}

impl IntegerGroups {
    /// No groups yet, by a column of `data_type`; `None` if it is no integer.
    pub(in crate::exec) fn new(data_type: &DataType, range: IntegerRange) -> Option<Self> {
        let is_integer = matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32);
        is_integer.then(|| Self {
            data_type: data_type.clone(),
            least: range.least,
            pages: vec![None; range.values.div_ceil(PAGE as u64) as usize],
            pages_made: 0,
            is_sparse: false,
            others: HashMap::new(),
            null: 0,
            values: Vec::new(),
        })
    }

    fn number<T: ArrowPrimitiveType<Native: Into<i64>>>(&mut self, array: &ArrayRef, groups: &mut Vec<usize>) {
        let array = array.as_primitive::<T>();
        if array.null_count() == 0 {
            groups.extend(array.values().iter().map(|value| self.group_of((*value).into())));
            return;
        }
        groups.extend(array.iter().map(|value| match value {
            Some(value) => self.group_of(value.into()),
            None => self.group_of_null(),
        }));
    }

    #[inline]
    fn group_of(&mut self, value: i64) -> usize {
        let place = value.wrapping_sub(self.least) as u64 as usize;
        if let Some(Some(page)) = self.pages.get(place / PAGE)
            && let Some(group) = page[place % PAGE].checked_sub(1)
        {
            return group as usize;
        }
        self.group_of_new(value, place)
    }

    /// The group of `value`, which has none in a page.
    fn group_of_new(&mut self, value: i64, place: usize) -> usize {
        let next = self.values.len() as u32 + 1;
        let pages_max = PAGES_MIN.max(self.values.len() * PLACES_OF_GROUP / PAGE);
        let noted = match self.pages.get_mut(place / PAGE) {
            Some(Some(page)) => &mut page[place % PAGE],
            Some(page) => {
                self.is_sparse = self.is_sparse || self.pages_made >= pages_max;
                if self.is_sparse {
                    self.others.entry(value).or_insert(0)
                } else {
                    self.pages_made += 1;
                    &mut page.insert(Box::new([0; PAGE]))[place % PAGE]
                }
            }
            None => self.others.entry(value).or_insert(0),
        };
        if *noted == 0 {
            *noted = next;
            self.values.push(value);
        }
        *noted as usize - 1
    }

    fn group_of_null(&mut self) -> usize {
        if self.null == 0 {
            self.values.push(0);
            self.null = self.values.len() as u32;
        }
        self.null as usize - 1
    }

    /// The values of the first `count` groups, of which the one of NULL is `null`, if there is one.
    fn array(&self, count: usize) -> ArrayRef {
        fn of<T: ArrowPrimitiveType<Native: TryFrom<i64>>>(values: &[i64], null: Option<usize>) -> ArrayRef {
            let value = |(at, value): (usize, &i64)| T::Native::try_from(*value).ok().filter(|_| Some(at) != null);
            Arc::new(values.iter().enumerate().map(value).collect::<PrimitiveArray<T>>())
        }
        let null = (self.null as usize).checked_sub(1);
        let values = self.values.get(..count).unwrap_or(&self.values);
        match self.data_type {
            DataType::Int16 => of::<Int16Type>(values, null),
            DataType::Int32 => of::<Int32Type>(values, null),
            DataType::Date32 => of::<Date32Type>(values, null),
            _ => of::<Int64Type>(values, null),
        }
    }

    fn clear(&mut self) {
        self.pages.iter_mut().for_each(|page| *page = None);
        (self.pages_made, self.is_sparse, self.null) = (0, false, 0);
        (self.others, self.values) = (HashMap::new(), Vec::new());
    }
}

impl GroupValues for IntegerGroups {
    fn intern(&mut self, columns: &[ArrayRef], groups: &mut Vec<usize>) -> Result<()> {
        groups.clear();
        let [column] = columns else { return internal_err!("groups by {} columns in place of one", columns.len()) };
        if *column.data_type() != self.data_type {
            return internal_err!("groups by {} in place of {}", column.data_type(), self.data_type);
        }
        if self.values.len() + column.len() > u32::MAX as usize - 1 {
            return internal_err!("more groups than 32 bits count");
        }
        match self.data_type {
            DataType::Int16 => self.number::<Int16Type>(column, groups),
            DataType::Int32 => self.number::<Int32Type>(column, groups),
            DataType::Date32 => self.number::<Date32Type>(column, groups),
            _ => self.number::<Int64Type>(column, groups),
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let pages = self.pages.capacity() * size_of::<Option<Box<[u32; PAGE]>>>();
        let others = self.others.capacity() * size_of::<(i64, u32)>();
        pages + self.pages_made * size_of::<[u32; PAGE]>() + others + self.values.capacity() * size_of::<i64>()
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let count = match emit_to {
            EmitTo::All => self.values.len(),
            EmitTo::First(count) => count.min(self.values.len()),
        };
        let array = self.array(count);
        let rest = self.values.split_off(count);
        let null = (self.null as usize).checked_sub(1 + count);
        self.clear();
        for (at, value) in rest.into_iter().enumerate() {
            match null == Some(at) {
                true => self.group_of_null(),
                false => self.group_of(value),
            };
        }
        Ok(vec![array])
    }

    fn clear_shrink(&mut self, _: usize) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array};

    fn numbers(groups: &mut IntegerGroups, values: impl IntoIterator<Item = Option<i32>>) -> Vec<usize> {
        let mut found = vec![77];
        groups.intern(&[Arc::new(values.into_iter().collect::<Int32Array>())], &mut found).unwrap();
        found
    }

    #[test]
    fn ranges_are_those_that_rows_may_fill() {
        let range = |least, greatest, rows| IntegerRange::of(least, greatest, rows).map(|range| range.values);
        assert_eq!(range(-5, 10, 3), Some(16));
        assert_eq!(range(0, 99_999_999, 50_000_000), None);
        assert_eq!(range(0, 9_999_999, 1_000_000), Some(10_000_000));
        assert_eq!(range(0, 9_999_999, 100_000), None);
        assert_eq!(range(i64::MIN, i64::MAX, u64::MAX), None);
        assert_eq!(range(0, i64::MAX, u64::MAX), None);
        assert_eq!(range(1, 0, 9), None);
    }

    /// In the range, beyond it, NULL, and more pages than their values are worth: all have the groups that a hash map
    /// says.
    #[test]
    fn groups_are_those_of_a_hash_map() {
        let range = IntegerRange::of(1_000, 40_000_000, 10_000_000).unwrap();
        let mut groups = IntegerGroups::new(&DataType::Int32, range).unwrap();
        let mut expected: HashMap<Option<i32>, usize> = HashMap::new();
        let mut state = 7u32;
        for round in 0..200 {
            let values: Vec<Option<i32>> = (0..1_000)
                .map(|row| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    match row % 10 {
                        0 => None,
                        1 => Some((state >> 8) as i32 % 100 - 50),
                        2 if round > 100 => Some((state >> 1) as i32),
                        _ => Some(1_000 + (state >> 16) as i32 + if round > 20 { 20_000_000 } else { 0 }),
                    }
                })
                .collect();
            let of_rows = numbers(&mut groups, values.iter().copied());
            for (value, group) in values.iter().zip(of_rows) {
                let next = expected.len();
                assert_eq!(*expected.entry(*value).or_insert(next), group, "{value:?}");
            }
        }
        assert!(!groups.others.is_empty() && groups.pages_made > PAGES_MIN && groups.size() > 0);
        assert_eq!(groups.len(), expected.len());
        // The first ones go, the others are numbered anew.
        for (from, to) in [(0, 0), (0, 5_000), (5_000, expected.len())] {
            let taken = groups.emit(if to == expected.len() { EmitTo::All } else { EmitTo::First(to - from) }).unwrap();
            let taken = taken[0].as_primitive::<Int32Type>();
            assert_eq!(taken.len(), to - from);
            for (at, value) in taken.iter().enumerate() {
                assert_eq!(expected[&value], from + at);
            }
            if to < expected.len() {
                let again: Vec<_> = expected.iter().filter(|(_, group)| **group >= to).collect();
                let of_rows = numbers(&mut groups, again.iter().map(|(value, _)| **value));
                assert!(again.iter().zip(of_rows).all(|((_, group), found)| **group - to == found));
            }
        }
        assert!(groups.is_empty() && numbers(&mut groups, [Some(5), None, Some(5)]) == [0, 1, 0]);
    }

    #[test]
    fn other_columns_are_refused() {
        let range = IntegerRange::of(0, 9, 9).unwrap();
        assert!(IntegerGroups::new(&DataType::Utf8View, range).is_none());
        let mut groups = IntegerGroups::new(&DataType::Int32, range).unwrap();
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert!(groups.intern(std::slice::from_ref(&column), &mut Vec::new()).is_err());
        assert!(groups.intern(&[], &mut Vec::new()).is_err());
    }
}
