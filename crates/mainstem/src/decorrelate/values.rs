//! Subqueries in VALUES.
//!
//! DataFusion 55.2 evaluates the cells of a VALUES list while it plans, before any subquery has run. A cell with a
//! subquery becomes NULL, and a projection over the list puts it in its place: `CASE number WHEN 0 THEN cell ... ELSE
//! column END`, where an added last column numbers the rows. The order of rows is that of the list, and its types are
//! those that it has found.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::logical_plan::Values;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::guards::holds_query;
use crate::analyze::plan_walk::rewrite_nodes;

/// The rule.
pub(crate) fn subqueries_in_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_nodes(plan, |plan| match plan {
        LogicalPlan::Values(values) if values.values.iter().flatten().any(holds_query) => {
            projected(values).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    })
}

fn projected(Values { schema, values }: Values) -> Result<LogicalPlan> {
    let mut queries: Vec<Vec<(i64, Expr)>> = vec![Vec::new(); schema.fields().len()];
    let mut rows = Vec::with_capacity(values.len());
    for (number, mut row) in (0_i64..).zip(values) {
        for ((cell, field), queries) in row.iter_mut().zip(schema.fields()).zip(&mut queries) {
            if holds_query(cell) {
                let null = Expr::Literal(ScalarValue::try_new_null(field.data_type())?, None);
                queries.push((number, std::mem::replace(cell, null)));
            }
        }
        row.push(lit(number));
        rows.push(row);
    }
    let list = LogicalPlanBuilder::values(rows)?;
    let columns: Vec<Expr> =
        list.schema().iter().map(|(relation, field)| Expr::Column(Column::from((relation, field)))).collect();
    let number = columns.last().cloned();
    let items = columns.into_iter().zip(queries).zip(schema.fields()).map(|((column, queries), field)| {
        if queries.is_empty() {
            return column;
        }
        let when_then_expr =
            queries.into_iter().map(|(number, cell)| (Box::new(lit(number)), Box::new(cell))).collect();
        let case = Case { expr: number.clone().map(Box::new), when_then_expr, else_expr: Some(Box::new(column)) };
        Expr::Case(case).alias(field.name())
    });
    let items = items.collect::<Vec<_>>();
    list.project(items)?.build()
}
