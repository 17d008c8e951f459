//! How many rows a plan has, and its columns distinct values: estimates, from tables upwards.

use datafusion::common::{DFSchema, JoinType, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::{Between, InList, Like};
use datafusion::logical_expr::logical_plan::{Aggregate, FetchType, Join, TableScan};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, Operator};
use mainstem_storage::ids::ColumnId;

use crate::provider::UserTable;

/// Rows of what nothing is known of.
const ROWS: f64 = 1_000.0;
/// Share of rows that fulfil a condition.
const SOME: f64 = 0.2;
const EQUAL: f64 = 0.05;
const LIKE: f64 = 0.1;
const NULLS: f64 = 0.05;
const MOST: f64 = 0.9;

/// How many rows a plan has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cardinality {
    pub(super) rows: f64,
    /// Without the filters of tables: no columns have more combinations of values.
    pub(super) unfiltered: f64,
    /// One for each column of the schema.
    pub(super) columns: Vec<Values>,
}

/// How many values a column has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Values {
    /// Distinct values, as far as filters on other columns leave them; `None` if unknown.
    pub(super) distinct: Option<f64>,
    /// Of a key: those without any filter. The values of columns that are equal to it are among them.
    pub(super) key: Option<f64>,
}

impl Cardinality {
    fn new(rows: f64, columns: Vec<Values>) -> Self {
        Self { rows, unfiltered: rows, columns }
    }

    fn unknown(plan: &LogicalPlan) -> Self {
        Self::new(ROWS, vec![Values::default(); plan.schema().fields().len()])
    }

    /// The same with other columns.
    fn of(self, columns: Vec<Values>) -> Self {
        Self { columns, ..self }
    }

    fn at_most(self, rows: Option<usize>) -> Self {
        let rows = rows.map_or(self.rows, |rows| self.rows.min(rows as f64));
        Self { rows, ..self }
    }

    /// The values of `expr`, of one column or computed from one.
    pub(super) fn values_of(&self, expr: &Expr, schema: &DFSchema) -> Values {
        let column = |column| schema.maybe_index_of_column(column).and_then(|at| self.columns.get(at)).copied();
        match expr {
            Expr::Column(of) => column(of).unwrap_or_default(),
            Expr::Alias(alias) => self.values_of(&alias.expr, schema),
            expr => {
                let columns = expr.column_refs();
                let mut values = columns.into_iter().map(|of| column(of).unwrap_or_default());
                match (values.next(), values.next()) {
                    (Some(one), None) => Values { key: None, ..one },
                    _ => Values::default(),
                }
            }
        }
    }

    /// How many combinations of values `exprs` have.
    fn combinations<'a>(&self, exprs: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> f64 {
        let all = exprs.map(|expr| self.values_of(expr, schema).distinct.unwrap_or(self.rows)).product::<f64>();
        all.min(self.rows).max(1.0)
    }
}

/// How many rows `plan` has.
pub(super) fn cardinality(plan: &LogicalPlan) -> Cardinality {
    match plan {
        LogicalPlan::TableScan(scan) => of_scan(scan).unwrap_or_else(|| Cardinality::unknown(plan)),
        LogicalPlan::Filter(filter) => filtered(cardinality(&filter.input), &filter.predicate, filter.input.schema()),
        LogicalPlan::Projection(projection) => {
            let input = cardinality(&projection.input);
            let columns = projection.expr.iter().map(|expr| input.values_of(expr, projection.input.schema()));
            let columns = columns.collect();
            input.of(columns)
        }
        LogicalPlan::SubqueryAlias(alias) => cardinality(&alias.input),
        LogicalPlan::Sort(sort) => cardinality(&sort.input).at_most(sort.fetch),
        LogicalPlan::Limit(limit) => {
            let fetch = match limit.get_fetch_type() {
                Ok(FetchType::Literal(fetch)) => fetch,
                _ => None,
            };
            cardinality(&limit.input).at_most(fetch)
        }
        LogicalPlan::Window(window) => {
            let input = cardinality(&window.input);
            let mut columns = input.columns.clone();
            columns.resize(window.schema.fields().len(), Values::default());
            input.of(columns)
        }
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let below = cardinality(input);
            let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
            let rows = below.combinations(columns.iter(), input.schema());
            Cardinality::new(rows, below.columns)
        }
        LogicalPlan::Join(join) => of_join(join),
        LogicalPlan::Union(union) => {
            let rows = union.inputs.iter().map(|input| cardinality(input).rows).sum();
            Cardinality::new(rows, vec![Values::default(); union.schema.fields().len()])
        }
        LogicalPlan::Values(values) => Cardinality { rows: values.values.len() as f64, ..Cardinality::unknown(plan) },
        LogicalPlan::EmptyRelation(_) => Cardinality { rows: 1.0, ..Cardinality::unknown(plan) },
        other => Cardinality::unknown(other),
    }
}

fn of_scan(scan: &TableScan) -> Option<Cardinality> {
    let provider = source_as_provider(&scan.source).ok()?;
    let table = provider.downcast_ref::<UserTable>()?;
    let ids: Vec<Option<ColumnId>> = match &scan.projection {
        Some(projection) => projection.iter().map(|at| table.table().columns.get(*at).map(|c| c.id)).collect(),
        None => {
            (0..scan.source.schema().fields().len()).map(|at| table.table().columns.get(at).map(|c| c.id)).collect()
        }
    };
    let columns: Vec<ColumnId> = ids.iter().copied().flatten().collect();
    let (estimates, others) = table.estimates(&columns, &scan.filters)?;
    let of_column = |id: &Option<ColumnId>| {
        let estimate = (*id).and_then(|id| estimates.column(id));
        estimate.map_or_else(Values::default, |of| Values {
            distinct: of.distinct,
            key: of.table_distinct.filter(|_| of.is_key),
        })
    };
    let all = Cardinality {
        rows: estimates.rows,
        unfiltered: estimates.table_rows.max(1.0),
        columns: ids.iter().map(of_column).collect(),
    };
    let left = others.into_iter().fold(all, |left, filter| filtered(left, filter, &scan.projected_schema));
    Some(left.at_most(scan.fetch))
}

fn of_aggregate(aggregate: &Aggregate) -> Cardinality {
    let input = cardinality(&aggregate.input);
    let schema = aggregate.input.schema();
    let rows = match aggregate.group_expr.as_slice() {
        [] => 1.0,
        [Expr::GroupingSet(_)] => input.rows,
        groups => input.combinations(groups.iter(), schema),
    };
    let mut columns = vec![Values::default(); aggregate.schema.fields().len()];
    let is_alone = aggregate.group_expr.len() == 1;
    for (values, group) in columns.iter_mut().zip(&aggregate.group_expr) {
        let distinct = input.values_of(group, schema).distinct.map_or(rows, |distinct| distinct.min(rows));
        *values = Values { distinct: Some(distinct), key: is_alone.then_some(distinct) };
    }
    Cardinality::new(rows, columns)
}

fn of_join(join: &Join) -> Cardinality {
    let (left, right) = (cardinality(&join.left), cardinality(&join.right));
    let pairs =
        join.on.iter().map(|(a, b)| (left.values_of(a, join.left.schema()), right.values_of(b, join.right.schema())));
    let pairs: Vec<(Values, Values)> = pairs.collect();
    let filter = if join.filter.is_some() { SOME } else { 1.0 };
    let matched = pairs.iter().map(|(a, b)| {
        let known = |values: &Values, rows: f64| values.distinct.unwrap_or(rows).min(values.key.unwrap_or(f64::MAX));
        known(a, left.unfiltered).max(known(b, right.unfiltered))
    });
    let inner = damped(matched.collect()).min(left.unfiltered.max(right.unfiltered));
    let inner = (left.rows * right.rows / inner * filter).max(1.0);
    // The share of rows of one side that find any of the other.
    let found = |of: fn(&(Values, Values)) -> (Values, Values), rows: f64| {
        let share = |pair: &(Values, Values)| match (of(pair).0.distinct, of(pair).1.distinct) {
            (Some(here), there) => (there.unwrap_or(rows).min(rows) / here).min(1.0),
            (None, _) => 0.5,
        };
        let any = if pairs.is_empty() { 0.5 } else { 1.0 };
        pairs.iter().map(share).fold(any, f64::min) * filter
    };
    let left_found = found(|pair| *pair, right.rows);
    let right_found = found(|(a, b)| (*b, *a), left.rows);
    let both = || left.columns.iter().chain(&right.columns).copied().collect::<Vec<_>>();
    let of = |rows: f64, columns: Vec<Values>| Cardinality {
        rows: rows.max(1.0),
        unfiltered: left.unfiltered.max(right.unfiltered).max(rows),
        columns,
    };
    let mark = |columns: &[Values]| columns.iter().copied().chain([Values::default()]).collect();
    // What is a key of one side need be none of the join.
    let keyless = |mut columns: Vec<Values>| {
        columns.iter_mut().for_each(|values| values.key = None);
        columns
    };
    match join.join_type {
        JoinType::Inner => of(inner, keyless(both())),
        JoinType::Left => of(inner.max(left.rows), keyless(both())),
        JoinType::Right => of(inner.max(right.rows), keyless(both())),
        JoinType::Full => of(inner.max(left.rows + right.rows), keyless(both())),
        JoinType::LeftSemi => of(left.rows * left_found, left.columns),
        JoinType::RightSemi => of(right.rows * right_found, right.columns),
        JoinType::LeftAnti => of(left.rows * (1.0 - left_found).max(0.1), left.columns),
        JoinType::RightAnti => of(right.rows * (1.0 - right_found).max(0.1), right.columns),
        JoinType::LeftMark => of(left.rows, mark(&left.columns)),
        JoinType::RightMark => of(right.rows, mark(&right.columns)),
    }
}

/// The product of numbers of distinct values of columns of one table: all but the largest count half, as they depend on
/// one another.
pub(super) fn damped(mut distinct: Vec<f64>) -> f64 {
    distinct.sort_by(|a, b| b.total_cmp(a));
    let mut distinct = distinct.into_iter();
    let largest = distinct.next().unwrap_or(1.0);
    distinct.fold(largest, |all, more| all * more.max(1.0).sqrt()).max(1.0)
}

/// What is left of `input` where `predicate` holds.
fn filtered(input: Cardinality, predicate: &Expr, schema: &DFSchema) -> Cardinality {
    let share: f64 = split_conjunction(predicate).into_iter().map(|expr| share(expr, &input, schema)).product();
    Cardinality { rows: (input.rows * share).max(1.0), ..input }
}

/// The share of rows that `condition` holds for.
fn share(condition: &Expr, input: &Cardinality, schema: &DFSchema) -> f64 {
    let below = |expr: &Expr| share(expr, input, schema);
    let distinct = |expr: &Expr| input.values_of(expr, schema).distinct.map(|distinct| distinct.max(1.0));
    let equal = |expr: &Expr| distinct(expr).map_or(EQUAL, |distinct| 1.0 / distinct);
    let unless = |negated: bool, share: f64| if negated { 1.0 - share } else { share };
    match condition {
        Expr::Alias(alias) => below(&alias.expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => below(left) * below(right),
            Operator::Or => (below(left) + below(right)).min(1.0),
            Operator::Eq => match (distinct(left), distinct(right)) {
                (Some(a), Some(b)) => 1.0 / a.max(b),
                (a, b) => a.or(b).map_or(EQUAL, |distinct| 1.0 / distinct),
            },
            Operator::NotEq => MOST,
            Operator::LikeMatch | Operator::ILikeMatch => LIKE,
            Operator::NotLikeMatch | Operator::NotILikeMatch => MOST,
            _ => SOME,
        },
        Expr::Like(Like { negated, .. }) => unless(*negated, LIKE),
        Expr::InList(InList { expr, list, negated }) => unless(*negated, (list.len() as f64 * equal(expr)).min(0.5)),
        Expr::Between(Between { negated, .. }) => unless(*negated, SOME),
        Expr::Not(inner) => 1.0 - below(inner),
        Expr::IsNull(_) => NULLS,
        Expr::IsNotNull(_) => 1.0,
        Expr::Literal(ScalarValue::Boolean(Some(true)), _) => 1.0,
        Expr::Literal(ScalarValue::Boolean(_), _) => 0.0,
        _ => SOME,
    }
}
