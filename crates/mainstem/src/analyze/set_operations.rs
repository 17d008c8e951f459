//! INTERSECT ALL and EXCEPT ALL count: a row that is n times on the one side and m times on the other stays as often as
//! the smaller of the two, or n - m times.
//!
//! DataFusion 55.2 makes a semi or an anti join of them, in which a row stays n times or not at all. Here equal rows of
//! each side are numbered, and the numbers are compared with them. Comes in: plans whose types are coerced, so that
//! equal is what the join says.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};

use super::plan_walk::rewrite_nodes;

/// The rule.
pub(crate) fn multiset_operations(plan: LogicalPlan) -> Result<LogicalPlan> {
    let one = |plan: LogicalPlan| match plan {
        LogicalPlan::Join(join) if is_of_all(&join) => counted(join).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    };
    rewrite_nodes(plan, one)
}

/// Whether `join` is INTERSECT ALL or EXCEPT ALL: without ALL the left side has no row twice.
fn is_of_all(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !matches!(&*join.left, LogicalPlan::Distinct(Distinct::All(_)))
}

fn counted(mut join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let (of_left, of_right): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let (left, right) = ("row of left", "row of right");
    join.left = Arc::new(numbered(Arc::unwrap_or_clone(join.left), of_left, left)?);
    join.right = Arc::new(numbered(Arc::unwrap_or_clone(join.right), of_right, right)?);
    join.on.push((Expr::Column(Column::from_name(left)), Expr::Column(Column::from_name(right))));
    let joined = LogicalPlan::Join(join).recompute_schema()?;
    LogicalPlanBuilder::from(joined).project(columns)?.build()
}

/// `plan` with a number called `name` behind its columns: the row's among those with the same `values`.
fn numbered(plan: LogicalPlan, values: Vec<Expr>, name: &str) -> Result<LogicalPlan> {
    let number = row_number().partition_by(values).build()?;
    let numbered = LogicalPlanBuilder::from(plan).window([number])?;
    let mut columns = numbered.schema().columns();
    let last = columns.pop().map(|number| Expr::Column(number).alias(name));
    let items: Vec<Expr> = columns.into_iter().map(Expr::Column).chain(last).collect();
    numbered.project(items)?.build()
}
