//! Sorts in memory, by words instead of by comparing rows; also those that keep only the first rows.
//!
//! Comes in: a physical plan. Goes out: the same plan with [`RadixSort`] in the place of DataFusion's sorts.
//!
//! 1. Rows are [`collected`], without those that a limit cannot keep: those behind its [`threshold`], which is the last
//!    row that is kept so far. Scans are told how far it has come (`dynamic_filters`).
//! 2. The columns of the key become words ([`key`]), and the words are put in [`order`].
//! 3. Rows are gathered in that order, a batch at a time.
//! 4. Where there is no memory for all rows, they go to DataFusion's sort, which spills.
//!
//! DataFusion 55.2 sorts each batch by comparing and merges the sorted batches row by row, which takes three to five
//! times as long. For a limit it has a heap of rows in a format of their own, which from some thousand rows on takes
//! many times the time of a sort.
//!
//! Invariants: what came in goes out, in the order of the key; equal rows in any order. A sort whose input has its
//! order, or for a limit some of it, is left alone: it only passes rows on. It does not own: merging the partitions of
//! a sort.

mod collected;
mod gather;
mod key;
mod operator;
mod order;
mod threshold;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};
use mainstem_storage::scan::FirstRows;

pub(super) use self::key::is_sortable;
pub(super) use self::operator::RadixSort;
use super::dynamic_filters::push_first_rows;
use crate::provider::RuntimeFilter;

/// Rows up to which a heap of DataFusion's costs less than its sort of all rows.
const HEAP_ROWS_MAX: usize = 32_768;

/// The rule; see the module.
#[derive(Debug)]
pub(super) struct RadixSorts;

impl PhysicalOptimizerRule for RadixSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        // Each round of a recursive query runs the same operators on other rows.
        let runs_once = !plan.exists(|node| Ok(node.is::<RecursiveQueryExec>()))?;
        plan.transform_up(|node| {
            if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>().filter(|_| runs_once) {
                let sort =
                    merge.input().downcast_ref::<RadixSort>().filter(|sort| takes_first_rows(merge, sort.sort()));
                return Ok(match sort.map(|sort| sort.bounded(config)).transpose()?.flatten() {
                    Some(sort) => Transformed::yes(replace_children_if_necessary(node, vec![Arc::new(sort)])?),
                    None => Transformed::no(node),
                });
            }
            let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
            let replaced: Arc<dyn ExecutionPlan> = match sort.fetch() {
                // A limit that is known when the plan is run only: DataFusion's heap has to have a row. What stands
                // above may want the order.
                Some(0) => {
                    let partitions = sort.properties().output_partitioning().partition_count();
                    let none = Arc::new(EmptyExec::new(sort.schema()).with_partitions(partitions));
                    let of_each = sort.preserve_partitioning();
                    Arc::new(SortExec::new(sort.expr().clone(), none).with_preserve_partitioning(of_each))
                }
                _ if is_replaced(sort)? => {
                    let radix = RadixSort::new(sort, None);
                    let is_one = sort.properties().output_partitioning().partition_count() == 1;
                    let bounded = if is_one && runs_once { radix.bounded(config)? } else { None };
                    Arc::new(bounded.unwrap_or(radix))
                }
                Some(rows) if rows > HEAP_ROWS_MAX => {
                    Arc::new(LocalLimitExec::new(Arc::new(sort.with_fetch(None)), rows))
                }
                _ => return Ok(Transformed::no(node)),
            };
            Ok(Transformed::yes(replaced))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "radix_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether [`RadixSort`] does what `sort` does, and faster.
fn is_replaced(sort: &SortExec) -> Result<bool> {
    let input = sort.input();
    for part in sort.expr() {
        let data_type = part.expr.data_type(&input.schema())?;
        if !key::is_sortable(&data_type) || !has_no_offsets(&data_type) {
            return Ok(false);
        }
    }
    let schema = input.schema();
    if schema.fields().is_empty() || !schema.fields().iter().all(|field| has_no_offsets(field.data_type())) {
        return Ok(false);
    }
    let (prefix, is_there) = input.equivalence_properties().extract_common_sort_prefix(sort.expr().clone())?;
    Ok(!is_there && (sort.fetch().is_none() || prefix.is_empty()))
}

/// Whether `merge` takes no rows of the partitions of `sort` but the first of all, as many as the sort keeps of each.
fn takes_first_rows(merge: &SortPreservingMergeExec, sort: &SortExec) -> bool {
    merge.fetch().is_some() && merge.fetch() == sort.fetch() && merge.expr() == sort.expr()
}

/// `sort` with scans that leave out rows that its limit does not keep, if it has a limit and they can.
fn bounded(sort: &SortExec, config: &ConfigOptions) -> Result<Option<(SortExec, Arc<RuntimeFilter>)>> {
    let first = sort.expr().first();
    let Some(column) = first.expr.downcast_ref::<Column>().filter(|_| sort.fetch().is_some()) else { return Ok(None) };
    let schema = sort.input().schema();
    if !threshold::has_integers(&column.data_type(&schema)?) {
        return Ok(None);
    }
    let nulls_first = first.options.nulls_first && column.nullable(&schema)?;
    let first_rows = FirstRows { descending: first.options.descending, nulls_first };
    let Some((input, bound)) = push_first_rows(sort.input(), column.index(), first_rows, config)? else {
        return Ok(None);
    };
    let sort = SortExec::new(sort.expr().clone(), input)
        .with_fetch(sort.fetch())
        .with_preserve_partitioning(sort.preserve_partitioning());
    Ok(Some((sort, bound)))
}

/// Whether any number of values can be one array: offsets of 32 bits end at 2 GiB.
fn has_no_offsets(data_type: &DataType) -> bool {
    use DataType::{BinaryView, Boolean, FixedSizeBinary, Null, Utf8View};
    data_type.is_primitive() || matches!(data_type, Utf8View | BinaryView | Boolean | FixedSizeBinary(_) | Null)
}
