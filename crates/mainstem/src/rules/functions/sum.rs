//! SUM of integers in 128 bits, with an error if the result does not fit BIGINT. Other types go to DataFusion's own sum.
//!
//! Integers of 16 and 32 bits are added as they are: a cast to 64 bits first, as DataFusion's sum asks for, costs more than the sum.

use std::collections::{HashMap, HashSet};
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int16Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use mainstem_kernels::sum::{sum_i16, sum_i32, sum_i64};

/// Decimal type of the state: 38 digits hold the sum of 2^63 values of 2^63.
const STATE: DataType = DataType::Decimal128(38, 0);

/// The `sum` to register in place of DataFusion's.
pub(crate) fn checked_sum() -> AggregateUDF {
    AggregateUDF::new_from_impl(CheckedSum {
        other: sum_udaf(),
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    other: Arc<AggregateUDF>,
    signature: Signature,
}

fn overflow() -> DataFusionError {
    DataFusionError::ArrowError(
        Box::new(ArrowError::ArithmeticOverflow("sum is out of range for type bigint".into())),
        None,
    )
}

fn mismatch() -> DataFusionError {
    DataFusionError::Internal("sum of integers got another type".into())
}

impl CheckedSum {
    fn returns_ours(return_type: &DataType) -> bool {
        *return_type == DataType::Int64
    }
}

/// Whether we add values of this type ourselves.
fn is_ours(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        if let [data_type] = arg_types
            && is_ours(data_type)
        {
            return Ok(vec![data_type.clone()]);
        }
        let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
        let fields: Vec<FieldRef> = arg_types.iter().map(field).collect();
        Ok(fields_with_udf(&fields, self.other.as_ref())?.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [data_type] if is_ours(data_type) => Ok(DataType::Int64),
            _ => self.other.return_type(arg_types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match (Self::returns_ours(args.return_field.data_type()), args.is_distinct) {
            (false, _) => self.other.accumulator(args),
            (true, false) => Ok(Box::new(IntSum::default())),
            (true, true) => Ok(Box::new(DistinctIntSum::default())),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct || !Self::returns_ours(args.return_field.data_type()) {
            return self.other.state_fields(args);
        }
        Ok(vec![
            Arc::new(Field::new(format_state_name(args.name, "sum"), STATE, true)),
            Arc::new(Field::new(format_state_name(args.name, "count"), DataType::Int64, true)),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if !Self::returns_ours(args.return_field.data_type()) {
            return self.other.create_groups_accumulator(args);
        }
        Ok(Box::new(GroupedIntSum::default()))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match (Self::returns_ours(args.return_field.data_type()), args.is_distinct) {
            (false, _) => self.other.create_sliding_accumulator(args),
            (true, false) => Ok(Box::new(IntSum::default())),
            (true, true) => Ok(Box::new(SlidingDistinctIntSum::default())),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The values to be added.
enum Ints<'a> {
    Short(&'a PrimitiveArray<Int16Type>),
    Middle(&'a PrimitiveArray<Int32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
}

fn ints(values: &[ArrayRef]) -> Result<Ints<'_>> {
    let values = values.first().ok_or_else(mismatch)?;
    match values.data_type() {
        DataType::Int16 => values.as_primitive_opt().map(Ints::Short),
        DataType::Int32 => values.as_primitive_opt().map(Ints::Middle),
        _ => values.as_primitive_opt().map(Ints::Long),
    }
    .ok_or_else(mismatch)
}

/// The values as 64 bits.
fn longs(values: &[ArrayRef]) -> Result<Int64Array> {
    let values = values.first().filter(|values| is_ours(values.data_type())).ok_or_else(mismatch)?;
    Ok(cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Sum and count of the values that are not NULL.
fn total(values: &[ArrayRef]) -> Result<(i128, i64)> {
    fn of<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, sum: fn(&[T::Native]) -> i128) -> (i128, i64) {
        let count = (values.len() - values.null_count()) as i64;
        let whole = match values.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => sum(values.values()),
            Some(nulls) => {
                let run = |(start, end): (usize, usize)| values.values().get(start..end).map_or(0, sum);
                nulls.valid_slices().map(run).sum()
            }
        };
        (whole, count)
    }
    Ok(match ints(values)? {
        Ints::Short(values) => of(values, sum_i16),
        Ints::Middle(values) => of(values, sum_i32),
        Ints::Long(values) => of(values, sum_i64),
    })
}

/// Sums and counts of partial results.
fn states(values: &[ArrayRef]) -> Result<(&Decimal128Array, &Int64Array)> {
    match values {
        [sums, counts] => Ok((
            sums.as_primitive_opt::<Decimal128Type>().ok_or_else(mismatch)?,
            counts.as_primitive_opt::<Int64Type>().ok_or_else(mismatch)?,
        )),
        _ => Err(mismatch()),
    }
}

/// One sum; values can be taken out again.
#[derive(Debug, Default)]
struct IntSum {
    sum: i128,
    count: i64,
}

impl Accumulator for IntSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(values)?;
        self.sum += sum;
        self.count += count;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(values)?;
        self.sum -= sum;
        self.count -= count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return Ok(ScalarValue::Int64(None));
        }
        i64::try_from(self.sum).map(|sum| ScalarValue::Int64(Some(sum))).map_err(|_| overflow())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(Some(self.sum), 38, 0), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sums, counts) = states(values)?;
        self.sum += sums.iter().flatten().sum::<i128>();
        self.count += counts.iter().flatten().sum::<i64>();
        Ok(())
    }
}

/// Sum of the distinct values.
#[derive(Debug, Default)]
struct DistinctIntSum {
    values: HashSet<i64>,
}

impl Accumulator for DistinctIntSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(longs(values)?.iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values.is_empty() {
            return Ok(ScalarValue::Int64(None));
        }
        let sum: i128 = self.values.iter().map(|v| i128::from(*v)).sum();
        i64::try_from(sum).map(|sum| ScalarValue::Int64(Some(sum))).map_err(|_| overflow())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<i64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.values.iter().map(|v| ScalarValue::Int64(Some(*v))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Int64))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states.first().and_then(|s| s.as_list_opt::<i32>()).ok_or_else(mismatch)?;
        for list in lists.iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }
}

/// Sum of the distinct values of a window that moves: values come and go.
#[derive(Debug, Default)]
struct SlidingDistinctIntSum {
    /// How often each value is in the window.
    values: HashMap<i64, u64>,
    sum: i128,
}

impl Accumulator for SlidingDistinctIntSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in longs(values)?.iter().flatten() {
            let times = self.values.entry(value).or_default();
            *times += 1;
            if *times == 1 {
                self.sum += i128::from(value);
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in longs(values)?.iter().flatten() {
            let Some(times) = self.values.get_mut(&value) else { return Err(not_there()) };
            *times -= 1;
            if *times == 0 {
                self.values.remove(&value);
                self.sum -= i128::from(value);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values.is_empty() {
            return Ok(ScalarValue::Int64(None));
        }
        i64::try_from(self.sum).map(|sum| ScalarValue::Int64(Some(sum))).map_err(|_| overflow())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<(i64, u64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(no_parts())
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(no_parts())
    }
}

fn not_there() -> DataFusionError {
    DataFusionError::Internal("a value left a window it was not in".into())
}

fn no_parts() -> DataFusionError {
    DataFusionError::Internal("windows are not computed in parts".into())
}

/// One sum per group.
#[derive(Debug, Default)]
struct GroupedIntSum {
    sums: Vec<i128>,
    counts: Vec<i64>,
}

impl GroupedIntSum {
    fn grow(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
    }

    fn add(&mut self, group: usize, sum: i128, count: i64) {
        if let (Some(s), Some(c)) = (self.sums.get_mut(group), self.counts.get_mut(group)) {
            *s += sum;
            *c += count;
        }
    }
}

impl GroupedIntSum {
    fn add_all<T>(&mut self, values: &PrimitiveArray<T>, groups: &[usize], filter: Option<&BooleanArray>)
    where
        T: ArrowPrimitiveType<Native: Into<i128>>,
    {
        let counted = counted(values.nulls(), filter);
        for (row, (value, group)) in values.values().iter().zip(groups).enumerate() {
            if counted.as_ref().is_none_or(|c| c.is_valid(row)) {
                self.add(*group, (*value).into(), 1);
            }
        }
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

impl GroupsAccumulator for GroupedIntSum {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        match ints(values)? {
            Ints::Short(values) => self.add_all(values, group_indices, opt_filter),
            Ints::Middle(values) => self.add_all(values, group_indices, opt_filter),
            Ints::Long(values) => self.add_all(values, group_indices, opt_filter),
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let counts = emit_to.take_needed(&mut self.counts);
        let sums = sums
            .into_iter()
            .zip(counts)
            .map(
                |(sum, count)| if count == 0 { Ok(None) } else { i64::try_from(sum).map(Some).map_err(|_| overflow()) },
            )
            .collect::<Result<Int64Array>>()?;
        Ok(Arc::new(sums))
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
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = longs(values)?;
        let counted = counted(values.nulls(), opt_filter);
        let is_counted = |row: usize| counted.as_ref().is_none_or(|c| c.is_valid(row));
        let sums: Decimal128Array = values
            .values()
            .iter()
            .enumerate()
            .map(|(row, v)| Some(if is_counted(row) { i128::from(*v) } else { 0 }))
            .collect();
        let counts: Int64Array = (0..values.len()).map(|row| Some(i64::from(is_counted(row)))).collect();
        Ok(vec![Arc::new(sums.with_data_type(STATE)), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}
