//! Hash joins whose build side may be larger than memory.
//!
//! Comes in: a physical plan, behind all rules that move operators. Goes out: the same plan, in which hash joins that
//! may have a large build side are [`SpillingHashJoin`]s. DataFusion 55.2's hash join takes all of its build side into
//! memory, or ends the query (<https://github.com/apache/datafusion/issues/1599>).
//!
//! 1. The rule finds joins whose build side is estimated to take more than a sixteenth of what queries may, or is of a
//!    size that nobody knows. Estimates are often too low, and what is collected here and then fits costs a
//!    reservation more.
//! 2. [`operator`] collects the build side. If it fits, DataFusion's join runs over it as ever.
//! 3. Otherwise both sides go to files, each row by the hash of its keys (`spilling`), and a join runs for one pair
//!    of files after the other: rows with equal keys are in one of them. A file that does not fit is divided again, by
//!    another hash. (Grace hash join: Kitsuregawa, Tanaka, Moto-oka 1983.)
//!
//! Invariants: a row without a partner is in one pair of files, so that outer, semi, anti and mark joins are right
//! pair by pair. What a plan relies on stays: a join that keeps an order, or has a limit of its own, is left alone. So
//! is one with NULL-aware keys, for which a NULL anywhere counts. It does not own: where files are made, and how large
//! they may become (the session's disk manager).

mod operator;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::statistics::StatisticsContext;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use mainstem_postgres::function::Carried;

pub(super) use self::operator::SpillingHashJoin;
use super::spilling::{QueryBytes, certain_bytes, estimated_bytes};

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct SpillingJoins;

impl PhysicalOptimizerRule for SpillingJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(Carried(bytes)) = config.extensions.get::<Carried<QueryBytes>>() else { return Ok(plan) };
        let certain = certain_bytes(bytes.get());
        let statistics = StatisticsContext::new();
        plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>().filter(|join| may_spill(join)) else {
                return Ok(Transformed::no(node));
            };
            if estimated_bytes(&**join.left(), &statistics) <= certain {
                return Ok(Transformed::no(node));
            }
            // Pointers of nodes that are gone may come again.
            statistics.reset_cache();
            Ok(Transformed::yes(Arc::new(SpillingHashJoin::new(join)?)))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "spilling_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether `join` gives the same rows when it is run for parts of its keys, one after the other.
fn may_spill(join: &HashJoinExec) -> bool {
    let has_own_build_side = match join.partition_mode() {
        PartitionMode::Partitioned => true,
        PartitionMode::CollectLeft => join.right().output_partitioning().partition_count() == 1,
        PartitionMode::Auto => false,
    };
    let (left, right) = (join.left().schema(), join.right().schema());
    let type_of = |expr: &Arc<dyn PhysicalExpr>, schema| expr.data_type(schema).ok();
    let are_alike = |(build, probe): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
        type_of(build, &left).is_some_and(|of_build| type_of(probe, &right) == Some(of_build))
    };
    has_own_build_side
        && !join.null_aware
        && join.fetch().is_none()
        && join.properties().output_ordering().is_none()
        && !join.on().is_empty()
        && join.on().iter().all(are_alike)
}
