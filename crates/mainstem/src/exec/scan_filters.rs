//! Filters over a scan that the scan evaluates itself.
//!
//! Comes in: a physical plan in which all else is settled. Goes out: the same plan without filters that stand right
//! over a scan of a table: the scan has them as row filters (`storage::scan::RowFilter`). It evaluates them once for
//! each distinct value where it can, and reads the columns of its output only for rows that are left.
//!
//! It does not own: predicates that the store knows, which scans have had since the logical plan (`provider::filter`).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::provider::StoreSource;

type Plan = Arc<dyn ExecutionPlan>;

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct ScanFilters;

impl PhysicalOptimizerRule for ScanFilters {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let filter = node.downcast_ref::<FilterExec>();
            Ok(match filter.map(in_scan).transpose()?.flatten() {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "scan_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The scan that `filter` reads, with its condition; `None` where it reads something else, or a condition is to be
/// evaluated for each row that comes.
fn in_scan(filter: &FilterExec) -> Result<Option<Plan>> {
    if is_volatile(filter.predicate()) {
        return Ok(None);
    }
    let cooperative = filter.input().downcast_ref::<CooperativeExec>();
    let scan = cooperative.map_or(filter.input(), CooperativeExec::input);
    let source = scan.downcast_ref::<DataSourceExec>();
    let Some(source) = source.and_then(|scan| scan.data_source().downcast_ref::<StoreSource>()) else {
        return Ok(None);
    };
    let projection = filter.projection().as_deref();
    let Some(filtered) = source.with_condition(filter.predicate(), projection, filter.fetch())? else {
        return Ok(None);
    };
    let scan = DataSourceExec::from_data_source(filtered) as Plan;
    Ok(Some(match cooperative {
        Some(_) => replace_children_if_necessary(filter.input().clone(), vec![scan])?,
        None => scan,
    }))
}
