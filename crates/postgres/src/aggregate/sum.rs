//! SUM and AVG of integers and decimals: added exactly in 128 bits, with an error if a total does not fit. Other types
//! go to DataFusion's own, doubles over a frame that moves to `sliding`; a sum of REALs is a double. There are none of
//! intervals.
//!
//! A sum of integers is a BIGINT, one of decimals has up to ten digits more than they have. An average of either is a
//! decimal, rounded, with the digits of a division (`division`). Integers of 16 and 32 bits are added as they are: a
//! cast to 64 bits first, as DataFusion's sum asks for, costs more than the sum.

use std::collections::HashSet;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use datafusion_functions_aggregate::average::avg_udaf;
use datafusion_functions_aggregate::sum::sum_udaf;
use mainstem_kernels::sum::{sum_i16, sum_i32, sum_i64};
use mainstem_storage::Error;

use super::grouped_totals::GroupedTotals;
use super::sliding::FloatTotal;
use super::totals::{Finish, Kind, Numbers, STATE, is_ours, mismatch, numbers, overflow, states, wide};
use crate::error::external;

/// The `sum` to register in place of DataFusion's.
pub fn checked_sum() -> AggregateUDF {
    Total::new(Kind::Sum, sum_udaf())
}

/// A `sum` that is a decimal of 38 digits for all integers and decimals: sums of such sums have the same type, and are
/// out of range only where the whole sum is. The planner makes calls of it, no statement can.
#[must_use]
pub fn wide_sum() -> AggregateUDF {
    Total::new(Kind::WideSum, sum_udaf())
}

/// The `avg` to register in place of DataFusion's.
pub fn average() -> AggregateUDF {
    Total::new(Kind::Average, avg_udaf())
}

/// Whether `state`, the fields of a partial `sum` or `avg`, is that of an exact one, which is not of distinct values:
/// the unscaled sum, as a decimal of 38 digits, and how many values there are.
#[must_use]
pub fn has_exact_state(state: &[FieldRef]) -> bool {
    matches!(state, [sum, count] if *sum.data_type() == STATE && *count.data_type() == DataType::Int64)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Total {
    kind: Kind,
    /// For types that are not ours.
    other: Arc<AggregateUDF>,
    signature: Signature,
}

impl Total {
    #[expect(clippy::new_ret_no_self, reason = "the function that a session registers")]
    fn new(kind: Kind, other: Arc<AggregateUDF>) -> AggregateUDF {
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::new_from_impl(Self { kind, other, signature })
    }

    fn finish(&self, fields: &[FieldRef]) -> Option<Finish> {
        fields.first().and_then(|field| Finish::of(self.kind, field.data_type()))
    }
}

impl AggregateUDFImpl for Total {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        self.other.aliases()
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
        // DataFusion makes 42883 of it, without this text.
        if let [DataType::Interval(_)] = arg_types {
            return Err(external(Error::unsupported(format_args!("{} of intervals", self.name()))));
        }
        let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
        let fields: Vec<FieldRef> = arg_types.iter().map(field).collect();
        Ok(fields_with_udf(&fields, self.other.as_ref())?.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types.first().and_then(|data_type| Finish::of(self.kind, data_type)) {
            Some(finish) => Ok(finish.returns),
            None => self.other.return_type(arg_types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match (self.finish(args.expr_fields), args.is_distinct) {
            (None, _) => self.other.accumulator(args),
            (Some(finish), false) => Ok(Box::new(ExactTotal { finish, sum: 0, count: 0 })),
            (Some(finish), true) => Ok(Box::new(DistinctTotal { finish, values: HashSet::new() })),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if self.finish(args.input_fields).is_none() {
            return self.other.state_fields(args);
        }
        if args.is_distinct {
            let item = Field::new_list_field(STATE, true);
            return Ok(vec![Arc::new(Field::new_list(format_state_name(args.name, "distinct"), item, true))]);
        }
        Ok(vec![
            Arc::new(Field::new(format_state_name(args.name, "sum"), STATE, true)),
            Arc::new(Field::new(format_state_name(args.name, "count"), DataType::Int64, true)),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match self.finish(args.expr_fields) {
            None => self.other.groups_accumulator_supported(args),
            Some(_) => !args.is_distinct,
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match self.finish(args.expr_fields) {
            None => self.other.create_groups_accumulator(args),
            Some(finish) => Ok(Box::new(GroupedTotals::new(finish))),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match (self.finish(args.expr_fields), args.is_distinct) {
            (None, false) if args.expr_fields.first().is_some_and(|field| *field.data_type() == DataType::Float64) => {
                Ok(Box::new(FloatTotal::new(self.kind == Kind::Average)))
            }
            (None, _) => self.other.create_sliding_accumulator(args),
            (Some(finish), _) => Ok(Box::new(ExactTotal { finish, sum: 0, count: 0 })),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Sum and count of the values that are not NULL.
fn total(values: &[ArrayRef]) -> Result<(i128, i64)> {
    fn of<T: ArrowPrimitiveType>(
        values: &PrimitiveArray<T>,
        sum: impl Fn(&[T::Native]) -> Option<i128>,
    ) -> Result<(i128, i64)> {
        let count = (values.len() - values.null_count()) as i64;
        let whole = match values.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => sum(values.values()),
            Some(nulls) => nulls.valid_slices().try_fold(0_i128, |whole, (start, end)| {
                let run = values.values().get(start..end).unwrap_or_default();
                whole.checked_add(sum(run)?)
            }),
        };
        Ok((whole.ok_or_else(overflow)?, count))
    }
    match numbers(values)? {
        Numbers::Short(values) => of(values, |run| Some(sum_i16(run))),
        Numbers::Middle(values) => of(values, |run| Some(sum_i32(run))),
        Numbers::Long(values) => of(values, |run| Some(sum_i64(run))),
        Numbers::Narrow(values) => of(values, |run| Some(sum_i64(run))),
        Numbers::Decimal(values) => of(values, |run| run.iter().try_fold(0_i128, |sum, v| sum.checked_add(*v))),
    }
}

/// One total; values can be taken out again.
#[derive(Debug)]
struct ExactTotal {
    finish: Finish,
    sum: i128,
    count: i64,
}

impl ExactTotal {
    fn add(&mut self, sum: i128, count: i64) -> Result<()> {
        self.sum = self.sum.checked_add(sum).ok_or_else(overflow)?;
        self.count += count;
        Ok(())
    }
}

impl Accumulator for ExactTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(values)?;
        self.add(sum, count)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(values)?;
        self.add(sum.checked_neg().ok_or_else(overflow)?, -count)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.finish.scalar(self.sum, self.count)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(Some(self.sum), 38, 0), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sums, counts) = states(values)?;
        for (sum, count) in sums.iter().zip(counts) {
            self.add(sum.unwrap_or_default(), count.unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Total of the distinct values.
#[derive(Debug)]
struct DistinctTotal {
    finish: Finish,
    values: HashSet<i128>,
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(wide(values)?.iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.values.iter().try_fold(0_i128, |sum, v| sum.checked_add(*v)).ok_or_else(overflow)?;
        self.finish.scalar(sum, self.values.len() as i64)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<i128>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.values.iter().map(|v| ScalarValue::Decimal128(Some(*v), 38, 0)).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &STATE))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states.first().and_then(|s| s.as_list_opt::<i32>()).ok_or_else(mismatch)?;
        for list in lists.iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }
}
