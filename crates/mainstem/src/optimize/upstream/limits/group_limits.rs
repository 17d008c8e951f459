//! `GROUP BY ... ORDER BY ... LIMIT n` that keeps n groups, where DataFusion may hand the limit down to the groups.
//!
//! Its rule follows the column that rows are sorted by down to the aggregation by its name alone: in `SELECT -k AS k
//! FROM t GROUP BY k ORDER BY k LIMIT 2` it takes the computed `k` for the grouped one, and the two smallest are kept
//! of which the two largest are wanted.
//!
//! It also follows it through whatever makes a row of each row, windows among them: `SELECT k, count(*) OVER () FROM t
//! GROUP BY k ORDER BY k LIMIT 3` counted three groups. Of floats it keeps the wrong groups where a NaN is among them,
//! which it takes for no worse than any number. All are wrong in 55.2; no public issue was found.
//!
//! Comes in: that rule. Goes out: one that does the same but for plans with a sort whose column is another one than its
//! name says, or a float, or with other operators than projections and exchanges between both, which it leaves alone.
//! It does not own: whether a limit pays there.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

/// The name of DataFusion's rule.
const RULE: &str = "LimitAggregation";

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// `rule` in the form that the module says, if it is that one; others are returned as they are.
pub(crate) fn safe_group_limits(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(LimitedGroups { rule }) } else { rule }
}

#[derive(Debug)]
struct LimitedGroups {
    rule: Rule,
}

impl PhysicalOptimizerRule for LimitedGroups {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut is_misled = false;
        plan.apply(|node| {
            is_misled |= node.downcast_ref::<SortExec>().is_some_and(misleads);
            Ok(if is_misled { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if is_misled { Ok(plan) } else { self.rule.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Whether the column of an aggregation that `sort` is by is another one than its name, followed through projections,
/// says, or is computed from several groups; and whether it is by something that is computed above an aggregation.
fn misleads(sort: &SortExec) -> bool {
    let [by] = sort.expr().as_ref() else { return false };
    let Some(column) = by.expr.downcast_ref::<Column>() else { return false };
    if by.expr.data_type(&sort.schema()).is_ok_and(|of| of.is_floating()) {
        return true;
    }
    let (mut name, mut at) = (column.name().to_owned(), Some(column.index()));
    let mut node = sort.input().clone();
    loop {
        if let Some(groups) = node.downcast_ref::<AggregateExec>() {
            let schema = groups.schema();
            let group_name = at.and_then(|at| schema.fields().get(at)).map(|field| field.name().as_str());
            let is_alone = schema.fields().iter().filter(|field| *field.name() == name).count() == 1;
            return group_name != Some(name.as_str()) || !is_alone;
        }
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            // As the rule does it.
            for item in projection.expr() {
                if let Some(source) = item.expr.downcast_ref::<Column>()
                    && item.alias == name
                {
                    name = source.name().to_owned();
                }
            }
            let source = at.and_then(|at| projection.expr().get(at));
            at = source.and_then(|item| item.expr.downcast_ref::<Column>()).map(Column::index);
        }
        if !makes_each_row_of_one(&*node) {
            // Where rows may be fewer the rule stops by itself.
            return matches!(node.cardinality_effect(), CardinalityEffect::Equal | CardinalityEffect::GreaterEqual);
        }
        let next = match node.children().as_slice() {
            [only] => Arc::clone(only),
            _ => return false,
        };
        node = next;
    }
}

/// Whether each row of `node` depends on no other row of its input.
fn makes_each_row_of_one(node: &dyn ExecutionPlan) -> bool {
    node.is::<ProjectionExec>()
        || node.is::<FilterExec>()
        || node.is::<RepartitionExec>()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<SortPreservingMergeExec>()
        || node.is::<SortExec>()
        || node.is::<CooperativeExec>()
}
