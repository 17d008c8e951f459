//! Groups of rows that come in the order of what they are grouped by: a group ends where the next one begins.
//!
//! Comes in: the columns of a batch that rows are grouped by. Goes out: for each row the number of its group; the
//! values of the groups that have ended, as soon as somebody wants them.
//!
//! Each row is compared with the one before it, the first of a batch with the last of the batch before. Nothing is
//! hashed, and nothing is looked up.
//!
//! Invariant: groups are numbered from 0 without gaps, in the order of rows; the last one may go on.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Date32Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::{Result, internal_datafusion_err};

/// See the module.
#[derive(Debug)]
pub(super) struct OrderedGroups {
    /// The columns of the last row.
    last: Option<Vec<ArrayRef>>,
    /// The values of groups that were not taken: for each column an array of each batch in which groups begin.
    values: Vec<Vec<ArrayRef>>,
    /// Bytes of these.
    bytes: usize,
    len: usize,
}

/// Whether values of `data_type` are of one group exactly if Arrow's comparison finds no difference.
pub(super) fn has_exact_comparison(data_type: &DataType) -> bool {
    // Floats have two zeros, and intervals may be equal that differ.
    data_type.is_integer()
        || data_type.is_decimal()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Date32
                | DataType::Time64(_)
                | DataType::Timestamp(..)
                | DataType::Utf8View
                | DataType::BinaryView
        )
}

impl OrderedGroups {
    /// No groups yet, by so many columns.
    pub(super) fn new(columns: usize) -> Self {
        Self { last: None, values: vec![Vec::new(); columns], bytes: 0, len: 0 }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.bytes
    }

    /// The number of each row's group, into `numbers`; the values of rows are in `columns`, of as many rows each.
    pub(super) fn number(&mut self, columns: &[ArrayRef], numbers: &mut Vec<usize>) -> Result<()> {
        numbers.clear();
        let rows = columns.first().map_or(0, |column| column.len());
        if rows == 0 {
            return Ok(());
        }
        let begins = match &self.last {
            Some(last) => differ(last, &row_of(columns, 0))?.first().copied().unwrap_or(true),
            None => true,
        };
        let behind: Vec<ArrayRef> = columns.iter().map(|column| column.slice(1, rows - 1)).collect();
        let before: Vec<ArrayRef> = columns.iter().map(|column| column.slice(0, rows - 1)).collect();
        let mut starts = vec![0u32; rows];
        // Without a row before there is no group that goes on.
        let mut number = self.len.saturating_sub(usize::from(!begins));
        let mut found = usize::from(begins);
        numbers.reserve(rows);
        numbers.push(number);
        let mut next = |differs: bool| {
            // No branch: where groups are short, it could not be foreseen.
            if let Some(start) = starts.get_mut(found) {
                *start = numbers.len() as u32;
            }
            found += usize::from(differs);
            number += usize::from(differs);
            numbers.push(number);
        };
        match single_integers(columns) {
            Some(Integers::Short(values)) => pairs(values).for_each(&mut next),
            Some(Integers::Middle(values)) => pairs(values).for_each(&mut next),
            Some(Integers::Long(values)) => pairs(values).for_each(&mut next),
            None => differ(&before, &behind)?.into_iter().for_each(&mut next),
        }
        starts.truncate(found);
        self.len += found;
        if found > 0 {
            let starts = UInt32Array::from(starts);
            for (values, column) in self.values.iter_mut().zip(columns) {
                let begun = own(&take(column, &starts, None)?);
                self.bytes += begun.get_array_memory_size();
                values.push(begun);
            }
        }
        self.last = Some(row_of(columns, rows - 1).iter().map(own).collect());
        Ok(())
    }

    /// The values of the first `count` groups, which are forgotten: others are numbered anew.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<ArrayRef>> {
        let rest = self.len.checked_sub(count).ok_or_else(|| internal_datafusion_err!("more groups than there are"))?;
        self.len = rest;
        let mut taken = Vec::with_capacity(self.values.len());
        for values in &mut self.values {
            let arrays: Vec<&dyn Array> = values.iter().map(|values| values.as_ref()).collect();
            let all = concat(&arrays)?;
            taken.push(all.slice(0, count));
            *values = if rest == 0 { Vec::new() } else { vec![own(&all.slice(count, rest))] };
        }
        self.bytes = self.values.iter().flatten().map(|values| values.get_array_memory_size()).sum();
        Ok(taken)
    }
}

/// `values` without the memory of others: texts have all those of the batch that they came in.
fn own(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Utf8View => Arc::new(values.as_string_view().gc()),
        DataType::BinaryView => Arc::new(values.as_binary_view().gc()),
        _ => values.clone(),
    }
}

/// Row `row` of each column.
fn row_of(columns: &[ArrayRef], row: usize) -> Vec<ArrayRef> {
    columns.iter().map(|column| column.slice(row, 1)).collect()
}

/// Whether rows of `left` and `right` differ in any column.
fn differ(left: &[ArrayRef], right: &[ArrayRef]) -> Result<Vec<bool>> {
    let mut all: Option<BooleanBuffer> = None;
    for (left, right) in left.iter().zip(right) {
        let of_column = distinct(left, right)?;
        let differs = of_column.values();
        all = Some(all.map_or_else(|| differs.clone(), |all| &all | differs));
    }
    Ok(all.map_or_else(Vec::new, |all| all.iter().collect()))
}

/// Integers without NULL.
enum Integers<'a> {
    Short(&'a [i16]),
    Middle(&'a [i32]),
    Long(&'a [i64]),
}

/// The values of the only column, if they are integers, or days, without NULL.
fn single_integers(columns: &[ArrayRef]) -> Option<Integers<'_>> {
    fn values<T: ArrowPrimitiveType>(column: &ArrayRef) -> &[T::Native] {
        column.as_primitive::<T>().values()
    }
    let [column] = columns else { return None };
    let is_full = column.null_count() == 0;
    match column.data_type() {
        DataType::Int16 if is_full => Some(Integers::Short(values::<Int16Type>(column))),
        DataType::Int32 if is_full => Some(Integers::Middle(values::<Int32Type>(column))),
        DataType::Date32 if is_full => Some(Integers::Middle(values::<Date32Type>(column))),
        DataType::Int64 if is_full => Some(Integers::Long(values::<Int64Type>(column))),
        _ => None,
    }
}

/// Whether each value but the first differs from the one before it.
fn pairs<T: PartialEq + Copy>(values: &[T]) -> impl Iterator<Item = bool> + '_ {
    values.iter().zip(values.get(1..).unwrap_or_default()).map(|(before, value)| before != value)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Int32Array, Int64Array, StringViewArray};

    use super::*;

    /// Numbers of rows that come in pieces of `rows`, and what groups are taken on the way and at the end.
    fn grouped(columns: &[ArrayRef], rows: usize, taken: usize) -> (Vec<usize>, Vec<Vec<ArrayRef>>) {
        let mut groups = OrderedGroups::new(columns.len());
        let (mut all, mut found, mut gone) = (Vec::new(), Vec::new(), 0);
        let total = columns[0].len();
        for from in (0..total).step_by(rows) {
            let piece: Vec<ArrayRef> = columns.iter().map(|c| c.slice(from, rows.min(total - from))).collect();
            let mut numbers = vec![77];
            groups.number(&piece, &mut numbers).unwrap();
            all.extend(numbers.into_iter().map(|number| number + gone));
            while groups.len() > taken {
                found.push(groups.take(taken).unwrap());
                gone += taken;
            }
        }
        assert!(groups.take(groups.len() + 1).is_err());
        found.push(groups.take(groups.len()).unwrap());
        assert_eq!(groups.len(), 0);
        (all, found)
    }

    /// One column or several, integers and not, with NULL: groups are those of comparing values, however rows are cut
    /// into batches.
    #[test]
    fn groups_are_stretches_of_equal_rows() {
        let values: Vec<Option<i64>> = (0..500).map(|row| (row / 7 % 20 != 3).then_some(row / 7)).collect();
        let plain: Vec<i64> = (0..500).map(|row| row * row / 900).collect();
        let texts: Vec<String> = plain.iter().map(|value| format!("a text of some bytes {}", value / 2)).collect();
        let long: ArrayRef = Arc::new(Int64Array::from(plain.clone()));
        let middle: ArrayRef = Arc::new(plain.iter().map(|value| Some(*value as i32)).collect::<Int32Array>());
        let nullable: ArrayRef = Arc::new(Int64Array::from(values));
        let text: ArrayRef = Arc::new(StringViewArray::from(texts));
        let decimal: ArrayRef =
            Arc::new(plain.iter().map(|value| Some(i128::from(*value))).collect::<Decimal128Array>());
        for columns in
            [vec![long], vec![middle], vec![nullable.clone()], vec![text.clone(), nullable], vec![text, decimal]]
        {
            let same = |a: usize, b: usize| columns.iter().all(|c| c.slice(a, 1) == c.slice(b, 1));
            let mut expected = vec![0];
            (1..500).for_each(|row| expected.push(expected[row - 1] + usize::from(!same(row - 1, row))));
            for (rows, taken) in [(500, 1_000), (64, 20), (3, 1), (1, 2)] {
                let (numbers, found) = grouped(&columns, rows, taken);
                assert_eq!(numbers, expected, "{rows} rows a batch");
                let mut number = 0;
                for values in found {
                    for at in 0..values[0].len() {
                        let row = expected.iter().position(|group| *group == number).unwrap();
                        assert!(values.iter().zip(&columns).all(|(v, c)| v.slice(at, 1) == c.slice(row, 1)));
                        number += 1;
                    }
                }
                assert_eq!(number, expected[499] + 1, "all groups");
            }
        }
    }

    /// Of long groups, and of many that are taken: what is held does not grow with the rows.
    #[test]
    fn few_bytes_are_held() {
        let long = "a text that is longer than a view holds, ".repeat(4);
        for rows_of_group in [1usize, 10_000] {
            let mut groups = OrderedGroups::new(1);
            let (mut numbers, mut most) = (Vec::new(), 0);
            for batch in 0..200 {
                let texts = (0..1_000).map(|row| format!("{long}{:09}", (batch * 1_000 + row) / rows_of_group));
                let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
                groups.number(&[texts], &mut numbers).unwrap();
                let taken = groups.take(groups.len() - 1).unwrap();
                assert!(taken[0].get_array_memory_size() < 300 * (taken[0].len() + 2) + 10_000);
                most = most.max(groups.memory());
            }
            assert!((1..20_000).contains(&most), "{most} bytes of one group");
        }
    }

    #[test]
    fn no_rows_are_no_groups() {
        let mut groups = OrderedGroups::new(1);
        let mut numbers = vec![1];
        groups.number(&[Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef], &mut numbers).unwrap();
        assert_eq!((numbers.len(), groups.len(), groups.memory()), (0, 0, 0));
    }
}
