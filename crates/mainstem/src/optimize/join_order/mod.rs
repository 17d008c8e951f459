//! The order of inner joins, by estimated cardinalities: DataFusion joins in the order of FROM.
//!
//! Comes in: an optimized plan, with filters and keys where they belong. Goes out: the same, where trees of inner joins
//! that another order makes clearly cheaper have that one.
//!
//! 1. `tree` finds each maximal tree of inner joins: its leaves, keys and other conditions. Projections that only leave
//!    columns out are looked through. A semi join against the groups of an aggregate is an inner join, too.
//! 2. `estimate` gives each leaf a cardinality, and its columns numbers of distinct values.
//! 3. `graph` makes a join graph of the keys and looks for the cheapest tree: by dynamic programming over all connected
//!    sets of leaves, or greedily if there are many. Cross products are none of its trees.
//! 4. The tree is built with the smaller side of each join on the left, which is DataFusion's build side. A projection
//!    above gives the columns that were there before.
//!
//! Invariants: the schema stays the same; conditions that may fail, or are volatile, are asked about the same rows as
//! before; each leaf is read once, as before. It does not own: which side is built in the end, which DataFusion decides
//! by its own estimates; the order of other joins.

mod estimate;
mod graph;
mod tree;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;

use self::estimate::cardinality;
use self::graph::JoinGraph;
use self::tree::JoinTree;

/// What the new order may cost of what the given one does.
const COST_SHARE_MAX: f64 = 0.8;

/// `plan` with its inner joins in a cheap order.
///
/// # Errors
/// Internal.
pub(crate) fn ordered_joins(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    if !has_joins(&plan)? {
        return Ok(plan);
    }
    let ordered = ordered(plan)?;
    if !ordered.transformed {
        return Ok(ordered.data);
    }
    // Joins carry what stands above them only.
    let columns = state.optimizers().iter().filter(|rule| rule.name() == "optimize_projections");
    Optimizer::with_rules(columns.map(Arc::clone).collect()).optimize(ordered.data, state, |_, _| {})
}

/// Whether there are two joins, one of them an inner one.
fn has_joins(plan: &LogicalPlan) -> Result<bool> {
    let (mut inner, mut all) = (0, 0);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            all += 1;
            inner += usize::from(join.join_type == JoinType::Inner);
        }
        Ok(if inner > 0 && all > 1 { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(inner > 0 && all > 1)
}

fn ordered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_down_with_subqueries(|node| {
        Ok(match cheaper(&node)? {
            // Its leaves are in order already.
            Some(cheaper) => Transformed::new(cheaper, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })
}

/// The tree of joins that `root` is the root of, in an order that is clearly cheaper, if there is one.
fn cheaper(root: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let Some(tree) = JoinTree::of(root)? else { return Ok(None) };
    let leaves = tree.leaves.iter().map(|leaf| cardinality(leaf)).collect();
    let Some(graph) = JoinGraph::of(&tree, leaves) else { return Ok(None) };
    let Some(best) = graph.best() else { return Ok(None) };
    if graph.cost(&best) >= graph.cost(&tree.shape) * COST_SHARE_MAX {
        return Ok(None);
    }
    let leaves = tree.leaves.iter().map(|leaf| ordered(leaf.as_ref().clone()).map(|leaf| leaf.data));
    graph.built(&best, &tree, leaves.collect::<Result<Vec<_>>>()?, root.schema())
}
