//! Aggregates over a frame whose beginning moves, which DataFusion does not compute: anew over the frame's values.
//!
//! It does not own: sums and averages (`aggregate`).

use std::fmt::{Debug, Formatter};
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl};
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr};

use crate::aggregate::{AggregateChange, adapt, no_partial_aggregation};

/// `function`, computed anew over each frame that moves, if it cannot be computed otherwise; others are returned as
/// they are.
pub fn moving(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match function.name() {
        "bit_and" | "bit_or" | "bool_and" | "bool_or" | "corr" | "covar_pop" | "covar_samp" | "stddev"
        | "stddev_pop" | "string_agg" | "var" | "var_pop" => {}
        name if name.starts_with("regr_") => {}
        _ => return function,
    }
    Arc::new(adapt(&function, Moving))
}

/// See [`moving`].
#[derive(Clone, Copy, Debug)]
struct Moving;

impl AggregateChange for Moving {
    fn create_sliding_accumulator(
        &self,
        function: &Arc<dyn AggregateUDFImpl>,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ComputedAnew { function: function.clone(), call: Call::of(&args), values: Vec::new() }))
    }
}

/// What an accumulator is made of, to make more of them.
struct Call {
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl Call {
    fn of(args: &AccumulatorArgs) -> Self {
        Self {
            return_field: args.return_field.clone(),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys.to_vec(),
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    fn args(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: self.return_field.clone(),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        }
    }
}

/// Holds a frame's values; values leave in the order in which they came.
struct ComputedAnew {
    function: Arc<dyn AggregateUDFImpl>,
    call: Call,
    values: Vec<ArrayRef>,
}

impl Debug for ComputedAnew {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComputedAnew").field("function", &self.function.name()).finish_non_exhaustive()
    }
}

impl Accumulator for ComputedAnew {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if self.values.is_empty() {
            self.values = values.to_vec();
            return Ok(());
        }
        for (held, more) in self.values.iter_mut().zip(values) {
            *held = concat(&[held.as_ref(), more.as_ref()])?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (held, gone) in self.values.iter_mut().zip(values) {
            let kept = held.len().saturating_sub(gone.len());
            *held = held.slice(held.len() - kept, kept);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut fresh = self.function.accumulator(self.call.args())?;
        if !self.values.is_empty() {
            fresh.update_batch(&self.values)?;
        }
        fresh.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.iter().map(|held| held.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(no_partial_aggregation())
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(no_partial_aggregation())
    }
}
