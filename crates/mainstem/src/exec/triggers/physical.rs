//! Rules over physical plans that the logical plan gives nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use mainstem_postgres::function::{Carried, Named};

use super::{
    AGGREGATE, ALL, DISTINCT, JOIN, Kinds, LIMIT, ORDERED_AGGREGATE, PARTITIONS, SORT, SUBQUERY, WINDOW, kinds_of, runs,
};

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Operators that want their rows in an order, or in certain partitions.
const REQUIRING: Kinds = SORT | LIMIT | WINDOW | JOIN | ORDERED_AGGREGATE | PARTITIONS | SUBQUERY;

/// What each rule looks for, as `super::TRIGGERS`.
pub(super) const TRIGGERS: &[(&str, Kinds)] = &[
    ("OutputRequirements", REQUIRING),
    ("aggregate_statistics", AGGREGATE | DISTINCT),
    ("join_selection", JOIN),
    ("LimitedDistinctAggregation", LIMIT),
    ("WindowTopN", WINDOW),
    ("EnsureRequirements", REQUIRING),
    ("CombinePartialFinalAggregate", AGGREGATE | DISTINCT),
    ("OptimizeAggregateOrder", ORDERED_AGGREGATE),
    ("LimitAggregation", LIMIT),
    ("LimitPushPastWindows", LIMIT),
    ("HashJoinBuffering", JOIN),
    ("LimitPushdown", LIMIT),
    ("TopKRepartition", LIMIT),
    // Sorts that operators require, too.
    ("PushdownSort", REQUIRING),
    ("SanityCheckPlan", REQUIRING),
    ("ordered_output", PARTITIONS),
    ("dynamic_filters", JOIN | SORT | LIMIT),
    ("merge_joins", JOIN | SUBQUERY),
    ("streaming_aggregates", AGGREGATE | DISTINCT),
    ("metadata_aggregates", AGGREGATE | DISTINCT),
    ("streaming_windows", WINDOW),
    ("ranking_windows", WINDOW),
    ("radix_sorts", REQUIRING),
    ("spilling_aggregates", AGGREGATE | DISTINCT | SUBQUERY),
    ("spilling_joins", JOIN | SUBQUERY),
    ("eager_probes", JOIN | SUBQUERY),
    ("narrow_decimals", AGGREGATE),
    ("code_aggregates", AGGREGATE | DISTINCT),
    ("ordered_group_by", AGGREGATE | DISTINCT),
];

/// What there is in the plan that a session makes a physical one of.
#[derive(Clone, Debug)]
pub(in crate::exec) struct PlanKinds(Arc<AtomicU16>);

impl Default for PlanKinds {
    fn default() -> Self {
        Self(Arc::new(AtomicU16::new(ALL)))
    }
}

impl PlanKinds {
    /// What is in `plan`, for so many partitions, from now on.
    ///
    /// # Errors
    /// Internal.
    pub(in crate::exec) fn set(&self, plan: &LogicalPlan, partitions: usize) -> Result<()> {
        let plan = if let LogicalPlan::Explain(explain) = plan { &explain.plan } else { plan };
        let kinds = kinds_of(plan)? | if partitions > 1 { PARTITIONS } else { 0 };
        self.0.store(kinds, Ordering::Relaxed);
        Ok(())
    }
}

impl Named for PlanKinds {
    const NAME: &'static str = "mainstem_plan_kinds";
}

/// `rule`, left out where the plan has nothing for it, if it may be.
pub(in crate::exec) fn triggered(rule: Rule) -> Rule {
    let wanted = TRIGGERS.iter().any(|(name, _)| *name == rule.name());
    if wanted { Arc::new(Triggered(rule)) } else { rule }
}

#[derive(Debug)]
struct Triggered(Rule);

impl Triggered {
    fn runs(&self, config: &ConfigOptions) -> bool {
        let Some(Carried(PlanKinds(kinds))) = config.extensions.get() else { return true };
        runs(TRIGGERS, self.0.name(), kinds.load(Ordering::Relaxed))
    }
}

impl PhysicalOptimizerRule for Triggered {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if self.runs(config) { self.0.optimize(plan, config) } else { Ok(plan) }
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.runs(context.config_options()) { self.0.optimize_with_context(plan, context) } else { Ok(plan) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
