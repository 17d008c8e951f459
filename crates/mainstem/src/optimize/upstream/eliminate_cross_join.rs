//! Inner joins of which some take NULLs as equal (`IS NOT DISTINCT FROM`) and others do not, or have a constant key.
//!
//! DataFusion 55.2's `eliminate_cross_join` takes a tree of inner joins apart and makes all of them anew as its root
//! was: in `a JOIN b ON a.k = b.k JOIN c ON b.k IS NOT DISTINCT FROM c.k` NULLs of `a` and `b` join, too, and the other
//! way round some that should are lost.
//!
//! Keys of which one side is a constant, `l.a IS NULL = false` once a constant is put in for a column of the other
//! table, it loses: they are keys between no two tables. No public issue was found.
//!
//! Comes in: that rule. Goes out: one that leaves plans alone in which an inner join takes NULLs as equal, or has a
//! constant key. It does not own: which joins do.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::optimizer::OptimizerRule;

use super::excepted::Excepted;

/// The name of DataFusion's rule.
const RULE: &str = "eliminate_cross_join";

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// `rule` with the exception of the module, if it is that one; others are returned as they are.
pub(crate) fn null_safe_joins(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(Excepted { rule, leaves_alone: has_join_it_breaks }) } else { rule }
}

/// Whether an inner join in `plan` takes NULLs as equal, or has a constant key.
fn has_join_it_breaks(plan: &LogicalPlan) -> Result<bool> {
    let is_constant = |key: &Expr| key.column_refs().is_empty();
    let is_broken = |join: &Join| {
        join.join_type == JoinType::Inner
            && (join.null_equality == NullEquality::NullEqualsNull
                || join.on.iter().any(|(left, right)| is_constant(left) || is_constant(right)))
    };
    let mut has = false;
    plan.apply_with_subqueries(|node| {
        has |= matches!(node, LogicalPlan::Join(join) if is_broken(join));
        Ok(if has { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has)
}
