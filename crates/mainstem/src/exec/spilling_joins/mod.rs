//! Hash joins whose build side may be larger than memory.
//!
//! Comes in: a physical plan, behind all rules that move operators. Goes out: the same plan, in which hash joins that
//! may have a large build side are [`SpillingHashJoin`]s. DataFusion 55.2's hash join takes all of its build side into
//! memory, or ends the query (<https://github.com/apache/datafusion/issues/1599>).
//!
//! 1. The rule finds joins whose build side is estimated to take more than a sixteenth of what queries may.
//!    Estimates are often too low, and what is collected here and then fits costs a reservation more.
//! 2. [`operator`] collects the build side. If it fits, DataFusion's join runs over it as ever.
//! 3. Otherwise both sides go to files, each row by the hash of its keys ([`partitions`]), and a join runs for one pair
//!    of files after the other: rows with equal keys are in one of them. A file that does not fit is divided again, by
//!    another hash. (Grace hash join: Kitsuregawa, Tanaka, Moto-oka 1983.)
//!
//! Invariants: a row without a partner is in one pair of files, so that outer, semi, anti and mark joins are right
//! pair by pair. What a plan relies on stays: a join that keeps an order, or has a limit of its own, is left alone. So
//! is one with NULL-aware keys, for which a NULL anywhere counts. It does not own: where files are made, and how large
//! they may become (the session's disk manager).

mod operator;
mod partitions;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use mainstem_postgres::function::{Carried, Named};

pub(super) use self::operator::SpillingHashJoin;

/// Of what queries may take, the share of a build side that is estimated to fit for sure.
const SHARE: u64 = 16;
/// Bytes that DataFusion's hash table takes for a row, at most.
const TABLE_BYTES: u64 = 48;
/// Bytes that a value without a fixed width is taken to have.
const TEXT_BYTES: u64 = 24;

/// Bytes that the queries of a database may take.
#[derive(Clone, Debug, Default)]
pub(super) struct QueryBytes(Arc<AtomicU64>);

impl QueryBytes {
    /// What the next plans go by.
    pub(super) fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

impl Named for QueryBytes {
    const NAME: &'static str = "mainstem_query_bytes";
}

/// The bytes of a build side up to which a join is DataFusion's, of so many that queries may take.
pub(super) fn certain_bytes(query_bytes: u64) -> u64 {
    query_bytes / SHARE
}

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct SpillingJoins;

impl PhysicalOptimizerRule for SpillingJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(Carried(QueryBytes(bytes))) = config.extensions.get() else { return Ok(plan) };
        let certain = certain_bytes(bytes.load(Ordering::Relaxed));
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

/// About how many bytes the rows of `plan` take; as many as those of what it reads if nobody knows.
fn estimated_bytes(plan: &dyn ExecutionPlan, statistics: &StatisticsContext) -> u64 {
    let schema = plan.schema();
    let width: u64 = schema.fields().iter().map(|field| width_of(field.data_type())).sum();
    let known = statistics.compute(plan, &StatisticsArgs::new()).ok();
    let rows = known.as_ref().and_then(|known| known.num_rows.get_value().copied());
    let bytes = known.as_ref().and_then(|known| known.total_byte_size.get_value().copied()).unwrap_or(0) as u64;
    match rows {
        Some(rows) => (rows as u64).saturating_mul(width).max(bytes).saturating_add(rows as u64 * TABLE_BYTES),
        None => plan.children().into_iter().map(|child| estimated_bytes(&**child, statistics)).max().unwrap_or(0),
    }
}

fn width_of(data_type: &DataType) -> u64 {
    data_type.primitive_width().map_or(TEXT_BYTES, |width| width as u64)
}
