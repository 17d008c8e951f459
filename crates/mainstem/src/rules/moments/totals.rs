//! `sum`, `avg`, `min` and `max` of intervals.
//!
//! Months, days and time are added each on its own; an average is the sum divided, whose fractions go down from months to days to time, as
//! `/` has it (`arithmetic`). The least and the greatest are found by the lengths that comparisons go by, where DataFusion looks at
//! months, then days, then time. Values leave a frame that moves as they came; the least and the greatest of one are found anew.
//!
//! Invariant: what does not fit is 22008. It does not own: `sum` and `avg` of numbers (`numbers`), which ask for these by the type.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunctionDefinition};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, ReversedUDAF, Signature, Volatility,
};

use super::arithmetic::{INTERVAL, length, micros_of, out_of_range, scaled};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::rules) enum OfSpans {
    Sum,
    Average,
    Least,
    Greatest,
}

/// The aggregate function over intervals.
pub(in crate::rules) fn of_spans(what: OfSpans) -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(SpanAggregate { what, signature }))
}

/// `min` and `max` of intervals in `expr`, and windows in an order of intervals, by their lengths.
pub(in crate::rules) fn by_length(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let extreme = |name: &str, argument: Option<&Expr>| {
        let what = match name {
            "min" => OfSpans::Least,
            "max" => OfSpans::Greatest,
            _ => return None,
        };
        is_span(argument?, schema).then(|| of_spans(what))
    };
    match expr {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            Ok(match extreme(func.name(), params.args.first()) {
                Some(func) => Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })),
                None => Transformed::no(Expr::AggregateFunction(AggregateFunction { func, params })),
            })
        }
        Expr::WindowFunction(mut window) => {
            let mut changed = false;
            if let Some(func) = extreme(window.fun.name(), window.params.args.first()) {
                window.fun = WindowFunctionDefinition::AggregateUDF(func);
                changed = true;
            }
            for sort in &mut window.params.order_by {
                changed |= measured(&mut sort.expr, schema);
            }
            Ok(Transformed::new_transformed(Expr::WindowFunction(window), changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Makes `expr`, by which rows are sorted, the length of the interval that it is; false for another type.
pub(in crate::rules) fn measured(expr: &mut Expr, schema: &DFSchema) -> bool {
    let is_span = is_span(expr, schema);
    if is_span {
        *expr = length(std::mem::take(expr));
    }
    is_span
}

fn is_span(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| matches!(data_type, DataType::Interval(_)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SpanAggregate {
    what: OfSpans,
    signature: Signature,
}

impl AggregateUDFImpl for SpanAggregate {
    fn name(&self) -> &str {
        match self.what {
            OfSpans::Sum => "sum",
            OfSpans::Average => "avg",
            OfSpans::Least => "min",
            OfSpans::Greatest => "max",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Interval(_)] => Ok(vec![INTERVAL]),
            _ => plan_err!("No function matches the given name and argument types '{}'", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.what {
            OfSpans::Least | OfSpans::Greatest => Ok(Box::new(Extreme { what: self.what, found: None })),
            _ if args.is_distinct => {
                Err(DataFusionError::NotImplemented(format!("{}(DISTINCT ...) of intervals", self.name())))
            }
            what => Ok(Box::new(SpanTotal { what, ..SpanTotal::default() })),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.what {
            OfSpans::Least | OfSpans::Greatest => {
                Ok(Box::new(SlidingExtreme { what: self.what, values: VecDeque::new(), first: 0, next: 0 }))
            }
            _ => self.accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |part: &str, data_type| Arc::new(Field::new(format_state_name(args.name, part), data_type, true));
        Ok(match self.what {
            OfSpans::Least | OfSpans::Greatest => vec![field("found", INTERVAL)],
            _ => ["months", "days", "micros", "count"].map(|part| field(part, DataType::Int64)).to_vec(),
        })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

type Spans = PrimitiveArray<IntervalMonthDayNanoType>;

fn spans(values: &[ArrayRef]) -> Result<Spans> {
    let values = values.first().ok_or_else(mismatch)?;
    Ok(cast(values, &INTERVAL)?.as_primitive::<IntervalMonthDayNanoType>().clone())
}

fn mismatch() -> DataFusionError {
    DataFusionError::Internal("an aggregate of intervals got something else".into())
}

fn scalar(span: Option<IntervalMonthDayNano>) -> ScalarValue {
    ScalarValue::IntervalMonthDayNano(span)
}

/// Sum or average of intervals; values can be taken out again.
#[derive(Debug)]
struct SpanTotal {
    what: OfSpans,
    months: i64,
    days: i64,
    micros: i64,
    count: i64,
}

impl Default for SpanTotal {
    fn default() -> Self {
        Self { what: OfSpans::Sum, months: 0, days: 0, micros: 0, count: 0 }
    }
}

impl SpanTotal {
    fn add(&mut self, months: i64, days: i64, micros: i64, count: i64) -> Result<()> {
        let sum = |to: i64, more: i64| to.checked_add(more).ok_or_else(|| out_of_range("interval"));
        self.months = sum(self.months, months)?;
        self.days = sum(self.days, days)?;
        self.micros = sum(self.micros, micros)?;
        self.count += count;
        Ok(())
    }

    fn total(&self) -> Option<IntervalMonthDayNano> {
        let (months, days) = (i32::try_from(self.months).ok()?, i32::try_from(self.days).ok()?);
        Some(IntervalMonthDayNano::new(months, days, self.micros.checked_mul(1_000)?))
    }
}

impl Accumulator for SpanTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for span in spans(values)?.iter().flatten() {
            self.add(span.months.into(), span.days.into(), span.nanoseconds / 1_000, 1)?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for span in spans(values)?.iter().flatten() {
            self.add(-i64::from(span.months), -i64::from(span.days), -(span.nanoseconds / 1_000), -1)?;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return Ok(scalar(None));
        }
        let total = self.total().ok_or_else(|| out_of_range("interval"))?;
        let count = self.count as f64;
        Ok(scalar(Some(if self.what == OfSpans::Average { scaled(total, |part| part / count)? } else { total })))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts = [self.months, self.days, self.micros, self.count];
        Ok(parts.into_iter().map(|part| ScalarValue::Int64(Some(part))).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let parts = states.iter().map(|part| part.as_primitive_opt::<Int64Type>()).collect::<Option<Vec<_>>>();
        let Some([months, days, micros, counts]) = parts.as_deref() else { return Err(mismatch()) };
        for row in 0..counts.len() {
            self.add(months.value(row), days.value(row), micros.value(row), counts.value(row))?;
        }
        Ok(())
    }
}

/// Whether `span` takes the place of `other`.
fn is_beyond(what: OfSpans, span: IntervalMonthDayNano, other: IntervalMonthDayNano) -> bool {
    let (span, other) = (micros_of(span), micros_of(other));
    if what == OfSpans::Least { span < other } else { span > other }
}

/// The least or the greatest interval.
#[derive(Debug)]
struct Extreme {
    what: OfSpans,
    found: Option<IntervalMonthDayNano>,
}

impl Accumulator for Extreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for span in spans(values)?.iter().flatten() {
            if self.found.is_none_or(|found| is_beyond(self.what, span, found)) {
                self.found = Some(span);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(scalar(self.found))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![scalar(self.found)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// The least or the greatest interval of a frame that moves. Of the values in it only those are kept that no later one goes beyond.
#[derive(Debug)]
struct SlidingExtreme {
    what: OfSpans,
    /// With their numbers among all values that came; each later one is less far out.
    values: VecDeque<(u64, IntervalMonthDayNano)>,
    /// The number of the oldest value in the frame, and of the next one to come.
    first: u64,
    next: u64,
}

impl Accumulator for SlidingExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for span in spans(values)?.iter().flatten() {
            while self.values.pop_back_if(|(_, held)| is_beyond(self.what, span, *held)).is_some() {}
            self.values.push_back((self.next, span));
            self.next += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.first += spans(values)?.iter().flatten().count() as u64;
        while self.values.pop_front_if(|(number, _)| *number < self.first).is_some() {}
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(scalar(self.values.front().map(|(_, span)| *span)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<(u64, IntervalMonthDayNano)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(no_parts())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(no_parts())
    }
}

fn no_parts() -> DataFusionError {
    DataFusionError::Internal("windows are not computed in parts".into())
}
