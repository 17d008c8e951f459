//! Groups of rows by codes: few distinct values in each column, and a table with a place for each combination of them.
//!
//! Comes in: the columns of a batch that rows are grouped by. Goes out: for each row the number of its group; at the
//! end the values of all groups.
//!
//! 1. Each column gives its values codes of its own, in the order in which they come; 0 is NULL. A text that comes as
//!    an Arrow dictionary has its code looked up once for each entry of the dictionary.
//! 2. The codes of a row make one number, a few bits for each column. Where that has few bits it is a place in a table
//!    (a perfect hash), else it is hashed.
//!
//! Invariant: groups are numbered from 0 without gaps. It does not own: what is computed for a group.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, StringViewArray};
use arrow::datatypes::{DataType, Date32Type, Int16Type, Int32Type, Int64Type, UInt32Type};
use datafusion::common::{DataFusionError, Result};
use hashbrown::HashMap;

/// Bits of a number that is a place in the table: 512 KiB of them stay in the caches.
const TABLE_BITS_MAX: u32 = 17;
/// Bits of a number at most, after which groups have to be taken. A batch may bring many more.
const BITS_MAX: u32 = 48;
/// Groups at most, after which they have to be taken.
const GROUPS_MAX: usize = 1 << 17;
/// No group yet.
const NONE: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Groups {
    columns: Vec<GroupColumn>,
    /// Bits of a number for each column.
    bits: Vec<u32>,
    places: Places,
    /// The codes of each group, one after the other for its columns.
    codes: Vec<u32>,
}

/// Numbers to groups.
#[derive(Debug)]
enum Places {
    Table(Vec<u32>),
    Hashed(HashMap<u64, u32>),
    /// Of more than 64 bits.
    Wide(HashMap<u128, u32>),
}

impl Groups {
    /// No groups yet, by columns of `types`; `None` where one of them cannot be.
    pub(super) fn new(types: &[DataType]) -> Option<Self> {
        let columns: Option<Vec<GroupColumn>> = types.iter().map(GroupColumn::new).collect();
        Some(Self {
            bits: vec![0; types.len()],
            columns: columns?,
            places: Places::Table(vec![NONE]),
            codes: Vec::new(),
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.codes.len() / self.columns.len().max(1)
    }

    /// Whether they have to be taken before more rows come.
    pub(super) fn is_full(&self) -> bool {
        self.len() > GROUPS_MAX || self.bits.iter().sum::<u32>() > BITS_MAX
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let places = match &self.places {
            Places::Table(table) => table.capacity() * size_of::<u32>(),
            Places::Hashed(map) => map.capacity() * size_of::<(u64, u32)>(),
            Places::Wide(map) => map.capacity() * size_of::<(u128, u32)>(),
        };
        let columns = self.columns.iter().map(|column| column.memory).sum::<usize>();
        places + columns + self.codes.capacity() * size_of::<u32>()
    }

    /// The number of each row's group, whose values are in `columns`, of which there is one at least.
    pub(super) fn number(&mut self, columns: &[ArrayRef]) -> Result<Vec<usize>> {
        let codes = self.columns.iter_mut().zip(columns).map(|(column, values)| column.codes(values));
        let codes = codes.collect::<Result<Vec<_>>>()?;
        self.widen()?;
        let rows = columns.first().map_or(0, |column| column.len());
        if matches!(self.places, Places::Wide(_)) {
            return self.number_wide(&codes, rows);
        }
        let mut keys = vec![0u64; rows];
        for (codes, bits) in codes.iter().zip(&self.bits) {
            keys.iter_mut().zip(codes).for_each(|(key, code)| *key = *key << bits | u64::from(*code));
        }
        let (mut groups, mut numbers) = (self.len() as u32, Vec::with_capacity(rows));
        let mut begun = Vec::new();
        let mut numbered = |(row, place): (usize, &mut u32)| {
            if *place == NONE {
                *place = groups;
                groups += 1;
                begun.push(row);
            }
            numbers.push(*place as usize);
        };
        match &mut self.places {
            Places::Table(table) => {
                for (row, key) in keys.into_iter().enumerate() {
                    let place = usize::try_from(key).ok().and_then(|at| table.get_mut(at));
                    numbered((row, place.ok_or_else(|| beyond(key.into()))?));
                }
            }
            Places::Hashed(map) => {
                let places = keys.into_iter().enumerate();
                places.for_each(|(row, key)| numbered((row, map.entry(key).or_insert(NONE))));
            }
            Places::Wide(_) => {}
        }
        for row in begun {
            self.codes.extend(codes.iter().filter_map(|codes| codes.get(row)));
        }
        Ok(numbers)
    }

    /// The number of each of `rows` rows' groups, by numbers of more than 64 bits.
    fn number_wide(&mut self, codes: &[Vec<u32>], rows: usize) -> Result<Vec<usize>> {
        let mut numbers = Vec::with_capacity(rows);
        for row in 0..rows {
            let of_row = codes.iter().filter_map(|codes| codes.get(row).copied());
            let key = of_row.clone().zip(&self.bits).fold(0, |key, (code, bits)| key << bits | u128::from(code));
            let next = self.len() as u32;
            let place = self.places.of(key)?;
            if *place == NONE {
                *place = next;
                numbers.push(next as usize);
                self.codes.extend(of_row);
            } else {
                numbers.push(*place as usize);
            }
        }
        Ok(numbers)
    }

    /// Gives each column as many bits as its codes have by now.
    fn widen(&mut self) -> Result<()> {
        let needed = self.columns.iter().map(|column| u32::BITS - (column.values.len() as u32).leading_zeros());
        let needed: Vec<u32> = needed.collect();
        if needed == self.bits {
            return Ok(());
        }
        self.bits = needed;
        let bits = self.bits.iter().sum::<u32>();
        self.places = if bits <= TABLE_BITS_MAX {
            Places::Table(vec![NONE; 1 << bits])
        } else if bits <= u64::BITS {
            Places::Hashed(HashMap::with_capacity(2 * self.len()))
        } else {
            Places::Wide(HashMap::with_capacity(2 * self.len()))
        };
        for (group, codes) in self.codes.chunks(self.columns.len().max(1)).enumerate() {
            let key = codes.iter().zip(&self.bits).fold(0, |key, (code, bits)| key << bits | u128::from(*code));
            *self.places.of(key)? = group as u32;
        }
        Ok(())
    }

    /// The values of all groups, in the order of their numbers; none is left.
    pub(super) fn take(&mut self) -> Result<Vec<ArrayRef>> {
        let width = self.columns.len();
        let arrays = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| column.array(self.codes.iter().skip(at).step_by(width.max(1)).copied()));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        self.columns.iter_mut().for_each(GroupColumn::clear);
        self.bits = vec![0; width];
        self.places = Places::Table(vec![NONE]);
        self.codes = Vec::new();
        Ok(arrays)
    }
}

impl Places {
    #[inline]
    fn of(&mut self, key: u128) -> Result<&mut u32> {
        match self {
            Self::Table(table) => {
                let place = usize::try_from(key).ok().and_then(|at| table.get_mut(at));
                place.ok_or_else(|| beyond(key))
            }
            Self::Hashed(map) => Ok(map.entry(key as u64).or_insert(NONE)),
            Self::Wide(map) => Ok(map.entry(key).or_insert(NONE)),
        }
    }
}

fn beyond(key: u128) -> DataFusionError {
    DataFusionError::Internal(format!("codes {key:b} beyond the table of groups"))
}

/// A column that rows are grouped by.
#[derive(Debug)]
struct GroupColumn {
    data_type: DataType,
    values: Values,
    memory: usize,
    /// The dictionary that came last, with the codes of its entries: it comes again with the next batch.
    last: Option<(StringViewArray, Vec<u32>)>,
}

/// Distinct values, and their codes: one more than their places.
#[derive(Debug)]
enum Values {
    Texts(Vec<Arc<str>>, HashMap<Arc<str>, u32>),
    /// Booleans and days among them.
    Numbers(Vec<i64>, HashMap<i64, u32>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Texts(values, _) => values.len(),
            Self::Numbers(values, _) => values.len(),
        }
    }
}

impl GroupColumn {
    fn new(data_type: &DataType) -> Option<Self> {
        let values = match data_type {
            DataType::Utf8View => Values::Texts(Vec::new(), HashMap::new()),
            DataType::Boolean | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => {
                Values::Numbers(Vec::new(), HashMap::new())
            }
            _ => return None,
        };
        Some(Self { data_type: data_type.clone(), values, memory: 0, last: None })
    }

    fn clear(&mut self) {
        match &mut self.values {
            Values::Texts(values, codes) => {
                values.clear();
                codes.clear();
            }
            Values::Numbers(values, codes) => {
                values.clear();
                codes.clear();
            }
        }
        (self.memory, self.last) = (0, None);
    }

    /// The codes of `array`'s rows: texts as a dictionary, all else plain.
    fn codes(&mut self, array: &ArrayRef) -> Result<Vec<u32>> {
        match self.data_type {
            DataType::Utf8View => self.of_texts(array),
            DataType::Boolean => {
                let array = array.as_boolean();
                Ok(self.of_numbers(array.iter().map(|value| value.map(i64::from))))
            }
            DataType::Int16 => Ok(self.of_integers::<Int16Type>(array)),
            DataType::Int32 => Ok(self.of_integers::<Int32Type>(array)),
            DataType::Date32 => Ok(self.of_integers::<Date32Type>(array)),
            _ => Ok(self.of_integers::<Int64Type>(array)),
        }
    }

    fn of_integers<T: ArrowPrimitiveType<Native: Into<i64>>>(&mut self, array: &ArrayRef) -> Vec<u32> {
        self.of_numbers(array.as_primitive::<T>().iter().map(|value| value.map(Into::into)))
    }

    fn of_numbers(&mut self, numbers: impl Iterator<Item = Option<i64>>) -> Vec<u32> {
        let Values::Numbers(values, known) = &mut self.values else { return Vec::new() };
        // Rows often have the value of the row before.
        let (mut last, mut code) = (None, 0);
        let codes = numbers.map(|number| {
            if number != last {
                code = number.map_or(0, |number| {
                    *known.entry(number).or_insert_with(|| {
                        self.memory += size_of::<(i64, i64, u32)>();
                        values.push(number);
                        values.len() as u32
                    })
                });
                last = number;
            }
            code
        });
        codes.collect()
    }

    fn of_texts(&mut self, array: &ArrayRef) -> Result<Vec<u32>> {
        let dictionary = array.as_dictionary_opt::<UInt32Type>();
        let texts = dictionary.and_then(|dictionary| dictionary.values().as_string_view_opt());
        let (Some(dictionary), Some(texts)) = (dictionary, texts) else {
            return Err(DataFusionError::Internal(format!("groups by codes of {}", array.data_type())));
        };
        let same = |(last, _): &(StringViewArray, Vec<u32>)| {
            last.views().as_ptr() == texts.views().as_ptr() && last.len() == texts.len()
        };
        if !self.last.as_ref().is_some_and(same) {
            let codes = texts.iter().map(|text| text.map_or(0, |text| self.of_text(text))).collect();
            self.last = Some((texts.clone(), codes));
        }
        let codes = self.last.as_ref().map(|(_, codes)| codes.as_slice()).unwrap_or_default();
        let code = |entry: u32| codes.get(entry as usize).copied().unwrap_or_default();
        let entries = dictionary.keys();
        Ok(match entries.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(_) => entries.iter().map(|entry| entry.map_or(0, code)).collect(),
            None => entries.values().iter().map(|entry| code(*entry)).collect(),
        })
    }

    fn of_text(&mut self, text: &str) -> u32 {
        let Values::Texts(values, known) = &mut self.values else { return 0 };
        if let Some(code) = known.get(text) {
            return *code;
        }
        let shared: Arc<str> = text.into();
        values.push(shared.clone());
        let code = values.len() as u32;
        known.insert(shared, code);
        self.memory += text.len() + size_of::<(Arc<str>, Arc<str>, u32, [usize; 2])>();
        code
    }

    /// The values that have `codes`.
    fn array(&self, codes: impl Iterator<Item = u32>) -> Result<ArrayRef> {
        fn value<T>(values: &[T], code: u32) -> Option<&T> {
            values.get((code as usize).checked_sub(1)?)
        }
        fn integers<T: ArrowPrimitiveType>(values: &[i64], codes: impl Iterator<Item = u32>) -> ArrayRef
        where
            T::Native: TryFrom<i64>,
        {
            let values = codes.map(|code| value(values, code).and_then(|value| T::Native::try_from(*value).ok()));
            Arc::new(values.collect::<PrimitiveArray<T>>())
        }
        Ok(match (&self.values, &self.data_type) {
            (Values::Texts(values, _), _) => {
                Arc::new(codes.map(|code| value(values, code)).collect::<StringViewArray>())
            }
            (Values::Numbers(values, _), DataType::Boolean) => {
                Arc::new(codes.map(|code| value(values, code).map(|value| *value != 0)).collect::<BooleanArray>())
            }
            (Values::Numbers(values, _), DataType::Int16) => integers::<Int16Type>(values, codes),
            (Values::Numbers(values, _), DataType::Int32) => integers::<Int32Type>(values, codes),
            (Values::Numbers(values, _), DataType::Date32) => integers::<Date32Type>(values, codes),
            (Values::Numbers(values, _), _) => integers::<Int64Type>(values, codes),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int32Array, UInt32Array};

    use super::*;

    fn texts(values: &[Option<&str>], entries: &[Option<u32>]) -> ArrayRef {
        let values = Arc::new(values.iter().copied().collect::<StringViewArray>());
        Arc::new(DictionaryArray::new(UInt32Array::from(entries.to_vec()), values))
    }

    fn taken(groups: &mut Groups) -> Vec<(Option<String>, Option<i32>)> {
        let columns = groups.take().unwrap();
        let texts = columns[0].as_string_view().iter().map(|text| text.map(str::to_owned));
        texts.zip(columns[1].as_primitive::<Int32Type>().iter()).collect()
    }

    #[test]
    fn rows_of_the_same_values_are_one_group() {
        let mut groups = Groups::new(&[DataType::Utf8View, DataType::Int32]).unwrap();
        let first = texts(&[Some("a"), Some("b"), None], &[Some(0), Some(1), Some(2), None, Some(0)]);
        let numbers = |values: &[Option<i32>]| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef;
        let by = numbers(&[Some(1), Some(1), Some(1), Some(1), None]);
        // A NULL among the values and one among the codes are the same.
        assert_eq!(groups.number(&[first, by]).unwrap(), [0, 1, 2, 2, 3]);
        // Another dictionary has the same texts under other codes.
        let second = texts(&[Some("b"), Some("a"), Some("b")], &[Some(1), Some(0), Some(2)]);
        assert_eq!(groups.number(&[second, numbers(&[Some(1), Some(1), Some(1)])]).unwrap(), [0, 1, 1]);
        let text = |text: &str| Some(text.to_owned());
        let expected = [(text("a"), Some(1)), (text("b"), Some(1)), (None, Some(1)), (text("a"), None)];
        assert_eq!(taken(&mut groups), expected);
        assert_eq!((groups.len(), taken(&mut groups).len()), (0, 0));
        let again = texts(&[Some("c")], &[Some(0)]);
        assert_eq!(groups.number(&[again, numbers(&[None])]).unwrap(), [0]);
        assert_eq!(taken(&mut groups), [(text("c"), None)]);
    }

    /// From a table to a hash table and on, as values come.
    #[test]
    fn numbers_stay_while_codes_widen() {
        let mut groups = Groups::new(&[DataType::Utf8View, DataType::Int32]).unwrap();
        let mut expected = Vec::new();
        for round in 0..120 {
            let names: Vec<String> = (0..20).map(|text| format!("text {}", round * 20 + text)).collect();
            let names: Vec<_> = names.iter().map(|name| Some(name.as_str())).collect();
            let rows: Vec<u32> = (0..20).flat_map(|text| [text; 4]).collect();
            let numbers = Int32Array::from_iter_values((0..80).map(|row| row % 4 + round));
            let array = texts(&names, &rows.iter().copied().map(Some).collect::<Vec<_>>());
            let of_rows = groups.number(&[array, Arc::new(numbers.clone())]).unwrap();
            for ((number, row), by) in of_rows.iter().zip(&rows).zip(numbers.values()) {
                assert_eq!(*number, expected.len());
                expected.push((names[*row as usize].map(str::to_owned), Some(*by)));
            }
        }
        assert!(matches!(groups.places, Places::Hashed(_)) && !groups.is_full() && groups.memory() > 0);
        assert_eq!(taken(&mut groups), expected);
    }

    /// One batch may bring dictionaries of many entries for each column: together more than 64 bits.
    #[test]
    fn columns_of_many_entries_are_told_apart() {
        let mut groups = Groups::new(&vec![DataType::Utf8View; 4]).unwrap();
        let names: Vec<String> = (0..70_000).map(|entry| entry.to_string()).collect();
        let names: Vec<_> = names.iter().map(|name| Some(name.as_str())).collect();
        let few = texts(&[Some("a"), Some("b")], &[Some(0), Some(1), Some(0), None]);
        let before = groups.number(&vec![few.clone(); 4]).unwrap();
        // Rows that differ in the first column alone, whose bits are the highest.
        let many = |entries: [u32; 4]| texts(&names, &entries.map(Some));
        let columns = [many([0, 69_999, 0, 1]), many([5; 4]), many([6; 4]), many([7; 4])];
        assert_eq!(groups.number(&columns).unwrap(), [3, 4, 3, 5]);
        assert!(matches!(groups.places, Places::Wide(_)) && groups.is_full() && groups.memory() > 0);
        assert_eq!(groups.number(&vec![few; 4]).unwrap(), before);
        let taken = groups.take().unwrap();
        let first: Vec<_> = taken[0].as_string_view().iter().collect();
        assert_eq!(first, [Some("a"), Some("b"), None, Some("0"), Some("69999"), Some("1")]);
    }

    #[test]
    fn other_types_are_not_grouped() {
        assert!(Groups::new(&[DataType::Float64]).is_none());
    }
}
