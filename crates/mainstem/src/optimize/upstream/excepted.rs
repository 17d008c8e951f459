//! A rule of DataFusion's that leaves some plans alone.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// `rule`, but for plans that `leaves_alone` is true of.
#[derive(Debug)]
pub(super) struct Excepted {
    pub(super) rule: Arc<dyn OptimizerRule + Send + Sync>,
    pub(super) leaves_alone: fn(&LogicalPlan) -> Result<bool>,
}

impl OptimizerRule for Excepted {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if (self.leaves_alone)(&plan)? { Ok(Transformed::no(plan)) } else { self.rule.rewrite(plan, config) }
    }
}
