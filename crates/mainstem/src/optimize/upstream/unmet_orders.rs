//! Orders that an operator wants and does not get: `SELECT b AS x, b AS y FROM t UNION ALL SELECT d, d FROM u ORDER BY
//! x, y`.
//!
//! DataFusion 55.2 pushes such a sort into the branches and below their projections, where both keys are one column,
//! and one is left. Above, UNION ALL knows of no columns that are equal, and its rows are in the order of `x` only: the
//! last check (`SanityCheckPlan`) refuses the plan ([issue 16171](https://github.com/apache/datafusion/issues/16171)).
//!
//! Comes in: that check. Goes out: one that sorts where an operator lacks an order, if the check finds something, and
//! looks again. It does not own: orders that DataFusion takes for met.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

/// The name of DataFusion's rule.
const RULE: &str = "SanityCheckPlan";

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// `rule` in the form that the module says, if it is that one; others are returned as they are.
pub(crate) fn sorts_unmet_orders(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(SortsUnmetOrders { rule }) } else { rule }
}

#[derive(Debug)]
struct SortsUnmetOrders {
    rule: Rule,
}

impl PhysicalOptimizerRule for SortsUnmetOrders {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if let Ok(checked) = self.rule.optimize(plan.clone(), config) {
            return Ok(checked);
        }
        self.rule.optimize(plan.transform_up(in_order)?.data, config)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// `node` over children whose partitions are in the orders that it wants.
fn in_order(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut children: Vec<_> = node.children().into_iter().cloned().collect();
    let mut is_changed = false;
    for (child, wanted) in children.iter_mut().zip(node.required_input_ordering()) {
        let Some(wanted) = wanted.map(|wanted| wanted.into_single()) else { continue };
        if !child.equivalence_properties().ordering_satisfy_requirement(wanted.clone())? {
            let sort = SortExec::new(LexOrdering::from(wanted), child.clone());
            let is_parted = child.output_partitioning().partition_count() > 1;
            *child = Arc::new(sort.with_preserve_partitioning(is_parted));
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(Transformed::no(node));
    }
    replace_children_if_necessary(node, children).map(Transformed::yes)
}
