//! Computed keys of windows, ordered aggregates and joins: `rank() OVER (ORDER BY abs(a) > 2)`, `array_agg(a ORDER BY
//! abs(a) > 2)`.
//!
//! DataFusion 55.2 sorts the rows and then does not see that they are sorted, so that its last check
//! (`SanityCheckPlan`) refuses the plan: what it knows of a comparison starts from the ranges of both sides, and those
//! of functions have no type. No public issue was found.
//!
//! Comes in: an optimized plan. Goes out: the same, where a projection below such a node has a column for each computed
//! key, and one above it leaves them out. Sorts are by columns then. It does not own: which windows share a sort.
//!
//! The same is done for computed keys of joins that have one name on both sides, such as a condition that was
//! simplified to `false = false`: DataFusion 55.2 gives all columns of a side one table's name then
//! (`requalify_sides_if_needed`), and refuses columns of one name of two tables. No public issue of this case was
//! found; issue 15439 is about the same function.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::logical_plan::{Aggregate, Join, Window};
use datafusion::logical_expr::{Expr, JoinConstraint, LogicalPlan, LogicalPlanBuilder};

use crate::analyze::plan_walk::rewrite_nodes;
use crate::names::MARK;

/// `plan` with columns for the computed keys of its windows and ordered aggregates.
///
/// # Errors
/// Internal.
pub(crate) fn computed_keys_as_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_nodes(plan, |node| match node {
        LogicalPlan::Window(window) => of_window(window),
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate),
        LogicalPlan::Join(join) => of_join(join),
        other => Ok(Transformed::no(other)),
    })
}

/// Keys that become columns, and what each is called.
#[derive(Default)]
struct Keys(Vec<(Expr, Column)>);

impl Keys {
    /// Puts the column for `key` in its place, unless it is one, or a constant. Volatile keys share columns from the
    /// `shared`th one on.
    fn replace(&mut self, key: &mut Expr, shared: usize) {
        *key = unaliased(key);
        if matches!(key, Expr::Column(_) | Expr::Literal(..)) {
            return;
        }
        let shared = if key.is_volatile() { shared } else { 0 };
        let column = match self.0.iter().skip(shared).find(|(known, _)| known == key) {
            Some((_, column)) => column.clone(),
            None => {
                let column = Column::new_unqualified(format!("__key_{}{MARK}", self.0.len() + 1));
                self.0.push((key.clone(), column.clone()));
                column
            }
        };
        *key = Expr::Column(column);
    }

    /// `input` with its columns and those of the keys.
    fn below(self, input: Arc<LogicalPlan>) -> Result<LogicalPlanBuilder> {
        let input = Arc::unwrap_or_clone(input);
        let computed = self.0.into_iter().map(|(key, column)| key.alias(column.name));
        let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).chain(computed).collect();
        LogicalPlanBuilder::from(input).project(columns)
    }
}

fn of_window(window: Window) -> Result<Transformed<LogicalPlan>> {
    let mut keys = Keys::default();
    let mut functions = window.window_expr.clone();
    for function in &mut functions {
        if let Expr::WindowFunction(function) = without_alias(function) {
            // All functions of a node have one window, whose keys are computed once.
            function.params.partition_by.iter_mut().for_each(|key| keys.replace(key, 0));
            function.params.order_by.iter_mut().for_each(|key| keys.replace(&mut key.expr, 0));
        }
    }
    if keys.0.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let functions_from = window.schema.fields().len() - functions.len();
    let new = keys.below(window.input)?.window(functions)?.build()?;
    with_columns_of(&window.schema, functions_from, new)
}

fn of_aggregate(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut keys = Keys::default();
    let mut functions = aggregate.aggr_expr.clone();
    for function in &mut functions {
        if let Expr::AggregateFunction(function) = without_alias(function) {
            let own = keys.0.len();
            for key in &mut function.params.order_by {
                let computed = unaliased(&key.expr);
                keys.replace(&mut key.expr, own);
                // With DISTINCT a key is an argument, and has to be seen to be one.
                for argument in function.params.args.iter_mut().filter(|_| function.params.distinct) {
                    if unaliased(argument) == computed {
                        *argument = key.expr.clone();
                    }
                }
            }
        }
    }
    if keys.0.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let functions_from = aggregate.schema.fields().len() - functions.len();
    let input = Arc::new(keys.below(aggregate.input)?.build()?);
    let new = LogicalPlan::Aggregate(Aggregate::try_new(input, aggregate.group_expr, functions)?);
    with_columns_of(&aggregate.schema, functions_from, new)
}

fn of_join(join: Join) -> Result<Transformed<LogicalPlan>> {
    let name = |key: &Expr| match key {
        Expr::Column(_) => None,
        Expr::Cast(_) | Expr::TryCast(_) => Some(key.to_string()),
        key => Some(key.schema_name().to_string()),
    };
    let of_left: HashSet<String> = join.on.iter().filter_map(|(left, _)| name(left)).collect();
    if of_left.is_empty() || !join.on.iter().filter_map(|(_, right)| name(right)).any(|name| of_left.contains(&name)) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let columns = join.schema.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    let (mut left, mut right) = (Keys::default(), Keys::default());
    let on = join.on.into_iter().zip(0..).map(|((of_left, of_right), at)| {
        let column = |keys: &mut Keys, key: Expr, number: usize| {
            let column = Column::new_unqualified(format!("__key_{number}{MARK}"));
            keys.0.push((key, column.clone()));
            Expr::Column(column)
        };
        (column(&mut left, of_left, 2 * at), column(&mut right, of_right, 2 * at + 1))
    });
    let on = on.collect();
    let (left, right) = (left.below(join.left)?.build()?, right.below(join.right)?.build()?);
    let (left, right) = (Arc::new(left), Arc::new(right));
    let constraint = JoinConstraint::On;
    let new =
        Join::try_new(left, right, on, join.filter, join.join_type, constraint, join.null_equality, join.null_aware)?;
    LogicalPlanBuilder::from(LogicalPlan::Join(new)).project(columns)?.build().map(Transformed::yes)
}

pub(super) fn without_alias(expr: &mut Expr) -> &mut Expr {
    match expr {
        Expr::Alias(alias) => without_alias(&mut alias.expr),
        other => other,
    }
}

/// `expr` without the names that the optimizer has given to it and its parts.
fn unaliased(expr: &Expr) -> Expr {
    expr.clone().unalias_nested().data
}

/// The columns of `old` over `new`, whose last ones are those of `old` from `functions_from` on under other names.
pub(super) fn with_columns_of(
    old: &DFSchema,
    functions_from: usize,
    new: LogicalPlan,
) -> Result<Transformed<LogicalPlan>> {
    let old = old.columns();
    let mut functions = new.schema().columns();
    let functions = functions.split_off(functions.len() - (old.len() - functions_from));
    let input = old.iter().take(functions_from).cloned().map(Expr::Column);
    let function = old.iter().skip(functions_from).zip(functions).map(|(old, new)| match *old == new {
        true => Expr::Column(new),
        false => Expr::Column(new).alias_qualified(old.relation.clone(), old.name.clone()),
    });
    let columns: Vec<Expr> = input.chain(function).collect();
    LogicalPlanBuilder::from(new).project(columns)?.build().map(Transformed::yes)
}
