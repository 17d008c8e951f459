//! A part of a plan below an operator, read in the order of a table's sort key and cut into ranges of it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::exec::merge_joins::MergeJoin;
use crate::provider::StoreSource;

type Plan = Arc<dyn ExecutionPlan>;

/// `plan`, whose rows come from one table or from a merge of several, in the order of columns `ats` and cut by the
/// first of them; None where that cannot be.
///
/// # Errors
/// Internal.
pub(super) fn in_disjoint_ranges(plan: &Plan, ats: &[usize]) -> Result<Option<Plan>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let source = scan.data_source().downcast_ref::<StoreSource>();
        let cut = source.and_then(|source| source.in_disjoint_ranges(ats));
        return Ok(cut.map(|source| DataSourceExec::from_data_source(source) as Plan));
    }
    if let Some(join) = plan.downcast_ref::<MergeJoin>() {
        return Ok(matches!(ats, [at] if join.is_by(*at)).then(|| plan.clone()));
    }
    if let Some(exchange) = plan.downcast_ref::<RepartitionExec>() {
        // Made for cores that have no partition: it would mix the ranges.
        return match exchange.partitioning() {
            Partitioning::RoundRobinBatch(_) => in_disjoint_ranges(exchange.input(), ats),
            _ => Ok(None),
        };
    }
    let behind = |column_of: &dyn Fn(usize) -> Option<usize>| ats.iter().map(|at| column_of(*at)).collect();
    let (input, ats): (_, Option<Vec<usize>>) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        (projection.input(), behind(&|at| projection.expr().get(at).and_then(|item| index_of(&item.expr))))
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let projected = |at: usize| filter.projection().as_ref().map_or(Some(at), |columns| columns.get(at).copied());
        (filter.input(), behind(&projected).filter(|_| filter.fetch().is_none()))
    } else if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
        (cooperative.input(), Some(ats.to_vec()))
    } else {
        return Ok(None);
    };
    let Some(ats) = ats else { return Ok(None) };
    let Some(input) = in_disjoint_ranges(input, &ats)? else { return Ok(None) };
    Ok(Some(replace_children_if_necessary(plan.clone(), vec![input])?))
}

/// The column that `expr` is.
pub(super) fn index_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
