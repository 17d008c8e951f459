//! Inner joins of which some take NULLs as equal (`IS NOT DISTINCT FROM`) and others do not.
//!
//! DataFusion 55.2's `eliminate_cross_join` takes a tree of inner joins apart and makes all of them anew as its root
//! was: in `a JOIN b ON a.k = b.k JOIN c ON b.k IS NOT DISTINCT FROM c.k` NULLs of `a` and `b` join, too, and the other
//! way round some that should are lost.
//!
//! Comes in: that rule. Goes out: one that leaves plans alone in which an inner join takes NULLs as equal. It does not
//! own: which joins do.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The name of DataFusion's rule.
const RULE: &str = "eliminate_cross_join";

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// `rule` with the exception of the module, if it is that one; others are returned as they are.
pub(crate) fn null_safe_joins(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(NullSafe(rule)) } else { rule }
}

#[derive(Debug)]
struct NullSafe(Rule);

impl OptimizerRule for NullSafe {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut has_equal_nulls = false;
        plan.apply_with_subqueries(|node| {
            has_equal_nulls |= matches!(node, LogicalPlan::Join(join)
                if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull);
            Ok(if has_equal_nulls { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if has_equal_nulls { Ok(Transformed::no(plan)) } else { self.0.rewrite(plan, config) }
    }
}
