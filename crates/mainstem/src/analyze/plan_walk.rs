//! The walk that rules over logical plans share.
//!
//! Comes in: a plan, and what a rule makes of one expression, or of one node. Goes out: the plan, rewritten bottom up,
//! the plans of subqueries too. Columns keep their names. A node's schema is computed anew if something changed in it
//! or below, and only then: for aggregates and projections of many expressions that costs more than everything a rule
//! does. What a rule does comes as `dyn`: a walk for each rule would be much code, and a plan waits for code to be
//! fetched more than for anything else.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// What a rule makes of an expression over what has the schema.
pub(crate) type RewriteExpr<'a> = dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>> + 'a;
/// What a rule makes of a node.
type RewriteNode<'a> = dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>> + 'a;

/// Rewrites the expressions of `plan` and of its subqueries with `rewrite`, which is given each expression, those
/// within it first, and the schema of what the node reads.
///
/// # Errors
/// Those of `rewrite`.
pub(crate) fn rewrite_plan(plan: LogicalPlan, rewrite: &RewriteExpr<'_>) -> Result<LogicalPlan> {
    rewrite_nodes(plan, |node| rewrite_node(node, rewrite))
}

/// Rewrites the nodes of `plan` and of its subqueries, those below first. What `rewrite` changes it says with
/// [`Transformed::yes`]; it need not compute the node's schema anew.
///
/// # Errors
/// Those of `rewrite`.
pub(crate) fn rewrite_nodes(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let mut walk = Walk { rewrite: &mut rewrite, changed: Vec::new() };
    plan.rewrite_with_subqueries(&mut walk).map(|transformed| transformed.data)
}

/// As [`rewrite_nodes`], but for subqueries, which are the nodes' own.
///
/// # Errors
/// Those of `rewrite`.
pub(crate) fn rewrite_inputs(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    plan.rewrite(&mut Walk { rewrite: &mut rewrite, changed: Vec::new() })
}

/// Rewrites the expressions of `plan`, those within others first, not those of the plans below. Its schema stays that
/// of before.
///
/// # Errors
/// Those of `rewrite`.
pub(crate) fn rewrite_node(plan: LogicalPlan, rewrite: &RewriteExpr<'_>) -> Result<Transformed<LogicalPlan>> {
    rewrite_whole(plan, &|expr, schema| expr.transform_up(|e| rewrite(e, schema)))
}

/// As [`rewrite_node`], with a `rewrite` that is given whole expressions.
///
/// # Errors
/// Those of `rewrite`.
pub(crate) fn rewrite_whole(plan: LogicalPlan, rewrite: &RewriteExpr<'_>) -> Result<Transformed<LogicalPlan>> {
    if !has_expressions(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let one = |expr: Expr| {
        let name = names.save(&expr);
        let expr = rewrite(expr, &schema)?;
        Ok(if expr.transformed { expr.update_data(|e| name.restore(e)) } else { expr })
    };
    plan.map_expressions(|expr| match expr {
        // Its members are the columns: the whole has no name to keep.
        Expr::GroupingSet(set) => Expr::GroupingSet(set).map_children(one),
        expr => one(expr),
    })
}

fn has_expressions(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|_| {
        found = true;
        Ok(TreeNodeRecursion::Stop)
    })?;
    Ok(found)
}

struct Walk<'a> {
    rewrite: &'a mut RewriteNode<'a>,
    /// For each node on the way down to this one, whether something changed below it.
    changed: Vec<bool>,
}

impl TreeNodeRewriter for Walk<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.changed.push(false);
        Ok(Transformed::no(node))
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let below = self.changed.pop().unwrap_or_default();
        let node = (self.rewrite)(node)?;
        if !(below || node.transformed) {
            return Ok(node);
        }
        if let Some(above) = self.changed.last_mut() {
            *above = true;
        }
        node.data.recompute_schema().map(Transformed::yes)
    }
}
