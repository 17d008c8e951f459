//! Queries that refer to the outer rows, as plans that do not.
//!
//! The values that a query refers to, each combination once, are a relation, its domain. The query computed for all of
//! them at once, with the domain's columns beside its own, is a plan like any other: joined with the outer rows, NULLs
//! equal to one another, it gives each its rows. (Neumann and Kemper, "Unnesting Arbitrary Queries", BTW 2015.)
//! DataFusion 55.2 moves comparisons by `=` out of a query instead, which is faster, and does for few queries.
//!
//! Comes in: a plan with references to outer columns, and the domain. Goes out: the plan for every row of the domain.
//! Steps, from the top down:
//!
//! 1. a node that refers to nothing below is joined with the domain;
//! 2. what is computed row by row takes the domain's columns for the references, and hands them on;
//! 3. groups, windows and DISTINCT are kept apart by the domain; an aggregate without groups has a row for each row of
//!    it; LIMIT counts the rows of each.
//!
//! Invariant: a row of the domain has exactly the rows that the query has for it. It does not own: where queries stand
//! (`rule`).

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, NullEquality, Result, ScalarValue};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::{Case, Sort as SortKey};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{Aggregate, Join, Limit, Sort, SubqueryAlias, Union, Values, Window};
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, ExprSchemable, FetchType, Filter, JoinConstraint, JoinType, LogicalPlan,
    LogicalPlanBuilder, Projection, SkipType, lit, when,
};

use super::determinism::{check_repeatable, is_volatile, without_limits};
use super::outer_columns::{Names, named, outer_columns, unsupported};

/// What queries refer to of the outer rows.
#[derive(Debug)]
pub(super) struct Domain {
    rows: LogicalPlan,
    /// The outer columns, with the names that they have in `rows`.
    columns: Vec<(Column, String)>,
    /// What they are.
    fields: Vec<FieldRef>,
}

impl Domain {
    /// That of `columns` of `outer`, of the rows at least that a condition lets ask.
    ///
    /// # Errors
    /// 0A000 for rows that would be others when computed again.
    pub(super) fn new(
        outer: &LogicalPlan,
        columns: Vec<Column>,
        asks: Option<Expr>,
        names: &mut Names,
    ) -> Result<Self> {
        let columns: Vec<_> = columns.into_iter().map(|column| (column, names.next("outer"))).collect();
        let mut rows = without_limits(outer.clone());
        check_repeatable(&rows)?;
        if let Some(asks) = asks {
            rows = LogicalPlan::Filter(Filter::try_new(asks, Arc::new(rows))?);
        }
        let items = columns.iter().map(|(column, name)| Expr::Column(column.clone()).alias(name)).collect();
        let rows = LogicalPlan::Projection(Projection::try_new(items, Arc::new(rows))?);
        let fields = rows.schema().fields().iter().cloned().collect();
        Ok(Self { rows: LogicalPlan::Distinct(Distinct::All(Arc::new(rows))), columns, fields })
    }

    /// Pairs of values around, and of `plan`, that are equal where rows belong together.
    pub(super) fn pairs(&self, plan: &DFSchema) -> Result<Vec<(Expr, Expr)>> {
        let columns = self.columns.iter().map(|(column, name)| Ok((Expr::Column(column.clone()), named(plan, name)?)));
        self.equal(columns.collect::<Result<_>>()?)
    }

    /// `pairs` of columns of the domain as pairs of values that are equal, and never NULL, where those are the same. (A
    /// join that takes NULLs for equal would do so for the conditions as well that DataFusion 55.2 moves into it.)
    fn equal(&self, pairs: Vec<(Expr, Expr)>) -> Result<Vec<(Expr, Expr)>> {
        let mut equal = Vec::with_capacity(pairs.len());
        for ((left, right), field) in pairs.into_iter().zip(&self.fields) {
            if !field.is_nullable() {
                equal.push((left, right));
                continue;
            }
            let any = ScalarValue::new_default(field.data_type())?;
            let known = |value: &Expr| when(value.clone().is_null(), lit(any.clone())).otherwise(value.clone());
            equal.push((known(&left)?, known(&right)?));
            equal.push((left.is_null(), right.is_null()));
        }
        Ok(equal)
    }

    /// The plan of a query for all rows of the domain.
    ///
    /// # Errors
    /// 0A000 for queries that it cannot be made of.
    pub(super) fn of_query(&self, query: LogicalPlan, names: &mut Names) -> Result<LogicalPlan> {
        // Its rows are those of all outer rows that have the same values.
        if is_volatile(&query)? {
            return Err(unsupported("random values in a LATERAL or correlated query"));
        }
        // The domain comes among the tables of the query, with what it refers to itself further around.
        let beyond = outer_columns(&self.rows);
        let mut clash = false;
        query.apply(|plan| {
            clash |= beyond.iter().any(|column| plan.schema().maybe_index_of_column(column).is_some());
            Ok(if clash { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if clash {
            return Err(unsupported(
                "a correlated query over a table that the query two levels around it reads under its own name (give it an alias there)",
            ));
        }
        self.of(query, names)
    }

    fn of(&self, query: LogicalPlan, names: &mut Names) -> Result<LogicalPlan> {
        if !self.is_resolved_by(&query) {
            return LogicalPlanBuilder::from(self.rows.clone()).cross_join(query)?.build();
        }
        match query {
            LogicalPlan::Projection(projection) => {
                let input = self.of(Arc::unwrap_or_clone(projection.input), names)?;
                let items = self.bound(projection.expr, input.schema())?;
                // Of a branch of UNION the schema says other names than the items.
                let called = |(item, (relation, field)): (Expr, (Option<&_>, &FieldRef))| {
                    let is_same = item.qualified_name() == (relation.cloned(), field.name().clone());
                    if is_same { item } else { item.alias_qualified(relation.cloned(), field.name()) }
                };
                let mut items: Vec<Expr> = items.into_iter().zip(projection.schema.iter()).map(called).collect();
                items.extend(self.own(input.schema())?);
                Projection::try_new(items, Arc::new(input)).map(LogicalPlan::Projection)
            }
            LogicalPlan::Filter(filter) => {
                let input = self.of(Arc::unwrap_or_clone(filter.input), names)?;
                let predicate = self.bind(filter.predicate, input.schema())?;
                Filter::try_new(predicate, Arc::new(input)).map(LogicalPlan::Filter)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.of(Arc::unwrap_or_clone(alias.input), names)?;
                SubqueryAlias::try_new(Arc::new(input), alias.alias).map(LogicalPlan::SubqueryAlias)
            }
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => {
                let input = self.of(Arc::unwrap_or_clone(input), names)?;
                let expr = self.keys(expr, input.schema())?;
                Ok(LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch: None }))
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.of(Arc::unwrap_or_clone(input), names)?;
                Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(input))))
            }
            LogicalPlan::Unnest(unnest) => {
                let input = self.of(Arc::unwrap_or_clone(unnest.input), names)?;
                let rows = LogicalPlanBuilder::from(input);
                rows.unnest_columns_with_options(unnest.exec_columns, unnest.options)?.build()
            }
            LogicalPlan::Values(values) => self.listed(values, names),
            LogicalPlan::Limit(limit) => self.limited(limit, names),
            LogicalPlan::Aggregate(aggregate) => self.aggregated(aggregate, names),
            LogicalPlan::Window(window) => self.windowed(window, names),
            LogicalPlan::Join(join) => self.joined(join, names),
            LogicalPlan::Union(union) => self.united(union, names),
            _ => Err(unsupported("a LATERAL or correlated query of this kind (use a join)")),
        }
    }

    /// Whether `plan` refers to an outer column that is in the domain.
    fn is_resolved_by(&self, plan: &LogicalPlan) -> bool {
        outer_columns(plan).iter().any(|column| self.columns.iter().any(|(own, _)| own == column))
    }

    fn is_resolved_in(&self, expr: &Expr) -> bool {
        let is_own = |column: &Column| self.columns.iter().any(|(own, _)| own == column);
        expr.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(_, column) if is_own(column)))).unwrap_or(true)
    }

    /// The domain's columns in a plan.
    fn own(&self, schema: &DFSchema) -> Result<Vec<Expr>> {
        self.columns.iter().map(|(_, name)| named(schema, name)).collect()
    }

    /// `expr` over a plan that has the domain's columns.
    fn bind(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        let bound = expr.transform(|expr| {
            let Expr::OuterReferenceColumn(_, column) = &expr else { return Ok(Transformed::no(expr)) };
            match self.columns.iter().find(|(own, _)| own == column) {
                Some((_, name)) => named(schema, name).map(Transformed::yes),
                None => Ok(Transformed::no(expr)),
            }
        });
        bound.map(|bound| bound.data)
    }

    /// As [`Domain::bind`], with the names of before.
    fn bound(&self, exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
        let one = |expr: Expr| {
            let name = NamePreserver::new_for_projection().save(&expr);
            self.bind(expr, schema).map(|expr| name.restore(expr))
        };
        exprs.into_iter().map(one).collect()
    }

    fn keys(&self, keys: Vec<SortKey>, schema: &DFSchema) -> Result<Vec<SortKey>> {
        let one = |key: SortKey| Ok(SortKey { expr: self.bind(key.expr, schema)?, ..key });
        keys.into_iter().map(one).collect()
    }

    /// VALUES: each row of the domain has the rows of the list, which are told by their numbers.
    fn listed(&self, Values { schema, values }: Values, names: &mut Names) -> Result<LogicalPlan> {
        let number = names.next("row");
        let numbers = (0_i64..).zip(&values).map(|(number, _)| vec![lit(number)]).collect();
        let numbers = LogicalPlanBuilder::values(numbers)?
            .project(vec![Expr::Column(Column::new_unqualified("column1")).alias(&number)])?;
        let rows = LogicalPlanBuilder::from(self.rows.clone()).cross_join(numbers.build()?)?.build()?;
        let number = Expr::Column(Column::new_unqualified(number));
        let mut columns: Vec<Vec<(Box<Expr>, Box<Expr>)>> = vec![Vec::new(); schema.fields().len()];
        for (at, row) in (0_i64..).zip(values) {
            for ((cell, field), column) in row.into_iter().zip(schema.fields()).zip(&mut columns) {
                let cell = self.bind(cell, rows.schema())?.cast_to(field.data_type(), rows.schema())?;
                column.push((Box::new(lit(at)), Box::new(cell)));
            }
        }
        let items = columns.into_iter().zip(schema.iter()).map(|(when_then_expr, (relation, field))| {
            let case = Case { expr: Some(Box::new(number.clone())), when_then_expr, else_expr: None };
            Expr::Case(case).alias_qualified(relation.cloned(), field.name())
        });
        let mut items: Vec<Expr> = items.collect();
        items.extend(self.own(rows.schema())?);
        Projection::try_new(items, Arc::new(rows)).map(LogicalPlan::Projection)
    }

    /// LIMIT and OFFSET: rows are numbered for each row of the domain.
    fn limited(&self, limit: Limit, names: &mut Names) -> Result<LogicalPlan> {
        match Arc::unwrap_or_clone(limit.input) {
            // What is computed row by row comes after: the order is below it.
            LogicalPlan::Projection(Projection { expr, input, schema, .. }) => {
                let limit = Arc::new(LogicalPlan::Limit(Limit { input, ..limit }));
                let projection = Projection::try_new_with_schema(expr, limit, schema)?;
                self.of(LogicalPlan::Projection(projection), names)
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let limit = Arc::new(LogicalPlan::Limit(Limit { input, ..limit }));
                self.of(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(limit, alias)?), names)
            }
            input => {
                let limit = Limit { input: Arc::new(input), ..limit };
                let (FetchType::Literal(fetch), SkipType::Literal(skip)) =
                    (limit.get_fetch_type()?, limit.get_skip_type()?)
                else {
                    return Err(unsupported("LIMIT of anything but a number in a LATERAL or correlated query"));
                };
                let (keys, input) = match Arc::unwrap_or_clone(limit.input) {
                    LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (expr, Arc::unwrap_or_clone(input)),
                    input => (Vec::new(), input),
                };
                let input = self.of(input, names)?;
                let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
                let keys = self.keys(keys, input.schema())?;
                let number = names.next("row");
                let numbers = row_number().partition_by(self.own(input.schema())?).order_by(keys).build()?;
                let window = Window::try_new(vec![numbers.alias(&number)], Arc::new(input))?;
                let count = |rows: usize| lit(u64::try_from(rows).unwrap_or(u64::MAX));
                let number = Expr::Column(Column::new_unqualified(number));
                let mut wanted = number.clone().gt(count(skip));
                if let Some(fetch) = fetch {
                    wanted = wanted.and(number.lt_eq(count(skip.saturating_add(fetch))));
                }
                let filter = Filter::try_new(wanted, Arc::new(LogicalPlan::Window(window)))?;
                let rows = Projection::try_new(columns, Arc::new(LogicalPlan::Filter(filter)))?;
                Ok(LogicalPlan::Projection(rows))
            }
        }
    }

    fn aggregated(&self, aggregate: Aggregate, names: &mut Names) -> Result<LogicalPlan> {
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        if group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return Err(unsupported("grouping sets in a LATERAL or correlated query"));
        }
        let input = self.of(Arc::unwrap_or_clone(input), names)?;
        let has_groups = !group_expr.is_empty();
        let mut groups = self.bound(group_expr, input.schema())?;
        groups.extend(self.own(input.schema())?);
        let totals = self.bound(aggr_expr.clone(), input.schema())?;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, totals)?);
        if has_groups {
            return Ok(plan);
        }
        // There is a row for what has no rows below, too.
        let found = names.next("found");
        let mut items: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
        let mut on = Vec::new();
        for (_, name) in &self.columns {
            let renamed = names.next("inner");
            items.push(named(plan.schema(), name)?.alias(&renamed));
            on.push((Expr::Column(Column::new_unqualified(name)), Expr::Column(Column::new_unqualified(renamed))));
        }
        items.push(lit(true).alias(&found));
        let some = LogicalPlan::Projection(Projection::try_new(items, Arc::new(plan))?);
        let all = left_join(self.rows.clone(), some, self.equal(on)?)?;
        let is_missing = Expr::Column(Column::new_unqualified(found)).is_null();
        let mut items = Vec::with_capacity(aggr_expr.len());
        for (expr, (relation, field)) in aggr_expr.iter().zip(schema.iter()) {
            let total = Expr::Column(Column::from((relation, field)));
            let of_nothing = of_nothing(expr, field.data_type())?;
            items.push(match of_nothing.is_null() {
                true => total,
                false => when(is_missing.clone(), lit(of_nothing))
                    .otherwise(total)?
                    .alias_qualified(relation.cloned(), field.name()),
            });
        }
        items.extend(self.own(all.schema())?);
        Projection::try_new(items, Arc::new(all)).map(LogicalPlan::Projection)
    }

    fn windowed(&self, window: Window, names: &mut Names) -> Result<LogicalPlan> {
        let input = self.of(Arc::unwrap_or_clone(window.input), names)?;
        let own = self.own(input.schema())?;
        let one = |expr: Expr| {
            let name = NamePreserver::new_for_projection().save(&expr);
            let expr = self.bind(expr, input.schema())?.transform(|expr| match expr {
                Expr::WindowFunction(mut window) => {
                    window.params.partition_by.extend(own.iter().cloned());
                    Ok(Transformed::new(Expr::WindowFunction(window), true, TreeNodeRecursion::Jump))
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(name.restore(expr.data))
        };
        let exprs = window.window_expr.into_iter().map(one).collect::<Result<Vec<_>>>()?;
        Window::try_new(exprs, Arc::new(input)).map(LogicalPlan::Window)
    }

    /// A join: the side whose rows all stay has the domain's columns; if the other one refers to it too, its own are
    /// equal.
    fn joined(&self, join: Join, names: &mut Names) -> Result<LogicalPlan> {
        use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let Join { left, right, on, filter, join_type, join_constraint, null_equality, null_aware, schema } = join;
        let (left, right) = (Arc::unwrap_or_clone(left), Arc::unwrap_or_clone(right));
        let in_both = |on: &(Expr, Expr)| self.is_resolved_in(&on.0) || self.is_resolved_in(&on.1);
        let refers = on.iter().any(in_both) || filter.as_ref().is_some_and(|expr| self.is_resolved_in(expr));
        let of_right = match join_type {
            Inner => !self.is_resolved_by(&left) && self.is_resolved_by(&right),
            Left | LeftSemi | LeftAnti | LeftMark => false,
            Right | RightSemi | RightAnti | RightMark => true,
            JoinType::Full => return Err(unsupported("FULL JOIN in a LATERAL or correlated query")),
        };
        let (main, other) = if of_right { (right, left) } else { (left, right) };
        let main = self.of(main, names)?;
        let mut pairs = Vec::new();
        let is_in_other = self.is_resolved_by(&other);
        if null_aware && (refers || is_in_other) {
            return Err(unsupported("NOT IN of a query within a LATERAL or correlated query"));
        }
        let other = if is_in_other {
            let columns: Vec<Expr> = other.schema().columns().into_iter().map(Expr::Column).collect();
            let other = self.of(other, names)?;
            let mut items = columns;
            for (_, name) in &self.columns {
                let renamed = names.next("inner");
                items.push(named(other.schema(), name)?.alias(&renamed));
                pairs.push((named(main.schema(), name)?, Expr::Column(Column::new_unqualified(renamed))));
            }
            LogicalPlan::Projection(Projection::try_new(items, Arc::new(other))?)
        } else {
            other
        };
        let bind = |expr: Expr| self.bind(expr, main.schema());
        let (mut on, mut filter) = (on, filter.map(bind).transpose()?);
        let mut null_equality = null_equality;
        if refers || !pairs.is_empty() {
            for (left, right) in std::mem::take(&mut on) {
                let (left, right) = (bind(left)?, bind(right)?);
                let equal = match null_equality {
                    NullEquality::NullEqualsNothing => left.eq(right),
                    NullEquality::NullEqualsNull => null_safe_simplification(left, right),
                };
                filter = Some(filter.map_or(equal.clone(), |filter| filter.and(equal)));
            }
            let pairs = self.equal(pairs)?.into_iter();
            on = pairs.map(|(main, other)| if of_right { (other, main) } else { (main, other) }).collect();
            null_equality = NullEquality::NullEqualsNothing;
        }
        let own: Vec<Expr> = self.own(main.schema())?;
        let (left, right) = if of_right { (other, main) } else { (main, other) };
        let (left, right) = (Arc::new(left), Arc::new(right));
        let join = Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)?;
        let items = schema.columns().into_iter().map(Expr::Column).chain(own).collect();
        Projection::try_new(items, Arc::new(LogicalPlan::Join(join))).map(LogicalPlan::Projection)
    }

    fn united(&self, union: Union, names: &mut Names) -> Result<LogicalPlan> {
        let one = |input: Arc<LogicalPlan>| {
            let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
            let input = self.of(Arc::unwrap_or_clone(input), names)?;
            let own = self.columns.iter().map(|(_, name)| named(input.schema(), name).map(|column| column.alias(name)));
            let items = columns.into_iter().map(Ok).chain(own).collect::<Result<Vec<_>>>()?;
            Projection::try_new(items, Arc::new(input)).map(|plan| Arc::new(LogicalPlan::Projection(plan)))
        };
        let inputs = union.inputs.into_iter().map(one).collect::<Result<Vec<_>>>()?;
        let rows = Union::try_new_with_loose_types(inputs)?;
        let found = rows.schema.columns();
        let given = found.iter().zip(union.schema.iter()).map(|(column, (relation, field))| {
            Expr::Column(column.clone()).alias_qualified(relation.cloned(), field.name())
        });
        let mut items: Vec<Expr> = given.collect();
        items.extend(self.own(&rows.schema)?);
        Projection::try_new(items, Arc::new(LogicalPlan::Union(rows))).map(LogicalPlan::Projection)
    }
}

/// `left LEFT JOIN right`, where the pairs are equal; with all rows of `right` if there are no pairs.
///
/// # Errors
/// Those of types.
pub(super) fn left_join(left: LogicalPlan, right: LogicalPlan, on: Vec<(Expr, Expr)>) -> Result<LogicalPlan> {
    let filter = on.is_empty().then(|| lit(true));
    let (left, right) = (Arc::new(left), Arc::new(right));
    let nulls = NullEquality::NullEqualsNothing;
    Join::try_new(left, right, on, filter, JoinType::Left, JoinConstraint::On, nulls, false).map(LogicalPlan::Join)
}

fn null_safe_simplification(left: Expr, right: Expr) -> Expr {
    let op = datafusion::logical_expr::Operator::IsNotDistinctFrom;
    datafusion::logical_expr::binary_expr(left, op, right)
}

/// What an aggregate is of no rows.
fn of_nothing(expr: &Expr, data_type: &DataType) -> Result<ScalarValue> {
    match expr {
        Expr::Alias(alias) => of_nothing(&alias.expr, data_type),
        Expr::AggregateFunction(call) => call.func.default_value(data_type),
        _ => ScalarValue::try_from(data_type),
    }
}
