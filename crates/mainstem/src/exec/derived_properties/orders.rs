//! Which orders the rows of an operator have, given those of its inputs: proved for plain columns, one operator at a
//! time.
//!
//! An order is a list of sort keys. A prefix of it holds, too, so that an order ends before the first key that an
//! operator does not hand on.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::memory::LazyMemoryExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use crate::exec::merge_joins::MergeJoin;
use crate::exec::sort::RadixSort;
use crate::exec::streaming::{RankingWindow, StreamingAggregateExec};

type Plan = Arc<dyn ExecutionPlan>;
type Order = Vec<PhysicalSortExpr>;

/// Whether `operator` itself declares what it has: it makes an order, or hands on what its input declares, and derives
/// nothing. Without `proofs`, scans declare too much.
pub(super) fn are_declared_rightly(operator: &Plan, proofs: bool) -> bool {
    // Rows of generate_series, too, come in the order of their numbers.
    if operator.is::<DataSourceExec>() || operator.is::<LazyMemoryExec>() {
        return proofs || operator.properties().output_ordering().is_none();
    }
    operator.is::<SortExec>()
        || operator.is::<RadixSort>()
        || operator.is::<MergeJoin>()
        || operator.is::<SortPreservingMergeExec>()
        || operator.is::<CoalescePartitionsExec>()
        || operator.is::<RepartitionExec>()
        || operator.is::<GlobalLimitExec>()
        || operator.is::<LocalLimitExec>()
        || operator.is::<CooperativeExec>()
        || operator.is::<BufferExec>()
        || operator.is::<OutputRequirementExec>()
        || declares_what_its_input_does(operator)
        || declares_nothing(operator)
}

/// Whether the properties of `operator` are those of its input themselves.
fn declares_what_its_input_does(operator: &Plan) -> bool {
    matches!(operator.children()[..], [input] if Arc::ptr_eq(operator.properties(), input.properties()))
}

/// Whether nothing is derived where something could be.
fn declares_nothing(operator: &Plan) -> bool {
    let properties = operator.equivalence_properties();
    properties.oeq_class().is_empty()
        && properties.eq_group().is_empty()
        && properties.constants().is_empty()
        && properties.constraints().is_empty()
        && of(operator).is_empty()
}

/// Whether a sort key may count as ordered because columns below are: plain columns, and functions of ours that never
/// descend while their argument ascends.
pub(super) fn keeps_order(key: &Arc<dyn PhysicalExpr>) -> bool {
    if key.is::<Column>() {
        return true;
    }
    // Tested in `crates/postgres`: it says itself that spans of time are in no order.
    key.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| {
        call.name() == "date_trunc" && matches!(call.args(), [unit, of] if unit.is::<Literal>() && of.is::<Column>())
    })
}

/// The orders of the rows of `operator`, whose inputs declare what is proved of them.
pub(super) fn of(operator: &Plan) -> Vec<Order> {
    if let Some(projection) = operator.downcast_ref::<ProjectionExec>() {
        return through_projection(projection);
    }
    if let Some(filter) = operator.downcast_ref::<FilterExec>() {
        let kept = filter.projection().as_deref();
        return mapped(filter, filter.input(), |column| projected(column.index(), kept));
    }
    if let Some(window) = operator.downcast_ref::<BoundedWindowAggExec>() {
        return mapped(window, window.input(), |column| Some(column.index()));
    }
    if let Some(window) = operator.downcast_ref::<WindowAggExec>() {
        return mapped(window, window.input(), |column| Some(column.index()));
    }
    if operator.is::<RankingWindow>()
        && let [input] = operator.children()[..]
    {
        return mapped(operator.as_ref(), input, |column| Some(column.index()));
    }
    if let Some(aggregate) = operator.downcast_ref::<AggregateExec>() {
        return through_groups(aggregate);
    }
    if let Some(streaming) = operator.downcast_ref::<StreamingAggregateExec>() {
        return through_groups(streaming.aggregate());
    }
    if let Some(join) = operator.downcast_ref::<HashJoinExec>() {
        // The rows of the build side come as they are found.
        let sides = (join.left(), join.right());
        return through_join(operator, sides, *join.join_type(), join.projection.as_deref());
    }
    if let Some(join) = operator.downcast_ref::<SortMergeJoinExec>() {
        return through_join(operator, (join.left(), join.right()), join.join_type(), None);
    }
    Vec::new()
}

/// The orders of `input` by columns of `operator`, which stand where `place` says.
fn mapped(operator: &dyn ExecutionPlan, input: &Plan, place: impl Fn(&Column) -> Option<usize>) -> Vec<Order> {
    let schema = operator.schema();
    let moved = |key: &PhysicalSortExpr| {
        let at = place(key.expr.downcast_ref::<Column>()?)?;
        let column = Arc::new(Column::new(schema.fields().get(at)?.name(), at)) as Arc<dyn PhysicalExpr>;
        Some(PhysicalSortExpr::new(column, key.options))
    };
    let orders = input.equivalence_properties().oeq_class().iter();
    orders.map(|order| order.iter().map_while(moved).collect()).filter(|order: &Order| !order.is_empty()).collect()
}

fn projected(column: usize, projection: Option<&[usize]>) -> Option<usize> {
    match projection {
        Some(columns) => columns.iter().position(|of| *of == column),
        None => Some(column),
    }
}

fn through_projection(projection: &ProjectionExec) -> Vec<Order> {
    mapped(projection, projection.input(), |column| {
        let is_column = |item: &Arc<dyn PhysicalExpr>| {
            item.downcast_ref::<Column>().is_some_and(|item| item.index() == column.index())
        };
        projection.expr().iter().position(|item| is_column(&item.expr))
    })
}

/// Groups that are made in the order of their rows come in it.
fn through_groups(aggregate: &AggregateExec) -> Vec<Order> {
    let groups = aggregate.group_expr();
    if *aggregate.input_order_mode() == InputOrderMode::Linear || !groups.is_single() {
        return Vec::new();
    }
    mapped(aggregate, aggregate.input(), |column| {
        let is_column =
            |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().is_some_and(|key| key.index() == column.index());
        groups.expr().iter().position(|(key, _)| is_column(key))
    })
}

/// The orders of the side whose rows a join hands on as they come. Rows without a partner end in NULL on the other
/// side only, for that side is not handed on in its order where they do.
fn through_join(
    operator: &Plan,
    (left, right): (&Plan, &Plan),
    join_type: JoinType,
    projection: Option<&[usize]>,
) -> Vec<Order> {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
    let maintains = operator.maintains_input_order();
    let left_columns = left.schema().fields().len();
    let (of_left, of_right) = (maintains.first() == Some(&true), maintains.get(1) == Some(&true));
    match join_type {
        Inner | Left | LeftSemi | LeftAnti | LeftMark if of_left => {
            mapped(operator.as_ref(), left, |column| projected(column.index(), projection))
        }
        Inner | Right if of_right => {
            mapped(operator.as_ref(), right, |column| projected(left_columns + column.index(), projection))
        }
        RightSemi | RightAnti | RightMark if of_right => {
            mapped(operator.as_ref(), right, |column| projected(column.index(), projection))
        }
        _ => Vec::new(),
    }
}
