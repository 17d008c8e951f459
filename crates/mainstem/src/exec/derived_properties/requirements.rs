//! Operators get the partitions and the orders that they require.
//!
//! Comes in: a physical plan whose sorts are those of the logical one. Goes out: the same, with exchanges, and sorts
//! below windows and whatever else requires an order; sorts that something below makes needless are gone.
//!
//! It takes the place of DataFusion 55.2's rule of that name, whose steps it calls but one: `pushdown_sorts` moves
//! sorts below joins, unions and windows by what it derives of equal columns and constants, and takes away those that
//! nothing requires, below OFFSET among them: `SELECT id FROM (SELECT id FROM e LIMIT 5 OFFSET 5) d ORDER BY id` kept
//! five rows of which it skipped five (apache/datafusion 24958). In its place sorts go below projections ([`sorts`]).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::enforce_distribution::{
    DistributionContext, PlanWithKeyRequirements, adjust_input_keys_ordering, ensure_distribution,
    reorder_join_keys_to_inputs,
};
use datafusion::physical_optimizer::enforce_sorting::replace_with_order_preserving_variants::{
    OrderPreservationContext, replace_with_order_preserving_variants,
};
use datafusion::physical_optimizer::enforce_sorting::{
    PlanWithCorrespondingCoalescePartitions, PlanWithCorrespondingSort, ensure_sorting, parallelize_sorts,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::tree_node::PlanContext;

use super::declared::{declared, one_declared, relies_on_computed_keys, without_order};
use super::{DerivedProperties, sorts};

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct EnsureRequirements;

impl PhysicalOptimizerRule for EnsureRequirements {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let proofs = DerivedProperties::are_used(config);
        let plan = if proofs { sorts::below_projections(plan)? } else { plan };
        let plan = with_held_sorts(plan)?;
        let plan = with_keys_in_order(declared(&plan, proofs)?, config)?;
        let plan = DistributionContext::new_default(declared(&plan, proofs)?);
        let plan = each_declared(plan, proofs, |node| ensure_distribution(node, config))?;
        let plan = PlanWithCorrespondingSort::new_default(declared(&plan.plan, proofs)?);
        let mut plan = each_declared(plan, proofs, ensure_sorting)?.plan;
        if config.optimizer.repartition_sorts {
            let context = PlanWithCorrespondingCoalescePartitions::new_default(declared(&plan, proofs)?);
            plan = each_declared(context, proofs, parallelize_sorts)?.plan;
        }
        let plan = OrderPreservationContext::new_default(declared(&plan, proofs)?);
        let plan =
            each_declared(plan, proofs, |node| replace_with_order_preserving_variants(node, false, true, config))?;
        declared(&without_held_sorts(plan.plan)?, proofs)
    }

    fn name(&self) -> &'static str {
        "EnsureRequirements"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `plan`, whose sorts are below limits of all rows. `ensure_sorting` takes away a sort whose parent requires no order,
/// though a limit, a window or an aggregate further up sees it; and it takes no notice of what is below a limit. Sorts
/// that nobody sees are gone by now (`optimize::subquery_sorts`), and those with a limit of their own it leaves.
fn with_held_sorts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let held = plan.transform_up(|node| match node.downcast_ref::<SortExec>() {
        Some(sort) if sort.fetch().is_none() && !sort.preserve_partitioning() => {
            Ok(Transformed::yes(Arc::new(GlobalLimitExec::new(node, 0, None))))
        }
        _ => Ok(Transformed::no(node)),
    });
    Ok(held?.data)
}

/// `plan` without limits of all rows.
fn without_held_sorts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let without = plan.transform_up(|node| match node.downcast_ref::<GlobalLimitExec>() {
        Some(limit) if limit.skip() == 0 && limit.fetch().is_none() => Ok(Transformed::yes(limit.input().clone())),
        _ => Ok(Transformed::no(node)),
    });
    Ok(without?.data)
}

/// `plan`, whose joins have their keys in the order in which rows are partitioned already.
fn with_keys_in_order(plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
    if config.optimizer.top_down_join_key_reordering {
        let context = PlanWithKeyRequirements::new_default(plan);
        return Ok(context.transform_down(adjust_input_keys_ordering)?.data.plan);
    }
    Ok(plan.transform_up(|node| Ok(Transformed::yes(reorder_join_keys_to_inputs(node)?)))?.data)
}

/// `plan` after `step` was taken at each of its nodes, from the leaves up; each sees inputs that declare what is proved
/// of them.
fn each_declared<T: Clone>(
    plan: PlanContext<T>,
    proofs: bool,
    step: impl Fn(PlanContext<T>) -> Result<Transformed<PlanContext<T>>>,
) -> Result<PlanContext<T>> {
    let taken = plan.transform_up(|mut node| {
        if relies_on_computed_keys(&node.plan)
            && let Some(child) = node.children.first_mut()
        {
            child.plan = without_order(&child.plan);
            node = node.update_plan_from_children()?;
        }
        let mut taken = step(node)?;
        taken.data.plan = one_declared(&taken.data.plan, proofs)?;
        Ok(taken)
    });
    Ok(taken?.data)
}
