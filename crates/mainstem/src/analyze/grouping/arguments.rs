//! `grouping(a::text)`: its argument is a group, whatever name the group has.
//!
//! DataFusion 55.2 looks for an argument of `grouping` in GROUP BY as an expression, and an alias is one: a group that
//! a rewrite has changed keeps its name by an alias, which the argument has not. Comes in: a plan before
//! `resolve_grouping_function`. Goes out: the same one, in which such an argument is the group as GROUP BY has it.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

use crate::analyze::plan_walk::rewrite_nodes;

/// See the module.
///
/// # Errors
/// DataFusion's.
pub(crate) fn grouping_arguments(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_nodes(plan, |node| match node {
        LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_grouping) => {
            Ok(with_groups(aggregate)?.update_data(LogicalPlan::Aggregate))
        }
        node => Ok(Transformed::no(node)),
    })
}

fn is_grouping(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_grouping(&alias.expr),
        Expr::AggregateFunction(function) => function.func.name() == "grouping",
        _ => false,
    }
}

/// `expr` without the names it has.
fn without_names(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_names(&alias.expr),
        expr => expr,
    }
}

fn with_groups(mut aggregate: Aggregate) -> Result<Transformed<Aggregate>> {
    let groups: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
    let names = NamePreserver::new_for_projection();
    let mut changed = false;
    for call in aggregate.aggr_expr.iter_mut().filter(|expr| is_grouping(expr)) {
        let name = names.save(call);
        let argument = |argument: Expr| {
            if groups.contains(&argument) {
                return Ok(Transformed::no(argument));
            }
            let group = groups.iter().find(|group| without_names(group) == without_names(&argument));
            Ok(group.map_or_else(|| Transformed::no(argument.clone()), |group| Transformed::yes(group.clone())))
        };
        // Down through aliases, and no further than the call's own arguments.
        let rewritten = std::mem::take(call).transform_down(|expr| match expr {
            expr if is_grouping(&expr) => Ok(Transformed::no(expr)),
            expr => argument(expr).map(|expr| Transformed::new(expr.data, expr.transformed, TreeNodeRecursion::Jump)),
        })?;
        changed |= rewritten.transformed;
        *call = if rewritten.transformed { name.restore(rewritten.data) } else { rewritten.data };
    }
    Ok(Transformed::new_transformed(aggregate, changed))
}
