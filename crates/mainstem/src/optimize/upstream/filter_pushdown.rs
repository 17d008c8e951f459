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
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};
use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

use super::excepted::Excepted;

/// What the names of the rules over physical plans begin with that push filters.
const PHYSICAL_RULES: &str = "FilterPushdown";

/// DataFusion's `rule`, if it pushes filters with the exception of the module; others as they are.
pub(crate) fn guarded(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
    if rule.name() == "push_down_filter" {
        Arc::new(Excepted { rule, leaves_alone: filters_row_of_nothing })
    } else {
        rule
    }
}

/// Whether `rule` is one of those over physical plans that are left out; see the module.
pub(crate) fn pushes_by_name(rule: &(dyn PhysicalOptimizerRule + Send + Sync)) -> bool {
    rule.name().starts_with(PHYSICAL_RULES)
}

/// Whether `plan` is a filter, or several, above an aggregate that has a row of nothing.
fn filters_row_of_nothing(plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(false) };
    let mut input = &filter.input;
    // The rule makes one of several filters, and goes on with that.
    while let LogicalPlan::Filter(filter) = &**input {
        input = &filter.input;
    }
    Ok(matches!(&**input, LogicalPlan::Aggregate(aggregate) if has_row_of_nothing(&aggregate.group_expr)))
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
