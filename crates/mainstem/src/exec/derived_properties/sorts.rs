//! Sorts that go below projections of the columns they are by: what a projection computes is computed of the rows that
//! a limit keeps.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

/// `plan`, whose sorts are below projections where they can be.
///
/// # Errors
/// Internal.
pub(super) fn below_projections(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let moved = plan.transform_down(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
        Ok(match below_projection(sort)? {
            Some(moved) => Transformed::yes(moved),
            None => Transformed::no(node),
        })
    });
    Ok(moved?.data)
}

/// The projection below `sort` with the sort below itself; `None` if there is none, or the sort is by what it computes.
fn below_projection(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = sort.input().downcast_ref::<ProjectionExec>() else { return Ok(None) };
    let source = |key: &PhysicalSortExpr| {
        let column = key.expr.downcast_ref::<Column>()?;
        let source = projection.expr().get(column.index())?.expr.downcast_ref::<Column>()?;
        Some(PhysicalSortExpr::new(Arc::new(source.clone()) as Arc<dyn PhysicalExpr>, key.options))
    };
    let Some(keys) = sort.expr().iter().map(source).collect::<Option<Vec<_>>>().and_then(LexOrdering::new) else {
        return Ok(None);
    };
    if keys.len() != sort.expr().len() {
        // Two names of one column: it stays where both are.
        return Ok(None);
    }
    let below = SortExec::new(keys, projection.input().clone())
        .with_fetch(sort.fetch())
        .with_preserve_partitioning(sort.preserve_partitioning());
    replace_children_if_necessary(sort.input().clone(), vec![Arc::new(below)]).map(Some)
}
