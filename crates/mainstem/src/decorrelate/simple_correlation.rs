//! Which queries DataFusion may take their references out of.
//!
//! DataFusion 55.2 makes joins of queries that refer to the outer rows: comparisons with those become the join's
//! condition, and what they compare stands among the query's columns, and its groups, by its name alone. That is exact
//! for few queries, and DataFusion does it for more: two columns of one name are taken for one, windows, LIMIT and
//! DISTINCT then see the rows of all, a constant beside an aggregate without groups is NULL where nothing is found.
//!
//! Comes in: a query that refers to outer rows. Goes out: whether DataFusion's join gives its rows, and EXISTS in fewer
//! nodes. It does not own: what becomes of the other queries (`rule`).
//!
//! The join is exact where the query is, from the top down,
//!
//! 1. select items, which refer to nothing around; above an aggregate each has a column of it, so that it is computed
//!    for no rows too;
//! 2. for a scalar subquery, one aggregate without groups, and below it nothing but `=` of a column and of values
//!    around: for a row around, the rows of one group are all those that are equal;
//! 3. conditions, some of them comparisons with the outer rows, over
//! 4. a plan that refers to nothing around,
//!
//! and where what is compared has names of its own: no other column that passes has one of them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, FetchType, LogicalPlan, Operator, SkipType};

use super::determinism::is_volatile;
use super::guards::holds_query;
use super::has_one_row;
use super::outer_columns::outer_columns;

/// Whether DataFusion's join gives the rows of `query`, a scalar subquery or another one.
pub(super) fn is_movable(query: &LogicalPlan, is_scalar: bool) -> bool {
    !is_volatile(query).unwrap_or(true) && Moved::default().passes(query, is_scalar).is_some()
}

/// What is known of a plan that references have been taken out of.
struct Passed {
    /// An aggregate without groups is below.
    is_total: bool,
    /// Nothing but `=` has been taken out.
    is_equal: bool,
}

/// The columns that comparisons with the outer rows need.
#[derive(Default)]
struct Moved(Vec<Column>);

impl Moved {
    fn passes(&mut self, plan: &LogicalPlan, is_scalar: bool) -> Option<Passed> {
        match plan {
            LogicalPlan::Projection(projection) if !plan.contains_outer_reference() => {
                let passed = self.passes(&projection.input, is_scalar)?;
                let is_computed = |item: &Expr| !item.column_refs().is_empty();
                let fits = !passed.is_total || projection.expr.iter().all(is_computed);
                (fits && self.has_own_names(&projection.expr, plan.schema())).then_some(passed)
            }
            LogicalPlan::Aggregate(aggregate)
                if is_scalar && aggregate.group_expr.is_empty() && !plan.contains_outer_reference() =>
            {
                let passed = self.passes(&aggregate.input, is_scalar)?;
                let fits =
                    passed.is_equal && !passed.is_total && self.has_own_names(&aggregate.aggr_expr, plan.schema());
                fits.then_some(Passed { is_total: true, is_equal: true })
            }
            LogicalPlan::Filter(filter) => {
                let mut passed = match outer_columns(&filter.input).is_empty() {
                    true => Passed { is_total: false, is_equal: true },
                    false => self.passes(&filter.input, is_scalar)?,
                };
                if passed.is_total {
                    return None;
                }
                for part in split_conjunction(&filter.predicate).into_iter().filter(|part| part.contains_outer()) {
                    if part.is_volatile() || holds_query(part) || !self.take(part, filter.input.schema()) {
                        return None;
                    }
                    passed.is_equal &= is_equality(part, filter.input.schema());
                }
                Some(passed)
            }
            _ => None,
        }
    }

    /// Notes the columns of `part`, a comparison with outer rows; false if a name is not that of one column.
    fn take(&mut self, part: &Expr, schema: &DFSchema) -> bool {
        let is_around = |expr: &Expr| match expr {
            Expr::OuterReferenceColumn(_, column) => Ok(schema.maybe_index_of_column(column).is_some()),
            _ => Ok(false),
        };
        // A condition on the outer rows alone is no comparison with them.
        if !part.any_column_refs() || part.exists(is_around).unwrap_or(true) {
            return false;
        }
        for column in part.column_refs() {
            if self.0.iter().any(|moved| moved.name == column.name && moved != column) {
                return false;
            }
            if !self.0.contains(column) {
                self.0.push(column.clone());
            }
        }
        true
    }

    /// Whether a select item that has the name of a column that is moved is that column.
    fn has_own_names(&self, items: &[Expr], schema: &DFSchema) -> bool {
        items.iter().zip(schema.fields()).all(|(item, field)| {
            let is_same =
                |moved: &Column| moved.name != *field.name() || matches!(item, Expr::Column(column) if column == moved);
            self.0.iter().all(is_same)
        })
    }
}

/// Whether `part` is a column that equals what does not depend on the query's rows, where values are equal that are the
/// same in GROUP BY only: of a cast, of floats, several may equal one.
fn is_equality(part: &Expr, schema: &DFSchema) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return false };
    let is_one_to_one = |from: &DataType, to: &DataType| {
        from == to && !from.is_floating() || from.is_integer() && to.is_integer() || from.is_string() && to.is_string()
    };
    let is_column = |expr: &Expr| {
        let column = match expr {
            Expr::Cast(Cast { expr, .. }) => &**expr,
            expr => expr,
        };
        let types = column.get_type(schema).and_then(|from| Ok((from, expr.get_type(schema)?)));
        matches!(column, Expr::Column(_)) && types.is_ok_and(|(from, to)| is_one_to_one(&from, &to))
    };
    (is_column(left) && !right.any_column_refs()) || (is_column(right) && !left.any_column_refs())
}

/// What EXISTS of `query` asks for: its order does not matter, nor how many rows there are. `None` if it has a row
/// whatever the outer rows.
pub(super) fn looked_for(query: Arc<LogicalPlan>) -> Option<Arc<LogicalPlan>> {
    if has_one_row(&query) {
        return None;
    }
    match &*query {
        LogicalPlan::Limit(limit) => match (limit.get_skip_type(), limit.get_fetch_type()) {
            (Ok(SkipType::Literal(0)), Ok(FetchType::Literal(fetch))) if fetch != Some(0) => {
                looked_for(limit.input.clone())
            }
            _ => Some(query),
        },
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => looked_for(sort.input.clone()),
        _ => Some(query),
    }
}
