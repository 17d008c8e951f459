//! Queries without rows of their own, and conditions on the rows beside LATERAL ones.
//!
//! `(SELECT t.a + 1)` is the expression `t.a + 1` of the outer row, `LATERAL (SELECT t.a + 1 AS x) l` a column more:
//! nothing is to be joined. That is faster, exact where `random()` is in it, and computed for no row that does not ask
//! for it. Rows that WHERE takes away beside a LATERAL query do not ask for it either.
//!
//! Comes in: plans whose types are coerced. Goes out: plans of the same columns and rows. It does not own: queries over
//! rows (`rule`).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, JoinType, LogicalPlan, Projection, lit, when};

use super::guards::holds_query;
use super::outer_columns::{bare_lateral, is_lateral};
use crate::analyze::plan_walk::rewrite_nodes;

/// `plan` without such queries, and with conditions below LATERAL ones.
///
/// # Errors
/// Those of types.
pub(super) fn inlined(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_down_with_subqueries(filtered_first)?.data;
    rewrite_nodes(plan, |node| {
        let node = match node {
            LogicalPlan::Join(join) => beside(join)?,
            node => Transformed::no(node),
        };
        node.transform_data(in_expressions)
    })
}

/// The one item of a query without FROM, and its condition.
fn item_of(query: &LogicalPlan) -> Option<(&Expr, Option<&Expr>)> {
    let LogicalPlan::Projection(projection) = query else { return None };
    let [item] = projection.expr.as_slice() else { return None };
    match &*projection.input {
        LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some((item, None)),
        LogicalPlan::Filter(filter) => match &*filter.input {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some((item, Some(&filter.predicate))),
            _ => None,
        },
        _ => None,
    }
}

/// Scalar subqueries in the expressions of `node`.
fn in_expressions(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    // What ORDER BY refers to may be no select item.
    if matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Subquery(_)) {
        return Ok(Transformed::no(node));
    }
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        if !holds_query(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let inlined = expr.transform_up(|expr| {
            let Expr::ScalarSubquery(query) = &expr else { return Ok(Transformed::no(expr)) };
            let Some((item, condition)) = item_of(&query.subquery) else { return Ok(Transformed::no(expr)) };
            let refers = item.contains_outer() || condition.is_some_and(Expr::contains_outer);
            if !refers {
                return Ok(Transformed::no(expr));
            }
            let value = here(item.clone().unalias(), &schema)?;
            let value = match condition {
                Some(condition) => when(here(condition.clone(), &schema)?, value).end()?,
                None => value,
            };
            Ok(Transformed::yes(value))
        })?;
        Ok(if inlined.transformed { inlined.update_data(|expr| name.restore(expr)) } else { inlined })
    })
}

/// `expr` of a query, among the outer rows, of `schema`.
fn here(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let here = expr.transform(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) if schema.maybe_index_of_column(&column).is_some() => {
            Ok(Transformed::yes(Expr::Column(column)))
        }
        other => Ok(Transformed::no(other)),
    });
    here.map(|here| here.data)
}

/// A join with a LATERAL query without FROM as columns beside its left side.
fn beside(join: Join) -> Result<Transformed<LogicalPlan>> {
    let has_condition = !join.on.is_empty() || join.filter.as_ref().is_some_and(|filter| *filter != lit(true));
    let is_plain = match join.join_type {
        JoinType::Inner => true,
        JoinType::Left => !has_condition,
        _ => false,
    };
    let query = bare_lateral(&join.right).filter(|_| is_plain);
    let items = query.and_then(|query| match &*query.subquery {
        LogicalPlan::Projection(projection) => match &*projection.input {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some(projection.expr.clone()),
            _ => None,
        },
        _ => None,
    });
    let Some(items) = items else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    let outer = join.left.schema();
    let mut columns: Vec<Expr> = outer.columns().into_iter().map(Expr::Column).collect();
    for (item, (relation, field)) in items.into_iter().zip(join.right.schema().iter()) {
        columns.push(here(item.unalias(), outer)?.alias_qualified(relation.cloned(), field.name()));
    }
    let mut plan = LogicalPlan::Projection(Projection::try_new(columns, join.left.clone())?);
    if has_condition {
        let equal = join.on.into_iter().map(|(left, right)| left.eq(right));
        if let Some(condition) = conjunction(equal.chain(join.filter)) {
            plan = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?);
        }
    }
    Ok(Transformed::yes(plan))
}

/// Conditions above a join with a LATERAL query that are about its left side go there.
fn filtered_first(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = node else { return Ok(Transformed::no(node)) };
    let LogicalPlan::Join(join) = &*input else {
        return Ok(Transformed::no(LogicalPlan::Filter(Filter::try_new(predicate, input)?)));
    };
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) || !is_lateral(join) {
        return Ok(Transformed::no(LogicalPlan::Filter(Filter::try_new(predicate, input)?)));
    }
    let is_of_left = |part: &Expr| {
        let has = |column: &Column| join.left.schema().maybe_index_of_column(column).is_some();
        !part.is_volatile()
            && !holds_query(part)
            && !part.contains_outer()
            && part.column_refs().iter().all(|column| has(column))
    };
    let (first, later): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(predicate).into_iter().partition(is_of_left);
    let mut join = join.clone();
    let moved = !first.is_empty();
    if let Some(first) = conjunction(first) {
        join.left = Arc::new(LogicalPlan::Filter(Filter::try_new(first, join.left)?));
    }
    let join = LogicalPlan::Join(join);
    let plan = match conjunction(later) {
        Some(later) => LogicalPlan::Filter(Filter::try_new(later, Arc::new(join))?),
        None => join,
    };
    Ok(Transformed::new_transformed(plan, moved))
}
