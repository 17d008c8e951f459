//! Rules that have nothing to do are left out: each walks the whole plan to find that.
//!
//! Comes in: a plan before the analyzer, and again before the optimizer. Goes out: the rules of either that could
//! change it. A rule is left out by its name where [`TRIGGERS`] says what it looks for, the plan has none of it, and no
//! other rule makes any. Subqueries and set operations are rewritten into much else: plans with one pass all rules.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Distinct, Explain, Expr, ExpressionPlacement, LogicalPlan};
use datafusion::optimizer::{Analyzer, Optimizer};

/// What a rule may look for, as bits.
type Kinds = u8;

const SUBQUERY: Kinds = 1;
const JOIN: Kinds = 1 << 1;
const LIMIT: Kinds = 1 << 2;
const DISTINCT: Kinds = 1 << 3;
const FILTER: Kinds = 1 << 4;
const AGGREGATE: Kinds = 1 << 5;
const WINDOW: Kinds = 1 << 6;
/// Functions that are computed next to the scan, of parts of a value.
const LEAF: Kinds = 1 << 7;
const ALL: Kinds = Kinds::MAX;

/// What each rule looks for; rules that are not here always run.
const TRIGGERS: &[(&str, Kinds)] = &[
    // Ours, in the analyzer.
    ("subqueries_in_values", SUBQUERY),
    ("window_frames", WINDOW),
    ("null_aware_in", SUBQUERY),
    ("multiset_operations", JOIN),
    ("decorrelated", SUBQUERY),
    ("nullable_subqueries", SUBQUERY),
    // DataFusion's, in the optimizer.
    ("rewrite_set_comparison", SUBQUERY),
    ("optimize_unions", SUBQUERY),
    ("unions_to_filter", SUBQUERY),
    ("replace_distinct_aggregate", DISTINCT),
    ("eliminate_join", JOIN),
    ("decorrelate_predicate_subquery", SUBQUERY),
    ("scalar_subquery_to_join", SUBQUERY),
    ("decorrelate_lateral_join", SUBQUERY),
    ("extract_equijoin_predicate", JOIN),
    ("eliminate_filter", FILTER | JOIN),
    ("eliminate_cross_join", JOIN),
    ("eliminate_limit", LIMIT | DISTINCT),
    ("filter_null_join_keys", JOIN),
    ("eliminate_outer_join", JOIN),
    ("push_down_limit", LIMIT | DISTINCT),
    ("push_down_filter", FILTER | JOIN),
    ("single_distinct_aggregation_to_group_by", AGGREGATE | DISTINCT),
    ("eliminate_group_by_constant", AGGREGATE | DISTINCT),
    ("extract_leaf_expressions", LEAF),
    ("push_down_leaf_projections", LEAF),
];

/// Whether the rule called `name` has something to look for among `kinds`.
fn runs(name: &str, kinds: Kinds) -> bool {
    TRIGGERS.iter().find(|(rule, _)| *rule == name).is_none_or(|(_, wanted)| wanted & kinds != 0)
}

/// What there is in `plan`; everything if it holds what is rewritten into other things.
fn kinds_of(plan: &LogicalPlan) -> Result<Kinds> {
    let mut kinds = 0;
    plan.apply(|node| {
        kinds |= match node {
            LogicalPlan::Join(_) => JOIN,
            LogicalPlan::Limit(_) => LIMIT,
            LogicalPlan::Sort(sort) if sort.fetch.is_some() => LIMIT,
            LogicalPlan::Distinct(Distinct::All(_)) => DISTINCT,
            LogicalPlan::Filter(_) => FILTER,
            LogicalPlan::Aggregate(_) => AGGREGATE,
            LogicalPlan::Window(_) => WINDOW,
            LogicalPlan::TableScan(scan) if scan.fetch.is_some() => LIMIT,
            LogicalPlan::TableScan(scan) if !scan.filters.is_empty() => FILTER,
            LogicalPlan::Projection(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Values(_) => 0,
            _ => ALL,
        };
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                kinds |= match expr {
                    Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => ALL,
                    Expr::OuterReferenceColumn(..) => ALL,
                    Expr::ScalarFunction(_) if expr.placement() == ExpressionPlacement::MoveTowardsLeafNodes => LEAF,
                    _ => 0,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(if kinds == ALL { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(kinds)
}

/// `plan`, analyzed and optimized by the rules of `state` that have something to do.
///
/// # Errors
/// Those of the rules.
pub(super) fn optimized(plan: &LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    if let LogicalPlan::Explain(explain) = plan {
        // What VERBOSE shows is the plan behind each rule.
        if explain.verbose {
            return state.optimize(plan);
        }
        let explained = Arc::new(optimized(&explain.plan, state)?);
        let logical_optimization_succeeded = true;
        return Ok(LogicalPlan::Explain(Explain {
            plan: explained,
            logical_optimization_succeeded,
            ..explain.clone()
        }));
    }
    let kinds = kinds_of(plan)?;
    let mut analyzer: Analyzer = state.analyzer().clone();
    analyzer.rules.retain(|rule| runs(rule.name(), kinds));
    let analyzed = analyzer.execute_and_check(plan.clone(), state.config_options(), |_, _| {})?;
    let kinds = kinds_of(&analyzed)?;
    let rules = state.optimizers().iter().filter(|rule| runs(rule.name(), kinds)).map(Arc::clone);
    Optimizer::with_rules(rules.collect()).optimize(analyzed, state, |_, _| {})
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use datafusion::optimizer::Optimizer;

    use super::TRIGGERS;
    use crate::exec::pipeline::rule_names;

    /// A rule that has another name would run always, which nobody would see.
    #[test]
    fn each_trigger_is_of_a_rule_that_there_is() {
        let optimizer = Optimizer::new();
        let theirs = optimizer.rules.iter().map(|rule| rule.name().to_owned());
        let all: HashSet<String> = theirs.chain(rule_names().map(str::to_owned)).collect();
        for (name, _) in TRIGGERS {
            assert!(all.contains(*name), "{name}");
        }
    }
}
