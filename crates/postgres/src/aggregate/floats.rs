//! Aggregates whose results may be floats: these are in their one form (`types`), and `min` and `max` of groups of
//! floats know infinities and NaN.
//!
//! DataFusion 55.2 starts the maximum of a group at the least finite number, so that of `-Infinity` alone is
//! -1.797e308; and it takes a NaN, and whatever comes after it, for greater and less alike, so that the answer follows
//! the order of rows. No public issue was found. Here NaN is the greatest, as in PostgreSQL. The maximum of all rows,
//! and of frames that move, are DataFusion's, which compare so too.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, AggregateFunctionSimplification};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator};

use super::adapter::{AggregateChange, adapt};
use crate::types::{OneForm, in_one_form, scalar_in_one_form};

/// `function` with floats as the module says, if it computes some; others are returned as they are.
pub fn of_floats(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match function.name() {
        "approx_median"
        | "approx_percentile_cont"
        | "avg"
        | "corr"
        | "covar_pop"
        | "covar_samp"
        | "max"
        | "median"
        | "min"
        | "percentile_cont"
        | "stddev"
        | "stddev_pop"
        | "sum"
        | "var"
        | "var_pop" => {}
        name if name.starts_with("regr_") => {}
        _ => return function,
    }
    Arc::new(adapt(&function, Floats))
}

/// See [`of_floats`].
#[derive(Clone, Copy, Debug)]
struct Floats;

fn gives_floats(args: &AccumulatorArgs) -> bool {
    matches!(args.return_field.data_type(), DataType::Float32 | DataType::Float64)
}

impl AggregateChange for Floats {
    fn accumulator(&self, function: &Arc<dyn AggregateUDFImpl>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let gives_floats = gives_floats(&args);
        let inner = function.accumulator(args)?;
        Ok(if gives_floats { Box::new(Formed { inner }) } else { inner })
    }

    fn create_sliding_accumulator(
        &self,
        function: &Arc<dyn AggregateUDFImpl>,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn Accumulator>> {
        let gives_floats = gives_floats(&args);
        let inner = function.create_sliding_accumulator(args)?;
        Ok(if gives_floats { Box::new(Formed { inner }) } else { inner })
    }

    fn create_groups_accumulator(
        &self,
        function: &Arc<dyn AggregateUDFImpl>,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let greatest = function.name() == "max";
        match args.return_field.data_type() {
            DataType::Float32 if greatest || function.name() == "min" => {
                Ok(Box::new(Extremes::<Float32Type>::new(greatest)))
            }
            DataType::Float64 if greatest || function.name() == "min" => {
                Ok(Box::new(Extremes::<Float64Type>::new(greatest)))
            }
            DataType::Float32 | DataType::Float64 => {
                Ok(Box::new(FormedGroups { inner: function.create_groups_accumulator(args)? }))
            }
            _ => function.create_groups_accumulator(args),
        }
    }

    /// DataFusion's makes its own `min` or `max` of `percentile_cont(0)`.
    fn simplify(&self, _: &Arc<dyn AggregateUDFImpl>) -> Option<AggregateFunctionSimplification> {
        None
    }
}

/// An accumulator whose result is brought into the one form of floats.
#[derive(Debug)]
struct Formed {
    inner: Box<dyn Accumulator>,
}

impl Accumulator for Formed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar_in_one_form(self.inner.evaluate()?)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// The same for many groups.
struct FormedGroups {
    inner: Box<dyn GroupsAccumulator>,
}

impl GroupsAccumulator for FormedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(in_one_form(self.inner.evaluate(emit_to)?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.inner.merge_batch(values, group_indices, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, opt_filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

/// A float that is compared.
trait Extreme: OneForm + PartialOrd {
    /// The least value that there is, and the greatest: NaN.
    const ENDS: (Self, Self);

    /// Whether `self` is greater than `other`, which are in their one form.
    fn is_above(self, other: Self) -> bool;
}

macro_rules! extreme {
    ($float:ty) => {
        impl Extreme for $float {
            const ENDS: (Self, Self) = (<$float>::NEG_INFINITY, <$float>::NAN);

            #[inline]
            fn is_above(self, other: Self) -> bool {
                self > other || self.is_nan() && !other.is_nan()
            }
        }
    };
}

extreme!(f32);
extreme!(f64);

/// The least or greatest float of each group.
struct Extremes<T: ArrowPrimitiveType> {
    greatest: bool,
    /// Of groups without a value, the end that every value is beyond.
    values: Vec<T::Native>,
    has_value: Vec<bool>,
}

impl<T: ArrowPrimitiveType<Native: Extreme>> Extremes<T> {
    fn new(greatest: bool) -> Self {
        Self { greatest, values: Vec::new(), has_value: Vec::new() }
    }

    fn add(&mut self, value: T::Native, group: usize) {
        if let (Some(best), Some(has_value)) = (self.values.get_mut(group), self.has_value.get_mut(group)) {
            *has_value = true;
            let is_better = if self.greatest { value.is_above(*best) } else { best.is_above(value) };
            if is_better {
                *best = value;
            }
        }
    }

    fn take(&mut self, emit_to: EmitTo) -> ArrayRef {
        let values = emit_to.take_needed(&mut self.values);
        let nulls = NullBuffer::from(emit_to.take_needed(&mut self.has_value));
        Arc::new(PrimitiveArray::<T>::new(values.into(), Some(nulls)))
    }
}

fn floats<T: ArrowPrimitiveType>(values: &[ArrayRef]) -> Result<&PrimitiveArray<T>> {
    let floats = values.first().and_then(|values| values.as_primitive_opt());
    floats.ok_or_else(|| DataFusionError::Internal("the extremes of floats got another type".into()))
}

fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<T: ArrowPrimitiveType<Native: Extreme>> GroupsAccumulator for Extremes<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let (least, nan) = <T::Native as Extreme>::ENDS;
        self.values.resize(total_num_groups, if self.greatest { least } else { nan });
        self.has_value.resize(total_num_groups, false);
        let floats = floats::<T>(values)?;
        if floats.null_count() == 0 && opt_filter.is_none() {
            floats.values().iter().zip(group_indices).for_each(|(value, group)| self.add(*value, *group));
            return Ok(());
        }
        for (row, (value, group)) in floats.values().iter().zip(group_indices).enumerate() {
            if floats.is_valid(row) && passes(opt_filter, row) {
                self.add(*value, *group);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.take(emit_to))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.take(emit_to)])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let floats = floats::<T>(values)?;
        let kept = |(row, value): (usize, Option<T::Native>)| value.filter(|_| passes(opt_filter, row));
        Ok(vec![Arc::new(floats.iter().enumerate().map(kept).collect::<PrimitiveArray<T>>())])
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.has_value.capacity()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use arrow::array::Float64Array;

    use super::*;

    const VALUES: [Option<f64>; 6] =
        [None, Some(f64::NEG_INFINITY), Some(-1.0), Some(0.0), Some(f64::INFINITY), Some(f64::NAN)];

    /// As PostgreSQL orders floats.
    fn expected(values: &[Option<f64>], greatest: bool) -> Option<u64> {
        let known = values.iter().flatten().copied();
        let best = if greatest { known.max_by(f64::total_cmp) } else { known.min_by(f64::total_cmp) };
        best.map(f64::to_bits)
    }

    fn extremes(parts: &[&[Option<f64>]], greatest: bool) -> Option<u64> {
        let mut whole = Extremes::<Float64Type>::new(greatest);
        for part in parts {
            let values: ArrayRef = Arc::new(Float64Array::from(part.to_vec()));
            let mut accumulator = Extremes::<Float64Type>::new(greatest);
            accumulator.update_batch(std::slice::from_ref(&values), &vec![1; part.len()], None, 3).unwrap();
            let state = accumulator.state(EmitTo::All).unwrap();
            whole.merge_batch(&state, &[0, 1, 2], 3).unwrap();
            let states = whole.convert_to_state(&[values], None).unwrap();
            whole.merge_batch(&states, &vec![2; part.len()], 3).unwrap();
        }
        let results = whole.evaluate(EmitTo::All).unwrap();
        let results = results.as_primitive::<Float64Type>();
        assert!(results.is_null(0));
        let of = |group: usize| results.is_valid(group).then(|| results.value(group).to_bits());
        assert_eq!(of(1), of(2));
        of(1)
    }

    /// Every sequence of three of the values, in one part and in three.
    #[test]
    fn nan_is_the_greatest_in_every_order_of_rows() {
        for (a, b, c) in VALUES.iter().flat_map(|a| VALUES.iter().flat_map(move |b| VALUES.map(|c| (*a, *b, c)))) {
            for greatest in [true, false] {
                let wanted = expected(&[a, b, c], greatest);
                assert_eq!(extremes(&[&[a, b, c]], greatest), wanted, "{a:?} {b:?} {c:?}");
                assert_eq!(extremes(&[&[a], &[b], &[c]], greatest), wanted, "{a:?} {b:?} {c:?}");
            }
        }
    }

    #[test]
    fn filters_leave_values_out() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, 1.0, 2.0]));
        let filter = BooleanArray::from(vec![Some(false), Some(true), None]);
        let mut accumulator = Extremes::<Float64Type>::new(true);
        accumulator.update_batch(&[values], &[0, 0, 0], Some(&filter), 1).unwrap();
        assert_eq!(accumulator.evaluate(EmitTo::All).unwrap().as_primitive::<Float64Type>().value(0), 1.0);
    }
}
