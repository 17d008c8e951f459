//! Types of the columns of WITH RECURSIVE.
//!
//! DataFusion takes the types of the first query, and casts what the recursive one gives to them: `SELECT 0.5 UNION ALL
//! SELECT f / 2` rounded to one digit behind the point. PostgreSQL's decimals have the digits that they need, and other
//! types that differ are 42804. So
//!
//! 1. NULL in the first query is text ([`typed_nulls`]);
//! 2. the statement is planned, and each recursive query in the plan is asked which of its columns the recursive
//!    query's values do not fit in ([`misfits`]): a cast on top of it, which nobody has written, says so;
//! 3. decimals get more digits: the first query is put into one that casts them ([`widen`]), and all is planned again,
//!    [`ROUNDS_MAX`] times, for wider columns may make wider values; then it is 0A000.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as SqlType, Expr as SqlExpr, Query, SelectItem, SetExpr, SetOperator, Statement, TableFactor,
    Value, Visit, VisitMut, Visitor, VisitorMut,
};
use mainstem_postgres::types::{sql_name, sql_type};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType as ColumnType;
use mainstem_storage::{Error, Result};

use crate::error::from_datafusion;
use crate::sql::{fold, query_of, state};

/// How often a statement is planned anew.
const ROUNDS_MAX: usize = 4;
const DIGITS: u8 = 38;
/// Digits behind the point that a column gets first: those of a quotient.
const SCALE: i8 = 16;
/// Those that it gets then: products with more of them are rounded.
const SCALE_MAX: i8 = 20;

/// Plans `statement` with `plan`, until the columns of its recursive queries have types that hold their values.
///
/// # Errors
/// Those of `plan`; 42804, 42P19, 0A000.
pub(super) fn planned(
    mut statement: Statement,
    mut plan: impl FnMut(Statement) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    let mut seen = Recursive::default();
    let ControlFlow::Continue(()) = Visit::visit(&statement, &mut seen);
    if seen.0.is_empty() {
        return plan(statement);
    }
    let ControlFlow::Continue(()) = VisitMut::visit(&mut statement, &mut Changed(&typed_nulls));
    for round in 0..=ROUNDS_MAX {
        let made = plan(statement.clone())?;
        let wider = misfits(&made, &seen, round)?;
        if wider.is_empty() {
            return Ok(made);
        }
        let ControlFlow::Continue(()) = VisitMut::visit(
            &mut statement,
            &mut Changed(&|name: &str, first: &mut Box<SetExpr>| {
                if let Some(columns) = wider.get(name)
                    && let Some(cast) = widen(first, columns)
                {
                    *first = cast;
                }
            }),
        );
    }
    Err(Error::unsupported(
        "a recursive query whose decimals get more digits each time (cast the columns of both its queries to one type)",
    ))
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

/// Changes the first query of each recursive one.
struct Changed<'f, F: ?Sized>(&'f F);

impl<F: Fn(&str, &mut Box<SetExpr>) + ?Sized> VisitorMut for Changed<'_, F> {
    type Break = std::convert::Infallible;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(with) = query.with.as_mut().filter(|with| with.recursive) {
            for cte in &mut with.cte_tables {
                if let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = &mut *cte.query.body {
                    (self.0)(&fold(&cte.alias.name), left);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Makes texts of the NULLs that `first` selects.
fn typed_nulls(_: &str, first: &mut Box<SetExpr>) {
    let SetExpr::Select(select) = &mut **first else { return };
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if matches!(expr, SqlExpr::Value(value) if value.value == Value::Null) {
            *expr = SqlExpr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(expr.clone()),
                data_type: SqlType::Text,
                array: false,
                format: None,
            };
        }
    }
}

/// A column of a first query: its name, and the type that it gets, if it is another one.
type Column = (String, Option<ColumnType>);

/// The first queries' columns of the recursive queries in `plan` some of which have to be wider, by the name of the
/// query.
///
/// # Errors
/// 42804, 42P19.
fn misfits(plan: &LogicalPlan, seen: &Recursive, round: usize) -> Result<BTreeMap<String, Vec<Column>>> {
    let mut wider = BTreeMap::new();
    let mut failed = None;
    let looked = plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::RecursiveQuery(query) = plan {
            match columns_of(query, seen, round) {
                Ok(columns) if columns.iter().any(|(_, data_type)| data_type.is_some()) => {
                    wider.insert(query.name.clone(), columns);
                }
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    looked.map_err(|e| from_datafusion(&e))?;
    match failed {
        Some(error) => Err(error),
        None => Ok(wider),
    }
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

fn columns_of(query: &RecursiveQuery, seen: &Recursive, round: usize) -> Result<Vec<Column>> {
    check_aggregates(query)?;
    let casts = seen.0.get(&query.name);
    let fields = query.static_term.schema().fields();
    let column = |(at, field): (usize, &arrow::datatypes::FieldRef)| {
        let is_cast = casts.and_then(|casts| casts.get(at)).copied().unwrap_or(false);
        let given = given(&query.recursive_term, at, is_cast);
        let wanted = match given {
            Some(given) => wanted(field.data_type(), &given, round).ok_or_else(|| {
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
                Error::invalid(sqlstate::TYPE_MISMATCH, message)
            })?,
            None => None,
        };
        Ok((field.name().clone(), wanted))
    };
    fields.iter().enumerate().map(column).collect()
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

/// The type that a column of type `first` gets, into which values of type `given` come: `Some(None)` for its own,
/// `None` if there is none.
fn wanted(first: &DataType, given: &DataType, round: usize) -> Option<Option<ColumnType>> {
    use DataType::{Date32, Decimal128, Float32, Float64, Timestamp};
    match (first, given) {
        (_, DataType::Null) => Some(None),
        (first, given) if first.is_string() && given.is_string() => Some(None),
        (first, given) if first.is_integer() && given.is_integer() => Some(None),
        (Float64, given) if given.is_numeric() => Some(None),
        (Float32, given) if given.is_numeric() && *given != Float64 => Some(None),
        (Timestamp(_, None), Date32) | (Timestamp(..), Date32 | Timestamp(_, None)) => Some(None),
        (Timestamp(_, a), Timestamp(_, b)) if a.is_some() == b.is_some() => Some(None),
        (Decimal128(precision, scale), given) if given.is_integer() || matches!(given, Decimal128(..)) => {
            let of_given = if let Decimal128(_, scale) = given { *scale } else { 0 };
            if *precision == DIGITS && *scale >= of_given {
                return Some(None);
            }
            let scale = match round {
                _ if of_given <= *scale => *scale,
                0 => SCALE.max(of_given),
                _ => SCALE_MAX.max(of_given),
            };
            Some(Some(ColumnType::Decimal { precision: DIGITS, scale }))
        }
        _ => None,
    }
}

/// `first` in a query that casts its columns as `columns` says.
fn widen(first: &SetExpr, columns: &[Column]) -> Option<Box<SetExpr>> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let items = columns.iter().enumerate().map(|(at, (name, wanted))| match wanted {
        Some(wanted) => format!("CAST(seed.c{at} AS {}) AS {}", sql_name(*wanted), quoted(name)),
        None => format!("seed.c{at} AS {}", quoted(name)),
    });
    let items = items.collect::<Vec<_>>().join(", ");
    let names = (0..columns.len()).map(|at| format!("c{at}")).collect::<Vec<_>>().join(", ");
    let mut query = query_of(&format!("SELECT {items} FROM (SELECT 1) AS seed({names})")).ok()?;
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let from = select.from.first_mut()?;
    let TableFactor::Derived { subquery, .. } = &mut from.relation else { return None };
    *subquery.body = first.clone();
    Some(query.body)
}
