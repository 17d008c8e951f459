//! Groups in memory, made of DataFusion's parts: its map of keys to numbers of groups, or a perfect hash of integers in
//! its place, and its accumulators of each aggregate for all groups.
//!
//! Comes in: rows, or states of groups. Goes out: states of all groups, or the values of their aggregates, in the order
//! in which the groups were first seen.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateMode, PhysicalGroupBy, aggregate_expressions, evaluate_group_by,
};

use crate::exec::code_aggregates::{IntegerGroups, IntegerRange, accumulator_of};

/// What a [`Table`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Rows,
    /// States, keys before them, as [`Table::into_states`] gives them.
    States,
}

impl Takes {
    /// What `aggregate` is given by the operator below it.
    pub(super) fn of(aggregate: &AggregateExec) -> Self {
        match aggregate.mode().input_mode() {
            AggregateInputMode::Raw => Self::Rows,
            AggregateInputMode::Partial => Self::States,
        }
    }
}

/// See the module.
pub(super) struct Table {
    group_by: PhysicalGroupBy,
    keys: Box<dyn GroupValues>,
    /// The group of each row of a batch.
    groups: Vec<usize>,
    aggregates: Vec<Aggregate>,
    takes: Takes,
}

/// One aggregate of all groups.
struct Aggregate {
    accumulator: Box<dyn GroupsAccumulator>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
}

impl Table {
    /// One without groups for `aggregate`, made of what has the columns of `input`; its keys may be integers of
    /// `range`.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn new(
        aggregate: &AggregateExec,
        range: Option<IntegerRange>,
        input: &Schema,
        takes: Takes,
    ) -> Result<Self> {
        let (group_by, mode) = match takes {
            Takes::Rows => (aggregate.group_expr().clone(), AggregateMode::Single),
            Takes::States => (aggregate.group_expr().as_final(), AggregateMode::Final),
        };
        let schema = group_by.group_schema(input)?;
        let integers = range.zip(schema.fields().first());
        let integers = integers.and_then(|(range, field)| IntegerGroups::new(field.data_type(), range));
        let keys: Box<dyn GroupValues> = match integers {
            Some(integers) => Box::new(integers),
            None => new_group_values(schema, &GroupOrdering::None)?,
        };
        let arguments = aggregate_expressions(aggregate.aggr_expr(), &mode, group_by.num_group_exprs())?;
        let filters = aggregate.filter_expr().iter().map(|filter| filter.clone().filter(|_| takes == Takes::Rows));
        let aggregates = aggregate.aggr_expr().iter().zip(arguments).zip(filters);
        let aggregates = aggregates.map(|((function, arguments), filter)| {
            Ok(Aggregate { accumulator: accumulator_of(function)?, arguments, filter })
        });
        Ok(Self { group_by, keys, groups: Vec::new(), aggregates: aggregates.collect::<Result<_>>()?, takes })
    }

    /// Adds the rows or states of `batch`.
    ///
    /// # Errors
    /// Of expressions, and of aggregates that overflow.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let evaluate = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(batch.num_rows());
        let values_of = |aggregate: &Aggregate| {
            let arguments = aggregate.arguments.iter().map(evaluate).collect::<Result<Vec<_>>>()?;
            Ok((arguments, aggregate.filter.as_ref().map(evaluate).transpose()?))
        };
        let values = self.aggregates.iter().map(values_of).collect::<Result<Vec<_>>>()?;
        // Once for each grouping set.
        for keys in evaluate_group_by(&self.group_by, batch)? {
            self.keys.intern(&keys, &mut self.groups)?;
            let groups = self.keys.len();
            for (Aggregate { accumulator, .. }, (arguments, filter)) in self.aggregates.iter_mut().zip(&values) {
                let filter = filter.as_ref().map(|filter| filter.as_boolean());
                match self.takes {
                    Takes::Rows => accumulator.update_batch(arguments, &self.groups, filter, groups)?,
                    Takes::States => accumulator.merge_batch(arguments, &self.groups, groups)?,
                }
            }
        }
        Ok(())
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let accumulators = self.aggregates.iter().map(|aggregate| aggregate.accumulator.size());
        self.keys.size() + self.groups.capacity() * size_of::<usize>() + accumulators.sum::<usize>()
    }

    /// The states of all groups, keys before them, as columns of `schema`.
    ///
    /// # Errors
    /// Of aggregates.
    pub(super) fn into_states(self, schema: SchemaRef) -> Result<RecordBatch> {
        self.into_batch(schema, |accumulator| accumulator.state(EmitTo::All))
    }

    /// The aggregates of all groups, keys before them, as columns of `schema`.
    ///
    /// # Errors
    /// Of aggregates.
    pub(super) fn into_values(self, schema: SchemaRef) -> Result<RecordBatch> {
        self.into_batch(schema, |accumulator| Ok(vec![accumulator.evaluate(EmitTo::All)?]))
    }

    fn into_batch(
        mut self,
        schema: SchemaRef,
        emit: impl Fn(&mut dyn GroupsAccumulator) -> Result<Vec<ArrayRef>>,
    ) -> Result<RecordBatch> {
        if self.keys.is_empty() {
            return Ok(RecordBatch::new_empty(schema));
        }
        let mut columns = self.keys.emit(EmitTo::All)?;
        // Each is freed once its values are arrays.
        for mut aggregate in self.aggregates {
            columns.extend(emit(&mut *aggregate.accumulator)?);
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}
