//! Physical plans that are kept, of queries on few rows: to make one takes several times as long as to run it.
//!
//! Comes in: a kept logical plan, and what its first run reads. Goes out: a physical plan with slots for the values of
//! parameters and for what its scans read, run again and again on the caller's thread, one run at a time.
//!
//! 1. Filters of scans are predicates of the store, with the values of the run ([`reads`](super::reads)); the scans are
//!    given [slots](ScanSlot). Other parameters become [slots](super::slot).
//! 2. The plan is made once, for one partition. It knows no values, and no exact statistics: answers must not follow
//!    from them.
//! 3. A run binds values, snapshots and predicates, takes the plan without what the run before has left in it, and
//!    releases all of them at its end.
//!
//! A plan is made anew when a table has grown or shrunk by [`GROWTH`]. Where predicates of other values are of other
//! kinds, or a snapshot has lost the order that the plan relies on, that run is planned as if nothing were kept. Only
//! operators that are known to start anew are in it ([`starts_anew`]).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use super::parameters::has_parameter;
use super::reads::Read;
use super::slot::Values;
use crate::exec::metadata_aggregates::MetadataAggregates;
use crate::exec::parameters::{Parameter, Parameters, position_of};
use crate::exec::sort::RadixSort;
use crate::exec::spilling_aggregates::SpillingAggregate;
use crate::exec::spilling_joins::SpillingHashJoin;
use crate::exec::streaming::{RankingWindow, StreamingAggregateExec};
use crate::provider::{ScanSlot, UserTable};

/// Times as many rows, or as few, that a table may have before a plan is made anew.
const GROWTH: u64 = 8;
/// Fewer rows than these are as good as these.
const ROWS_MIN: u64 = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct PhysicalPlan {
    plan: Arc<dyn ExecutionPlan>,
    values: Values,
    /// In the order in which [`LogicalPlan::transform_up_with_subqueries`] comes to them.
    scans: Vec<Scan>,
}

/// A scan of a plan.
#[derive(Debug)]
struct Scan {
    slot: Arc<ScanSlot>,
    /// Rows of the table when the plan was made; `None` if few of them were found.
    rows: Option<u64>,
}

/// A logical plan with slots, whose scans are bound to the first run. Its values are bound once the plan is made: what
/// a plan computes while it is made, as `IN` its list, it computes once.
pub(super) struct Slotted {
    pub(super) plan: LogicalPlan,
    values: Values,
    first: Vec<ScalarValue>,
    scans: Vec<Scan>,
}

/// What binding a plan to a run comes to.
pub(super) enum Bound {
    Run(Run),
    /// It was made for predicates of other kinds.
    Unfit,
    /// It was made for tables of other sizes; another one is to be made for what it was to read.
    Outgrown(Vec<Read>),
}

/// A plan that is bound. At its end it lets go of what it was bound to.
pub(super) struct Run {
    plan: Arc<dyn ExecutionPlan>,
    values: Values,
    slots: Vec<Arc<ScanSlot>>,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.values.release();
        self.slots.iter().for_each(|slot| slot.release());
    }
}

/// `plan`, a kept logical plan whose scans read `reads`, with slots; `None` if it cannot have them for these values.
///
/// # Errors
/// Internal.
pub(super) fn slotted(plan: &LogicalPlan, parameters: &Parameters, reads: Vec<Read>) -> Result<Option<Slotted>> {
    let Some(first) = scalars(parameters) else { return Ok(None) };
    let (values, mut scans, mut fits) = (Values::default(), Vec::new(), true);
    let mut reads = reads.into_iter();
    let slotted = plan.clone().transform_up_with_subqueries(|node| {
        let node = match node {
            LogicalPlan::TableScan(scan) => {
                let Read { input, rows } =
                    reads.next().ok_or_else(|| internal_datafusion_err!("a scan that reads nothing"))?;
                let provider = source_as_provider(&scan.source)?;
                let table = provider.downcast_ref::<UserTable>();
                let table = table.ok_or_else(|| internal_datafusion_err!("a kept plan over what is no table"))?;
                let view = input.view.clone();
                let slot = Arc::new(ScanSlot::new(input));
                scans.push(Scan { slot: slot.clone(), rows });
                let source = provider_as_source(Arc::new(table.at(view).in_slot(slot)));
                LogicalPlan::TableScan(TableScan { source, filters: Vec::new(), ..scan })
            }
            // A physical plan has numbers of rows, and no expressions for them.
            LogicalPlan::Limit(limit) => {
                fits &= ![&limit.skip, &limit.fetch].into_iter().flatten().any(|expr| has_parameter(expr));
                LogicalPlan::Limit(limit)
            }
            node if parameters.is_empty() => node,
            node => with_slots(node, &values)?.data,
        };
        Ok(Transformed::yes(node))
    })?;
    Ok(fits.then_some(Slotted { plan: slotted.data, values, first, scans }))
}

/// `node` with slots in the places of parameters.
fn with_slots(node: LogicalPlan, values: &Values) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        if !has_parameter(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let slotted = expr.transform_up(|expr| match &expr {
            Expr::Placeholder(placeholder) => match (position_of(&placeholder.id), &placeholder.field) {
                (Some(at), Some(field)) => {
                    // NULLs have plans of their own: a value is as a literal would be.
                    let field = field.as_ref().clone().with_nullable(false);
                    Ok(Transformed::yes(values.slot(at, Arc::new(field))))
                }
                _ => Err(internal_datafusion_err!("a kept plan with a parameter without a type")),
            },
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(Transformed::yes(name.restore(slotted.data)))
    })
}

/// Whether one of `parameters` is NULL behind its type: slots are never NULL.
pub(super) fn has_typed_null(parameters: &Parameters) -> bool {
    scalars(parameters).is_none()
}

/// The values of `parameters`; `None` if one is NULL behind its type.
fn scalars(parameters: &Parameters) -> Option<Vec<ScalarValue>> {
    let value = |parameter: &Parameter| match parameter {
        Parameter::Bound(_, value) => (!value.is_null()).then(|| value.clone()),
        Parameter::Null | Parameter::Typed(_) => Some(ScalarValue::Null),
    };
    parameters.0.iter().map(value).collect()
}

impl Slotted {
    /// The plan to be kept, and its first run; `None` if `plan`, which was made of the logical one, must not be kept.
    /// What is kept is never run itself: a run leaves rows, and what it has reserved for them, in its operators.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn kept(self, plan: Arc<dyn ExecutionPlan>) -> Result<Option<(PhysicalPlan, Run)>> {
        let Self { values, first, scans, .. } = self;
        if !starts_anew(&plan) {
            return Ok(None);
        }
        let run = Run { plan: reset_plan_states(plan.clone())?, values: values.clone(), slots: slots(&scans) };
        values.bind(first);
        Ok(Some((PhysicalPlan { plan, values, scans }, run)))
    }
}

fn slots(scans: &[Scan]) -> Vec<Arc<ScanSlot>> {
    scans.iter().map(|scan| scan.slot.clone()).collect()
}

impl PhysicalPlan {
    /// The plan for the values of `parameters`, whose scans read `reads`.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn bind(&self, parameters: &Parameters, reads: Vec<Read>) -> Result<Bound> {
        let has_grown = |before: u64, now: u64| now.max(ROWS_MIN) > before.max(ROWS_MIN).saturating_mul(GROWTH);
        let is_other = |(scan, read): (&Scan, &Read)| match (scan.rows, read.rows) {
            (Some(before), Some(now)) => has_grown(before, now) || has_grown(now, before),
            _ => false,
        };
        if self.scans.iter().zip(&reads).any(is_other) {
            return Ok(Bound::Outgrown(reads));
        }
        // Whatever comes of it, nothing stays bound.
        let mut run = Run { plan: self.plan.clone(), values: self.values.clone(), slots: slots(&self.scans) };
        if !self.scans.iter().zip(reads).all(|(scan, read)| scan.slot.bind(read.input)) {
            return Ok(Bound::Unfit);
        }
        let Some(values) = scalars(parameters) else { return Ok(Bound::Unfit) };
        run.plan = reset_plan_states(run.plan.clone())?;
        self.values.bind(values);
        Ok(Bound::Run(run))
    }
}

impl Run {
    /// The plan to be executed while this lives.
    pub(super) fn plan(&self) -> Arc<dyn ExecutionPlan> {
        self.plan.clone()
    }

    /// How many of its scans have their rows found by key.
    pub(super) fn scans_by_key(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.found().is_some()).count() as u64
    }
}

/// Whether all operators of `plan` are known to begin anew once their states are reset. Filters that tighten while a
/// plan runs would stay tight.
fn starts_anew(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_known = plan.is::<DataSourceExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<StreamingAggregateExec>()
        || plan.is::<MetadataAggregates>()
        || plan.is::<SpillingAggregate>()
        || plan.is::<SortExec>()
        || plan.downcast_ref::<RadixSort>().is_some_and(|sort| !sort.tightens())
        || plan.is::<RankingWindow>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<SpillingHashJoin>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<UnionExec>()
        || plan.is::<WindowAggExec>()
        || plan.is::<BoundedWindowAggExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<PlaceholderRowExec>()
        || plan.is::<EmptyExec>()
        || plan.downcast_ref::<FilterExec>().is_some_and(|filter| !tightens(filter.predicate()));
    is_known && plan.children().into_iter().all(starts_anew)
}

/// Whether a join of `plan` looks at all combinations of rows.
pub(super) fn combines_all_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<NestedLoopJoinExec>() || plan.is::<CrossJoinExec>() || plan.children().into_iter().any(combines_all_rows)
}

fn tightens(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<DynamicFilterPhysicalExpr>() || expr.children().into_iter().any(tightens)
}
