//! `ORDER BY ... LIMIT n` with a large n sorts all rows and takes the first.
//!
//! DataFusion 55.2 keeps the n best rows seen so far in a heap, whatever n is. From some ten thousand on that takes
//! many times the time of a sort, and memory that cannot be spilled.
//!
//! Comes in: a physical plan. Goes out: the same plan with a sort and a limit in the place of such heaps. It does not
//! own: where a limit stands.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Rows up to which a heap costs less than sorting all.
const HEAP_ROWS_MAX: usize = 32_768;

/// The rule; see the module.
#[derive(Debug)]
pub(crate) struct LargeLimits;

impl PhysicalOptimizerRule for LargeLimits {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let sorted = |node: Arc<dyn ExecutionPlan>| {
            let sort = node.downcast_ref::<SortExec>();
            let large = sort.and_then(|sort| Some((sort, sort.fetch().filter(|rows| *rows > HEAP_ROWS_MAX)?)));
            Ok(match large {
                Some((sort, rows)) => {
                    let limit = LocalLimitExec::new(Arc::new(sort.with_fetch(None)), rows);
                    Transformed::yes(Arc::new(limit) as Arc<dyn ExecutionPlan>)
                }
                None => Transformed::no(node),
            })
        };
        plan.transform_up(sorted).data()
    }

    fn name(&self) -> &'static str {
        "large_limits"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
