//! Subqueries that DataFusion 55.2 plans otherwise than SQL means them, or not at all.
//!
//! Comes in: analysed plans with subqueries in their expressions and LATERAL joins. Goes out: plans in which those that
//! DataFusion decorrelates rightly are left to it, and the others are joins. In the order of the rules:
//!
//! - `values`: subqueries in VALUES.
//! - `null_aware_in`: IN and NOT IN where NULLs count.
//! - `rule`: every other subquery and LATERAL, where an expression may stand. It asks `simple_correlation` what can
//!   stay a subquery, makes expressions of queries without FROM (`inline`), and collects the conditions that keep rows
//!   away (`guards`). What refers to outer rows is seen in `outer_columns`. The rest is computed for all outer rows at
//!   once (`unnest`). It must have one row where one is asked for (`single_row`). The outer rows must be the same each
//!   time (`determinism`).
//! - Here: scalar subqueries that may find no row are NULL then, whatever their column says. DataFusion takes the
//!   column's NOT NULL for the subquery's, and fails when the subquery is empty. The column is passed through a
//!   function that only says "may be NULL". So is one that becomes NOT NULL later: an outer join that is made an inner
//!   one, or a CASE that is simplified.

mod outer_columns;
mod unnest;
mod guards;
mod inline;
mod simple_correlation;
mod single_row;
mod rule;
mod determinism;
mod null_aware_in;
mod values;

#[cfg(test)]
mod tests;

pub(crate) use null_aware_in::null_aware_in;
pub(crate) use rule::decorrelated;
pub(crate) use values::subqueries_in_values;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Subquery, Volatility,
};

use crate::analyze::plan_walk::rewrite_nodes;

/// The rule.
pub(crate) fn nullable_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let function = MayBeNull { signature: Signature::any(1, Volatility::Immutable) };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    rewrite_nodes(plan, |plan| plan.map_expressions(|expr| expr.transform_up(|expr| nullable(expr, &function))))
}

fn nullable(expr: Expr, may_be_null: &Arc<ScalarUDF>) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = expr else { return Ok(Transformed::no(expr)) };
    let fields = subquery.subquery.schema().fields();
    let [field] = &fields[..] else { return Ok(Transformed::no(Expr::ScalarSubquery(subquery))) };
    if has_one_row(&subquery.subquery) || stays_nullable(&subquery.subquery, 0) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let name = field.name().clone();
    let column = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(may_be_null.clone(), vec![column])).alias(name);
    let plan = LogicalPlanBuilder::from(subquery.subquery.clone()).project(vec![call])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery })))
}

/// Whether `plan` always has a row: an aggregate without groups, at most looked at.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Sort(sort) => sort.fetch.is_none() && has_one_row(&sort.input),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}

/// Whether the column `at` of `plan` is one of a table that may be NULL, through operators that say nothing of it.
fn stays_nullable(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::Limit(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => {
            plan.inputs().first().is_some_and(|input| stays_nullable(input, at))
        }
        LogicalPlan::Projection(projection) => {
            let column =
                projection.expr.get(at).and_then(|expr| expr.clone().unalias_nested().data.try_as_col().cloned());
            let at = column.and_then(|column| projection.input.schema().maybe_index_of_column(&column));
            at.is_some_and(|at| stays_nullable(&projection.input, at))
        }
        LogicalPlan::TableScan(scan) => scan.projected_schema.fields().get(at).is_some_and(|field| field.is_nullable()),
        _ => false,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MayBeNull {
    signature: Signature,
}

impl ScalarUDFImpl for MayBeNull {
    fn name(&self) -> &str {
        "may_be_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        arg_types.first().cloned().ok_or_else(|| DataFusionError::Internal("may_be_null without an argument".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(|| DataFusionError::Internal("may_be_null without an argument".into()))
    }
}
