//! Sorts of partitions that a scan makes needless, with a limit of their own.
//!
//! DataFusion 55.2's `PushdownSort` takes away a sort whose input can give its order, and puts the limit that the sort
//! had in its place: above several partitions a limit of all rows, which reads one partition. A window above it then
//! has one partition where it wants those of its keys, and the plan is refused. No public issue was found.
//!
//! Comes in: that rule. Goes out: one that first does so itself for such sorts, with a limit of each partition. It does
//! not own: sorts below a merge of partitions, which the rule does rightly.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult, replace_children_if_necessary};

/// The name of DataFusion's rule.
const RULE: &str = "PushdownSort";

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;
type Plan = Arc<dyn ExecutionPlan>;

/// `rule` in the form that the module says, if it is that one; others are returned as they are.
pub(crate) fn partition_limits(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(PartitionLimits { rule }) } else { rule }
}

#[derive(Debug)]
struct PartitionLimits {
    rule: Rule,
}

impl PhysicalOptimizerRule for PartitionLimits {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let plan = if config.optimizer.enable_sort_pushdown { limited(&plan, false)? } else { plan };
        self.rule.optimize(plan, config)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// `plan` without sorts of partitions that have a limit and an input in their order, unless it `is_merged`.
fn limited(plan: &Plan, is_merged: bool) -> Result<Plan> {
    if let Some(sort) = plan.downcast_ref::<SortExec>()
        && let Some(rows) = sort.fetch()
        && sort.preserve_partitioning()
        && !is_merged
        && let SortOrderPushdownResult::Exact { inner } = sort.input().try_pushdown_sort(sort.expr())?
    {
        return Ok(inner.with_fetch(Some(rows)).unwrap_or_else(|| Arc::new(LocalLimitExec::new(inner, rows))));
    }
    let merges = plan.is::<SortPreservingMergeExec>();
    let children = plan.children().into_iter().map(|child| limited(child, merges)).collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan.clone(), children)
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::execution::{SendableRecordBatchStream, TaskContext};
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
    use datafusion::physical_optimizer::pushdown_sort::PushdownSort;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::{DisplayAs, DisplayFormatType, PlanProperties, displayable};

    use super::*;

    /// Partitions in any order that is asked for.
    #[derive(Debug)]
    struct InOrder(Plan);

    impl DisplayAs for InOrder {
        fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("InOrder")
        }
    }

    impl ExecutionPlan for InOrder {
        fn name(&self) -> &'static str {
            "InOrder"
        }

        fn properties(&self) -> &Arc<PlanProperties> {
            self.0.properties()
        }

        fn children(&self) -> Vec<&Plan> {
            Vec::new()
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
        ) -> Result<TreeNodeRecursion> {
            Ok(TreeNodeRecursion::Continue)
        }

        fn with_new_children(self: Arc<Self>, _: Vec<Plan>) -> Result<Plan> {
            Ok(self)
        }

        fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
            self.0.execute(partition, context)
        }

        fn try_pushdown_sort(&self, _: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Plan>> {
            Ok(SortOrderPushdownResult::Exact { inner: Arc::new(Self(self.0.clone())) })
        }
    }

    fn pushed(rule: &dyn PhysicalOptimizerRule, is_merged: bool) -> String {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let input = Arc::new(InOrder(Arc::new(EmptyExec::new(schema.clone()).with_partitions(2))));
        let by = LexOrdering::new([PhysicalSortExpr::new_default(col("a", &schema).unwrap())]).unwrap();
        let sort = SortExec::new(by.clone(), input).with_fetch(Some(3)).with_preserve_partitioning(true);
        let plan: Plan = match is_merged {
            true => Arc::new(SortPreservingMergeExec::new(by, Arc::new(sort))),
            false => Arc::new(sort),
        };
        let pushed = rule.optimize(plan, &ConfigOptions::new()).unwrap();
        displayable(pushed.as_ref()).indent(false).to_string()
    }

    #[test]
    fn canary_a_limit_of_partitions_is_one_of_all_rows() {
        let theirs: Rule = Arc::new(PushdownSort::new());
        assert!(pushed(&*theirs, false).starts_with("GlobalLimitExec"), "DataFusion is right now");
        assert!(pushed(&*partition_limits(theirs.clone()), false).starts_with("LocalLimitExec: fetch=3"));
        assert_eq!(pushed(&*partition_limits(theirs.clone()), true), pushed(&*theirs, true));
    }
}
