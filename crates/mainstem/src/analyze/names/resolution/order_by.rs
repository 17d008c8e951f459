//! Columns of FROM that ORDER BY reads in an expression, though a select item has taken their name:
//! `SELECT -k AS k FROM t ORDER BY k + 1`.
//!
//! A name alone in ORDER BY is a select item; in an expression SQL has the columns of FROM, and DataFusion the items.
//! Such a query becomes a derived table, which gives what ORDER BY reads as further columns: `SELECT q.k AS k FROM
//! (SELECT -k AS k, k + 1 AS o FROM t) q ORDER BY q.o`. DataFusion cannot be told by a table's name, since it adds
//! `t.k` to the items, beside `k`.
//!
//! Of SELECT DISTINCT, ORDER BY reads items only: an expression that is one is called by its name, another is an error.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor,
    TableWithJoins, Value,
};
use mainstem_storage::{Error, Result};

use super::join_columns::Columns;
use super::select_items::{expand, hides, quoted};
use crate::analyze::ast::expr::{bare, is_star};
use crate::analyze::names::column_names::{marked, mentioned, name_of};
use crate::analyze::names::duplicate_names::is_same;
use crate::analyze::names::output_names::title;
use crate::sql::{fold, query_of, state};

/// Name of the derived table.
const ORDERED: &str = "ordered_items";

/// Whether `keys`, those of ORDER BY of `select`, read what its items hide.
pub(super) fn reads_hidden(keys: &[OrderByExpr], select: &Select, scope: &Columns) -> bool {
    if select.distinct.is_some() || scope.others {
        return false;
    }
    let hidden: HashSet<String> = select.projection.iter().filter_map(|item| hides(item, scope)).collect();
    let is_name = |key: &Expr| matches!(bare(key), Expr::Identifier(_) | Expr::Value(_));
    !hidden.is_empty()
        && keys.iter().filter(|key| !is_name(&key.expr)).any(|key| !mentioned(&key.expr).is_disjoint(&hidden))
}

/// Names the item of `select`, a SELECT DISTINCT, that each of `keys`, of its ORDER BY, is.
///
/// # Errors
/// 42P10 for one that is none and reads what items hide; the planner finds the others.
pub(super) fn name_distinct(keys: &mut [OrderByExpr], select: &mut Select, scope: &Columns) -> Result<()> {
    if select.distinct != Some(Distinct::Distinct) {
        return Ok(());
    }
    let hidden: HashSet<String> = select.projection.iter().filter_map(|item| hides(item, scope)).collect();
    for key in keys {
        if matches!(bare(&key.expr), Expr::Identifier(_) | Expr::Value(_)) {
            continue;
        }
        let mut items = (1..).zip(&mut select.projection);
        let is_key = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                is_same(expr.clone(), key.expr.clone())
            }
            _ => false,
        };
        let alias = match items.find(|(_, item)| is_key(item)) {
            Some((_, SelectItem::ExprWithAlias { alias, .. })) => alias.clone(),
            // The planner finds columns.
            Some((position, item @ SelectItem::UnnamedExpr(_))) if name_of(&key.expr).is_none() => {
                let SelectItem::UnnamedExpr(expr) = &*item else { continue };
                let alias = marked(&title(expr), position);
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: alias.clone() };
                alias
            }
            Some(_) => continue,
            None if mentioned(&key.expr).is_disjoint(&hidden) => continue,
            None => {
                let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                return Err(Error::invalid(state::INVALID_REFERENCE, message));
            }
        };
        key.expr = Expr::Identifier(alias);
    }
    Ok(())
}

/// Makes `query` one that orders a derived table; see the module.
///
/// # Errors
/// Internal.
pub(super) fn order_above(query: &mut Query, scope: &Columns) -> Result<()> {
    let (SetExpr::Select(select), Some(order_by)) = (&mut *query.body, &mut query.order_by) else { return Ok(()) };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else { return Ok(()) };
    if select.projection.iter().any(is_star) {
        expand(&mut select.projection, scope)?;
    }
    let mut taken = HashSet::new();
    let mut free = |mut name: String, position: usize| {
        while !taken.insert(name.clone()) {
            name = format!("{name}_{position}");
        }
        name
    };
    let mut names = Vec::with_capacity(select.projection.len());
    for (position, item) in (1..).zip(&mut select.projection) {
        let (expr, name) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), fold(alias)),
            SelectItem::UnnamedExpr(expr) => (expr.clone(), name_of(expr).unwrap_or_else(|| title(expr))),
            other => return Err(Error::unsupported(format_args!("{other} beside ORDER BY of a hidden column"))),
        };
        let name = free(name, position);
        *item = SelectItem::ExprWithAlias { expr, alias: quoted(&name) };
        names.push(name);
    }
    let column = |name: &str| Expr::CompoundIdentifier(vec![quoted(ORDERED), quoted(name)]);
    for (position, key) in (1..).zip(keys) {
        let item = match bare(&key.expr) {
            Expr::Value(value) if matches!(value.value, Value::Number(..)) => continue,
            Expr::Identifier(ident) => names.iter().find(|name| **name == fold(ident)),
            _ => None,
        };
        key.expr = match item {
            Some(name) => column(name),
            None => {
                let name = free(format!("order_by_{position}"), position);
                let expr = std::mem::replace(&mut key.expr, column(&name));
                select.projection.push(SelectItem::ExprWithAlias { expr, alias: quoted(&name) });
                continue;
            }
        };
    }
    let mut ordered = query_of("SELECT 1")?;
    if let SetExpr::Select(outer) = &mut *ordered.body {
        let item = |name: &String| SelectItem::ExprWithAlias { expr: column(name), alias: quoted(name) };
        outer.projection = names.iter().map(item).collect();
        let mut subquery = query_of("SELECT 1")?;
        std::mem::swap(&mut subquery.body, &mut query.body);
        let alias = TableAlias { explicit: true, name: quoted(ORDERED), columns: Vec::new(), at: None };
        let relation = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
        outer.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    }
    query.body = ordered.body;
    Ok(())
}
