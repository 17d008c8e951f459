//! Columns of queries and of tables beside one another: what a write looks at before it assigns values.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan};
use mainstem_storage::schema::TableSchema;

/// The table's Arrow schema with every column nullable: whether NULL is allowed is storage's to say, with a better
/// message.
pub(crate) fn nullable_schema(table: &TableSchema) -> SchemaRef {
    Arc::new(Schema::new(
        table.columns.iter().map(|c| Field::new(&c.name, c.data_type.arrow(), true)).collect::<Vec<_>>(),
    ))
}

/// Which columns of the plan are string literals as far as strings go: those may spell values of any type.
pub(super) fn literal_columns(plan: &LogicalPlan) -> Vec<bool> {
    match plan {
        LogicalPlan::Sort(sort) => literal_columns(&sort.input),
        LogicalPlan::Values(values) => (0..plan.schema().fields().len())
            .map(|at| values.values.iter().all(|row| row.get(at).is_some_and(is_literal)))
            .collect(),
        LogicalPlan::Projection(projection) => {
            let below = literal_columns(&projection.input);
            projection
                .expr
                .iter()
                .map(|expr| match expr.clone().unalias() {
                    Expr::Column(column) => projection
                        .input
                        .schema()
                        .maybe_index_of_column(&column)
                        .and_then(|at| below.get(at).copied())
                        .unwrap_or(false),
                    other => is_literal(&other),
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A literal, perhaps cast by the planner to the type of the other rows.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Alias(alias) => is_literal(&alias.expr),
        Expr::Cast(cast) => matches!(&*cast.expr, Expr::Literal(..)),
        _ => false,
    }
}
