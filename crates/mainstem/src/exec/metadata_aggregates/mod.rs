//! Aggregates without GROUP BY over a scan, from the metadata of segments as far as it is exact for the snapshot, and
//! from the codes of the others.
//!
//! Comes in: a physical plan. Goes out: the same plan, in which such an aggregation reads only the rows that neither
//! answers for. Where only counts and sums of few digits are asked for, those are none: codes of segments, values of
//! deltas and the transaction's rows are added up. Else they are those of deltas, those of the transaction, and those
//! of segments whose metadata does not tell one of the aggregates.
//!
//! 1. The rule finds an aggregation that is the first step of two, or the only one, whose rows come from one scan
//!    through projections of columns alone. Its aggregates are COUNT, MIN and MAX of a column, our SUM and AVG of
//!    integers and decimals, and COUNT(*).
//! 2. The scan is told what is asked for, and leaves the rows of these segments out.
//! 3. [`MetadataAggregates`] stands above the first step. When it is opened it asks the same of the same snapshot, and
//!    adds the states of the rows that were left out to those of the partitions. An only step becomes two.
//!
//! Invariant: which segments are left out is decided when the plan is run, by storage, from the snapshot and the
//! predicates of the run, alike for the scan and for the operator. So a plan that is kept is exact for each snapshot it
//! is bound to. A plan for which no row is left out now stays as it is. It does not own: what is exact
//! (`storage::scan`), answers without any scan (DataFusion's `aggregate_statistics`, `provider::statistics`).

mod operator;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use mainstem_postgres::aggregate::has_exact_state;
use mainstem_storage::scan::ZoneAggregate;

pub(super) use self::operator::MetadataAggregates;
use self::operator::State;
use crate::provider::StoreSource;

type Plan = Arc<dyn ExecutionPlan>;

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct MetadataAggregation;

impl PhysicalOptimizerRule for MetadataAggregation {
    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        rewrite(&plan)
    }

    fn name(&self) -> &'static str {
        "metadata_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn rewrite(plan: &Plan) -> Result<Plan> {
    if let Some(rewritten) = from_metadata(plan)? {
        return Ok(rewritten);
    }
    let children = plan.children().into_iter().map(rewrite);
    replace_children_if_necessary(plan.clone(), children.collect::<Result<Vec<_>>>()?)
}

/// `plan` with metadata in the place of rows, if it is an aggregation that can have it.
fn from_metadata(plan: &Plan) -> Result<Option<Plan>> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let mode = *aggregate.mode();
    let is_first = matches!(mode, AggregateMode::Partial | AggregateMode::Single);
    let is_plain = aggregate.group_expr().is_true_no_grouping()
        && aggregate.limit_options().is_none()
        && aggregate.filter_expr().iter().all(Option::is_none);
    if !is_first || !is_plain {
        return Ok(None);
    }
    let Some(wanted) = aggregate.aggr_expr().iter().map(|expr| wanted(expr)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let asked: Vec<_> = wanted.iter().filter_map(Wanted::of_column).collect();
    let Some((input, source)) = without_known(aggregate.input(), &asked)? else { return Ok(None) };
    let states = states(aggregate, &wanted, &source);
    let is_told = || {
        let on_codes = || source.aggregate_scan().is_ok_and(|pieces| pieces.is_some_and(|pieces| pieces.rows() > 0));
        source.zone_aggregates().is_ok_and(|known| known.segments > 0) || on_codes()
    };
    let Some(states) = states.filter(|_| is_told()) else { return Ok(None) };
    if mode == AggregateMode::Partial {
        let first = replace_children_if_necessary(plan.clone(), vec![input])?;
        return Ok(Some(Arc::new(MetadataAggregates::new(first, source, states))));
    }
    let schema = aggregate.input_schema();
    let filters = aggregate.filter_expr().to_vec();
    let expressions = aggregate.aggr_expr().to_vec();
    let groups = aggregate.group_expr().clone();
    let first =
        AggregateExec::try_new(AggregateMode::Partial, groups, expressions, filters.clone(), input, schema.clone())?;
    let (groups, expressions) = (first.group_expr().as_final(), first.aggr_expr().to_vec());
    let both = Arc::new(MetadataAggregates::new(Arc::new(first), source, states));
    let last = AggregateExec::try_new(AggregateMode::Final, groups, expressions, filters, both, schema)?;
    Ok(Some(Arc::new(last)))
}

/// What an aggregate is of.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// The number of rows, whatever is in them.
    Rows,
    /// A column of the aggregation's input.
    Column(usize, ZoneAggregate),
}

impl Wanted {
    fn of_column(&self) -> Option<(usize, ZoneAggregate)> {
        match self {
            Self::Rows => None,
            Self::Column(at, aggregate) => Some((*at, *aggregate)),
        }
    }
}

/// What `expr` is of; `None` if metadata does not know it.
fn wanted(expr: &AggregateFunctionExpr) -> Option<Wanted> {
    if expr.is_distinct() || !expr.order_bys().is_empty() {
        return None;
    }
    let arguments = expr.expressions();
    let [argument] = arguments.as_slice() else { return None };
    let aggregate = match expr.fun().name() {
        "count" => ZoneAggregate::Count,
        "min" => ZoneAggregate::Min,
        "max" => ZoneAggregate::Max,
        "sum" | "avg" if has_exact_state(&expr.state_fields().ok()?) => ZoneAggregate::Sum,
        _ => return None,
    };
    if let Some(literal) = argument.downcast_ref::<Literal>() {
        let is_of_rows = aggregate == ZoneAggregate::Count && !literal.value().is_null();
        return is_of_rows.then_some(Wanted::Rows);
    }
    argument.downcast_ref::<Column>().map(|column| Wanted::Column(column.index(), aggregate))
}

/// How what metadata tells becomes the states of `aggregate`, whose rows are those of `source`; `None` if a type is
/// another than that of the table's column.
fn states(aggregate: &AggregateExec, wanted: &[Wanted], source: &StoreSource) -> Option<Vec<State>> {
    let (input, mut next) = (aggregate.input().schema(), 0);
    let mut state = |wanted: &Wanted| {
        let Some((column, kind)) = wanted.of_column() else { return Some(State::Rows) };
        let at = next;
        next += 1;
        let data_type = source.asked_type(at)?;
        let is_same = *input.fields().get(column)?.data_type() == data_type.arrow();
        match kind {
            _ if !is_same => None,
            ZoneAggregate::Count => Some(State::Count(at)),
            ZoneAggregate::Min | ZoneAggregate::Max => Some(State::Bound(at, data_type)),
            ZoneAggregate::Sum => Some(State::Sum(at)),
        }
    };
    wanted.iter().map(&mut state).collect()
}

/// `plan`, whose rows come from a scan, without those for which metadata tells all of `asked`, each of a column of
/// `plan`, and that scan; `None` where rows come another way.
fn without_known(plan: &Plan, asked: &[(usize, ZoneAggregate)]) -> Result<Option<(Plan, Arc<StoreSource>)>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let source = scan.data_source().downcast_ref::<StoreSource>();
        let rest = source.and_then(|source| source.without_known(asked));
        return Ok(rest.map(|rest| (DataSourceExec::from_data_source(rest.clone()) as Plan, Arc::new(rest))));
    }
    let mut below = asked.to_vec();
    let input = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        // An expression may fail for a row that nobody reads then.
        let columns = projection.expr().iter().map(|item| item.expr.downcast_ref::<Column>().map(Column::index));
        let Some(columns) = columns.collect::<Option<Vec<_>>>() else { return Ok(None) };
        for (at, _) in &mut below {
            let Some(column) = columns.get(*at) else { return Ok(None) };
            *at = *column;
        }
        projection.input()
    } else if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
        cooperative.input()
    } else if let Some(exchange) = plan.downcast_ref::<RepartitionExec>()
        && matches!(exchange.partitioning(), Partitioning::RoundRobinBatch(_))
    {
        exchange.input()
    } else {
        return Ok(None);
    };
    let Some((input, source)) = without_known(input, &below)? else { return Ok(None) };
    Ok(Some((replace_children_if_necessary(plan.clone(), vec![input])?, source)))
}
