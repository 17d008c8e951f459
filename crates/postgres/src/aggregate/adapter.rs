//! Aggregates with an [`AggregateChange`] of ours around them: other accumulators.
//!
//! Comes in: a function as it is registered. Goes out: one of the same name, types and documentation, which asks the
//! change for its accumulators. Two are equal if what they are around is.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

/// What is otherwise in an aggregate; by default nothing. The methods are those of [`AggregateUDFImpl`], with the
/// function as it was.
pub(crate) trait AggregateChange: Copy + Debug + Send + Sync + 'static {
    fn accumulator(&self, function: &Arc<dyn AggregateUDFImpl>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        function.accumulator(args)
    }

    fn create_groups_accumulator(
        &self,
        function: &Arc<dyn AggregateUDFImpl>,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        function.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(
        &self,
        function: &Arc<dyn AggregateUDFImpl>,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn Accumulator>> {
        function.create_sliding_accumulator(args)
    }

    fn simplify(&self, function: &Arc<dyn AggregateUDFImpl>) -> Option<AggregateFunctionSimplification> {
        function.simplify()
    }
}

/// `function` with `change` around it.
pub(crate) fn adapt(function: &AggregateUDF, change: impl AggregateChange) -> AggregateUDF {
    AggregateUDF::new_from_impl(Adapter { function: function.inner().clone(), change })
}

#[derive(Debug)]
struct Adapter<C> {
    function: Arc<dyn AggregateUDFImpl>,
    change: C,
}

impl<C> PartialEq for Adapter<C> {
    fn eq(&self, other: &Self) -> bool {
        self.function.as_ref() == other.function.as_ref()
    }
}

impl<C> Eq for Adapter<C> {}

impl<C> Hash for Adapter<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.dyn_hash(state);
    }
}

impl<C: AggregateChange> AggregateUDFImpl for Adapter<C> {
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
        self.change.accumulator(&self.function, args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.function.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.function.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.change.create_groups_accumulator(&self.function, args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.change.create_sliding_accumulator(&self.function, args)
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = self.function.clone().with_beneficial_ordering(beneficial_ordering)?;
        Ok(ordered.map(|function| -> Arc<dyn AggregateUDFImpl> { Arc::new(Self { function, change: self.change }) }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.function.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.change.simplify(&self.function)
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
            ReversedUDAF::Reversed(reversed) => ReversedUDAF::Reversed(Arc::new(adapt(&reversed, self.change))),
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
