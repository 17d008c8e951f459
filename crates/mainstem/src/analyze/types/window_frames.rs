//! Windows over values that have an order and no distance: TIME, UUID, BYTEA.
//!
//! DataFusion reads RANGE only over numbers, texts, days and instants, and RANGE is what a window with ORDER BY has
//! unless it says otherwise. Without a distance RANGE means whole groups of peers, which is what GROUPS means, of any
//! type.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits};

use crate::analyze::plan_walk::rewrite_plan;

/// The rule, to be applied before types are coerced.
pub(crate) fn window_frames(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &rewrite)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut window) = expr else { return Ok(Transformed::no(expr)) };
    let frame = &window.params.window_frame;
    let groups = match (frame.units, window.params.order_by.first()) {
        (WindowFrameUnits::Range, Some(first)) if has_no_distance(&first.expr.get_type(schema)?) => {
            bound(&frame.start_bound).zip(bound(&frame.end_bound))
        }
        _ => None,
    };
    let Some((start, end)) = groups else { return Ok(Transformed::no(Expr::WindowFunction(window))) };
    window.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    Ok(Transformed::yes(Expr::WindowFunction(window)))
}

fn has_no_distance(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::FixedSizeBinary(_)
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::Interval(_)
            | DataType::Duration(_)
    )
}

/// The same bound of groups; None for one that names a distance.
fn bound(bound: &WindowFrameBound) -> Option<WindowFrameBound> {
    let unbounded = ScalarValue::UInt64(None);
    match bound {
        WindowFrameBound::CurrentRow => Some(WindowFrameBound::CurrentRow),
        WindowFrameBound::Preceding(distance) => distance.is_null().then_some(WindowFrameBound::Preceding(unbounded)),
        WindowFrameBound::Following(distance) => distance.is_null().then_some(WindowFrameBound::Following(unbounded)),
    }
}
