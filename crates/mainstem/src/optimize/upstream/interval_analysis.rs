//! Filters that DataFusion analyses by intervals, and gets wrong or gives up on.
//!
//! DataFusion 55.2 propagates the bounds of columns through the predicate of a filter as soon as the filter is made,
//! for its statistics and for columns that have one value left. Where that fails the query fails
//! ([issue 22028](https://github.com/apache/datafusion/issues/22028)): `(a >= b) = (b >= 172)`, a comparison of
//! comparisons, is Internal once the bounds of both columns are known. Texts of integers are not in their order, floats
//! have NaN and values that no bound tells, sums may overflow, and columns are looked up by name alone.
//!
//! Comes in: an optimised plan. Goes out: the same, where an analysed predicate is a conjunction of comparisons of
//! columns and literals, which intervals are right about. Others get one part as `part IS TRUE`, which is the same to a
//! filter, and no operator that the analysis knows. It does not own: predicates of scans, which are none of
//! DataFusion's.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, ExprSchemable, Filter, LogicalPlan, Operator};

use crate::analyze::plan_walk::rewrite_nodes;

/// `plan` with filters that are not analysed wrongly, if some are; see the module.
///
/// # Errors
/// Internal.
pub(crate) fn safely_analysed(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut is_safely = true;
    plan.apply_with_subqueries(|node| {
        is_safely &= !has_unsafe_predicate(node);
        Ok(if is_safely { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    if is_safely {
        return Ok(None);
    }
    let safe = rewrite_nodes(plan.clone(), |node| match node {
        LogicalPlan::Filter(Filter { predicate, input, .. }) if !is_safe(&predicate, input.schema()) => {
            let predicate = unanalysed(predicate, input.schema());
            Filter::try_new(predicate, input).map(|filter| Transformed::yes(LogicalPlan::Filter(filter)))
        }
        node => Ok(Transformed::no(node)),
    });
    safe.map(Some)
}

fn has_unsafe_predicate(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Filter(filter) if !is_safe(&filter.predicate, filter.input.schema()))
}

/// `predicate`, a filter's over rows of `schema`, as one that is not analysed wrongly.
pub(crate) fn unanalysed(predicate: Expr, schema: &DFSchema) -> Expr {
    if is_safe(&predicate, schema) {
        return predicate;
    }
    let mut parts = split_conjunction_owned(predicate.clone());
    if let Some(part) = parts.iter_mut().find(|part| !is_comparison(part, schema)) {
        *part = Expr::IsTrue(Box::new(std::mem::take(part)));
    }
    conjunction(parts).unwrap_or(predicate)
}

/// Whether `predicate` may stay: it is not analysed at all, or rightly.
fn is_safe(predicate: &Expr, schema: &DFSchema) -> bool {
    !is_analysed(predicate, schema) || is_conjunction(predicate, schema)
}

/// Whether DataFusion might analyse `predicate`: it knows nothing but these. It looks up columns by their names alone.
fn is_analysed(predicate: &Expr, schema: &DFSchema) -> bool {
    let mut is_known = true;
    let looked = predicate.apply(|expr| {
        is_known &= match expr {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => *op != Operator::Or,
            Expr::Column(column) => {
                let mut alike = schema.fields().iter().filter(|field| *field.name() == column.name);
                alike.any(|field| has_intervals(field.data_type()))
            }
            Expr::Literal(value, _) => has_intervals(&value.data_type()),
            Expr::Cast(_) | Expr::Negative(_) | Expr::Between(_) | Expr::Alias(_) => true,
            _ => false,
        };
        Ok(if is_known { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    is_known && looked.is_ok()
}

fn has_intervals(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || is_day_or_time(data_type)
}

fn is_day_or_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

fn is_conjunction(predicate: &Expr, schema: &DFSchema) -> bool {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            is_conjunction(left, schema) && is_conjunction(right, schema)
        }
        other => is_comparison(other, schema),
    }
}

/// Whether `part` compares columns and literals whose bounds tell all that they can be.
fn is_comparison(part: &Expr, schema: &DFSchema) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq};
    let is_plain = |side: &Expr| {
        let is_leaf = matches!(side, Expr::Column(_) | Expr::Literal(..));
        is_leaf && side.get_type(schema).is_ok_and(|of| of.is_integer() || is_day_or_time(&of))
    };
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op: Eq | Lt | LtEq | Gt | GtEq, right }) => {
            is_plain(left) && is_plain(right)
        }
        _ => false,
    }
}
