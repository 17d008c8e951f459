//! Columns that other parts of a statement call by a name which is not written: `SELECT count FROM (SELECT count(*)
//! FROM t) s`.
//!
//! Select items without alias have PostgreSQL's names (`super::title`) in queries of FROM and WITH, and where ORDER
//! BY or GROUP BY of their own query means them. (Items of one name are told apart by `duplicate_names`.) The columns
//! of a `*` are not known here, and DataFusion wants all names to differ: where that fails ([`BesideStar`]) an item
//! beside one is named only if the statement mentions the name.
//!
//! A column of an outer query has its name in PostgreSQL, in DataFusion a text: an item that is one gets its name too.
//! (Which one it is shows in its table's name, or if there is no FROM; a name alone in a query of FROM within another
//! query may be one.)
//!
//! A cast of a column has its name, in DataFusion too. Where ORDER BY reads the column in an expression, the cast is
//! called otherwise.
//!
//! It does not own: names of a result's columns (`names`).

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    TableWithJoins, Visit, VisitorMut,
};

use super::output_names::item_name;
use crate::analyze::ast::expr::{bare, first_select};
use crate::names::MARK;
use crate::sql::fold;
use crate::walk::{walk_expressions, walk_mut};

/// Which items beside a `*` are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BesideStar {
    /// All of them.
    All,
    /// Those whose names the statement mentions.
    Mentioned,
}

/// Names the select items of `statement` that its other parts can mean. Whether one of them stands beside a `*` and is
/// not mentioned.
pub(crate) fn name_columns(statement: &mut Statement, beside: BesideStar) -> bool {
    let mut named = Named { mentioned: mentioned(statement), beside, guessed: false, queries: 0 };
    let ControlFlow::Continue(()) = walk_mut(statement, &mut named);
    named.guessed
}

struct Named {
    mentioned: HashSet<String>,
    beside: BesideStar,
    guessed: bool,
    /// How many outer queries there are.
    queries: usize,
}

impl Named {
    fn name_all(&mut self, query: &mut Query) {
        let Some(select) = first_select(&mut query.body) else { return };
        let is_one = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
        let all = self.beside == BesideStar::All || select.projection.iter().all(is_one);
        let guesses = all && !select.projection.iter().all(is_one);
        for name in name_items(select, &|name| all || self.mentioned.contains(name)) {
            self.guessed |= guesses && !self.mentioned.contains(&name);
        }
        hide_from_having(select);
    }
}

impl VisitorMut for Named {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.name_all(&mut table.query);
        }
        let keys = keys(query);
        if !keys.is_empty()
            && let Some(select) = first_select(&mut query.body)
        {
            name_items(select, &|name| keys.contains(name));
        }
        let read = read_by_keys(query);
        if !read.is_empty()
            && let Some(select) = first_select(&mut query.body)
        {
            rename_casts(select, &read);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if self.queries > 1 {
            name_outer(select, false);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Derived { lateral, subquery, .. } = table {
            self.name_all(subquery);
            if (*lateral || self.queries > 1)
                && subquery.order_by.is_none()
                && let Some(select) = first_select(&mut subquery.body)
                && matches!(select.distinct, None | Some(Distinct::All))
            {
                name_outer(select, true);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Names the items of `select` that are columns of outer queries; `all` if every name alone may be one.
fn name_outer(select: &mut Select, all: bool) {
    let tables = tables_of(&select.from);
    // DataFusion reads aliases there.
    let in_having = select.having.as_ref().map(mentioned).unwrap_or_default();
    let is_around = |expr: &Expr| match bare(expr) {
        Expr::Identifier(_) => all || select.from.is_empty(),
        Expr::CompoundIdentifier(idents) => match idents.as_slice() {
            [.., table, _] => tables.as_ref().is_some_and(|tables| !tables.contains(&fold(table))),
            _ => false,
        },
        _ => false,
    };
    let names: Vec<Option<String>> = select.projection.iter().map(own_name_of_item).collect();
    let items = select.projection.iter().zip(&names).enumerate().filter_map(|(at, (item, name))| {
        let SelectItem::UnnamedExpr(expr) = item else { return None };
        let name = name.as_ref().filter(|name| is_around(expr) && !in_having.contains(*name))?;
        let is_other = |(other, its): (usize, &Option<String>)| other == at || its.as_ref() != Some(name);
        names.iter().enumerate().all(is_other).then(|| (at, expr.clone(), name.clone()))
    });
    let items: Vec<_> = items.collect();
    for (at, expr, name) in items {
        if let Some(item) = select.projection.get_mut(at) {
            *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
        }
    }
}

/// What the tables of `from` are called; `None` if that is not written.
fn tables_of(from: &[TableWithJoins]) -> Option<HashSet<String>> {
    let mut tables = HashSet::new();
    let mut open: Vec<&TableFactor> = from.iter().flat_map(factors).collect();
    while let Some(factor) = open.pop() {
        let alias = match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. } => &alias.name,
            TableFactor::Table { name, alias: None, args: None, .. } => name.0.last()?.as_ident()?,
            TableFactor::Derived { alias: None, .. } => continue,
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                open.extend(factors(table_with_joins));
                continue;
            }
            _ => return None,
        };
        tables.insert(fold(alias));
    }
    Some(tables)
}

fn factors(joined: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&joined.relation).chain(joined.joins.iter().map(|join| &join.relation))
}

/// Names the items of `select` whose names are `wanted`, and gives these names.
fn name_items(select: &mut Select, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut given = Vec::new();
    // DataFusion reads aliases in HAVING, where SQL has the columns of FROM alone.
    let in_having = select.having.as_ref().map(mentioned).unwrap_or_default();
    for item in &mut select.projection {
        let Some(name) = item_name(item).filter(|name| wanted(name) && !in_having.contains(name)) else { continue };
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name.clone()) };
        given.push(name);
    }
    given
}

/// Gives internal names to the items of `select` whose names HAVING reads: outer queries mean them by these.
fn hide_from_having(select: &mut Select) {
    if select.having.is_none() {
        return;
    }
    for (position, item) in (1..).zip(&mut select.projection) {
        if let Some(name) = item_name(item)
            && let SelectItem::UnnamedExpr(expr) = item
        {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: marked(&name, position) };
        }
    }
}

/// Gives casts of the columns `read` names of their own.
fn rename_casts(select: &mut Select, read: &HashSet<String>) {
    for (position, item) in (1..).zip(&mut select.projection) {
        let SelectItem::UnnamedExpr(expr @ Expr::Cast { .. }) = item else { continue };
        if let Some(name) = title_of_cast(expr).filter(|name| read.contains(name)) {
            let alias = Ident::with_quote('"', format!("{name}_{position}"));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// The name of the column that `expr` casts.
fn title_of_cast(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Cast { expr, .. } => name_of(expr).or_else(|| title_of_cast(expr)),
        Expr::Nested(inner) => title_of_cast(inner),
        _ => None,
    }
}

/// The columns that ORDER BY of `query` reads in expressions.
fn read_by_keys(query: &Query) -> HashSet<String> {
    let Some(OrderByKind::Expressions(by)) = query.order_by.as_ref().map(|order_by| &order_by.kind) else {
        return HashSet::new();
    };
    let expressions = by.iter().map(|key| &key.expr).filter(|key| !matches!(key, Expr::Identifier(_)));
    expressions.flat_map(mentioned).collect()
}

/// `name` as the internal name of the item at `position`, counted from 1.
pub(super) fn marked(name: &str, position: usize) -> Ident {
    Ident::with_quote('"', format!("{name}{}", MARK.to_string().repeat(position)))
}

/// The name that an item has of its own.
pub(crate) fn own_name_of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        SelectItem::UnnamedExpr(expr) => name_of(expr),
        _ => None,
    }
}

/// The name of a column.
pub(crate) fn name_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => name_of(inner),
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(fold),
        _ => None,
    }
}

/// What ORDER BY and GROUP BY of `query` may mean by a name alone.
fn keys(query: &Query) -> HashSet<String> {
    let mut keys: Vec<&Expr> = Vec::new();
    if let Some(OrderByKind::Expressions(by)) = query.order_by.as_ref().map(|order_by| &order_by.kind) {
        keys.extend(by.iter().map(|key| &key.expr));
    }
    if let SetExpr::Select(select) = &*query.body
        && let GroupByExpr::Expressions(by, _) = &select.group_by
    {
        keys.extend(by);
    }
    let names = keys.into_iter().filter_map(|key| match key {
        Expr::Identifier(ident) => Some(fold(ident)),
        _ => None,
    });
    names.collect()
}

/// All names of columns in `tree`.
pub(crate) fn mentioned(tree: &impl Visit) -> HashSet<String> {
    let mut found = HashSet::new();
    let _ = walk_expressions(tree, |expr| {
        found.extend(name_of(expr));
        ControlFlow::<()>::Continue(())
    });
    found
}
