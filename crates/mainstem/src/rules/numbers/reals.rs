//! REAL where PostgreSQL computes with it otherwise than DataFusion.
//!
//! - `+`, `-`, `*`, `/` and `%` of a REAL and an integer or decimal are of DOUBLE PRECISION ([`Reals`], while SQL becomes a plan): a REAL
//!   has seven digits, so that 16777217 would be another number. (Comparisons are `coerced`'s.)
//! - A sum of REALs is a REAL ([`as_doubles`], [`RealTotal`], [`RealTotals`]). It is added as doubles and rounded once, where PostgreSQL rounds
//!   each step.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Accumulator, Cast, EmitTo, Expr, ExprSchemable, GroupsAccumulator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// The planner of expressions.
#[derive(Debug)]
pub(crate) struct Reals;

impl ExprPlanner for Reals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
        let RawBinaryExpr { op, left, right } = expr;
        if matches!(op, Plus | Minus | Multiply | Divide | Modulo)
            && let (Ok(of_left), Ok(of_right)) = (left.get_type(schema), right.get_type(schema))
            && (of_left == DataType::Float32 && is_exact(&of_right)
                || is_exact(&of_left) && of_right == DataType::Float32)
        {
            let double = |side: Expr| Expr::Cast(Cast::new(Box::new(side), DataType::Float64));
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left: double(left), right: double(right) }));
        }
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

fn is_exact(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_decimal()
}

/// `fields` with doubles in the place of REALs.
pub(super) fn double_fields(fields: &[FieldRef]) -> Vec<FieldRef> {
    let double = |field: &FieldRef| match field.data_type() {
        DataType::Float32 => Arc::new(Field::clone(field).with_data_type(DataType::Float64)),
        _ => field.clone(),
    };
    fields.iter().map(double).collect()
}

/// What `make` makes for doubles, with `args` of REALs.
pub(super) fn as_doubles<T>(args: AccumulatorArgs, make: impl FnOnce(AccumulatorArgs) -> Result<T>) -> Result<T> {
    let fields = double_fields(args.expr_fields);
    let return_field = Arc::new(Field::clone(&args.return_field).with_data_type(DataType::Float64));
    make(AccumulatorArgs { expr_fields: &fields, return_field, ..args })
}

fn doubles(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    Ok(values.iter().map(|array| cast(array, &DataType::Float64)).collect::<std::result::Result<_, _>>()?)
}

/// A total of doubles that takes REALs and gives one.
#[derive(Debug)]
pub(super) struct RealTotal(pub(super) Box<dyn Accumulator>);

impl Accumulator for RealTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(&doubles(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(&doubles(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.evaluate()?.cast_to(&DataType::Float32)
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }
}

/// The same for groups.
pub(super) struct RealTotals(pub(super) Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for RealTotals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.update_batch(&doubles(values)?, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate(emit_to)?, &DataType::Float32)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.0.merge_batch(values, group_indices, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(&doubles(values)?, opt_filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
