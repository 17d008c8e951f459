//! Rules that have nothing to do are left out: each walks the whole plan to find that, and has its code fetched for it.
//!
//! Comes in: a plan before the analyzer, behind type coercion, before the optimizer, and before it becomes a physical
//! one. Goes out: the rules of each that could change it. A rule is left out by its name where a table says what it
//! looks for, the plan has none of it, and no rule between makes any. Subqueries and set operations are rewritten into
//! much else: plans with one pass all rules. It does not own: the order of the rules (`pipeline`).

mod physical;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Distinct, Explain, Expr, ExpressionPlacement, InvariantLevel, LogicalPlan, Operator};
use datafusion::optimizer::Optimizer;
use mainstem_storage::schema::DataType;

pub(super) use self::physical::{PlanKinds, triggered};
use super::derived_properties::logical_rule_runs;

/// What a rule may look for, as bits.
type Kinds = u16;

const SUBQUERY: Kinds = 1;
const JOIN: Kinds = 1 << 1;
const LIMIT: Kinds = 1 << 2;
const DISTINCT: Kinds = 1 << 3;
const FILTER: Kinds = 1 << 4;
const AGGREGATE: Kinds = 1 << 5;
const WINDOW: Kinds = 1 << 6;
/// Functions that are computed next to the scan, of parts of a value.
const LEAF: Kinds = 1 << 7;
/// Calls of functions.
const CALL: Kinds = 1 << 8;
const CAST: Kinds = 1 << 9;
/// `+`, `-`, `*`, `/`, `%`, and signs.
const ARITHMETIC: Kinds = 1 << 10;
/// Comparisons with several values: IN, BETWEEN, CASE.
const SEVERAL: Kinds = 1 << 11;
/// CHAR(n), in a table or a cast.
const CHARS: Kinds = 1 << 12;
const SORT: Kinds = 1 << 13;
/// Aggregates that want their rows in an order.
const ORDERED_AGGREGATE: Kinds = 1 << 14;
/// More than one partition.
const PARTITIONS: Kinds = 1 << 15;
const ALL: Kinds = Kinds::MAX;

/// What each rule over logical plans looks for; rules that are not here always run.
const TRIGGERS: &[(&str, Kinds)] = &[
    // Ours, in the analyzer.
    ("seen_sorts", SORT),
    ("typed_literals", SEVERAL | CALL),
    ("bpchar", CHARS | CALL),
    ("subqueries_in_values", SUBQUERY),
    ("window_frames", WINDOW),
    ("decimal_operators", ARITHMETIC | CALL),
    ("rounded_decimals", CALL),
    ("null_aware_in", SUBQUERY),
    ("multiset_operations", JOIN),
    ("decorrelated", SUBQUERY),
    ("nullable_subqueries", SUBQUERY),
    ("sql_casts", CAST),
    ("checked_arithmetic", ARITHMETIC | CAST | CALL),
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

/// The last rule that gives casts to expressions.
const TYPE_COERCION: &str = "type_coercion";
/// How often the optimizer goes over a plan at most, DataFusion's default.
const PASSES_MAX: usize = 3;

/// Whether the rule called `name` has something to look for among `kinds`, as `triggers` say it.
fn runs(triggers: &[(&str, Kinds)], name: &str, kinds: Kinds) -> bool {
    triggers.iter().find(|(rule, _)| *rule == name).is_none_or(|(_, wanted)| wanted & kinds != 0)
}

/// The names of all rules that may be left out.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TRIGGERS.iter().chain(physical::TRIGGERS).map(|(rule, _)| *rule)
}

/// What there is in `plan`; everything if it holds what is rewritten into other things.
fn kinds_of(plan: &LogicalPlan) -> Result<Kinds> {
    let mut kinds = 0;
    plan.apply(|node| {
        kinds |= of_node(node);
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                kinds |= of_expression(expr);
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(if kinds == ALL { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(kinds)
}

fn of_node(node: &LogicalPlan) -> Kinds {
    let chars = || {
        let has_chars = node.schema().fields().iter().any(|field| DataType::chars_of(field).is_some());
        if has_chars { CHARS } else { 0 }
    };
    match node {
        LogicalPlan::Join(_) => JOIN,
        LogicalPlan::Limit(_) => LIMIT,
        LogicalPlan::Sort(sort) => SORT | if sort.fetch.is_some() { LIMIT } else { 0 },
        LogicalPlan::Distinct(Distinct::All(_)) => DISTINCT,
        LogicalPlan::Filter(_) => FILTER,
        LogicalPlan::Aggregate(_) => AGGREGATE,
        LogicalPlan::Window(_) => WINDOW,
        LogicalPlan::TableScan(scan) => {
            let limit = if scan.fetch.is_some() { LIMIT } else { 0 };
            chars() | limit | if scan.filters.is_empty() { 0 } else { FILTER }
        }
        LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => chars(),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => 0,
        _ => ALL,
    }
}

fn of_expression(expr: &Expr) -> Kinds {
    match expr {
        Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => ALL,
        Expr::OuterReferenceColumn(..) => ALL,
        Expr::ScalarFunction(_) if expr.placement() == ExpressionPlacement::MoveTowardsLeafNodes => CALL | LEAF,
        Expr::ScalarFunction(_) => CALL,
        Expr::Cast(cast) if DataType::chars_of(&cast.field).is_some() => CAST | CHARS,
        Expr::TryCast(cast) if DataType::chars_of(&cast.field).is_some() => CAST | CHARS,
        Expr::Cast(_) | Expr::TryCast(_) => CAST,
        Expr::Placeholder(placeholder) => match &placeholder.field {
            Some(field) if DataType::chars_of(field).is_none() => 0,
            _ => CHARS,
        },
        Expr::Negative(_) => ARITHMETIC,
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => 0,
            Operator::And | Operator::Or | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => 0,
            _ => ARITHMETIC,
        },
        Expr::InList(_) | Expr::Between(_) | Expr::Case(_) => SEVERAL,
        Expr::AggregateFunction(call) if !call.params.order_by.is_empty() => ORDERED_AGGREGATE,
        Expr::WindowFunction(_) => WINDOW,
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::Literal(..)
        | Expr::AggregateFunction(_)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_) => 0,
        _ => CALL | CAST | ARITHMETIC | SEVERAL | CHARS,
    }
}

/// `plan`, analyzed and optimized by the rules of `state` that have something to do.
///
/// # Errors
/// Those of the rules.
pub(super) fn optimized(plan: &LogicalPlan, state: &mut SessionState) -> Result<LogicalPlan> {
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
    let analyzed = analyzed(plan.clone(), state)?;
    let kinds = kinds_of(&analyzed)?;
    let is_wanted = |name: &str| runs(TRIGGERS, name, kinds) && logical_rule_runs(name, state.config_options());
    let rules = state.optimizers().iter().filter(|rule| is_wanted(rule.name())).map(Arc::clone);
    let optimizer = Optimizer::with_rules(rules.collect());
    let passes = if is_settled_by_one_pass(&analyzed, kinds) { 1 } else { PASSES_MAX };
    if state.config_options().optimizer.max_passes != passes {
        state.config_mut().options_mut().optimizer.max_passes = passes;
    }
    let optimized = optimizer.optimize(analyzed, state, |_, _| {});
    if passes != PASSES_MAX {
        // What else optimises plans of the session knows nothing of this one.
        state.config_mut().options_mut().optimizer.max_passes = PASSES_MAX;
    }
    optimized
}

/// `plan`, analyzed. What looks for casts and operators is asked once types are known. (DataFusion's `Analyzer` has
/// rewrites of functions, too, and nobody registers any.)
fn analyzed(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let rules = &state.analyzer().rules;
    let behind = rules.iter().position(|rule| rule.name() == TYPE_COERCION).map_or(rules.len(), |at| at + 1);
    let mut plan = plan;
    for part in [&rules[..behind], &rules[behind..]] {
        let kinds = kinds_of(&plan)?;
        for rule in part.iter().filter(|rule| runs(TRIGGERS, rule.name(), kinds)) {
            plan = rule.analyze(plan, state.config_options()).map_err(|e| e.context(rule.name()))?;
        }
    }
    plan.check_invariants(InvariantLevel::Executable).map_err(|e| e.context("Invalid plan behind the analyzer"))?;
    Ok(plan)
}

/// Whether a second pass of the optimizer would find nothing: there is no more than one operator of each kind, and none
/// that can go below another one only after that has moved.
fn is_settled_by_one_pass(plan: &LogicalPlan, kinds: Kinds) -> bool {
    const MOVED: Kinds = SUBQUERY | JOIN | LIMIT | DISTINCT | WINDOW | LEAF;
    let (mut filters, mut projections, mut aggregates, mut node) = (0, 0, 0, plan);
    if kinds & MOVED != 0 {
        return false;
    }
    loop {
        match node {
            LogicalPlan::Filter(_) => filters += 1,
            LogicalPlan::Projection(_) => projections += 1,
            // What a condition on groups becomes below is simplified by the next pass.
            LogicalPlan::Aggregate(_) if filters > 0 => return false,
            LogicalPlan::Aggregate(_) => aggregates += 1,
            LogicalPlan::TableScan(_) => return filters <= 1 && projections <= 1 && aggregates <= 1,
            LogicalPlan::Sort(_) | LogicalPlan::SubqueryAlias(_) => {}
            _ => return false,
        }
        let [input] = node.inputs()[..] else { return false };
        node = input;
    }
}
