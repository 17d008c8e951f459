//! Operators that declare what is proved of their rows, in place of what DataFusion derives.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, InvariantLevel, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    replace_children_if_necessary,
};

use super::orders;

type Plan = Arc<dyn ExecutionPlan>;

/// `plan`, whose operators declare what is proved of their rows; nothing, not even by scans, unless `proofs` are used.
///
/// # Errors
/// Internal.
pub(super) fn declared(plan: &Plan, proofs: bool) -> Result<Plan> {
    let old = plan.children();
    let children = old.iter().map(|child| declared(child, proofs)).collect::<Result<Vec<_>>>()?;
    if children.iter().zip(old).all(|(new, old)| Arc::ptr_eq(new, old)) {
        // It was declared over the same inputs.
        let stays = as_declared(plan).is_some_and(|known| known.proofs == proofs && is_stateless(&known.operator));
        return if stays { Ok(plan.clone()) } else { one_declared(plan, proofs) };
    }
    if let Some(declared) = with_declared_inputs(plan, &children, proofs)? {
        return Ok(declared);
    }
    one_declared(&replace_children_if_necessary(plan.clone(), children)?, proofs)
}

/// `plan`, declared over `children`, which are its own but for what they declare; `None` if what it does depends on
/// that. DataFusion would derive all of its properties again, most of what a plan's declarations cost.
fn with_declared_inputs(plan: &Plan, children: &[Plan], proofs: bool) -> Result<Option<Plan>> {
    let known = as_declared(plan);
    let operator = known.map_or(plan, |known| &known.operator);
    if known.is_some_and(|known| known.hides_order) || !is_stateless(operator) {
        return Ok(None);
    }
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let operator = operator.clone().replace_children(children.to_vec(), keep)?;
    Ok(Some(Arc::new(Declared::new(operator, proofs))))
}

/// Whether what `operator` does depends on no property of its inputs.
fn is_stateless(operator: &Plan) -> bool {
    operator.is::<ProjectionExec>() || operator.is::<FilterExec>() || operator.is::<HashJoinExec>()
}

/// `plan` alone in the form of [`declared`], whose children have it.
///
/// # Errors
/// Internal.
pub(super) fn one_declared(plan: &Plan, proofs: bool) -> Result<Plan> {
    let known = as_declared(plan);
    // What hides an order stays as it is.
    if known.is_some_and(|known| known.hides_order) {
        return Ok(plan.clone());
    }
    let operator = known.map_or(plan, |known| &known.operator);
    let operator = with_hidden_order(operator)?;
    if orders::are_declared_rightly(&operator, proofs) {
        return Ok(operator);
    }
    match known {
        Some(known) if Arc::ptr_eq(&known.operator, &operator) => Ok(plan.clone()),
        _ => Ok(Arc::new(Declared::new(operator, proofs))),
    }
}

/// `operator`, whose input declares no order if it sorts or groups by computed keys: DataFusion would take functions of
/// ordered columns for ordered themselves.
fn with_hidden_order(operator: &Plan) -> Result<Plan> {
    if !relies_on_computed_keys(operator) {
        return Ok(operator.clone());
    }
    let children = operator.children().into_iter().map(without_order).collect();
    replace_children_if_necessary(operator.clone(), children)
}

/// Whether `operator` sorts or groups by what is computed.
pub(super) fn relies_on_computed_keys(operator: &Plan) -> bool {
    let are_computed =
        |mut keys: Box<dyn Iterator<Item = &Arc<dyn PhysicalExpr>> + '_>| keys.any(|key| !orders::keeps_order(key));
    if let Some(sort) = operator.downcast_ref::<SortExec>() {
        return are_computed(Box::new(sort.expr().iter().map(|key| &key.expr)));
    }
    // What an ordered aggregate requires it has to see.
    operator.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        aggregate.required_input_ordering().iter().all(Option::is_none)
            && are_computed(Box::new(aggregate.group_expr().expr().iter().map(|(key, _)| key)))
    })
}

/// `plan` that declares no order.
pub(super) fn without_order(plan: &Plan) -> Plan {
    let known = as_declared(plan);
    if plan.properties().output_ordering().is_none() || known.is_some_and(|known| known.hides_order) {
        return plan.clone();
    }
    let operator = known.map_or(plan, |known| &known.operator).clone();
    Arc::new(Declared::hiding_order(operator))
}

fn as_declared(plan: &Plan) -> Option<&Declared> {
    // `downcast_ref` of plans looks through to the operator.
    (plan.as_ref() as &dyn Any).downcast_ref::<Declared>()
}

/// An operator with other properties than it has derived. Rules see the operator itself (`downcast_delegate`).
#[derive(Debug)]
struct Declared {
    operator: Plan,
    properties: Arc<PlanProperties>,
    proofs: bool,
    /// The operator may have an order, which whoever reads it must not know of.
    hides_order: bool,
}

impl Declared {
    fn new(operator: Plan, proofs: bool) -> Self {
        let orders = if proofs { orders::of(&operator) } else { Vec::new() };
        Self::with(operator, orders, proofs, false)
    }

    fn hiding_order(operator: Plan) -> Self {
        Self::with(operator, Vec::new(), false, true)
    }

    fn with(operator: Plan, orders: Vec<Vec<PhysicalSortExpr>>, proofs: bool, hides_order: bool) -> Self {
        let declared = EquivalenceProperties::new_with_orderings(operator.schema(), orders);
        let properties = PlanProperties::clone(operator.properties()).with_eq_properties(declared);
        Self { operator, properties: Arc::new(properties), proofs, hides_order }
    }

    /// What was made of its operator, declared like it.
    fn again(&self, operator: Plan) -> Plan {
        if self.hides_order {
            return Arc::new(Self::hiding_order(operator));
        }
        Arc::new(Self::new(operator, self.proofs))
    }
}

impl DisplayAs for Declared {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.fmt_as(format, f)
    }
}

impl ExecutionPlan for Declared {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(&*self.operator)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn check_invariants(&self, check: InvariantLevel) -> Result<()> {
        self.operator.check_invariants(check)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.operator.dynamic_expressions_produced()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.operator.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.operator.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.operator.maintains_input_order()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.operator.benefits_from_input_partitioning()
    }

    fn children(&self) -> Vec<&Plan> {
        self.operator.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.operator.apply_expressions(f)
    }

    fn replace_children(self: Arc<Self>, children: Vec<Plan>, options: ReplaceChildrenOptions) -> Result<Plan> {
        let operator = self.operator.clone().replace_children(children, options)?;
        Ok(match options.children_properties {
            ChildrenPropertiesMode::Keep => Arc::new(Self {
                operator,
                properties: self.properties.clone(),
                proofs: self.proofs,
                hides_order: self.hides_order,
            }),
            ChildrenPropertiesMode::Recompute => self.again(operator),
        })
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        Ok(self.again(replace_children_if_necessary(self.operator.clone(), children)?))
    }

    fn reset_state(self: Arc<Self>) -> Result<Plan> {
        let operator = self.operator.clone().reset_state()?;
        let (properties, proofs, hides_order) = (self.properties.clone(), self.proofs, self.hides_order);
        Ok(Arc::new(Self { operator, properties, proofs, hides_order }))
    }

    fn repartitioned(&self, partitions: usize, config: &ConfigOptions) -> Result<Option<Plan>> {
        Ok(self.operator.repartitioned(partitions, config)?.map(|operator| self.again(operator)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.operator.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.operator.metrics()
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.operator.statistics_from_inputs(inputs, args)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.operator.child_stats_requests(partition)
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.operator.supports_limit_pushdown()
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Plan> {
        self.operator.with_fetch(limit).map(|operator| self.again(operator))
    }

    fn fetch(&self) -> Option<usize> {
        self.operator.fetch()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.operator.cardinality_effect()
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Plan>> {
        self.operator.try_swapping_with_projection(projection)
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        self.operator.gather_filters_for_pushdown(phase, filters, config)
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Plan>> {
        self.operator.handle_child_pushdown_result(phase, result, config)
    }

    fn with_new_state(&self, state: Arc<dyn Any + Send + Sync>) -> Option<Plan> {
        self.operator.with_new_state(state).map(|operator| self.again(operator))
    }

    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Plan>> {
        self.operator.try_pushdown_sort(order)
    }

    fn with_preserve_order(&self, preserve_order: bool) -> Option<Plan> {
        self.operator.with_preserve_order(preserve_order).map(|operator| self.again(operator))
    }
}
