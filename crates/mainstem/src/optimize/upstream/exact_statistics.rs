//! Answers that follow from statistics, where those are our own: `SELECT count(*) FROM t`.
//!
//! DataFusion 55.2's rule takes the place of an aggregation without GROUP BY where statistics of what it reads are
//! exact, and trusts too much:
//!
//! - From the last step of an aggregation it looks for the first one, and passes one with FILTER: in `SELECT count(*)
//!   FILTER (WHERE n > 3) FROM (SELECT count(*) n FROM t) q` it finds the first step of the inner aggregation, and
//!   answers with its value. No public issue is known.
//! - Operators call exact what they have estimated: a filter `x = 5` is told to leave one distinct value, and so is a
//!   literal above a table without rows. Public ones of that kind are [issue
//!   22413](https://github.com/apache/datafusion/issues/22413), of limits, and [issue
//!   24038](https://github.com/apache/datafusion/issues/24038), of grouping sets.
//!
//! Comes in: that rule. Goes out: one that is given an aggregation only if each step of it is plain, and its rows come
//! from one scan, through projections and exchanges. `count(*)` may come from several, through UNION ALL and cross
//! joins. It does not own: what is exact of a scan (`provider::statistics`).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::CrossJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

/// The name of DataFusion's rule.
const RULE: &str = "aggregate_statistics";

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;
type Plan = Arc<dyn ExecutionPlan>;

/// `rule` in the form that the module says, if it is that one; others are returned as they are.
pub(crate) fn answers_of_scans(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(AnswersOfScans { rule }) } else { rule }
}

#[derive(Debug)]
struct AnswersOfScans {
    rule: Rule,
}

impl PhysicalOptimizerRule for AnswersOfScans {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        if is_of_scans(&plan) {
            return self.rule.optimize(plan, config);
        }
        let children = plan.children().into_iter().map(|child| self.optimize(child.clone(), config));
        let children = children.collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(plan, children)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Whether `plan` is an aggregation that the rule may answer: there is none below it.
fn is_of_scans(plan: &Plan) -> bool {
    let Some(last) = plan.downcast_ref::<AggregateExec>() else { return false };
    let first = match last.mode().input_mode() {
        AggregateInputMode::Raw => Some(last),
        AggregateInputMode::Partial => first_step(last.input()),
    };
    first.is_some_and(|first| {
        let arguments = first.aggr_expr().iter().flat_map(|function| function.expressions());
        let columns: Option<Vec<Option<usize>>> = arguments
            .map(|argument| match argument.downcast_ref::<Column>() {
                Some(column) => Some(Some(column.index())),
                None => argument.is::<Literal>().then_some(None),
            })
            .collect();
        let is_plain = |step: &AggregateExec| {
            step.group_expr().is_true_no_grouping() && step.filter_expr().iter().all(Option::is_none)
        };
        is_plain(last) && is_plain(first) && columns.is_some_and(|columns| is_known(first.input(), &columns))
    })
}

/// The first step of the aggregation whose last step reads `plan`.
fn first_step(plan: &Plan) -> Option<&AggregateExec> {
    match plan.downcast_ref::<AggregateExec>() {
        Some(first) => (first.mode().input_mode() == AggregateInputMode::Raw).then_some(first),
        None => first_step(exchanged(plan)?),
    }
}

/// What `plan` reads, if it hands on all rows as they are.
fn exchanged(plan: &Plan) -> Option<&Plan> {
    let gathers = plan.downcast_ref::<CoalescePartitionsExec>().is_some_and(|gathers| gathers.fetch().is_none());
    let is_exchange = gathers || plan.is::<RepartitionExec>() || plan.is::<CooperativeExec>();
    plan.children().first().copied().filter(|_| is_exchange)
}

/// Whether the rows of `plan`, and what statistics say of `columns` of it, are those of scans. `None` stands for
/// literals, which count rows.
fn is_known(plan: &Plan, columns: &[Option<usize>]) -> bool {
    if let Some(input) = exchanged(plan) {
        return is_known(input, columns);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = columns.iter().map(|column| match column {
            Some(at) => projection.expr().get(*at)?.expr.downcast_ref::<Column>().map(|column| Some(column.index())),
            None => Some(None),
        });
        return below.collect::<Option<Vec<_>>>().is_some_and(|below| is_known(projection.input(), &below));
    }
    if plan.is::<UnionExec>() || plan.is::<CrossJoinExec>() {
        let counts_rows = columns.iter().all(Option::is_none);
        return counts_rows && plan.children().into_iter().all(|child| is_known(child, columns));
    }
    plan.children().is_empty()
}
