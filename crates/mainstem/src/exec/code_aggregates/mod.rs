//! GROUP BY on columns of few distinct texts works on their codes: no text is copied, hashed or compared for a row.
//! GROUP BY on an integer whose values lie near each other does the same: its code is its distance from the least one.
//!
//! Comes in: a physical plan in which all else is settled. Goes out: the same plan, in which the first step of such an
//! aggregation reads texts as Arrow dictionaries from its scan, and is ours ([`operator`]); the second step is
//! DataFusion's.
//!
//! An aggregation is taken if its rows come from a scan of a table, at most through projections, and if the groups are
//! columns of which at least one is a text, all with few distinct values by estimate. Whether there are few is no
//! promise: groups are numbered by what comes ([`groups`]), and go out early when they are many.
//!
//! By an integer ([`integers`]) rows may come from any operator, and the second step has the same table of groups
//! (`spilling_aggregates`).
//!
//! It does not own: how dictionaries are read (`storage::segment`), what functions compute.

mod function;
mod groups;
mod integers;
mod operator;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, replace_children_if_necessary};

pub(super) use self::function::{Function, accumulator_of, takes_any_order};
use self::groups::Groups;
pub(super) use self::integers::{IntegerGroups, IntegerRange};
use self::operator::CodeAggregateExec;
use crate::provider::StoreSource;

type Plan = Arc<dyn ExecutionPlan>;

/// Distinct values of a column at most, by estimate.
const DISTINCT_MAX: usize = 4_096;
/// Columns at most: a batch gives each of them few bits of codes more.
const COLUMNS_MAX: usize = 4;

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct CodeAggregates;

impl PhysicalOptimizerRule for CodeAggregates {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            Ok(match aggregate.map(by_codes).transpose()?.flatten() {
                Some(by_codes) => Transformed::yes(by_codes),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "code_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `aggregate` as an operator of ours, if its groups are few by codes.
fn by_codes(aggregate: &AggregateExec) -> Result<Option<Plan>> {
    let groups = aggregate.group_expr();
    let is_plain = *aggregate.mode() == AggregateMode::Partial
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.limit_options().is_none()
        && groups.is_single()
        && (1..=COLUMNS_MAX).contains(&groups.expr().len());
    if !is_plain {
        return Ok(None);
    }
    let functions = aggregate.aggr_expr();
    if !takes_any_order(aggregate) || !functions.iter().all(|function| function.groups_accumulator_supported()) {
        return Ok(None);
    }
    let columns: Option<Vec<usize>> = groups.expr().iter().map(|(expr, _)| index_of(expr)).collect();
    let Some(columns) = columns else { return Ok(None) };
    if let Some(range) = integer_range(aggregate) {
        let at = columns.first().copied().unwrap_or_default();
        return Ok(Some(Arc::new(CodeAggregateExec::of_integers(aggregate.clone(), at, range))));
    }
    let schema = aggregate.input().schema();
    let types: Vec<DataType> = columns.iter().map(|at| schema.field(*at).data_type().clone()).collect();
    let texts = columns.iter().zip(&types).filter(|(_, data_type)| **data_type == DataType::Utf8View);
    let texts: Vec<usize> = texts.map(|(at, _)| *at).collect();
    // A function of a text wants the text.
    let filters = aggregate.filter_expr().iter().flatten().cloned();
    let mut used = functions.iter().flat_map(|function| function.expressions()).chain(filters);
    let uses_text = |expr: &Arc<dyn PhysicalExpr>| collect_columns(expr).iter().any(|at| texts.contains(&at.index()));
    if texts.is_empty() || Groups::new(&types).is_none() || used.any(|expr| uses_text(&expr)) {
        return Ok(None);
    }
    let Some(input) = with_codes(aggregate.input(), &columns, &texts)? else { return Ok(None) };
    Ok(Some(Arc::new(CodeAggregateExec::of_codes(aggregate.clone(), input, columns))))
}

/// `plan`, whose columns `texts` come as dictionaries from a scan; `None` where they do not come from one, or one of
/// `columns` has many distinct values.
fn with_codes(plan: &Plan, columns: &[usize], texts: &[usize]) -> Result<Option<Plan>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let source = scan.data_source().downcast_ref::<StoreSource>();
        let source = source.filter(|source| columns.iter().all(|at| source.has_distinct(*at, DISTINCT_MAX)));
        let coded = source.and_then(|source| source.with_codes(texts));
        return Ok(coded.map(|source| DataSourceExec::from_data_source(source) as Plan));
    }
    if plan.is::<CooperativeExec>() {
        let [input] = plan.children()[..] else { return Ok(None) };
        let input = with_codes(input, columns, texts)?;
        return input.map(|input| replace_children_if_necessary(plan.clone(), vec![input])).transpose();
    }
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    let exprs = projection.expr();
    let below = |ats: &[usize]| -> Option<Vec<usize>> {
        ats.iter().map(|at| exprs.get(*at).and_then(|item| index_of(&item.expr))).collect()
    };
    let (Some(columns), Some(below_texts)) = (below(columns), below(texts)) else { return Ok(None) };
    // Whoever computes with a text wants the text.
    let computes = |(at, expr): (usize, &Arc<dyn PhysicalExpr>)| {
        !texts.contains(&at) && collect_columns(expr).iter().any(|column| below_texts.contains(&column.index()))
    };
    if exprs.iter().map(|item| &item.expr).enumerate().any(computes) {
        return Ok(None);
    }
    let Some(input) = with_codes(projection.input(), &columns, &below_texts)? else { return Ok(None) };
    Ok(Some(Arc::new(ProjectionExec::try_new(exprs.to_vec(), input)?)))
}

/// The values of the one integer that `aggregate` groups by, if they are known to lie near each other.
pub(super) fn integer_range(aggregate: &AggregateExec) -> Option<IntegerRange> {
    let groups = aggregate.group_expr();
    let [(key, _)] = groups.expr() else { return None };
    let at = index_of(key).filter(|_| groups.is_single())?;
    let column = aggregate.input().schema().fields().get(at)?.data_type().clone();
    if !matches!(column, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32) {
        return None;
    }
    let (least, greatest, rows) = expected_integers(aggregate.input(), at)?;
    IntegerRange::of(least, greatest, rows)
}

/// Least and greatest value of column `at` of `plan`, an integer, as far as the table tells that it comes from, and how
/// many rows that has. The statistics of plans do not tell it of a table that has rows which are not merged.
fn expected_integers(plan: &Plan, at: usize) -> Option<(i64, i64, u64)> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return scan.data_source().downcast_ref::<StoreSource>()?.expected_integers(at);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return expected_integers(projection.input(), index_of(&projection.expr().get(at)?.expr)?);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let at = filter.projection().as_ref().map_or(Some(at), |projection| projection.get(at).copied())?;
        return expected_integers(filter.input(), at);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return expected_integers(aggregate.input(), index_of(&aggregate.group_expr().expr().get(at)?.0)?);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let at = join.projection.as_ref().map_or(Some(at), |projection| projection.get(at).copied())?;
        let left = join.left().schema().fields().len();
        return match join.join_type() {
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => expected_integers(join.right(), at),
            _ if at < left => expected_integers(join.left(), at),
            JoinType::LeftMark => None,
            _ => expected_integers(join.right(), at - left),
        };
    }
    // What hands on its rows has their columns.
    let [input] = plan.children()[..] else { return None };
    if input.schema() == plan.schema() { expected_integers(input, at) } else { None }
}

fn index_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
