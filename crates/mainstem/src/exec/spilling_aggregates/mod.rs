//! GROUP BY whose groups may be more than memory holds.
//!
//! Comes in: a physical plan, behind all rules that move operators. Goes out: the same plan, in which the last step of
//! an aggregation that may have many groups is a [`SpillingAggregate`]. DataFusion 55.2 writes groups that do not fit
//! as sorted runs, and can merge them only if at once two batches of each fit: with wide rows, or beside other
//! operators, they do not, and the query ends (<https://github.com/apache/datafusion/issues/14851>).
//!
//! 1. The rule finds aggregations whose groups, as many as rows that are read, would take more than a sixteenth of what
//!    queries may; and those by an integer whose values lie near each other, which this table finds faster.
//! 2. [`operator`] has the rows aggregated in a [`table`], which is made of DataFusion's parts. If it fits, its groups
//!    are the answer.
//! 3. Otherwise the states of its groups go to files, each by the hash of its keys (`spilling`), and the table begins
//!    anew. At the end the files are aggregated one after the other: all states of a group are in one of them. A file
//!    whose groups do not fit is divided again, by another hash.
//!
//! Invariants: a group comes out once. The states of a group are merged in the order in which its rows came. What a
//! plan relies on stays: aggregations in the order of their keys, and those with a limit, are left alone. It does not
//! own: the first step of an aggregation, which hands on what does not fit; where files are made, and how large they
//! may become (the session's disk manager).

mod operator;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::statistics::StatisticsContext;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use mainstem_postgres::function::Carried;

pub(super) use self::operator::SpillingAggregate;
use super::code_aggregates::integer_range;
use super::spilling::{QueryBytes, certain_bytes, most_bytes};

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct SpillingAggregates;

impl PhysicalOptimizerRule for SpillingAggregates {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(Carried(bytes)) = config.extensions.get::<Carried<QueryBytes>>() else { return Ok(plan) };
        let certain = certain_bytes(bytes.get());
        let statistics = StatisticsContext::new();
        plan.transform_up(|node| {
            let Some(aggregate) = node.downcast_ref::<AggregateExec>().filter(|aggregate| may_spill(aggregate)) else {
                return Ok(Transformed::no(node));
            };
            let most = most_bytes(&**aggregate.input(), &aggregate.schema(), &statistics);
            let range = integer_range(aggregate);
            if range.is_none() && most.is_some_and(|most| most <= certain) {
                return Ok(Transformed::no(node));
            }
            // Pointers of nodes that are gone may come again.
            statistics.reset_cache();
            Ok(Transformed::yes(Arc::new(SpillingAggregate::new(aggregate, range)?)))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "spilling_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether `aggregate` is the last step of an aggregation whose groups may come in any order.
fn may_spill(aggregate: &AggregateExec) -> bool {
    let is_last = match aggregate.mode() {
        AggregateMode::Final
        | AggregateMode::FinalPartitioned
        | AggregateMode::Single
        | AggregateMode::SinglePartitioned => true,
        AggregateMode::Partial | AggregateMode::PartialReduce => false,
    };
    is_last
        && !aggregate.group_expr().is_empty()
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear
}
