//! Types of the columns of WITH RECURSIVE.
//!
//! DataFusion takes the types of the first query, and casts what the recursive one gives to them: `SELECT 0.5 UNION ALL
//! SELECT f / 2` would be rounded to one digit behind the point. In PostgreSQL types that differ are 42804. So
//!
//! 1. NULL in the first query is text ([`typed_nulls`]);
//! 2. the statement is planned, and each recursive query in the plan is asked whether a column does not hold what comes
//!    into it ([`check`]): a cast on top of the recursive query, which nobody has written, says so.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, Query, SelectItem, SetExpr, SetOperator, Statement, Value, Visitor,
    VisitorMut,
};
use mainstem_postgres::types::{sql_name, sql_type};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType as ColumnType;
use mainstem_storage::{Error, Result};

use crate::analyze::cast;
use crate::error::from_datafusion;
use crate::sql::{fold, state};
use crate::walk::{walk, walk_mut};

const DIGITS: u8 = 38;

/// Plans `statement` with `plan`. The columns of its recursive queries must have types that hold their values.
///
/// # Errors
/// Those of `plan`; 42804, 42P19.
pub(super) fn planned(
    mut statement: Statement,
    plan: impl FnOnce(Statement) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    let mut seen = Recursive::default();
    let ControlFlow::Continue(()) = walk(&statement, &mut seen);
    if seen.0.is_empty() {
        return plan(statement);
    }
    let ControlFlow::Continue(()) = walk_mut(&mut statement, &mut TypedNulls);
    let made = plan(statement)?;
    check(&made, &seen)?;
    Ok(made)
}

/// The recursive queries of a statement by name, each with which items of its recursive query are casts that are
/// written.
#[derive(Debug, Default)]
struct Recursive(BTreeMap<String, Vec<bool>>);

impl Visitor for Recursive {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let Some(with) = query.with.as_ref().filter(|with| with.recursive) else { return ControlFlow::Continue(()) };
        for cte in &with.cte_tables {
            let SetExpr::SetOperation { op: SetOperator::Union, right, .. } = &*cte.query.body else { continue };
            let casts = self.0.entry(fold(&cte.alias.name)).or_default();
            let SetExpr::Select(select) = &**right else { continue };
            for (at, item) in select.projection.iter().enumerate() {
                let expr = match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
                    _ => break,
                };
                casts.resize(casts.len().max(at + 1), false);
                if let Some(slot) = casts.get_mut(at) {
                    *slot |= is_cast(expr);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn is_cast(expr: &SqlExpr) -> bool {
    match expr {
        SqlExpr::Nested(inner) => is_cast(inner),
        expr => matches!(expr, SqlExpr::Cast { .. }),
    }
}

/// Makes texts of the NULLs that the first query of each recursive one selects.
struct TypedNulls;

impl VisitorMut for TypedNulls {
    type Break = std::convert::Infallible;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(with) = query.with.as_mut().filter(|with| with.recursive) {
            for cte in &mut with.cte_tables {
                if let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = &mut *cte.query.body {
                    typed_nulls(left);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Makes texts of the NULLs that `first` selects.
fn typed_nulls(first: &mut SetExpr) {
    let SetExpr::Select(select) = first else { return };
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if matches!(expr, SqlExpr::Value(value) if value.value == Value::Null) {
            *expr = cast(expr.clone(), SqlType::Text);
        }
    }
}

/// Refuses the recursive queries in `plan` whose first query's types do not hold the values.
///
/// # Errors
/// 42804, 42P19.
fn check(plan: &LogicalPlan, seen: &Recursive) -> Result<()> {
    let mut checked = Ok(());
    let looked = plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::RecursiveQuery(query) = plan {
            checked = check_aggregates(query).and_then(|()| check_columns(query, seen));
        }
        Ok(if checked.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    looked.map_err(|e| from_datafusion(&e))?;
    checked
}

/// Refuses aggregates over the query's own rows: of no rows they have one, and the query would never end.
fn check_aggregates(query: &RecursiveQuery) -> Result<()> {
    let of_own = |plan: &LogicalPlan| {
        let is_own =
            |plan: &LogicalPlan| matches!(plan, LogicalPlan::TableScan(scan) if scan.table_name.table() == query.name);
        plan.exists(|plan| Ok(is_own(plan))).unwrap_or_default()
    };
    let aggregates = |plan: &LogicalPlan| match plan {
        LogicalPlan::Aggregate(aggregate) => !aggregate.aggr_expr.is_empty() && of_own(&aggregate.input),
        _ => false,
    };
    if query.recursive_term.exists(|plan| Ok(aggregates(plan))).unwrap_or_default() {
        let message = "aggregate functions are not allowed in a recursive query's recursive term";
        return Err(Error::invalid(state::INVALID_RECURSION, message));
    }
    Ok(())
}

fn check_columns(query: &RecursiveQuery, seen: &Recursive) -> Result<()> {
    let casts = seen.0.get(&query.name);
    for (at, field) in query.static_term.schema().fields().iter().enumerate() {
        let is_cast = casts.and_then(|casts| casts.get(at)).copied().unwrap_or(false);
        let Some(given) = given(&query.recursive_term, at, is_cast) else { continue };
        if holds(field.data_type(), &given) {
            continue;
        }
        let name = |data_type: &DataType| match sql_type(data_type) {
            Some(ColumnType::Decimal { .. }) => "numeric".to_owned(),
            Some(known) => sql_name(known),
            None => data_type.to_string().to_lowercase(),
        };
        let message = format!(
            "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall; cast the output of \
             the non-recursive term to the correct type",
            query.name,
            at + 1,
            name(field.data_type()),
            name(&given),
        );
        return Err(Error::invalid(sqlstate::TYPE_MISMATCH, message));
    }
    Ok(())
}

/// The type of the values that `recursive` casts to another type for its column `at`; `None` where they have that of
/// the column, or a cast is written.
fn given(recursive: &LogicalPlan, at: usize, is_written: bool) -> Option<DataType> {
    let LogicalPlan::Projection(projection) = recursive else { return None };
    let mut expr = projection.expr.get(at)?;
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    let Expr::Cast(cast) = expr else { return None };
    if is_written && !matches!(&*cast.expr, Expr::Cast(_)) {
        return None;
    }
    if matches!(&*cast.expr, Expr::Literal(scalar, _) if scalar.data_type().is_string() || scalar.is_null()) {
        return None;
    }
    cast.expr.get_type(projection.input.schema()).ok().filter(|given| given != cast.field.data_type())
}

/// Whether a column of type `first` holds values of type `given`.
fn holds(first: &DataType, given: &DataType) -> bool {
    use DataType::{Date32, Decimal128, Float32, Float64, Null, Timestamp};
    match (first, given) {
        (Timestamp(_, None), Date32) | (Timestamp(..), Date32 | Timestamp(_, None)) | (_, Null) => true,
        (Timestamp(_, a), Timestamp(_, b)) => a.is_some() == b.is_some(),
        (Float64, given) => given.is_numeric(),
        (Float32, given) => given.is_numeric() && *given != Float64,
        (Decimal128(precision, scale), Decimal128(_, given)) => *precision == DIGITS && scale >= given,
        (Decimal128(precision, _), given) => *precision == DIGITS && given.is_integer(),
        (first, given) => first.is_string() && given.is_string() || first.is_integer() && given.is_integer(),
    }
}
