//! Subqueries where DataFusion cannot compute them.
//!
//! DataFusion 55.2 computes EXISTS and IN in WHERE and HAVING, scalar subqueries of their own in select items too, and
//! both where they refer to the outer row in few ways (`simple_correlation`). All others are computed beside the rows
//! that they stand for, and joined:
//!
//! - EXISTS is whether a row is found. IN is EXISTS of a row that is equal, where NULLs have been distinguished already
//!   (`null_aware_in`); ANY and ALL are a CASE of EXISTS;
//! - a scalar subquery that may find several rows gives the first one and how many there are, and `single_row` fails
//!   with 21000 where its value is asked for;
//! - LATERAL is a join anyway.
//!
//! Comes in: plans whose types are coerced. Goes out: plans that DataFusion can optimize, of the same columns. Steps,
//! for each node from below:
//!
//! 1. a LATERAL query of a join becomes its other side;
//! 2. each subquery in the node's expressions that is not DataFusion's is joined to what the node reads, or is a scalar
//!    subquery if it refers to nothing; a column takes its place;
//! 3. columns that came with it go again.
//!
//! Invariant: subqueries within a subquery are done before it, so that what is left there refers to its own rows only.
//! It does not own: how a query is computed for all rows at once (`unnest`).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, NullEquality, Result, ScalarValue, Spans};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{Join, Sort};
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Filter, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, Subquery, binary_expr,
    lit, when,
};

use super::guards::{all_of, can_fail, holds_query, is_total, replace_queries};
use super::has_one_row;
use super::inline::inlined;
use super::outer_columns::{Names, bare_lateral, is_lateral, named, outer_columns, query_of, unsupported};
use super::simple_correlation::{is_movable, looked_for};
use super::single_row::only_row;
use super::unnest::{Domain, left_join};
use crate::analyze::plan_walk::rewrite_nodes;

/// The rule.
pub(crate) fn decorrelated(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut names = Names::default();
    rewrite_nodes(inlined(plan)?, |node| {
        let node = match node {
            LogicalPlan::Join(join) if is_lateral(&join) => lateral(join, &mut names)?,
            node => Transformed::no(node),
        };
        if !has_queries(&node.data)? {
            return Ok(node);
        }
        node.transform_data(|node| match node {
            LogicalPlan::Sort(sort) => sorted(sort, &mut names),
            node => place(node, &mut names),
        })
    })
}

fn has_queries(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= holds_query(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Puts the subqueries in the expressions of `node` where they can be computed.
fn place(node: LogicalPlan, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::Filter(filter) => filtered_first(filter)?,
        node => node,
    };
    let kind = Kind::of(&node);
    let mut inputs: Vec<Side> = node.inputs().into_iter().cloned().map(Side::new).collect();
    let before = merge_schema(&node.inputs());
    let preserver = NamePreserver::new(&node);
    let mut changed = false;
    let mut exprs = Vec::new();
    for expr in node.expressions() {
        let name = preserver.save(&expr);
        let decorrelated = replace_queries(expr, &mut Vec::new(), &mut |expr, guards| {
            let expr = up_to_date(expr).transform_data(simpler)?;
            if query_of(&expr.data).is_none() || kind.computes(&expr.data, &before, guards)? {
                return Ok(expr);
            }
            let mut outer = Outer { kind, inputs: &mut inputs, guards, names };
            replaced(expr.data, &mut outer).map(Transformed::yes)
        })?;
        changed |= decorrelated.transformed;
        exprs.push(if decorrelated.transformed { name.restore(decorrelated.data) } else { decorrelated.data });
    }
    if !changed {
        return Ok(Transformed::no(node));
    }
    let schema = node.schema().clone();
    let mut inputs: Vec<LogicalPlan> = inputs.into_iter().map(|side| side.plan).collect();
    let grown =
        inputs.iter().zip(node.inputs()).any(|(new, old)| new.schema().fields().len() > old.schema().fields().len());
    let decorrelated = match node {
        LogicalPlan::Filter(_) => {
            let (Some(predicate), Some(input)) = (exprs.pop(), inputs.pop()) else {
                return Err(DataFusionError::Internal("a condition without rows".into()));
            };
            LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?)
        }
        LogicalPlan::Distinct(Distinct::On(on)) if on.sort_expr.is_some() => {
            return Err(unsupported("a subquery in DISTINCT ON beside ORDER BY (name it in a query of FROM)"));
        }
        node => node.with_new_exprs(exprs, inputs)?,
    };
    let has_columns_of_input = !matches!(decorrelated, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
    if !grown || !has_columns_of_input {
        return Ok(Transformed::yes(decorrelated));
    }
    let columns = schema.columns().into_iter().map(Expr::Column).collect();
    Projection::try_new(columns, Arc::new(decorrelated)).map(LogicalPlan::Projection).map(Transformed::yes)
}

/// Conditions without subqueries come first: rows that they take away ask for none. (Not those on rows further around,
/// whose tables may have the names of a subquery's own.)
fn filtered_first(filter: Filter) -> Result<LogicalPlan> {
    let is_plain = |part: &Expr| !part.is_volatile() && !holds_query(part) && !part.contains_outer();
    let parts = split_conjunction_owned(filter.predicate);
    let (plain, others): (Vec<Expr>, Vec<Expr>) = parts.into_iter().partition(is_plain);
    let mut plan = filter.input;
    for part in [conjunction(plain), conjunction(others)].into_iter().flatten() {
        plan = Arc::new(LogicalPlan::Filter(Filter::try_new(part, plan)?));
    }
    Ok(Arc::unwrap_or_clone(plan))
}

/// As [`place`], of ORDER BY. A subquery there may refer to columns of FROM that are no select items: its key becomes
/// one for a while.
fn sorted(sort: Sort, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    let Sort { mut expr, input, fetch } = sort;
    let LogicalPlan::Projection(projection) = &*input else {
        return place(LogicalPlan::Sort(Sort { expr, input, fetch }), names);
    };
    let mut items = projection.expr.clone();
    for key in &mut expr {
        if !holds_query(&key.expr) {
            continue;
        }
        let value = std::mem::take(&mut key.expr).transform(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let item = input.schema().maybe_index_of_column(column).and_then(|at| projection.expr.get(at));
            Ok(item.map_or_else(|| Transformed::no(expr.clone()), |item| Transformed::yes(item.clone().unalias())))
        })?;
        let name = names.next("key");
        items.push(value.data.alias(&name));
        key.expr = Expr::Column(Column::new_unqualified(name));
    }
    let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
    let below = LogicalPlan::Projection(Projection::try_new(items, projection.input.clone())?);
    let below = place(below, names)?.data;
    let sort = LogicalPlan::Sort(Sort { expr, input: Arc::new(below), fetch });
    Projection::try_new(columns, Arc::new(sort)).map(LogicalPlan::Projection).map(Transformed::yes)
}

/// What a node reads, with what its subqueries have added to it.
#[derive(Debug)]
struct Side {
    before: LogicalPlan,
    plan: LogicalPlan,
}

impl Side {
    fn new(plan: LogicalPlan) -> Self {
        Self { before: plan.clone(), plan }
    }
}

/// What a node does with subqueries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Filter,
    Projection,
    Other,
}

impl Kind {
    fn of(node: &LogicalPlan) -> Self {
        match node {
            LogicalPlan::Filter(_) => Self::Filter,
            LogicalPlan::Projection(_) => Self::Projection,
            _ => Self::Other,
        }
    }

    /// Whether DataFusion computes `expr`, a subquery, over rows of `schema` in such a node. It computes it for rows as
    /// well that are kept away from it.
    fn computes(self, expr: &Expr, schema: &DFSchema, guards: &[Expr]) -> Result<bool> {
        let query = match (self, expr) {
            (Self::Other, _) => return Ok(false),
            (_, Expr::ScalarSubquery(query)) => query,
            (Self::Filter, Expr::Exists(Exists { subquery, .. }) | Expr::InSubquery(InSubquery { subquery, .. })) => {
                subquery
            }
            _ => return Ok(false),
        };
        let columns = outer_columns(&query.subquery);
        if matches!(expr, Expr::InSubquery(member) if member.expr.contains_outer()) {
            return Ok(false);
        }
        // The join's key is computed for all rows.
        if let (Expr::InSubquery(member), false) = (expr, guards.is_empty())
            && member.expr.exists(|expr| can_fail(expr, schema))?
        {
            return Ok(false);
        }
        if columns.is_empty() {
            return Ok(true);
        }
        let is_scalar = matches!(expr, Expr::ScalarSubquery(_));
        Ok(columns.iter().all(|column| schema.maybe_index_of_column(column).is_some())
            && (!is_scalar || has_one_row(&query.subquery))
            && is_movable(&query.subquery, is_scalar)
            && (guards.is_empty() || is_total(&query.subquery)?))
    }
}

/// A subquery that knows what it refers to: a query within it may have been put beside it.
fn up_to_date(expr: Expr) -> Transformed<Expr> {
    let renewed = |query: Subquery| {
        let references: Vec<Expr> = query.subquery.all_out_ref_exprs();
        let same = references.len() == query.outer_ref_columns.len()
            && references.iter().all(|expr| query.outer_ref_columns.contains(expr));
        match same {
            true => Transformed::no(query),
            false => Transformed::yes(Subquery { outer_ref_columns: references, ..query }),
        }
    };
    match expr {
        Expr::ScalarSubquery(query) => renewed(query).update_data(Expr::ScalarSubquery),
        Expr::Exists(Exists { subquery, negated }) => {
            renewed(subquery).update_data(|subquery| Expr::Exists(Exists { subquery, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            renewed(subquery).update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        other => Transformed::no(other),
    }
}

/// EXISTS of a query that refers to the outer rows, without what does not matter to it.
fn simpler(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = expr else { return Ok(Transformed::no(expr)) };
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(Expr::Exists(Exists { subquery, negated })));
    }
    Ok(match looked_for(subquery.subquery.clone()) {
        None => Transformed::yes(lit(!negated)),
        Some(query) => {
            let changed = !Arc::ptr_eq(&query, &subquery.subquery);
            let subquery = subquery.with_plan(query);
            Transformed::new_transformed(Expr::Exists(Exists { subquery, negated }), changed)
        }
    })
}

/// Where a subquery stands.
struct Outer<'a> {
    kind: Kind,
    inputs: &'a mut [Side],
    /// What is true of rows that ask for it.
    guards: &'a [Expr],
    names: &'a mut Names,
}

/// What stands in the place of `expr`, a subquery; the query goes to one of `inputs`.
fn replaced(expr: Expr, outer: &mut Outer<'_>) -> Result<Expr> {
    match expr {
        Expr::ScalarSubquery(query) => scalar(Arc::unwrap_or_clone(query.subquery), outer),
        Expr::Exists(Exists { subquery, negated }) => {
            let found = exists(Arc::unwrap_or_clone(subquery.subquery), outer)?;
            Ok(if negated { Expr::Not(Box::new(found)) } else { found })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let equal = |value: Expr, found: Expr| value.eq(found);
            let query = where_found(&expr, Arc::unwrap_or_clone(subquery.subquery), outer.inputs, equal)?;
            let found = exists(query, outer)?;
            Ok(if negated { Expr::Not(Box::new(found)) } else { found })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let query = Arc::unwrap_or_clone(subquery.subquery);
            let mut is_some = |test: fn(Expr) -> Expr| {
                let compared = |value: Expr, found: Expr| test(binary_expr(value, op, found));
                let query = where_found(&expr, query.clone(), outer.inputs, compared)?;
                exists(query, outer)
            };
            let decides = match quantifier {
                SetQuantifier::Any => is_some(Expr::is_true)?,
                SetQuantifier::All => is_some(Expr::is_false)?,
            };
            let is_unknown = is_some(Expr::is_unknown)?;
            let decided = quantifier == SetQuantifier::Any;
            when(decides, lit(decided)).when(is_unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(!decided))
        }
        other => Ok(other),
    }
}

/// `query` with a condition on its column and on `value`, of the outer rows.
fn where_found(
    value: &Expr,
    query: LogicalPlan,
    inputs: &[Side],
    condition: impl Fn(Expr, Expr) -> Expr,
) -> Result<LogicalPlan> {
    let outer = merge_schema(&inputs.iter().map(|side| &side.plan).collect::<Vec<_>>());
    let value = value.clone().transform(|expr| {
        let Expr::Column(column) = expr else { return Ok(Transformed::no(expr)) };
        let (_, field) = outer.qualified_field_from_column(&column)?;
        Ok(Transformed::yes(Expr::OuterReferenceColumn(field.clone(), column)))
    })?;
    let found = Expr::Column(Column::from(query.schema().qualified_field(0)));
    let filter = Filter::try_new(condition(value.data, found), Arc::new(query))?;
    Ok(LogicalPlan::Filter(filter))
}

/// Whether `query` has a row.
fn exists(query: LogicalPlan, outer: &mut Outer<'_>) -> Result<Expr> {
    if outer_columns(&query).is_empty() {
        let first = LogicalPlanBuilder::from(query).limit(0, Some(1))?;
        let one =
            first.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64)).alias(outer.names.next("count"))])?.build()?;
        let rows = scalar(one, outer)?;
        return Ok(rows.gt(lit(0_i64)));
    }
    let mark = outer.names.next("mark");
    let marked = Projection::try_new(vec![lit(true).alias(&mark)], Arc::new(query))?;
    let side = side_of(&outer_columns(&marked.input), outer.inputs)?;
    let once = |plan: LogicalPlan| Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(plan))));
    beside(LogicalPlan::Projection(marked), side, &mark, outer.guards, outer.names, once)?;
    Ok(Expr::Column(Column::new_unqualified(mark)).is_not_null())
}

/// The value of `query`, which has one column.
fn scalar(query: LogicalPlan, outer: &mut Outer<'_>) -> Result<Expr> {
    let columns = outer_columns(&query);
    if columns.is_empty() {
        let subquery = Subquery { subquery: Arc::new(query), outer_ref_columns: Vec::new(), spans: Spans::new() };
        let value = Expr::ScalarSubquery(subquery);
        if outer.kind != Kind::Other {
            return Ok(value);
        }
        let name = outer.names.next("value");
        let Some(input) = outer.inputs.first_mut() else { return Ok(value) };
        let mut items: Vec<Expr> = input.plan.schema().columns().into_iter().map(Expr::Column).collect();
        items.push(value.alias(&name));
        input.plan = LogicalPlan::Projection(Projection::try_new(items, Arc::new(input.plan.clone()))?);
        return Ok(Expr::Column(Column::new_unqualified(name)));
    }
    let side = side_of(&columns, outer.inputs)?;
    let is_single = has_one_row(&query) || has_first_row(&query);
    let name = outer.names.next("value");
    let value = Expr::Column(Column::from(query.schema().qualified_field(0))).alias(&name);
    let valued = LogicalPlan::Projection(Projection::try_new(vec![value], Arc::new(query))?);
    let value = Expr::Column(Column::new_unqualified(&name));
    if is_single {
        beside(valued, side, &name, outer.guards, outer.names, Ok)?;
        return Ok(value);
    }
    let rows = outer.names.next("rows");
    let first = outer.names.next("first");
    let grouped = |plan: LogicalPlan| {
        let own = plan.schema().columns().into_iter().filter(|column| column.name != name).map(Expr::Column);
        let own: Vec<Expr> = own.collect();
        let totals = vec![first_value(value.clone(), Vec::new()).alias(&first), count(lit(1_i64)).alias(&rows)];
        LogicalPlanBuilder::from(plan).aggregate(own, totals)?.build()
    };
    beside(valued, side, &first, outer.guards, outer.names, grouped)?;
    let first = Expr::Column(Column::new_unqualified(first));
    Ok(only_row(first, Expr::Column(Column::new_unqualified(rows))))
}

/// Whether `plan` has a row at most, by LIMIT.
fn has_first_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_first_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_first_row(&alias.input),
        LogicalPlan::Limit(limit) => matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1)))),
        _ => false,
    }
}

/// The input whose columns a subquery refers to.
fn side_of<'i>(columns: &[Column], inputs: &'i mut [Side]) -> Result<&'i mut Side> {
    let sides: HashSet<usize> = columns
        .iter()
        .filter_map(|column| {
            inputs.iter().position(|input| input.plan.schema().maybe_index_of_column(column).is_some())
        })
        .collect();
    if sides.len() > 1 {
        return Err(unsupported("a subquery in ON that refers to both sides of its join (use WHERE, or LATERAL)"));
    }
    let side = sides.into_iter().next().unwrap_or_default();
    inputs.get_mut(side).ok_or_else(|| DataFusionError::Internal("a subquery beside no rows".into()))
}

/// Joins `query` to `input`: for each row the rows that it has for it. `finish` is given its plan for all rows at once.
fn beside(
    query: LogicalPlan,
    side: &mut Side,
    wanted: &str,
    guards: &[Expr],
    names: &mut Names,
    finish: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<()> {
    let schema = side.plan.schema().clone();
    let columns = outer_columns(&query).into_iter().filter(|column| schema.maybe_index_of_column(column).is_some());
    let columns: Vec<Column> = columns.collect();
    let (plan, pairs) = if columns.is_empty() {
        (finish(query)?, Vec::new())
    } else {
        // What was joined to it before has no part in the values, mostly.
        let is_of = |plan: &LogicalPlan| columns.iter().all(|c| plan.schema().maybe_index_of_column(c).is_some());
        let outer = if is_of(&side.before) { &side.before } else { &side.plan };
        let is_here = |guard: &&Expr| {
            guard.column_refs().into_iter().all(|column| outer.schema().maybe_index_of_column(column).is_some())
        };
        let guards: Vec<Expr> = guards.iter().filter(is_here).cloned().collect();
        let domain = Domain::new(outer, columns, all_of(&guards)?, names)?;
        let plan = finish(domain.of_query(query, names)?)?;
        let pairs = domain.pairs(plan.schema())?;
        (plan, pairs)
    };
    named(plan.schema(), wanted)?;
    side.plan = left_join(side.plan.clone(), plan, pairs)?;
    Ok(())
}

/// The join of a LATERAL query.
fn lateral(join: Join, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    if let Some(query) = bare_lateral(&join.right)
        && is_movable(&query.subquery, false)
        && outer_columns(&query.subquery)
            .iter()
            .all(|column| join.left.schema().maybe_index_of_column(column).is_some())
    {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Err(unsupported("LATERAL on the right side of this join"));
    }
    let Join { left, right, on, filter, join_type, join_constraint, schema, .. } = join;
    let left = Arc::unwrap_or_clone(left);
    let right = Arc::unwrap_or_clone(right).transform_down(|plan| match plan {
        LogicalPlan::Subquery(query) => {
            Ok(Transformed::new(Arc::unwrap_or_clone(query.subquery), true, TreeNodeRecursion::Stop))
        }
        other => Ok(Transformed::no(other)),
    })?;
    let right = right.data.recompute_schema()?;
    let columns = outer_columns(&right).into_iter();
    let columns: Vec<Column> = columns.filter(|c| left.schema().maybe_index_of_column(c).is_some()).collect();
    let (left, right, pairs) = if columns.is_empty() {
        (left, right, Vec::new())
    } else {
        let domain = Domain::new(&left, columns, None, names)?;
        let right = domain.of_query(right, names)?;
        let pairs = domain.pairs(right.schema())?;
        (left, right, pairs)
    };
    let equal = on.into_iter().map(|(left, right)| left.eq(right));
    let mut filter = equal.chain(filter).reduce(Expr::and);
    if pairs.is_empty() && filter.is_none() {
        filter = Some(lit(true));
    }
    let (left, right, nulls) = (Arc::new(left), Arc::new(right), NullEquality::NullEqualsNothing);
    let join = Join::try_new(left, right, pairs, filter, join_type, join_constraint, nulls, false)?;
    let columns = schema.columns().into_iter().map(Expr::Column).collect();
    let plan = Projection::try_new(columns, Arc::new(LogicalPlan::Join(join)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}
