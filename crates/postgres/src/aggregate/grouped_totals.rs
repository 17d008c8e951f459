//! Totals of groups: sums in 128 bits and counts, one of each for a group.
//!
//! Comes in: numbers, with the group of each row. Goes out: sums and averages, or their states.
//!
//! Where groups are few, rows that follow one another are of the same group: adding each to the sum before would wait
//! for it. Values that are short are added in 64 bits there, to one of several sums in turn, and brought together at
//! the end of each stretch of rows.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray};
use arrow::buffer::NullBuffer;
use datafusion_common::Result;
use datafusion_expr::{EmitTo, GroupsAccumulator};

use super::totals::{Finish, Numbers, STATE, numbers, overflow, states, wide};

/// Groups that are few.
const FEW: usize = 64;
/// Sums of a group that rows are added to in turn.
const LANES: usize = 4;
/// Rows of a stretch: as many values of [`SHORT_BITS`] do not leave 64 bits.
const STRETCH: usize = 1 << 13;
/// Bits of a value, but for its sign.
const SHORT_BITS: u32 = 49;

/// A number that is added up.
trait Number: Copy + Into<i128> {
    /// Whether all `values` have [`SHORT_BITS`] at most.
    fn are_short(values: &[Self]) -> bool;
    /// The number, which is short.
    fn low(self) -> i64;
}

macro_rules! number {
    ($($number:ty),+) => {
        $(impl Number for $number {
            fn are_short(values: &[Self]) -> bool {
                // Bits that differ from the sign.
                let magnitude = values.iter().fold(0, |all, value| all | (value ^ (value >> (Self::BITS - 1))));
                magnitude.checked_shr(SHORT_BITS).unwrap_or(0) == 0
            }

            #[inline]
            fn low(self) -> i64 {
                self as i64
            }
        })+
    };
}

number!(i16, i32, i64, i128);

/// One total per group.
#[derive(Debug)]
pub(super) struct GroupedTotals {
    finish: Finish,
    sums: Vec<i128>,
    counts: Vec<i64>,
    /// Whether a sum left 128 bits; told at the end of each batch.
    overflowed: bool,
}

impl GroupedTotals {
    /// No groups yet.
    pub(super) fn new(finish: Finish) -> Self {
        Self { finish, sums: Vec::new(), counts: Vec::new(), overflowed: false }
    }

    fn grow(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
    }

    fn add(&mut self, group: usize, sum: i128, count: i64) {
        if let (Some(s), Some(c)) = (self.sums.get_mut(group), self.counts.get_mut(group)) {
            let (total, overflowed) = s.overflowing_add(sum);
            *s = total;
            *c += count;
            self.overflowed |= overflowed;
        }
    }

    fn add_all<T>(&mut self, values: &PrimitiveArray<T>, groups: &[usize], filter: Option<&BooleanArray>)
    where
        T: ArrowPrimitiveType<Native: Number>,
    {
        let counted = counted(values.nulls(), filter);
        if counted.as_ref().is_none_or(|counted| counted.null_count() == 0) && self.sums.len() <= FEW {
            for (values, groups) in values.values().chunks(STRETCH).zip(groups.chunks(STRETCH)) {
                self.add_few(values, groups);
            }
            return;
        }
        for (row, (value, group)) in values.values().iter().zip(groups).enumerate() {
            if counted.as_ref().is_none_or(|c| c.is_valid(row)) {
                self.add(*group, (*value).into(), 1);
            }
        }
    }

    /// Adds `values`, of few groups, a stretch at most.
    fn add_few<N: Number>(&mut self, values: &[N], groups: &[usize]) {
        if !N::are_short(values) {
            values.iter().zip(groups).for_each(|(value, group)| self.add(*group, (*value).into(), 1));
            return;
        }
        let mut lanes = [[(0i64, 0i64); FEW]; LANES];
        let (of_rows, rest) = values.as_chunks::<LANES>();
        let (of_groups, rest_groups) = groups.as_chunks::<LANES>();
        for (values, groups) in of_rows.iter().zip(of_groups) {
            for ((lane, value), group) in lanes.iter_mut().zip(values).zip(groups) {
                // All groups are below: this tells the compiler so.
                let (sum, count) = &mut lane[group % FEW];
                *sum += value.low();
                *count += 1;
            }
        }
        rest.iter().zip(rest_groups).for_each(|(value, group)| self.add(*group, (*value).into(), 1));
        for group in 0..self.sums.len() {
            let of_group = lanes.iter().filter_map(|lane| lane.get(group));
            let (sum, count) = of_group.fold((0i128, 0), |(sum, count), (s, c)| (sum + i128::from(*s), count + c));
            self.add(group, sum, count);
        }
    }

    fn check(&self) -> Result<()> {
        if self.overflowed { Err(overflow()) } else { Ok(()) }
    }
}

/// Which rows are not NULL and pass the filter; None means all.
fn counted(nulls: Option<&NullBuffer>, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let filter = filter.map(|f| {
        let passed = match f.nulls() {
            Some(nulls) => f.values() & nulls.inner(),
            None => f.values().clone(),
        };
        NullBuffer::new(passed)
    });
    NullBuffer::union(nulls, filter.as_ref())
}

impl GroupsAccumulator for GroupedTotals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        match numbers(values)? {
            Numbers::Short(values) => self.add_all(values, group_indices, opt_filter),
            Numbers::Middle(values) => self.add_all(values, group_indices, opt_filter),
            Numbers::Long(values) => self.add_all(values, group_indices, opt_filter),
            Numbers::Narrow(values) => self.add_all(values, group_indices, opt_filter),
            Numbers::Decimal(values) => self.add_all(values, group_indices, opt_filter),
        }
        self.check()
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let counts = emit_to.take_needed(&mut self.counts);
        self.finish.array(sums.into_iter().zip(counts))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums = Decimal128Array::from(emit_to.take_needed(&mut self.sums)).with_data_type(STATE);
        let counts = Int64Array::from(emit_to.take_needed(&mut self.counts));
        Ok(vec![Arc::new(sums), Arc::new(counts)])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        let (sums, counts) = states(values)?;
        self.grow(total_num_groups);
        for ((sum, count), group) in sums.iter().zip(counts.iter()).zip(group_indices) {
            self.add(*group, sum.unwrap_or_default(), count.unwrap_or_default());
        }
        self.check()
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = wide(values)?;
        let counted = counted(values.nulls(), opt_filter);
        let is_counted = |row: usize| counted.as_ref().is_none_or(|c| c.is_valid(row));
        let sums: Decimal128Array =
            values.values().iter().enumerate().map(|(row, v)| Some(if is_counted(row) { *v } else { 0 })).collect();
        let counts: Int64Array = (0..values.len()).map(|row| Some(i64::from(is_counted(row)))).collect();
        Ok(vec![Arc::new(sums.with_data_type(STATE)), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Decimal64Array};
    use arrow::datatypes::{DataType, Decimal128Type};

    use super::super::totals::Kind;
    use super::*;

    /// Sums and counts of the values of `array` by `groups`, of `all` groups.
    fn totals(array: &ArrayRef, groups: &[usize], all: usize) -> Vec<(i128, i64)> {
        let finish = Finish::of(Kind::Sum, &DataType::Decimal128(38, 2)).unwrap();
        let mut totals = GroupedTotals::new(finish);
        totals.update_batch(std::slice::from_ref(array), groups, None, all).unwrap();
        let states = totals.state(EmitTo::All).unwrap();
        let counts = states[1].as_primitive::<arrow::datatypes::Int64Type>().values().to_vec();
        states[0].as_primitive::<Decimal128Type>().values().iter().copied().zip(counts).collect()
    }

    /// Few groups and many, short values and long ones, of each type that has them: the same sums, at the borders of
    /// what is short, and of stretches.
    #[test]
    fn few_groups_have_the_sums_of_many() {
        let short = (1i128 << SHORT_BITS) - 1;
        for greatest in [5, short, short + 1, i128::from(i64::MAX), 1 << 90] {
            for rows in [1usize, 3, 4, 7, STRETCH - 1, STRETCH, 2 * STRETCH + 5] {
                let value = |row: usize| match row % 5 {
                    0 => greatest,
                    1 => -greatest - 1,
                    2 => greatest / 3,
                    _ => -(row as i128 % greatest),
                };
                let values: Vec<i128> = (0..rows).map(value).collect();
                let wide = Decimal128Array::from(values.clone()).with_data_type(DataType::Decimal128(38, 2));
                let mut arrays: Vec<ArrayRef> = vec![Arc::new(wide)];
                if let Ok(values) = values.iter().map(|value| i64::try_from(*value)).collect::<Result<Vec<_>, _>>() {
                    let narrow = Decimal64Array::from(values.clone()).with_data_type(DataType::Decimal64(18, 2));
                    arrays.extend([Arc::new(narrow) as ArrayRef, Arc::new(Int64Array::from(values))]);
                }
                for (array, groups) in arrays.iter().flat_map(|array| [1usize, 3, FEW].map(|groups| (array, groups))) {
                    let of_rows: Vec<usize> = (0..rows).map(|row| row / 3 % groups).collect();
                    let mut expected = totals(&arrays[0], &of_rows, FEW + 1);
                    expected.truncate(groups);
                    assert_eq!(totals(array, &of_rows, groups), expected, "{greatest} {rows} {groups}");
                }
            }
        }
    }
}
