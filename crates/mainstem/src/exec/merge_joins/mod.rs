//! Joins of tables that are sorted by the keys that they are joined by read both in that order, and merge.
//!
//! Comes in: a physical plan behind `dynamic_filters`. Goes out: the same plan, in which hash joins of such tables are
//! [`MergeJoin`]s, without a hash table and without an exchange of rows between threads.
//!
//! 1. The rule finds joins by the columns that lead the sort keys of both tables, where nothing but filters and
//!    projections is between ([`inputs`]). An input may be such a join itself: its tables are cut at the same keys.
//! 2. Both sides have to be large by estimate: the hash table of a small one stays in the caches. Scans that filter by
//!    the keys of a join are left as they are, for they may read few rows. What else counts is where rows stand, and
//!    how the hash join would run (`Tables::is_quick`).
//! 3. [`operator`] runs a merge for each range of keys ([`stream`], [`window`], [`groups`]).
//!
//! Invariant: the rows of such a join are not partitioned by hash, so no operator above may rely on that
//! (`streaming::leaves_free`). There are no more partitions than the hash join had. It does not own: how rows
//! are read in order (`storage::scan::OrderedScan`).

mod groups;
mod inputs;
mod operator;
mod stream;
mod window;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};
use mainstem_postgres::function::{Carried, Named};

use self::inputs::Tables;
pub(super) use self::operator::MergeJoin;
use super::streaming::leaves_free;
use crate::exec::spilling::may_read_in_key_order;

/// Rows of the smaller table of a join from which on it is merged.
pub(super) const MIN_ROWS: u32 = 100_000;

/// The session's `merge_join_min_rows` for the statement that is planned.
#[derive(Clone, Debug)]
pub(super) struct MergeMinRows(Arc<AtomicU32>);

impl Default for MergeMinRows {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(MIN_ROWS)))
    }
}

impl MergeMinRows {
    /// What the next plans go by.
    pub(super) fn set(&self, rows: u32) {
        self.0.store(rows, Ordering::Relaxed);
    }
}

impl Named for MergeMinRows {
    const NAME: &'static str = "mainstem_merge_join_min_rows";
}

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct MergeJoins;

impl PhysicalOptimizerRule for MergeJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let min_rows = match config.extensions.get() {
            Some(Carried(MergeMinRows(rows))) => rows.load(Ordering::Relaxed),
            None => MIN_ROWS,
        };
        if may_read_in_key_order(config) { rewrite(&plan, true, min_rows) } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "merge_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `plan`, whose partitions nobody relies on if `is_free`.
fn rewrite(plan: &Arc<dyn ExecutionPlan>, is_free: bool, min_rows: u32) -> Result<Arc<dyn ExecutionPlan>> {
    // Of one partition there is nothing to rely on.
    let is_free = is_free || plan.output_partitioning().partition_count() == 1;
    if is_free
        && let Some(tables) = Tables::of(plan)
        && let Some(cuts) = tables.cuts(min_rows)
        && let Some(merged) = tables.merged(&cuts)?
    {
        return Ok(merged);
    }
    let children = plan.children().into_iter().enumerate();
    let children = children.map(|(at, child)| rewrite(child, leaves_free(plan, at, is_free), min_rows));
    replace_children_if_necessary(plan.clone(), children.collect::<Result<Vec<_>>>()?)
}
