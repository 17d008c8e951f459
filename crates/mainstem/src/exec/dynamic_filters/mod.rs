//! Scans leave out rows that operators above them turn out not to need: those whose keys the build side of a join does
//! not have, and those behind the rows that a limit keeps.
//!
//! Comes in: a physical plan. Goes out: the same plan, whose hash joins tell scans of ours what they found.
//!
//! 1. A hash join reads all of its build side before it asks for the first row of its probe side. Rows of the probe
//!    side without a partner are dropped by joins of [`drops_probe_rows`].
//! 2. [`push_down`] follows each integer key of the probe side by its position, through operators that keep or drop
//!    whole rows or groups, to the scans that it comes from. DataFusion 55.2 has rules that do this by the names of
//!    columns, and take one for another where two are called the same; they are left out (`optimize::upstream`).
//! 3. [`KeyCollector`] above the build side passes batches on, remembers their keys, and publishes them at the end.
//!
//! Sorts with a limit push a filter down to scans in the same way ([`push_first_rows`]), and tighten it.
//!
//! Invariants: a filter drops only rows that no row of the answer needs; scans wait for keys, and no build side waits
//! for its own probe side. It does not own: how a scan uses keys (`storage::scan::DynamicFilter`).

mod key_collector;
mod push_down;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use mainstem_postgres::function::{Carried, Named};
use mainstem_storage::limits::DYNAMIC_FILTER_MIN_ROWS;
use mainstem_storage::scan::FirstRows;

pub(super) use self::key_collector::KeyCollector;
use self::push_down::push_down;
use crate::provider::{RuntimeFilter, StoreSource};

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct DynamicFilters;

impl PhysicalOptimizerRule for DynamicFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        // Each round of a recursive query runs the same operators on other rows.
        if plan.exists(|node| Ok(node.is::<RecursiveQueryExec>()))? {
            return Ok(plan);
        }
        let min_rows = min_rows(config);
        plan.transform_up(|node| filtered(node, min_rows)).data()
    }

    fn name(&self) -> &'static str {
        "dynamic_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn min_rows(config: &ConfigOptions) -> u64 {
    match config.extensions.get() {
        Some(Carried(MinRows(rows))) => rows.load(Ordering::Relaxed).into(),
        None => DYNAMIC_FILTER_MIN_ROWS.into(),
    }
}

/// A plan, and the filter that its scans go by.
pub(super) type Bounded = (Arc<dyn ExecutionPlan>, Arc<RuntimeFilter>);

/// `input` of a sort with a limit, whose scans leave out rows that come behind the filter's bound in column `at`, and
/// the filter; None when the column comes from no scan that can.
///
/// # Errors
/// Internal.
pub(super) fn push_first_rows(
    input: &Arc<dyn ExecutionPlan>,
    at: usize,
    first_rows: FirstRows,
    config: &ConfigOptions,
) -> Result<Option<Bounded>> {
    let filter = RuntimeFilter::of_first_rows(first_rows);
    let filtered = push_down(input, at, &filter, min_rows(config))?;
    Ok(filtered.map(|input| (input, filter)))
}

/// The session's `dynamic_filter_min_rows` for the statement that is planned.
#[derive(Clone, Debug, Default)]
pub(super) struct MinRows(Arc<AtomicU32>);

impl MinRows {
    /// What the next plans go by.
    pub(super) fn set(&self, rows: u32) {
        self.0.store(rows, Ordering::Relaxed);
    }
}

impl Named for MinRows {
    const NAME: &'static str = "mainstem_dynamic_filter_min_rows";
}

/// `node`, whose build side tells its keys to scans of its probe side, if it is a join that has such.
fn filtered(node: Arc<dyn ExecutionPlan>, min_rows: u64) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>().filter(|join| drops_probe_rows(join)) else {
        return Ok(Transformed::no(node));
    };
    // Whoever wants filters on every table wants them of all keys, too.
    if min_rows > 1 && !may_lack_keys(join.left())? {
        return Ok(Transformed::no(node));
    }
    let mut probe = join.right().clone();
    let mut collected = Vec::new();
    for (build_key, probe_key) in join.on() {
        let Some((build_at, probe_at)) = integer_columns(join, build_key, probe_key)? else { continue };
        let keys = RuntimeFilter::of_join();
        if let Some(filtered) = push_down(&probe, probe_at, &keys, min_rows)? {
            probe = filtered;
            collected.push((build_at, keys));
        }
    }
    if collected.is_empty() {
        return Ok(Transformed::no(node));
    }
    let build = Arc::new(KeyCollector::new(join.left().clone(), collected));
    Ok(Transformed::yes(replace_children_if_necessary(node, vec![build, probe])?))
}

/// Whether rows of the probe side that have no partner change nothing.
fn drops_probe_rows(join: &HashJoinExec) -> bool {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, RightSemi};
    // NOT IN asks whether the probe side has a NULL, or any row.
    !join.null_aware
        && join.null_equality() == NullEquality::NullEqualsNothing
        && matches!(join.join_type(), Inner | Left | LeftSemi | LeftAnti | LeftMark | RightSemi)
}

/// The columns that a pair of keys is, if they are integers of one type.
fn integer_columns(
    join: &HashJoinExec,
    build: &Arc<dyn PhysicalExpr>,
    probe: &Arc<dyn PhysicalExpr>,
) -> Result<Option<(usize, usize)>> {
    let (Some(build_at), Some(probe_at)) = (build.downcast_ref::<Column>(), probe.downcast_ref::<Column>()) else {
        return Ok(None);
    };
    let (build_type, probe_type) = (build.data_type(&join.left().schema())?, probe.data_type(&join.right().schema())?);
    let is_integer = matches!(
        build_type,
        DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond, _)
    );
    Ok((is_integer && build_type == probe_type).then(|| (build_at.index(), probe_at.index())))
}

/// Whether `plan` may have fewer keys than the tables that it reads: a filter of all keys would drop nothing.
fn may_lack_keys(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut may = false;
    plan.apply(|node| {
        may = if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
            !scan.data_source().downcast_ref::<StoreSource>().is_some_and(StoreSource::reads_all)
        } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            use JoinType::{LeftAnti, LeftSemi, RightAnti, RightSemi};
            matches!(join.join_type(), LeftSemi | LeftAnti | RightSemi | RightAnti)
        } else {
            node.is::<FilterExec>() || node.fetch().is_some() || node.children().is_empty()
        };
        Ok(if may { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(may)
}
