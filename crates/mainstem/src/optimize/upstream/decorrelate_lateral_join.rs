//! Schemas above LATERAL joins that DataFusion has decorrelated.
//!
//! DataFusion 55.2's `decorrelate_lateral_join` adds the columns of the condition to what the join gives, and leaves
//! the schemas above it as they were. A window there fails as soon as another rule makes it again: "Window schema has
//! wrong number of fields". No public issue was found.
//!
//! Comes in: that rule. Goes out: one that computes the schemas of a plan again which it has changed. It does not own:
//! which joins the rule is for (`decorrelate`).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The name of DataFusion's rule.
const RULE: &str = "decorrelate_lateral_join";

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// `rule` in the form that the module says, if it is that one; others are returned as they are.
pub(crate) fn with_schemas_above_laterals(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(WithSchemas { rule }) } else { rule }
}

#[derive(Debug)]
struct WithSchemas {
    rule: Rule,
}

impl OptimizerRule for WithSchemas {
    fn name(&self) -> &str {
        self.rule.name()
    }

    /// Whole plans.
    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let decorrelated = plan.transform_down_with_subqueries(|node| self.rule.rewrite(node, config))?;
        if !decorrelated.transformed {
            return Ok(decorrelated);
        }
        decorrelated.data.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
    }
}
