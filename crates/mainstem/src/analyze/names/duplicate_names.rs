//! Select items with the same text: DataFusion wants each item of a SELECT to have a name of its own, SQL does not.
//!
//! Comes in: a statement's tree. Goes out: the same tree, in which an item without alias that occurs a second time has
//! one, and an alias that occurs a second time is another. Items beside a `*` are distinguished where its columns are
//! known (`resolution`). Calls and groups that differ in casts alone are distinguished by [`super::cast_labels`]. In
//! queries of FROM and WITH items of one name that are not the same all have names that nobody can write ([`MARK`]),
//! for their name is ambiguous outside. In passing, a function in FROM names its column: by its alias, or by its own
//! name, as in PostgreSQL.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, VisitorMut,
};
use mainstem_storage::{Error, Result};

use super::cast_labels::label_casts;
use super::column_names::mentioned;
use super::output_names::title;
use super::same_name::plain;
use crate::analyze::ast::expr::{alias, bare, first_select, is_star};
use crate::names::MARK;
use crate::sql::{fold, state};
use crate::walk::{walk_expressions, walk_mut};

/// Gives a name to columns of functions in FROM, and to each select item of `statement` that repeats the name of an
/// earlier one: `a_2` for a second `a`, `?column?_3` for a third item that has no name.
///
/// # Errors
/// 42702 for an ORDER BY that may mean two items.
pub(crate) fn name_duplicates(statement: &mut Statement) -> Result<()> {
    walk_mut(statement, &mut Duplicates).break_value().map_or(Ok(()), Err)
}

/// Whether a `*` of `items` has others beside it, which may have the name of one of its columns.
pub(crate) fn beside_star(items: &[SelectItem]) -> bool {
    items.len() > 1 && items.iter().any(is_star)
}

struct Duplicates;

impl VisitorMut for Duplicates {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut with = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        let named = with.try_for_each(|cte| name_ambiguous(&mut cte.query));
        if let Err(error) = named.and_then(|()| check_order(query)) {
            return ControlFlow::Break(error);
        }
        if let (SetExpr::Select(select), Some(order_by)) = (&mut *query.body, &query.order_by)
            && !beside_star(&select.projection)
        {
            name_repeated_beside(&mut select.projection, &HashSet::new(), &mentioned(order_by));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        label_casts(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if !beside_star(&select.projection) {
            let read = mentioned(&select.having).into_iter().chain(mentioned(&select.qualify)).collect();
            name_repeated_beside(&mut select.projection, &HashSet::new(), &read);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::Derived { subquery, .. } = table
            && let Err(error) = name_ambiguous(subquery)
        {
            return ControlFlow::Break(error);
        }
        if let TableFactor::Table { name, alias, args: Some(_), .. } = table
            && let [ObjectNamePart::Identifier(function)] = name.0.as_slice()
        {
            let quoted = |name: &Ident| Ident::with_quote('"', fold(name));
            let alias = alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: quoted(function),
                columns: Vec::new(),
                at: None,
            });
            if alias.columns.is_empty() {
                alias.columns.push(TableAliasColumnDef { name: quoted(&alias.name), data_type: None });
            }
        }
        ControlFlow::Continue(())
    }
}

/// Gives names with a [`MARK`] to the items of `query`, one of FROM or WITH, that have one name and are not the same:
/// outside, the name means neither.
///
/// # Errors
/// As [`check_order`], which knows the items by their names.
fn name_ambiguous(query: &mut Query) -> Result<()> {
    check_order(query)?;
    let Some(select) = first_select(&mut query.body) else { return Ok(()) };
    let named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((fold(alias), plain(bare(expr)))),
        SelectItem::UnnamedExpr(expr) => Some((column_name(expr)?, plain(bare(expr)))),
        _ => None,
    };
    if beside_star(&select.projection) {
        return Ok(());
    }
    let items: Vec<Option<(String, String)>> = select.projection.iter().map(named).collect();
    for (position, item) in select.projection.iter_mut().enumerate() {
        let Some(Some((name, text))) = items.get(position) else { continue };
        if items.iter().flatten().any(|(other, its)| other == name && its != text)
            && let SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) = item
        {
            let alias = Ident::with_quote('"', format!("{name}{}", MARK.to_string().repeat(position + 1)));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    Ok(())
}

/// Gives a name to each item of a select list, or of RETURNING, that repeats an earlier one, or a column that a `*`
/// stands for: `starred`.
pub(crate) fn name_repeated(items: &mut [SelectItem], starred: &HashSet<String>) {
    name_repeated_beside(items, starred, &HashSet::new());
}

/// The same, where no name that is given is one of `read`: that would mean another column then.
fn name_repeated_beside(items: &mut [SelectItem], starred: &HashSet<String>, read: &HashSet<String>) {
    let mut seen: HashSet<String> = items.iter().filter_map(alias).collect();
    let column = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => column_name(expr),
        _ => None,
    };
    let names: HashSet<String> = items.iter().filter_map(column).collect();
    seen.extend(starred.iter().cloned());
    let mut given = starred.clone();
    for (position, item) in (1..).zip(items) {
        let (expr, mut name) = match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = fold(alias);
                if given.insert(name.clone()) {
                    continue;
                }
                (expr, format!("{name}_{position}"))
            }
            SelectItem::UnnamedExpr(expr) => {
                let is_taken = column_name(expr).is_some_and(|name| !given.insert(name));
                if seen.insert(plain(bare(expr))) && !is_taken && !holds_query(expr) {
                    continue;
                }
                let name = match bare(expr) {
                    Expr::Identifier(ident) => format!("{}_{position}", fold(ident)),
                    Expr::CompoundIdentifier(idents) => {
                        format!("{}_{position}", idents.last().map(fold).unwrap_or_default())
                    }
                    expr => format!("{}_{position}", title(expr)),
                };
                (expr, name)
            }
            _ => continue,
        };
        while names.contains(&name) || read.contains(&name) || !seen.insert(name.clone()) {
            name.push('_');
        }
        given.insert(name.clone());
        let expr = expr.clone();
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
    }
}

/// Whether a query is a part of `expr`: DataFusion calls all of EXISTS, IN, ANY and ALL the same, the latter otherwise
/// when it has rewritten them, and a scalar subquery like its column.
fn holds_query(expr: &Expr) -> bool {
    let is_query = |expr: &Expr| matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
    walk_expressions(expr, |expr| if is_query(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        .is_break()
}

/// The name of `expr`, if it is a column.
fn column_name(expr: &Expr) -> Option<String> {
    match bare(expr) {
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(fold),
        _ => None,
    }
}

/// Refuses `ORDER BY b` beside two select items that are called so and are not the same.
///
/// # Errors
/// 42702.
fn check_order(query: &Query) -> Result<()> {
    let SetExpr::Select(select) = &*query.body else { return Ok(()) };
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order_by| &order_by.kind) else {
        return Ok(());
    };
    for key in keys {
        let Expr::Identifier(name) = bare(&key.expr) else { continue };
        let name = fold(name);
        let called = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => (fold(alias) == name).then_some(expr),
            SelectItem::UnnamedExpr(expr) => (column_name(expr)? == name).then_some(expr),
            _ => None,
        });
        let mut items = called.map(plain);
        let first = items.next();
        if items.any(|item| Some(item) != first) {
            return Err(Error::invalid(state::AMBIGUOUS_COLUMN, format!("ORDER BY \"{name}\" is ambiguous")));
        }
    }
    Ok(())
}
