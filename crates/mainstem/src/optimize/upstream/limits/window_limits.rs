//! Limits above windows, which leave rows out below them.
//!
//! DataFusion 55.2's `LimitPushPastWindows` ([issue 25471](https://github.com/apache/datafusion/issues/25471)) makes a
//! sort below a window keep the rows that a limit above it asks for, and some more for windows that look ahead. It asks
//! each window function how far, who does not know of IGNORE NULLS, nor that a window is computed from its end. Of
//! windows above one another it takes the longest look ahead, where their sum is needed. And it goes on below operators
//! that mix rows: the first rows of each are no longer the first of all.
//!
//! Comes in: that rule. Goes out: one of ours in its place, under its name. A sort, or a merge of sorted partitions,
//! keeps n + a rows where
//!
//! 1. a limit above it takes the first n rows, of one partition or of several, that
//! 2. pass nothing but projections and windows, one at least, whose partitions are sorted, on their way up, and
//! 3. the windows look a rows ahead together: of each, the most that the end of a frame, counted in ROWS, or a function
//!    (`lead` of a literal) looks ahead. Where one has no such number nothing is done.
//!
//! Such an operator gives one row for each one it takes, in the same order, so that the first n rows above depend on
//! the first n + a rows below. It does not own: how limits get from one operator to the next otherwise.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{LimitEffect, WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, replace_children_if_necessary};

/// The name of DataFusion's rule, and of ours.
const RULE: &str = "LimitPushPastWindows";

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;
type Plan = Arc<dyn ExecutionPlan>;

/// Ours, if `rule` is the one that the module is about; others are returned as they are.
pub(crate) fn window_limits(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(WindowLimits) } else { rule }
}

/// See the module.
#[derive(Debug)]
struct WindowLimits;

impl PhysicalOptimizerRule for WindowLimits {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_down(|node| {
            let limited = match (limit_of(&node), node.children().as_slice()) {
                (Some(rows), [input]) => limited(input, rows, false)?,
                _ => None,
            };
            Ok(match limited {
                Some(input) => Transformed::yes(replace_children_if_necessary(node, vec![input])?),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        RULE
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// How many of its input's first rows `plan` takes, if it is a limit.
fn limit_of(plan: &Plan) -> Option<usize> {
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        return limit.fetch()?.checked_add(limit.skip());
    }
    if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        return Some(limit.fetch());
    }
    if mixes_partitions(plan) { plan.fetch() } else { None }
}

/// Whether `plan` gives the rows of several partitions, those of each in their order.
fn mixes_partitions(plan: &Plan) -> bool {
    plan.is::<SortPreservingMergeExec>() || plan.is::<CoalescePartitionsExec>()
}

/// `plan`, of which the first `rows` rows of each partition are taken, with a sort that keeps no more than they depend
/// on; none where it stays as it is. `is_below` a window or not.
fn limited(plan: &Plan, rows: usize, is_below: bool) -> Result<Option<Plan>> {
    if is_below && (plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>()) {
        return Ok(plan.with_fetch(Some(plan.fetch().map_or(rows, |fetch| fetch.min(rows)))));
    }
    let (rows, is_below) = match plan.downcast_ref::<BoundedWindowAggExec>() {
        Some(window) => match look_ahead(window).and_then(|ahead| rows.checked_add(ahead)) {
            Some(rows) => (rows, true),
            None => return Ok(None),
        },
        None if plan.is::<ProjectionExec>() || !is_below && mixes_partitions(plan) => (rows, is_below),
        None => return Ok(None),
    };
    let [input] = plan.children()[..] else { return Ok(None) };
    match limited(input, rows, is_below)? {
        Some(input) => Ok(Some(replace_children_if_necessary(plan.clone(), vec![input])?)),
        None => Ok(None),
    }
}

/// How many rows behind its own the values of a row of `window` depend on; none if that is not known.
fn look_ahead(window: &BoundedWindowAggExec) -> Option<usize> {
    if window.input_order_mode != InputOrderMode::Sorted {
        return None;
    }
    window.window_expr().iter().try_fold(0, |most: usize, expr| Some(most.max(looks_ahead(expr)?)))
}

fn looks_ahead(expr: &Arc<dyn WindowExpr>) -> Option<usize> {
    let frame = expr.get_window_frame();
    let by_frame = match &frame.end_bound {
        _ if frame.units != WindowFrameUnits::Rows => return None,
        WindowFrameBound::Preceding(_) | WindowFrameBound::CurrentRow => 0,
        WindowFrameBound::Following(ScalarValue::UInt64(Some(rows))) => usize::try_from(*rows).ok()?,
        WindowFrameBound::Following(_) => return None,
    };
    let expr = expr.as_any();
    if expr.is::<PlainAggregateWindowExpr>() || expr.is::<SlidingAggregateWindowExpr>() {
        return Some(by_frame);
    }
    match expr.downcast_ref::<StandardWindowExpr>()?.get_standard_func_expr().limit_effect() {
        LimitEffect::None => Some(by_frame),
        LimitEffect::Relative(rows) => Some(by_frame.max(rows)),
        LimitEffect::Absolute(_) | LimitEffect::Unknown => None,
    }
}
