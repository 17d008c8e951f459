//! Optimised plans that are kept, with parameters in them, to be run again and again.
//!
//! Comes in: a plan whose parameters have types but no values. Goes out: whether it may be kept; and later, for the
//! values and the snapshot of a run, the plan that is run.
//!
//! A plan is kept if it has the same answer whenever it is optimised: no function in it is stable or volatile (`now()`
//! is computed by the optimizer), all of its tables are users' tables, and no parameter stands where
//! a literal would mean something else ([`depends`]).
//!
//! It does not own: what else must be as it was when a plan was made (`session::kept_plans`).

use std::sync::Arc;

use datafusion::catalog::view::ViewTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, TableScan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use mainstem_storage::ids::TableId;
use mainstem_storage::version::TableView;

use super::parameters::{depends, has_parameter};
use crate::exec::parameters::{Parameter, Parameters, position_of};
use crate::optimize::simplified;
use crate::provider::UserTable;

/// Gives the snapshot of a table.
pub(super) type Views<'a> = dyn Fn(TableId) -> Result<Arc<TableView>> + 'a;

/// Whether `plan`, as it is before it is optimised, has the same answer whenever that is done. `assigns` says that each
/// column of its rows is assigned to a column of a table.
///
/// # Errors
/// Internal.
pub(super) fn may_be_kept(plan: &LogicalPlan, assigns: bool) -> Result<bool> {
    let mut may = true;
    plan.apply_with_subqueries(|node| {
        may &= match node {
            LogicalPlan::TableScan(scan) => of_users(scan)?,
            LogicalPlan::RecursiveQuery(_) | LogicalPlan::Extension(_) => false,
            _ => true,
        };
        may = may && !depends(node, assigns && std::ptr::eq(node, plan))?;
        Ok(if may { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(may)
}

/// Whether `scan` reads a user's table, or a view over such.
fn of_users(scan: &TableScan) -> Result<bool> {
    let provider = source_as_provider(&scan.source)?;
    match provider.downcast_ref::<ViewTable>() {
        Some(view) => may_be_kept(view.logical_plan(), false),
        None => Ok(provider.is::<UserTable>()),
    }
}

/// What `plan` is for a run: over the snapshots that `views` gives, with the values of `parameters`.
///
/// # Errors
/// Those of snapshots; of constants that cannot be computed.
pub(super) fn bound(
    plan: &LogicalPlan,
    parameters: &Parameters,
    views: &Views<'_>,
    options: &Arc<ConfigOptions>,
) -> Result<LogicalPlan> {
    let bind = |node: LogicalPlan| {
        let node = if parameters.is_empty() { Transformed::no(node) } else { with_values(node, parameters, options)? };
        let views = |node| {
            with_table(node, &mut |table| match table {
                Some(table) => Ok(Some(table.at(views(table.id())?))),
                None => internal_err!("a kept plan over what is no table"),
            })
        };
        node.transform_data(views)
    };
    plan.clone().transform_up_with_subqueries(bind).map(|plan| plan.data)
}

/// `node` with what `change` makes of its table, if it reads one.
pub(super) fn with_table(
    node: LogicalPlan,
    change: &mut dyn FnMut(Option<&UserTable>) -> Result<Option<UserTable>>,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
    let provider = source_as_provider(&scan.source)?;
    Ok(match change(provider.downcast_ref::<UserTable>())? {
        Some(table) => {
            let source = provider_as_source(Arc::new(table));
            Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan }))
        }
        None => Transformed::no(LogicalPlan::TableScan(scan)),
    })
}

/// `node` with values in the places of parameters. What a scan is asked for, and how many rows are wanted, is computed
/// as far as it can be: both take constants.
fn with_values(
    node: LogicalPlan,
    parameters: &Parameters,
    options: &Arc<ConfigOptions>,
) -> Result<Transformed<LogicalPlan>> {
    let constants = match &node {
        LogicalPlan::TableScan(scan) => Some(schema_of(scan)?),
        LogicalPlan::Limit(_) => Some(Arc::new(DFSchema::empty())),
        _ => None,
    };
    let names = NamePreserver::new(&node);
    let node = node.map_expressions(|expr| {
        if !has_parameter(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let expr = with_literals(expr, parameters)?;
        Ok(Transformed::yes(match &constants {
            Some(schema) => with_constants(expr, schema, options)?,
            None => name.restore(expr),
        }))
    })?;
    Ok(node.update_data(|node| match node {
        // NULL is no bound.
        LogicalPlan::Limit(Limit { skip, fetch, input }) => {
            let is_bound = |expr: &Expr| !matches!(expr, Expr::Literal(value, _) if value.is_null());
            let of = |expr: Option<Box<Expr>>| expr.filter(|expr| is_bound(expr));
            LogicalPlan::Limit(Limit { skip: of(skip), fetch: of(fetch), input })
        }
        node => node,
    }))
}

/// The columns that filters of `scan` name.
///
/// # Errors
/// Internal.
pub(super) fn schema_of(scan: &TableScan) -> Result<Arc<DFSchema>> {
    DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema()).map(Arc::new)
}

/// `expr` with values in the places of parameters.
///
/// # Errors
/// Internal, for a parameter without a value of its type.
pub(super) fn with_literals(expr: Expr, parameters: &Parameters) -> Result<Expr> {
    let literals = expr.transform_up(|expr| match value_of(&expr, parameters)? {
        Some(value) => Ok(Transformed::yes(Expr::Literal(value, None))),
        None => Ok(Transformed::no(expr)),
    })?;
    Ok(literals.data)
}

/// `expr` over `schema` with what is constant in it computed.
///
/// # Errors
/// Those of what is computed.
pub(super) fn with_constants(expr: Expr, schema: &Arc<DFSchema>, options: &Arc<ConfigOptions>) -> Result<Expr> {
    let context = SimplifyContext::builder().with_schema(schema.clone()).with_config_options(options.clone()).build();
    simplified(&ExprSimplifier::new(context), expr)
}

/// The value of `expr`, if it is a parameter.
fn value_of(expr: &Expr, parameters: &Parameters) -> Result<Option<ScalarValue>> {
    let Expr::Placeholder(placeholder) = expr else { return Ok(None) };
    let value = position_of(&placeholder.id).and_then(|at| parameters.0.get(at));
    match (value, &placeholder.field) {
        (Some(Parameter::Bound(_, value)), Some(field)) if value.data_type() == *field.data_type() => {
            Ok(Some(value.clone()))
        }
        _ => internal_err!("a kept plan without a value for {}", placeholder.id),
    }
}
