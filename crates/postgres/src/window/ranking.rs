//! Functions that count the rows of a window: `row_number`, `rank`, `dense_rank` and `ntile` give a BIGINT.
//!
//! DataFusion's give unsigned numbers of 64 bits, which beside a BIGINT become decimals: `row_number() OVER (...) / 2`
//! would have digits behind the point. No window has 2^63 rows, so that every count fits.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion_expr::window_state::WindowAggState;
use datafusion_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion_physical_expr::PhysicalExpr;
use mainstem_storage::Error;

/// invalid_argument_for_ntile_function
const BAD_NTILE: &str = "22014";

/// `function`, whose numbers are BIGINT if they are counts; others are returned as they are.
pub fn whole_numbers(function: Arc<WindowUDF>) -> Arc<WindowUDF> {
    match function.name() {
        "row_number" | "rank" | "dense_rank" | "ntile" => Arc::new(WindowUDF::new_from_impl(Counted { function })),
        _ => function,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Counted {
    function: Arc<WindowUDF>,
}

impl WindowUDFImpl for Counted {
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
        match self.function.partition_evaluator_factory(args) {
            Ok(counts) => Ok(Box::new(Counts { counts })),
            Err(DataFusionError::Execution(_)) if self.name() == "ntile" => {
                let error = Error::invalid(BAD_NTILE, "argument of ntile must be greater than zero");
                Err(DataFusionError::External(Box::new(error)))
            }
            Err(other) => Err(other),
        }
    }

    fn simplify(&self) -> Option<WindowFunctionSimplification> {
        self.function.simplify()
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.function.field(args)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(DataType::Int64)))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.function.sort_options()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arg_types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        self.function.reverse_expr()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.function.inner().limit_effect(args)
    }
}

/// The evaluator of such a function.
#[derive(Debug)]
struct Counts {
    counts: Box<dyn PartitionEvaluator>,
}

fn signed(counts: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(counts, &DataType::Int64)?)
}

impl PartitionEvaluator for Counts {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.counts.memoize(state)
    }

    fn get_range(&self, idx: usize, n_rows: usize) -> Result<Range<usize>> {
        self.counts.get_range(idx, n_rows)
    }

    fn is_causal(&self) -> bool {
        self.counts.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        signed(&self.counts.evaluate_all(values, num_rows)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.counts.evaluate(values, range)?.cast_to(&DataType::Int64)
    }

    fn evaluate_all_with_rank(&self, num_rows: usize, ranks_in_partition: &[Range<usize>]) -> Result<ArrayRef> {
        signed(&self.counts.evaluate_all_with_rank(num_rows, ranks_in_partition)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.counts.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.counts.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.counts.include_rank()
    }
}
