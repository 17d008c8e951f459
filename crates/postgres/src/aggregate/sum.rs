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

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion_common::{DataFusionError, Result, ScalarValue};
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
use crate::error::external;
use crate::operator::{digits_of, fitting, rounded, scale_of};

/// Decimal type of the state, whatever the scale of the values.
pub(super) const STATE: DataType = DataType::Decimal128(38, 0);
/// Digits that a sum of decimals has more than they.
const SUM_DIGITS: u8 = 10;

/// The `sum` to register in place of DataFusion's.
pub fn checked_sum() -> AggregateUDF {
    Total::new(Kind::Sum, sum_udaf())
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    Average,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Total {
    kind: Kind,
    /// For types that are not ours.
    other: Arc<AggregateUDF>,
    signature: Signature,
}

pub(super) fn overflow() -> DataFusionError {
    out_of_range("a total has more than 38 digits")
}

fn out_of_range(message: &str) -> DataFusionError {
    DataFusionError::ArrowError(Box::new(ArrowError::ArithmeticOverflow(message.into())), None)
}

fn in_arrow(error: ArrowError) -> DataFusionError {
    DataFusionError::ArrowError(Box::new(error), None)
}

fn mismatch() -> DataFusionError {
    DataFusionError::Internal("a total of integers or decimals got another type".into())
}

/// Whether we add values of this type ourselves.
fn is_ours(data_type: &DataType) -> bool {
    match data_type {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => true,
        DataType::Decimal128(_, scale) => *scale >= 0,
        _ => false,
    }
}

/// What becomes of a sum and a count.
#[derive(Clone, Debug)]
pub(super) struct Finish {
    kind: Kind,
    /// Digits behind the point of the values.
    scale: i8,
    returns: DataType,
}

impl Finish {
    /// That of sums of `values`.
    #[cfg(test)]
    pub(super) fn of_sums(values: &DataType) -> Option<Self> {
        Self::of(Kind::Sum, values)
    }

    /// None for types that are not ours.
    fn of(kind: Kind, values: &DataType) -> Option<Self> {
        if !is_ours(values) {
            return None;
        }
        let (digits, scale) = digits_of(values)?;
        let returns = match (kind, values) {
            (Kind::Sum, DataType::Decimal128(..)) => {
                DataType::Decimal128(digits.saturating_add(SUM_DIGITS).min(DECIMAL128_MAX_PRECISION), scale)
            }
            (Kind::Sum, _) => DataType::Int64,
            (Kind::Average, _) => {
                DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale_of(i16::from(digits) - i16::from(scale), scale))
            }
        };
        Some(Self { kind, scale, returns })
    }

    fn number(&self, sum: i128, count: i64) -> Result<i128> {
        match (self.kind, &self.returns) {
            (Kind::Average, DataType::Decimal128(_, scale)) => {
                rounded(sum, i32::from(*scale) - i32::from(self.scale), count.into()).map_err(in_arrow)
            }
            (_, DataType::Decimal128(..)) => fitting(sum).map_err(in_arrow),
            _ => i64::try_from(sum).map(i128::from).map_err(|_| out_of_range("sum is out of range for type bigint")),
        }
    }

    fn scalar(&self, sum: i128, count: i64) -> Result<ScalarValue> {
        let number = if count == 0 { None } else { Some(self.number(sum, count)?) };
        Ok(match self.returns {
            DataType::Decimal128(digits, scale) => ScalarValue::Decimal128(number, digits, scale),
            _ => ScalarValue::Int64(number.and_then(|n| i64::try_from(n).ok())),
        })
    }

    pub(super) fn array(&self, totals: impl Iterator<Item = (i128, i64)>) -> Result<ArrayRef> {
        let numbers = totals.map(|(sum, count)| if count == 0 { Ok(None) } else { self.number(sum, count).map(Some) });
        let numbers = numbers.collect::<Result<Decimal128Array>>()?;
        Ok(match &self.returns {
            DataType::Decimal128(..) => Arc::new(numbers.with_data_type(self.returns.clone())),
            _ => Arc::new(numbers.unary_opt::<_, Int64Type>(|n| i64::try_from(n).ok())),
        })
    }
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

/// The values to be added.
pub(super) enum Numbers<'a> {
    Short(&'a PrimitiveArray<Int16Type>),
    Middle(&'a PrimitiveArray<Int32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
    Decimal(&'a Decimal128Array),
}

pub(super) fn numbers(values: &[ArrayRef]) -> Result<Numbers<'_>> {
    let values = values.first().ok_or_else(mismatch)?;
    match values.data_type() {
        DataType::Int16 => values.as_primitive_opt().map(Numbers::Short),
        DataType::Int32 => values.as_primitive_opt().map(Numbers::Middle),
        DataType::Int64 => values.as_primitive_opt().map(Numbers::Long),
        _ => values.as_primitive_opt().map(Numbers::Decimal),
    }
    .ok_or_else(mismatch)
}

/// The values in 128 bits.
pub(super) fn wide(values: &[ArrayRef]) -> Result<Decimal128Array> {
    Ok(match numbers(values)? {
        Numbers::Short(values) => values.unary(i128::from),
        Numbers::Middle(values) => values.unary(i128::from),
        Numbers::Long(values) => values.unary(i128::from),
        Numbers::Decimal(values) => values.clone(),
    })
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
        Numbers::Decimal(values) => of(values, |run| run.iter().try_fold(0_i128, |sum, v| sum.checked_add(*v))),
    }
}

/// Sums and counts of partial results.
pub(super) fn states(values: &[ArrayRef]) -> Result<(&Decimal128Array, &Int64Array)> {
    match values {
        [sums, counts] => Ok((
            sums.as_primitive_opt::<Decimal128Type>().ok_or_else(mismatch)?,
            counts.as_primitive_opt::<Int64Type>().ok_or_else(mismatch)?,
        )),
        _ => Err(mismatch()),
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
