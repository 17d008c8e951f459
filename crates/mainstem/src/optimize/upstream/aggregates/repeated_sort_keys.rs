//! Sort keys of aggregates that are there twice, or are constants: `array_agg(v ORDER BY id, v, id)`, and DISTINCT ON,
//! which DataFusion makes `first_value(v ORDER BY ...)` of.
//!
//! DataFusion 55.2 counts each key where it makes the columns of an aggregate's state, and each key once where it fills
//! them: it panics ([issue 25398](https://github.com/apache/datafusion/issues/25398)).
//!
//! Comes in: an optimised plan whose keys are columns and literals (`computed_keys`). Goes out: the same, where each
//! key of an aggregate is there once. It does not own: keys of sorts and windows, which DataFusion has once each.

use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::logical_plan::Aggregate;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr};

use crate::analyze::plan_walk::rewrite_nodes;
use crate::optimize::upstream::computed_keys::{with_columns_of, without_alias};

/// `plan` with the keys of its aggregates once each.
///
/// # Errors
/// Internal.
pub(crate) fn sort_keys_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_nodes(plan, |node| match node {
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate),
        other => Ok(Transformed::no(other)),
    })
}

fn of_aggregate(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut functions = aggregate.aggr_expr.clone();
    let mut is_changed = false;
    for function in &mut functions {
        if let Expr::AggregateFunction(function) = without_alias(function) {
            is_changed |= keep_once(&mut function.params.order_by);
        }
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let functions_from = aggregate.schema.fields().len() - functions.len();
    let new = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, aggregate.group_expr, functions)?);
    with_columns_of(&aggregate.schema, functions_from, new)
}

/// Leaves the first of equal `keys`, and no constants; whether some are gone.
fn keep_once(keys: &mut Vec<SortExpr>) -> bool {
    let before = keys.len();
    let mut seen = HashSet::new();
    keys.retain(|key| {
        let value = key.expr.clone().unalias_nested().data;
        !matches!(value, Expr::Literal(..)) && seen.insert(value)
    });
    keys.len() != before
}
