//! About how many bytes of memory a plan takes, for `memory_limit`.
//!
//! Nodes, columns and expressions are counted; what they take is in them and behind them: names, lists, properties.
//! What plans share, types and functions, is counted as nobody's.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;

/// Of a node of a logical plan, beside itself: its box, and its schema without columns.
const NODE: usize = 256;
/// Of a column of a node's schema: its name, its qualifier, its place in a map.
const COLUMN: usize = 96;
/// Of an expression, beside itself: its box, a name in it.
const EXPRESSION: usize = 48;
/// Of a node of a physical plan: itself, its properties, the expressions in it, its metrics.
const OPERATOR: usize = 2_048;
/// Of a column of such a node: its field, and what is known of its order and its values.
const OUTPUT: usize = 256;

/// Bytes of `plan`, subqueries included.
pub(super) fn of_logical(plan: &LogicalPlan) -> usize {
    let mut bytes = 0;
    // Nothing fails in it.
    let _ = plan.apply_with_subqueries(|node| {
        bytes += size_of::<LogicalPlan>() + NODE + node.schema().fields().len() * COLUMN;
        node.apply_expressions(|expr| {
            expr.apply(|_| {
                bytes += size_of::<Expr>() + EXPRESSION;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    bytes
}

/// Bytes of `plan`.
pub(super) fn of_physical(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below: usize = plan.children().into_iter().map(of_physical).sum();
    OPERATOR + plan.schema().fields().len() * OUTPUT + below
}
