//! Expressions that are compiled for rows in hand.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::physical_expr::PhysicalExpr;

/// An expression over single rows, as the planner compiles it.
#[derive(Debug)]
pub(crate) struct PlannedExpression {
    /// Name and type, as a result has them.
    pub(crate) field: FieldRef,
    pub(crate) expression: Arc<dyn PhysicalExpr>,
    /// It has another value each time.
    pub(crate) is_volatile: bool,
    /// How many columns its tables have; those behind them are parameters.
    pub(crate) columns: usize,
}
