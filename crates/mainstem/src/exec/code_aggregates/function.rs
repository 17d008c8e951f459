//! Aggregate functions over the groups of operators of ours: arguments and filter of a batch, and what they make of
//! them.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::logical_expr::GroupsAccumulator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExpr};
use datafusion::physical_plan::aggregates::AggregateExec;

/// An aggregate function, and what it has of each group.
pub(in crate::exec) struct Function {
    pub(super) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    /// What it has of each group.
    pub(in crate::exec) accumulator: Box<dyn GroupsAccumulator>,
}

/// Whether all functions of `aggregate` can be a [`Function`]: none wants its rows in an order of its own.
pub(in crate::exec) fn takes_any_order(aggregate: &AggregateExec) -> bool {
    aggregate.aggr_expr().iter().all(|function| function.order_bys().is_empty())
}

/// The accumulator of `function` for all groups, or one for each where it has none.
pub(in crate::exec) fn accumulator_of(function: &Arc<AggregateFunctionExpr>) -> Result<Box<dyn GroupsAccumulator>> {
    if function.groups_accumulator_supported() {
        return function.create_groups_accumulator();
    }
    let function = function.clone();
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator())))
}

impl Function {
    /// `function`, of rows for which `filter` holds, if there is one. Knows no group yet.
    pub(in crate::exec) fn new(
        function: &Arc<AggregateFunctionExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Self> {
        let accumulator = accumulator_of(function)?;
        Ok(Self { arguments: function.expressions(), filter: filter.cloned(), accumulator })
    }

    /// Takes in the rows of `batch`, each of which belongs to the group of its number, below `groups`.
    pub(in crate::exec) fn update(&mut self, batch: &RecordBatch, numbers: &[usize], groups: usize) -> Result<()> {
        let (arguments, filter) = self.evaluate(batch)?;
        let filter = filter.as_deref().map(as_boolean_array).transpose()?;
        self.accumulator.update_batch(&arguments, numbers, filter, groups)
    }

    /// The states of groups that have one row of `batch` each.
    pub(super) fn states(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let (arguments, filter) = self.evaluate(batch)?;
        self.accumulator.convert_to_state(&arguments, filter.as_deref().map(as_boolean_array).transpose()?)
    }

    /// Arguments and filter for the rows of `batch`.
    fn evaluate(&self, batch: &RecordBatch) -> Result<(Vec<ArrayRef>, Option<ArrayRef>)> {
        let rows = batch.num_rows();
        let values = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(rows);
        let arguments = self.arguments.iter().map(values).collect::<Result<Vec<_>>>()?;
        Ok((arguments, self.filter.as_ref().map(values).transpose()?))
    }
}
