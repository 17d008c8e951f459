//! Aggregates over a frame whose beginning moves, which DataFusion does not compute: anew over the frame's values.
//!
//! It does not own: sums and averages (`aggregate`).

use std::fmt::{Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr};

use crate::aggregate::no_partial_aggregation;

/// `function`, computed anew over each frame that moves, if it cannot be computed otherwise; others are returned as
/// they are.
pub fn moving(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match function.name() {
        "bit_and" | "bit_or" | "bool_and" | "bool_or" | "corr" | "covar_pop" | "covar_samp" | "stddev"
        | "stddev_pop" | "string_agg" | "var" | "var_pop" => {}
        name if name.starts_with("regr_") => {}
        _ => return function,
    }
    Arc::new(AggregateUDF::new_from_impl(Moving { function: function.inner().clone() }))
}

#[derive(Debug)]
struct Moving {
    function: Arc<dyn AggregateUDFImpl>,
}

impl PartialEq for Moving {
    fn eq(&self, other: &Self) -> bool {
        self.function.as_ref() == other.function.as_ref()
    }
}

impl Eq for Moving {}

impl Hash for Moving {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.dyn_hash(state);
    }
}

impl AggregateUDFImpl for Moving {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.function.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.function.human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.function.window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.function.display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.function.window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        self.function.return_field(arg_fields)
    }

    fn is_nullable(&self) -> bool {
        self.function.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.function.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.function.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.function.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ComputedAnew { function: self.function.clone(), call: Call::of(&args), values: Vec::new() }))
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = self.function.clone().with_beneficial_ordering(beneficial_ordering)?;
        Ok(ordered.map(|function| -> Arc<dyn AggregateUDFImpl> { Arc::new(Self { function }) }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.function.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.function.simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        agg_function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        lit: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.function.simplify_expr_op_literal(agg_function, arg, op, lit, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.function.reverse_expr() {
            ReversedUDAF::Reversed(reversed) => ReversedUDAF::Reversed(moving(reversed)),
            other => other,
        }
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arg_types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.function.is_descending()
    }

    fn value_from_stats(&self, statistics_args: &StatisticsArgs) -> Option<ScalarValue> {
        self.function.value_from_stats(statistics_args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.function.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.function.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.function.supports_within_group_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.function.set_monotonicity(data_type)
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
