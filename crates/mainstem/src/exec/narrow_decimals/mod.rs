//! Decimals of up to 18 digits travel in 64 bits below aggregations, where all that is done with them can be done so.
//!
//! Comes in: a physical plan in which conditions stand in scans. Goes out: the same plan, in which such columns come
//! from their scans as `Decimal64` and go on like that through joins and projections, up to sums, averages and
//! arithmetic, which take them. They take half the memory there, and arithmetic that stays within 18 digits is that of
//! the processor.
//!
//! 1. From each operator it is known which columns of its input may come narrow ([`inputs`]): those that it hands on to
//!    columns of its output that may, those that sums and averages add up, operands of arithmetic ([`expression`]).
//! 2. Scans narrow what they may, and who reads them is made anew over the new types.
//!
//! Invariants: the types of results are as they were, since only an aggregation begins it. Functions of aggregations
//! keep their types too, and take what comes. It does not own: how scans read in 64 bits (`storage::segment`), what
//! sums do with them (`mainstem_postgres::aggregate`).

mod expression;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinSide, Result};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use mainstem_postgres::aggregate::has_exact_state;

use self::expression::{Needs, narrowed};
use super::dynamic_filters::KeyCollector;
use super::spilling_aggregates::SpillingAggregate;
use crate::provider::StoreSource;

type Plan = Arc<dyn ExecutionPlan>;

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct NarrowDecimals;

impl PhysicalOptimizerRule for NarrowDecimals {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let columns = plan.schema().fields().len();
        Ok(over_narrow(&plan, &vec![false; columns])?.unwrap_or(plan))
    }

    fn name(&self) -> &'static str {
        "narrow_decimals"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `plan` over scans that narrow what they may; `None` if there is nothing to narrow. Those of its columns that
/// `may_be_narrow` come so if their scan can.
fn over_narrow(plan: &Plan, may_be_narrow: &[bool]) -> Result<Option<Plan>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let source = scan.data_source().downcast_ref::<StoreSource>();
        let narrow = source.and_then(|source| source.with_narrow_decimals(may_be_narrow));
        return Ok(narrow.map(|source| DataSourceExec::from_data_source(source) as Plan));
    }
    let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
    let mut is_changed = false;
    for (child, may_be_narrow) in children.iter_mut().zip(inputs(plan, may_be_narrow)) {
        if let Some(narrow) = over_narrow(child, &may_be_narrow)? {
            *child = narrow;
            is_changed = true;
        }
    }
    if !is_changed { Ok(None) } else { rebuilt(plan, children, may_be_narrow).map(Some) }
}

/// The aggregation that `plan` is, spilling or not.
fn aggregation(plan: &Plan) -> Option<&AggregateExec> {
    let spilling = || plan.downcast_ref::<SpillingAggregate>().map(SpillingAggregate::aggregate);
    plan.downcast_ref::<AggregateExec>().or_else(spilling)
}

/// For each child of `plan` the columns that may come narrow, if those of the output may that `may_be_narrow` says.
fn inputs(plan: &Plan, may_be_narrow: &[bool]) -> Vec<Vec<bool>> {
    let takes = |at: usize| may_be_narrow.get(at).copied().unwrap_or(false);
    let mut needs = Needs::default();
    if let Some(aggregate) = aggregation(plan) {
        let groups = aggregate.group_expr().input_exprs();
        let orders = aggregate.aggr_expr().iter().flat_map(|function| function.order_bys()).map(|order| &order.expr);
        groups.iter().chain(orders).for_each(|expr| needs.add(expr, false));
        aggregate.filter_expr().iter().flatten().for_each(|filter| needs.add(filter, false));
        for function in aggregate.aggr_expr() {
            function.expressions().iter().for_each(|argument| needs.add(argument, adds_up(function)));
        }
        let is_first = aggregate.mode().input_mode() == AggregateInputMode::Raw;
        return all_of(plan, |at| is_first && !needs.has(at));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        projection.expr().iter().enumerate().for_each(|(at, item)| needs.add(&item.expr, takes(at)));
        return all_of(plan, |at| !needs.has(at));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        needs.add(filter.predicate(), false);
        let comes_out_at = |at: usize| match filter.projection().as_ref() {
            Some(projection) => projection.iter().zip(may_be_narrow).all(|(of, takes)| *of != at || *takes),
            None => takes(at),
        };
        return all_of(plan, |at| comes_out_at(at) && !needs.has(at));
    }
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return match repartition.partitioning() {
            Partitioning::Hash(keys, _) => {
                keys.iter().for_each(|key| needs.add(key, false));
                all_of(plan, |at| takes(at) && !needs.has(at))
            }
            Partitioning::RoundRobinBatch(_) | Partitioning::UnknownPartitioning(_) => all_of(plan, takes),
            Partitioning::Range(_) => all_of(plan, |_| false),
        };
    }
    if plan.is::<CoalescePartitionsExec>() || plan.is::<CooperativeExec>() || plan.is::<KeyCollector>() {
        return all_of(plan, takes);
    }
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) => inputs_of_join(join, takes),
        None => all_of(plan, |_| false),
    }
}

/// The same answer for all children of `plan`, about each of their columns.
fn all_of(plan: &Plan, may_be_narrow: impl Fn(usize) -> bool) -> Vec<Vec<bool>> {
    let children = plan.children().into_iter();
    children.map(|child| (0..child.schema().fields().len()).map(&may_be_narrow).collect()).collect()
}

/// Whether `function` is a sum or an average that takes decimals of 64 bits.
fn adds_up(function: &AggregateFunctionExpr) -> bool {
    function.state_fields().is_ok_and(|state| has_exact_state(&state))
}

fn inputs_of_join(join: &HashJoinExec, takes: impl Fn(usize) -> bool) -> Vec<Vec<bool>> {
    let (left, right) = (join.left().schema(), join.right().schema());
    let (_, columns) = build_join_schema(&left, &right, join.join_type());
    let (mut of_left, mut of_right) = (Needs::default(), Needs::default());
    for (left, right) in join.on() {
        of_left.add(left, false);
        of_right.add(right, false);
    }
    let compared = join.filter().into_iter().flat_map(|filter| filter.column_indices());
    // What is handed on nowhere is read for nothing but keys and filters.
    let wide = columns.iter().enumerate().filter(|(at, _)| match join.projection.as_ref() {
        Some(projection) => projection.iter().enumerate().any(|(to, from)| from == at && !takes(to)),
        None => !takes(*at),
    });
    for column in compared.chain(wide.map(|(_, column)| column)) {
        match column.side {
            JoinSide::Left => of_left.add_column(column.index),
            JoinSide::Right => of_right.add_column(column.index),
            JoinSide::None => {}
        }
    }
    let side = |columns: usize, needs: &Needs| (0..columns).map(|at| !needs.has(at)).collect();
    vec![side(left.fields().len(), &of_left), side(right.fields().len(), &of_right)]
}

/// `plan` over `children`, some of whose decimals are narrow.
fn rebuilt(plan: &Plan, children: Vec<Plan>, may_be_narrow: &[bool]) -> Result<Plan> {
    let [child] = &children[..] else { return replace_children_if_necessary(plan.clone(), children) };
    let schema = child.schema();
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let mut exprs = projection.expr().to_vec();
        for (item, may_be_narrow) in exprs.iter_mut().zip(may_be_narrow) {
            item.expr = narrowed(&item.expr, &schema, *may_be_narrow)?;
        }
        return Ok(Arc::new(ProjectionExec::try_new(exprs, child.clone())?));
    }
    if let Some(aggregate) = aggregation(plan)
        && aggregate.mode().input_mode() == AggregateInputMode::Raw
    {
        let functions = aggregate.aggr_expr().iter().map(|function| {
            let arguments = function.expressions();
            let arguments = arguments.iter().map(|argument| narrowed(argument, &schema, adds_up(function)));
            let orders = function.order_bys().iter().map(|order| order.expr.clone()).collect();
            let anew = function.with_new_expressions(arguments.collect::<Result<_>>()?, orders);
            Ok(anew.filter(|_| adds_up(function)).map_or_else(|| function.clone(), Arc::new))
        });
        let functions: Vec<Arc<AggregateFunctionExpr>> = functions.collect::<Result<_>>()?;
        // DataFusion 55.2 keeps the types of the arguments, which the accumulators are made for (issue 18149 of
        // apache/datafusion): they take what comes.
        let anew = Arc::new(aggregate.with_new_aggr_exprs(functions));
        let anew = replace_children_if_necessary(anew, children)?;
        return match (plan.downcast_ref::<SpillingAggregate>(), anew.downcast_ref::<AggregateExec>()) {
            (Some(spilling), Some(aggregate)) => Ok(Arc::new(spilling.in_place_of(aggregate)?)),
            _ => Ok(anew),
        };
    }
    replace_children_if_necessary(plan.clone(), children)
}
