//! Sort keys that are there twice, and keys of DISTINCT ON: `SELECT DISTINCT ON (a, b) ... ORDER BY b, a, b, c`.
//!
//! SQL wants the keys of DISTINCT ON to come first in ORDER BY, in any order, and each as often as somebody likes;
//! those that ORDER BY lacks follow. DataFusion wants them in the order in which they are written, once each, and takes
//! a number in DISTINCT ON for a value. An aggregate of DISTINCT values wants as many sort keys as arguments.
//!
//! Comes in: a query, or an expression. Goes out: the same, whose keys are there once each, those of DISTINCT ON in the
//! order of ORDER BY. Where they do not come first the planner tells of it (42P10). It does not own: names of columns
//! (`names`), keys that turn out to be the same later (`optimize::upstream`).

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr, OrderByKind, OrderByOptions, Query,
    Select, SelectItem, SetExpr,
};

use super::expr::{alias, bare, is_star};
use super::positions::position;
use crate::analyze::names::resolution::merges_itself;
use crate::sql::fold;

/// Puts the keys of DISTINCT ON of `query` in the order of ORDER BY; see the module. Other queries stay.
pub(crate) fn match_distinct_on(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let Select { distinct: Some(Distinct::On(keys)), projection, from, .. } = &mut **select else { return };
    let mut order = match query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
        Some(OrderByKind::Expressions(order)) => Some(order),
        Some(OrderByKind::All(_)) => return,
        None => None,
    };
    let in_order = order.iter().flat_map(|order| order.iter().map(|key| &key.expr));
    name_items(projection, &keys.iter().chain(in_order).cloned().collect::<Vec<_>>());
    let items = Items { items: projection, merges: from.iter().any(merges_itself) };
    let mut distinct: Vec<SortKey> = keys.iter().map(|key| items.sort_key(key)).collect();
    once(&mut distinct, |key, other| items.are_same(key, other));
    if let Some(order) = &mut order {
        let mut sorted: Vec<(SortKey, OrderByExpr)> =
            order.iter().map(|by| (items.sort_key(&by.expr), by.clone())).collect();
        once(&mut sorted, |(key, _), (other, _)| items.are_same(key, other));
        let is_distinct = |key: &SortKey| distinct.iter().any(|distinct| items.are_same(distinct, key));
        let leading = sorted.iter().take_while(|(key, _)| is_distinct(key)).count();
        if leading == sorted.len() || leading >= distinct.len() {
            let mut first: Vec<SortKey> = sorted.iter().take(leading).map(|(key, _)| key.clone()).collect();
            distinct.retain(|key| !first.iter().any(|known| items.are_same(known, key)));
            let options = OrderByOptions { asc: None, nulls_first: None };
            let added = |key: &SortKey| OrderByExpr { expr: key.written.clone(), options, with_fill: None };
            sorted.extend(distinct.iter().map(|key| (key.clone(), added(key))));
            first.append(&mut distinct);
            distinct = first;
        }
        **order = sorted.into_iter().map(|(key, by)| OrderByExpr { expr: key.written, ..by }).collect();
    }
    *keys = distinct.into_iter().map(|key| key.written).collect();
}

/// Names the select `items` that one of `keys` counts or repeats: the planner finds `count(*)` again under a name of
/// its own only, and takes a number for a position. No column is called so; a result's columns have other names
/// (`names::OutputNames`).
fn name_items(items: &mut [SelectItem], keys: &[Expr]) {
    let mut has_stars = false;
    for (at, item) in (1..).zip(items) {
        has_stars |= is_star(item);
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let is_name = matches!(bare(expr), Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        let is_meant = |key: &Expr| bare(key) == bare(expr) || !has_stars && position(bare(key)) == Some(at);
        if !is_name && keys.iter().any(is_meant) {
            let alias = Ident::with_quote('"', format!("?column?_{at}"));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Leaves the sort keys of `expr`, if it calls an aggregate, once each.
pub(crate) fn once_in_aggregate(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let FunctionArguments::List(list) = &mut function.args else { return };
    for clause in &mut list.clauses {
        if let FunctionArgumentClause::OrderBy(keys) = clause {
            once(keys, |key, other| bare(&key.expr) == bare(&other.expr));
        }
    }
}

/// Leaves the first of those of `all` that are the same.
fn once<T>(all: &mut Vec<T>, are_same: impl Fn(&T, &T) -> bool) {
    let mut kept: Vec<T> = Vec::with_capacity(all.len());
    for one in all.drain(..) {
        if !kept.iter().any(|known| are_same(known, &one)) {
            kept.push(one);
        }
    }
    *all = kept;
}

/// A key of DISTINCT ON or ORDER BY.
#[derive(Clone)]
struct SortKey {
    /// How the planner reads it: a select item by its alias.
    written: Expr,
    /// What it is, over the columns of FROM.
    meant: Expr,
}

/// What names and numbers can mean.
struct Items<'s> {
    items: &'s [SelectItem],
    /// Whether a column of FROM is one of two tables: a name alone is not the column of one then.
    merges: bool,
}

impl Items<'_> {
    fn sort_key(&self, key: &Expr) -> SortKey {
        let key = bare(key);
        let item = if let Some(at) = position(key) {
            let before = self.items.get(..at).unwrap_or_default();
            before.last().filter(|_| !before.iter().any(is_star))
        } else if let Expr::Identifier(name) = key {
            let is_called = |item: &&SelectItem| alias(item).is_some_and(|alias| alias == fold(name));
            self.items.iter().find(is_called)
        } else {
            None
        };
        match item {
            Some(SelectItem::ExprWithAlias { expr, alias }) => {
                SortKey { written: Expr::Identifier(alias.clone()), meant: bare(expr).clone() }
            }
            Some(SelectItem::UnnamedExpr(expr)) => SortKey { written: bare(expr).clone(), meant: bare(expr).clone() },
            _ => SortKey { written: key.clone(), meant: key.clone() },
        }
    }

    fn are_same(&self, key: &SortKey, other: &SortKey) -> bool {
        let folded = |names: &[Ident]| names.iter().map(fold).collect::<Vec<_>>();
        match (&key.meant, &other.meant) {
            (Expr::Identifier(key), Expr::Identifier(other)) => fold(key) == fold(other),
            (Expr::CompoundIdentifier(key), Expr::CompoundIdentifier(other)) => folded(key) == folded(other),
            (Expr::Identifier(alone), Expr::CompoundIdentifier(of_table))
            | (Expr::CompoundIdentifier(of_table), Expr::Identifier(alone)) => {
                !self.merges && of_table.last().is_some_and(|column| fold(column) == fold(alone))
            }
            (key, other) => key == other,
        }
    }
}
