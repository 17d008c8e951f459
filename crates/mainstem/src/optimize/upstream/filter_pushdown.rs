//! Filters that DataFusion pushes to where they do not belong stay where they are.
//!
//! - **Above an aggregate of everything.** Such an aggregate, without GROUP BY or with the empty grouping set among its
//!   own, has a row even of nothing. DataFusion pushes a filter that names no column (a constant that a view adds,
//!   HAVING by a subquery) below it, as below any other aggregate: the row that was to go stays, with other totals. So
//!   its rule is not given such filters.
//! - **In physical plans**, whose columns have no qualifiers. The rules that push filters there follow columns by their
//!   names through projections, and take one for another where two are called the same: above `l RIGHT JOIN r`, whose
//!   sides were exchanged, a filter of `l.i` became one of `r.i`, below the join. What can be pushed was pushed in the
//!   logical plan, and no source of ours takes filters from a physical one, so these rules are left out
//!   ([`pushes_by_name`]).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;

/// What the names of the rules over physical plans begin with that push filters.
const PHYSICAL_RULES: &str = "FilterPushdown";

/// DataFusion's `rule`, if it pushes filters with the exception of the module; others as they are.
pub(crate) fn guarded(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
    if rule.name() == "push_down_filter" { Arc::new(Guarded(rule)) } else { rule }
}

/// Whether `rule` is one of those over physical plans that are left out; see the module.
pub(crate) fn pushes_by_name(rule: &(dyn PhysicalOptimizerRule + Send + Sync)) -> bool {
    rule.name().starts_with(PHYSICAL_RULES)
}

#[derive(Debug)]
struct Guarded(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for Guarded {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Filter(filter) = &plan
            && let LogicalPlan::Aggregate(aggregate) = &*filter.input
            && has_row_of_nothing(&aggregate.group_expr)
        {
            return Ok(Transformed::no(plan));
        }
        self.0.rewrite(plan, config)
    }
}

/// Whether an aggregate grouped by `groups` has a row where its input has none.
fn has_row_of_nothing(groups: &[Expr]) -> bool {
    match groups {
        [] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty),
        [Expr::GroupingSet(_)] => true,
        _ => false,
    }
}
