//! Rules of the optimizer, each with a plan before it that declares what is proved, and which of them may be left out.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use super::{DerivedProperties, EnsureRequirements, declared};

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rules over logical plans that stay where nothing may be known of rows: without them a plan is not executed at all,
/// or not in finite time.
const LOGICAL: &[&str] = &[
    // What is constant is computed there, and some functions have no other form.
    "simplify_expressions",
    // Keys of groups that are there twice are one column in plans.
    "eliminate_duplicated_expr",
    "rewrite_set_comparison",
    "replace_distinct_aggregate",
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
    "extract_equijoin_predicate",
];

/// Rules over physical plans that stay, as [`LOGICAL`].
const PHYSICAL: &[&str] = &["OutputRequirements", "EnsureRequirements", "EnsureCooperative", "ordered_output"];

/// Whether the rule over logical plans called `name` runs.
pub(in crate::exec) fn logical_rule_runs(name: &str, config: &ConfigOptions) -> bool {
    DerivedProperties::are_used(config) || LOGICAL.contains(&name)
}

/// The first rule: what the planner has made declares what is proved of its rows.
#[derive(Debug)]
pub(in crate::exec) struct DeclaredPlans;

impl PhysicalOptimizerRule for DeclaredPlans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        declared(&plan, DerivedProperties::are_used(config))
    }

    fn name(&self) -> &'static str {
        "declared_plans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A rule that sees, and leaves, operators that declare what is proved of their rows.
#[derive(Debug)]
pub(super) struct Declaring(Rule);

/// `rule`, or what takes its place, as a [`Declaring`] one.
pub(in crate::exec) fn declaring(rule: Rule) -> Rule {
    let rule = if rule.name() == EnsureRequirements.name() { Arc::new(EnsureRequirements) } else { rule };
    Arc::new(Declaring(rule))
}

impl Declaring {
    fn around(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
        rule: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let proofs = DerivedProperties::are_used(config);
        if !proofs && !PHYSICAL.contains(&self.name()) {
            return Ok(plan);
        }
        let optimized = rule(plan.clone())?;
        if Arc::ptr_eq(&plan, &optimized) { Ok(plan) } else { declared(&optimized, proofs) }
    }
}

impl PhysicalOptimizerRule for Declaring {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        self.around(plan, config, |plan| self.0.optimize(plan, config))
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.around(plan, context.config_options(), |plan| self.0.optimize_with_context(plan, context))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
