//! IN and NOT IN of a query where NULLs matter.
//!
//! `x IN (SELECT y ...)` is NULL if no `y` equals `x`, but one is NULL, or `x` is and there are rows. DataFusion 55.2
//! makes joins of it that know true and false alone. That does where a condition as a whole is to be true: false and
//! NULL are the same there, through AND and OR. It has a join for NOT IN between ANDs as well, of a column in a query
//! that does not refer to the outer row. So
//!
//! - of an aggregate that does, which always is one row, it becomes a comparison with that;
//! - NOT IN of another query that does becomes NOT EXISTS of a row that is equal, or may be;
//! - anywhere else, a CASE tells the three apart, unless nothing can be NULL.
//!
//! Comes in: plans whose types are coerced. It does not own: IN elsewhere than in WHERE and HAVING as such (`rule`).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery, lit, when,
};

use super::has_one_row;
use super::outer_columns::all_outer_columns;
use crate::analyze::plan_walk::rewrite_nodes;

/// Stack that one level of an expression may take, and what is added when there is less.
const STACK_LEVEL: usize = 128 << 10;
const STACK_MORE: usize = 2 << 20;

/// The rule.
pub(crate) fn null_aware_in(plan: LogicalPlan) -> Result<LogicalPlan> {
    let has_member = |expr: &Expr| expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_))));
    let one = |plan: LogicalPlan| {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan else {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            return plan.map_expressions(|expr| {
                if !has_member(&expr)? {
                    return Ok(Transformed::no(expr));
                }
                let name = names.save(&expr);
                Ok(Transformed::yes(name.restore(exact(expr, &schema, Place::Value)?)))
            });
        };
        let has_one = has_member(&predicate)?;
        let predicate = if has_one { exact(predicate, input.schema(), Place::Conjunct)? } else { predicate };
        let filter = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
        Ok(Transformed::new_transformed(filter, has_one))
    };
    rewrite_nodes(plan, one)
}

/// Where in a condition an expression stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Below nothing but AND.
    Conjunct,
    /// Below nothing but AND and OR: NULL is as good as false.
    Condition,
    /// Anywhere else.
    Value,
}

fn exact(expr: Expr, schema: &DFSchema, place: Place) -> Result<Expr> {
    stacker::maybe_grow(STACK_LEVEL, STACK_MORE, || match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let place = if op == Operator::Or && place == Place::Conjunct { Place::Condition } else { place };
            let (left, right) = (exact(*left, schema, place)?, exact(*right, schema, place)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(member) => {
                let negated = !member.negated;
                membership(InSubquery { negated, ..member }, schema, place)
            }
            inner => Ok(Expr::Not(Box::new(exact(inner, schema, Place::Value)?))),
        },
        Expr::InSubquery(member) => membership(member, schema, place),
        other => {
            let part = |part: Expr| exact(part, schema, Place::Value).map(Transformed::yes);
            other.map_children(part).map(|transformed| transformed.data)
        }
    })
}

fn membership(member: InSubquery, schema: &DFSchema, place: Place) -> Result<Expr> {
    let member = InSubquery { subquery: named(member.subquery)?, ..member };
    let InSubquery { expr, subquery, negated } = &member;
    let is_alone = all_outer_columns(&subquery.subquery)?.is_empty();
    if !is_alone && has_one_row(&subquery.subquery) {
        let op = if *negated { Operator::NotEq } else { Operator::Eq };
        let value = Expr::ScalarSubquery(subquery.clone());
        return Ok(Expr::BinaryExpr(BinaryExpr { left: expr.clone(), op, right: Box::new(value) }));
    }
    let has_query = expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))))?;
    let one_null = expr.nullable(schema)?;
    let some_null = subquery.subquery.schema().fields().first().is_some_and(|field| field.is_nullable());
    match (place, *negated) {
        (Place::Conjunct | Place::Condition, false) => return Ok(Expr::InSubquery(member)),
        (Place::Conjunct, true) if is_alone && is_column(expr) => return Ok(Expr::InSubquery(member)),
        (Place::Conjunct, true) if !is_alone && !has_query => return no_member(&member, schema),
        _ if !one_null && !some_null => return Ok(Expr::InSubquery(member)),
        _ => {}
    }
    let mut unknown = Vec::new();
    if one_null {
        let exists = Expr::Exists(Exists { subquery: subquery.clone(), negated: false });
        unknown.push((**expr).clone().is_null().and(exists));
    }
    if some_null {
        let nulls =
            LogicalPlanBuilder::from((*subquery.subquery).clone()).filter(found(subquery).is_null())?.build()?;
        unknown.push(Expr::Exists(Exists { subquery: subquery.with_plan(Arc::new(nulls)), negated: false }));
    }
    let unknown = unknown.into_iter().reduce(Expr::or).unwrap_or_else(|| lit(false));
    let negated = *negated;
    let is_member = Expr::InSubquery(InSubquery { negated: false, ..member });
    when(is_member, lit(!negated)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(negated))
}

/// Whether DataFusion's join for NOT IN, which tells NULL, has a key: a constant is a filter of it.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => is_column(&cast.expr),
        _ => false,
    }
}

/// `subquery` with a name for its column, unless it is a column of a table: what is computed may be called as what
/// stands around it, or beside it where the subquery refers to the outer row, and is wanted twice where NULLs are
/// distinguished.
fn named(subquery: Subquery) -> Result<Subquery> {
    let items = match &*subquery.subquery {
        LogicalPlan::Projection(projection) => projection.expr.as_slice(),
        _ => &[],
    };
    let is_of_table = |item: &Expr| matches!(item, Expr::Column(column) if column.relation.is_some());
    if matches!(items, [Expr::Alias(_)]) || matches!(items, [item] if is_of_table(item)) {
        return Ok(subquery);
    }
    let plan = match (items, &*subquery.subquery) {
        ([item], LogicalPlan::Projection(projection)) => {
            Projection::try_new(vec![item.clone().alias("member")], projection.input.clone())?
        }
        _ => Projection::try_new(vec![found(&subquery).alias("member")], subquery.subquery.clone())?,
    };
    Ok(subquery.with_plan(Arc::new(LogicalPlan::Projection(plan))))
}

/// The column that a subquery gives.
fn found(subquery: &Subquery) -> Expr {
    Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)))
}

/// NOT IN: there is no row that is equal, or may be.
fn no_member(InSubquery { expr, subquery, .. }: &InSubquery, schema: &DFSchema) -> Result<Expr> {
    let mut outer_ref_columns = subquery.outer_ref_columns.clone();
    let outer = (**expr).clone().transform(|expr| {
        let Expr::Column(column) = expr else { return Ok(Transformed::no(expr)) };
        let (_, field) = schema.qualified_field_from_column(&column)?;
        let reference = Expr::OuterReferenceColumn(field.clone(), column);
        outer_ref_columns.push(reference.clone());
        Ok(Transformed::yes(reference))
    })?;
    let may_be_equal = outer.data.eq(found(subquery)).is_not_false();
    let plan = LogicalPlanBuilder::from((*subquery.subquery).clone()).filter(may_be_equal)?.build()?;
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans.clone() };
    Ok(Expr::Exists(Exists { subquery, negated: true }))
}
