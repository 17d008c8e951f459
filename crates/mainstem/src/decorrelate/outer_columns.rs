//! What queries refer to of the rows around them, and names for columns that stand for it.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, Result};
use datafusion::logical_expr::logical_plan::{Join, SubqueryAlias};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use mainstem_storage::Error;

use crate::names::MARK;

/// Names for columns that no other column of a plan has.
#[derive(Debug, Default)]
pub(super) struct Names {
    last: usize,
}

impl Names {
    /// A name that no statement gives: it ends in a character that is not seen.
    pub(super) fn next(&mut self, what: &str) -> String {
        self.last += 1;
        format!("__{what}_{}{MARK}", self.last)
    }

    /// Whether `name` is one of these.
    pub(super) fn has(name: &str) -> bool {
        name.starts_with("__") && name.ends_with(MARK)
    }
}

/// The outer columns that `plan` refers to; not those of LATERAL queries in it, which are its own.
pub(super) fn outer_columns(plan: &LogicalPlan) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let mut add = |column: Column| {
        if !columns.contains(&column) {
            columns.push(column);
        }
    };
    if !matches!(plan, LogicalPlan::Subquery(_)) {
        for expr in plan.expressions() {
            let _ = expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr {
                    add(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            });
        }
    }
    if let LogicalPlan::Join(Join { left, right, .. }) = plan {
        outer_columns(left).into_iter().for_each(&mut add);
        let of_left = |column: &Column| left.schema().maybe_index_of_column(column).is_some();
        outer_columns(right).into_iter().filter(|column| !of_left(column)).for_each(&mut add);
    } else {
        plan.inputs().into_iter().flat_map(outer_columns).for_each(&mut add);
    }
    columns
}

/// As [`outer_columns`], with those that only queries within `plan` refer to.
///
/// # Errors
/// Those of walks over expressions.
pub(super) fn all_outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = outer_columns(plan);
    plan.apply(|node| {
        // ORDER BY sees what is below the select items, too.
        let below: Vec<_> =
            node.inputs().into_iter().flat_map(|input| [vec![input], input.inputs()].concat()).collect();
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some(query) = query_of(expr) {
                    let is_around = |column: &Column| {
                        below.iter().all(|input| input.schema().maybe_index_of_column(column).is_none())
                    };
                    columns.extend(all_outer_columns(&query.subquery)?.into_iter().filter(is_around));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(columns)
}

/// The subquery that `expr` is.
pub(super) fn query_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(query) => Some(query),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(member) => Some(&member.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}

/// Whether `plan`, a side of a join, is a LATERAL query.
pub(super) fn holds_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => holds_lateral(&alias.input),
        LogicalPlan::Projection(projection) => holds_lateral(&projection.input),
        _ => false,
    }
}

/// A LATERAL query as DataFusion looks for it.
pub(super) fn bare_lateral(plan: &LogicalPlan) -> Option<&Subquery> {
    match plan {
        LogicalPlan::Subquery(query) => Some(query),
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => match &**input {
            LogicalPlan::Subquery(query) => Some(query),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the right side of `join` refers to the left one. The planner says so, but where only a query within it does.
pub(super) fn is_lateral(join: &Join) -> bool {
    let of_left = |column: &Column| join.left.schema().maybe_index_of_column(column).is_some();
    holds_lateral(&join.right) || outer_columns(&join.right).iter().any(of_left)
}

/// The column `name` of a plan, whoever it belongs to.
pub(super) fn named(schema: &DFSchema, name: &str) -> Result<Expr> {
    let found = schema.iter().find(|(_, field)| field.name() == name);
    let lost = || DataFusionError::Internal(format!("the column {name} is lost"));
    found.map(|field| Expr::Column(Column::from(field))).ok_or_else(lost)
}

/// 0A000.
pub(super) fn unsupported(what: &str) -> DataFusionError {
    DataFusionError::External(Box::new(Error::unsupported(what)))
}
