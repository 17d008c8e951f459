//! `lag` and `lead`: the value of the row that is so many rows before or after, with NULLs counted or not.
//!
//! DataFusion 55.2 ([issue 25471](https://github.com/apache/datafusion/issues/25471)) looks ahead over NULLs with a
//! queue that it fills once and does not fill again, so that `lead(v, 2) IGNORE NULLS` gives NULL where there is a
//! value; it says that no `lag` reads rows after its own, though one with a negative offset does, and one in a window
//! that is computed from its end; and of the offset NULL it makes 0. So the evaluators here are ours:
//!
//! - rows are counted back, or ahead where the offset is negative;
//! - without NULLs, those that are behind are remembered, and what is ahead is looked up when the whole partition is
//!   there;
//! - the value is NULL where the offset is NULL, as in PostgreSQL, and that of the row itself where it is 0.
//!
//! It does not own: types and defaults of calls (DataFusion's; `analyze` of the SQL crate).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array, new_null_array};
use arrow::compute::{SortOptions, interleave, take};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Literal;

/// `function` as the module says, if it is `lag` or `lead`; others are returned as they are.
pub fn shifts(function: Arc<WindowUDF>) -> Arc<WindowUDF> {
    match function.name() {
        "lag" | "lead" => Arc::new(WindowUDF::new_from_impl(Shifted { function })),
        _ => function,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shifted {
    function: Arc<WindowUDF>,
}

/// The literal that the argument `at` is, if there is one.
fn literal(args: &[Arc<dyn PhysicalExpr>], at: usize) -> Option<&ScalarValue> {
    args.get(at).and_then(|arg| arg.downcast_ref::<Literal>()).map(Literal::value)
}

/// The whole number that `value` is; none of NULL.
fn whole(value: &ScalarValue) -> Result<Option<i64>> {
    match value.cast_to(&DataType::Int64)? {
        ScalarValue::Int64(number) => Ok(number),
        other => Err(DataFusionError::Internal(format!("an offset of type {}", other.data_type()))),
    }
}

impl WindowUDFImpl for Shifted {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn expressions(&self, expr_args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.function.expressions(expr_args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let (exprs, fields) = (args.input_exprs(), args.input_fields());
        let (is_reversed, ignore_nulls) = (args.is_reversed(), args.ignore_nulls());
        // For its errors: of offsets and defaults that are no literals.
        self.function.partition_evaluator_factory(args)?;
        let of = self.function.field(WindowUDFFieldArgs::new(fields, ""))?;
        let null = ScalarValue::try_from(of.data_type())?;
        let default = match literal(exprs, 2).filter(|default| !default.is_null()) {
            Some(default) => default.cast_to(of.data_type())?,
            None => null.clone(),
        };
        let offset = literal(exprs, 1).map_or(Ok(Some(1)), whole)?;
        // Beyond any partition, the one way and the other.
        let offset = offset.map(|offset| offset.max(-i64::MAX));
        let counts_back = (self.name() == "lag") != is_reversed;
        let back = offset.map(|offset| if counts_back { offset } else { -offset });
        Ok(Box::new(Shift { back, ignore_nulls, default, null, seen: VecDeque::new() }))
    }

    fn simplify(&self) -> Option<WindowFunctionSimplification> {
        self.function.simplify()
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.function.field(args)
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.function.sort_options()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arg_types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.function.reverse_expr() {
            ReversedUDWF::Reversed(reversed) => ReversedUDWF::Reversed(shifts(reversed)),
            other => other,
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    /// Rows ahead at most, of both functions and both directions: nobody tells this whether the window is reversed.
    /// With IGNORE NULLS, those that look ahead do not run with some of the rows only.
    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        let offset = match args.get(1) {
            None => Some(1),
            Some(_) => literal(args, 1).and_then(|offset| whole(offset).ok()).map(Option::unwrap_or_default),
        };
        let ahead = offset.and_then(|offset| usize::try_from(offset.unsigned_abs()).ok());
        ahead.map_or(LimitEffect::Unknown, LimitEffect::Relative)
    }
}

/// The evaluator of a partition.
#[derive(Debug)]
struct Shift {
    /// Rows back, ahead where negative; none: the value is NULL.
    back: Option<i64>,
    ignore_nulls: bool,
    default: ScalarValue,
    null: ScalarValue,
    /// The last values that are no NULLs, at most as many as are counted back; with IGNORE NULLS alone.
    seen: VecDeque<ScalarValue>,
}

/// In rows.
fn distance(offset: i64) -> usize {
    usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX)
}

impl Shift {
    /// Where the value of each of `array`'s rows, which are the partition, stands; none: the default.
    fn places(&self, array: &ArrayRef, back: i64) -> Vec<Option<usize>> {
        let (rows, distance) = (array.len(), distance(back));
        if !self.ignore_nulls || back == 0 {
            let place = |row: usize| if back < 0 { row.checked_add(distance) } else { row.checked_sub(distance) };
            return (0..rows).map(|row| place(row).filter(|at| *at < rows)).collect();
        }
        let nulls = array.logical_nulls();
        let is_value = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let values: Vec<usize> = (0..rows).filter(is_value).collect();
        // How many values there are up to a row.
        let mut before = 0;
        let place = |row: usize| {
            let own = usize::from(is_value(&row));
            let at = match back < 0 {
                true => (before + own).checked_add(distance - 1),
                false => before.checked_sub(distance),
            };
            before += own;
            at.and_then(|at| values.get(at).copied())
        };
        (0..rows).map(place).collect()
    }

    /// The value `distance` values back of the row `row`, which is remembered afterwards.
    fn next_seen(&mut self, array: &ArrayRef, row: usize, distance: usize) -> Result<ScalarValue> {
        let is_there = self.seen.len() == distance;
        let found = self.seen.front().filter(|_| is_there).unwrap_or(&self.default).clone();
        let own = ScalarValue::try_from_array(array, row)?;
        if !own.is_null() {
            if is_there {
                self.seen.pop_front();
            }
            self.seen.push_back(own);
        }
        Ok(found)
    }
}

fn first(values: &[ArrayRef]) -> Result<&ArrayRef> {
    values.first().ok_or_else(|| DataFusionError::Internal("lag or lead without a value".into()))
}

impl PartitionEvaluator for Shift {
    fn get_range(&self, idx: usize, n_rows: usize) -> Result<Range<usize>> {
        let own = idx + 1;
        Ok(match self.back {
            Some(back) if back > 0 && !self.ignore_nulls => idx.saturating_sub(distance(back))..own,
            // The row itself and those up to the one that is wanted; not to the end of what has come if that is there.
            Some(back) if back < 0 && !self.ignore_nulls => {
                idx..idx.saturating_add(distance(back)).max(own).min(n_rows)
            }
            Some(back) if back < 0 => idx..n_rows,
            _ => idx..own,
        })
    }

    fn is_causal(&self) -> bool {
        self.back.is_none_or(|back| back >= 0)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let array = first(values)?;
        let Some(back) = self.back else { return Ok(self.null.clone()) };
        let distance = distance(back);
        let at = match back {
            0.. => {
                let own = range.end.saturating_sub(1);
                if back > 0 && self.ignore_nulls {
                    return self.next_seen(array, own, distance);
                }
                own.checked_sub(distance)
            }
            _ => range.start.checked_add(distance),
        };
        match at.filter(|at| *at < array.len()) {
            Some(at) => ScalarValue::try_from_array(array, at),
            None => Ok(self.default.clone()),
        }
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let array = first(values)?;
        let Some(back) = self.back else { return Ok(new_null_array(&self.null.data_type(), num_rows)) };
        let places = self.places(array, back);
        if self.default.is_null() {
            let places: UInt64Array = places.into_iter().map(|at| at.map(|at| at as u64)).collect();
            return Ok(take(array, &places, None)?);
        }
        let default = self.default.to_array_of_size(1)?;
        let places: Vec<(usize, usize)> = places.into_iter().map(|at| at.map_or((1, 0), |at| (0, at))).collect();
        Ok(interleave(&[array.as_ref(), default.as_ref()], &places)?)
    }

    /// What is ahead may be as far as the end of the partition where NULLs do not count.
    fn supports_bounded_execution(&self) -> bool {
        !self.ignore_nulls || self.is_causal()
    }
}

#[cfg(test)]
mod tests;
