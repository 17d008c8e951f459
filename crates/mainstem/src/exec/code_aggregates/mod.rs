//! GROUP BY on columns of few distinct texts works on their codes: no text is copied, hashed or compared for a row.
//!
//! Comes in: a physical plan in which all else is settled. Goes out: the same plan, in which the first step of such an
//! aggregation reads texts as Arrow dictionaries from its scan, and is ours ([`operator`]); the second step is
//! DataFusion's.
//!
//! An aggregation is taken if its rows come from a scan of a table, at most through projections, and if the groups are
//! columns of which at least one is a text, all with few distinct values by estimate. Whether there are few is no
//! promise: groups are numbered by what comes ([`groups`]), and go out early when they are many.
//!
//! It does not own: how dictionaries are read (`storage::segment`), what functions compute.

mod groups;
mod operator;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, replace_children_if_necessary};

use self::groups::Groups;
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
    if !functions.iter().all(|f| f.order_bys().is_empty() && f.groups_accumulator_supported()) {
        return Ok(None);
    }
    let columns: Option<Vec<usize>> = groups.expr().iter().map(|(expr, _)| index_of(expr)).collect();
    let Some(columns) = columns else { return Ok(None) };
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
    Ok(Some(Arc::new(CodeAggregateExec::new(aggregate.clone(), input, columns))))
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

fn index_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
