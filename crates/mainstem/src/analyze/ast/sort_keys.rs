//! Sort keys that are there twice, and keys of DISTINCT ON: `SELECT DISTINCT ON (a, b) ... ORDER BY b, a, b, c`.
//!
//! SQL wants the keys of DISTINCT ON to come first in ORDER BY, in any order, and each as often as somebody likes;
//! those that ORDER BY lacks follow. DataFusion wants them in the order in which they are written, once each, and reads
//! a name or a number in DISTINCT ON as no select item. An aggregate of DISTINCT values wants as many sort keys as
//! arguments.
//!
//! Comes in: a query, or an expression. Goes out: the same, whose keys are there once each, those of DISTINCT ON in the
//! order of ORDER BY. Where they do not come first the planner tells of it (42P10). It does not own: names of columns
//! (`names`), keys that turn out to be the same later (`optimize::upstream`).

use datafusion::sql::sqlparser::ast::{
    DataType, Distinct, ExactNumberInfo, Expr, FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr,
    OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, Value,
};

use super::expr::{bare, cast};
use super::positions::position;
use crate::analyze::names::resolution::merges_itself;
use crate::sql::fold;

/// Puts the keys of DISTINCT ON of `query` in the order of ORDER BY; see the module. Other queries stay.
pub(crate) fn match_distinct_on(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let Select { distinct: Some(Distinct::On(keys)), projection, from, .. } = &mut **select else { return };
    name_keys(projection, keys);
    let items = Items { items: projection.iter().map(Item::of).collect(), merges: from.iter().any(merges_itself) };
    for key in keys.iter_mut() {
        *key = items.meant(key).clone();
    }
    once(keys, |key, other| items.are_same(key, other));
    let Some(OrderByKind::Expressions(order)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) else {
        return;
    };
    for key in order.iter_mut() {
        // The planner knows names of select items, and no positions of expressions.
        if position(&key.expr).is_some() {
            key.expr = items.meant(&key.expr).clone();
        }
    }
    once(order, |key, other| items.are_same(&key.expr, &other.expr));
    let is_key = |order: &OrderByExpr| keys.iter().any(|key| items.are_same(key, &order.expr));
    let leading = order.iter().take_while(|order| is_key(order)).count();
    if leading < order.len() && leading < keys.len() {
        return;
    }
    let mut in_order: Vec<Expr> = order.iter().take(leading).map(|order| items.meant(&order.expr).clone()).collect();
    keys.retain(|key| !in_order.iter().any(|known| items.are_same(known, key)));
    let options = OrderByOptions { asc: None, nulls_first: None };
    order.extend(keys.iter().map(|key| OrderByExpr { expr: key.clone(), options, with_fill: None }));
    in_order.append(keys);
    *keys = in_order;
}

/// Names the select `items` that are one of `keys`: the planner finds `count(*)` again under a name of its own only. No
/// column is called so; a result's columns have other names (`names::OutputNames`).
fn name_keys(items: &mut [SelectItem], keys: &[Expr]) {
    for (position, item) in (1..).zip(items) {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let is_name = matches!(bare(expr), Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        if !is_name && keys.iter().any(|key| bare(key) == bare(expr)) {
            let alias = Ident::with_quote('"', format!("?column?_{position}"));
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

/// A select item.
struct Item {
    alias: Option<String>,
    /// What it is; none for a `*`. A number is a cast: as a sort key it would be the position of another item.
    expr: Option<Expr>,
}

impl Item {
    fn of(item: &SelectItem) -> Self {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (bare(expr).clone(), Some(fold(alias))),
            SelectItem::UnnamedExpr(expr) => (bare(expr).clone(), None),
            _ => return Self { alias: None, expr: None },
        };
        let expr = match &expr {
            Expr::Value(value) if matches!(value.value, Value::Number(..)) => {
                cast(expr, DataType::Numeric(ExactNumberInfo::None))
            }
            _ => expr,
        };
        Self { alias, expr: Some(expr) }
    }
}

/// What names and numbers can mean.
struct Items {
    items: Vec<Item>,
    /// Whether a column of FROM is one of two tables: a name alone is not the column of one then.
    merges: bool,
}

impl Items {
    /// `key`, or the select item that it names or counts.
    fn meant<'e>(&'e self, key: &'e Expr) -> &'e Expr {
        let key = bare(key);
        let item = if let Some(at) = position(key) {
            let before = self.items.get(..at).unwrap_or_default();
            before.last().filter(|_| before.iter().all(|item| item.expr.is_some()))
        } else if let Expr::Identifier(name) = key {
            let name = fold(name);
            self.items.iter().find(|item| item.alias.as_ref() == Some(&name))
        } else {
            None
        };
        item.and_then(|item| item.expr.as_ref()).unwrap_or(key)
    }

    fn are_same(&self, key: &Expr, other: &Expr) -> bool {
        let folded = |names: &[Ident]| names.iter().map(fold).collect::<Vec<_>>();
        match (self.meant(key), self.meant(other)) {
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
