//! ORDER BY a position, and positions within ROLLUP, CUBE and GROUPING SETS: DataFusion takes those for numbers.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, UnaryOperator, Value,
};

use super::expr::{bare, cast};
use crate::analyze::names::is_same;
use crate::sql::fold;

/// A CUBE of more has more grouping sets than anybody writes.
const CUBE_MEMBERS_MAX: usize = 12;

/// Names the select items of `query` that ORDER BY means by their positions, if they are more than columns. Behind a
/// `*` positions are not known, so that all of those items are named.
pub(crate) fn name_ordered(query: &mut Query) {
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order_by| &order_by.kind) else { return };
    let positions: HashSet<usize> = keys.iter().filter_map(|key| position(&key.expr)).collect();
    if positions.is_empty() {
        return;
    }
    let Some(select) = select_of(&mut query.body) else { return };
    let mut taken: HashSet<String> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
            _ => None,
        })
        .collect();
    let mut known = true;
    for (at, item) in (1..).zip(&mut select.projection) {
        let SelectItem::UnnamedExpr(expr) = item else {
            known &= matches!(item, SelectItem::ExprWithAlias { .. });
            continue;
        };
        if known && !positions.contains(&at) || matches!(bare(expr), Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            continue;
        }
        // No column is called so, which HAVING might mean.
        let mut name = "?column?".to_owned();
        if taken.contains(&name) {
            name = format!("?column?_{at}");
        }
        taken.insert(name.clone());
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
    }
}

/// Puts the select items in the place of their positions within grouping sets of `select`, and writes sets with members
/// that repeat without these. A number with a sign in GROUP BY, which is no position, becomes a cast.
pub(crate) fn in_sets(select: &mut Select) {
    let Select { projection, group_by: GroupByExpr::Expressions(by, _), .. } = select else { return };
    for set in by {
        if let Expr::UnaryOp { op: UnaryOperator::Plus, expr } = bare(set)
            && position(without_signs(expr)).is_some()
        {
            *set = cast((**expr).clone(), DataType::Integer(None));
        }
        let (Expr::Rollup(members) | Expr::Cube(members) | Expr::GroupingSets(members)) = set else { continue };
        for member in members.iter_mut().flatten() {
            let item = position(bare(member)).and_then(|at| projection.get(at.checked_sub(1)?));
            if let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item {
                *member = expr.clone();
            }
        }
        without_repetitions(set);
    }
}

/// Writes ROLLUP, CUBE and grouping sets in which a member repeats as grouping sets in which it does not.
fn without_repetitions(set: &mut Expr) {
    let sets: Vec<Vec<Expr>> = match &*set {
        Expr::Rollup(members) if repeats(members.iter().flatten()) => {
            (0..=members.len()).rev().map(|count| members.iter().take(count).flatten().cloned().collect()).collect()
        }
        Expr::Cube(members) if members.len() <= CUBE_MEMBERS_MAX && repeats(members.iter().flatten()) => {
            let is_in = |subset: usize, at: usize| subset >> at & 1 == 1;
            let subset = |subset: usize| {
                let members = members.iter().enumerate().filter(|(at, _)| is_in(subset, *at));
                members.flat_map(|(_, member)| member.clone()).collect()
            };
            (0..1 << members.len()).map(subset).collect()
        }
        Expr::GroupingSets(sets) if sets.iter().any(|set| repeats(set.iter())) => sets.clone(),
        _ => return,
    };
    let distinct = |members: Vec<Expr>| {
        let mut kept: Vec<Expr> = Vec::with_capacity(members.len());
        for member in members {
            if !kept.iter().any(|known| is_same(known.clone(), member.clone())) {
                kept.push(member);
            }
        }
        kept
    };
    *set = Expr::GroupingSets(sets.into_iter().map(distinct).collect());
}

/// Whether two of `members` are one expression.
fn repeats<'e>(members: impl Iterator<Item = &'e Expr>) -> bool {
    let mut seen: Vec<&Expr> = Vec::new();
    for member in members {
        if seen.iter().any(|known| is_same((*known).clone(), member.clone())) {
            return true;
        }
        seen.push(member);
    }
    false
}

/// What stands behind the signs of `expr`.
fn without_signs(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Plus | UnaryOperator::Minus, expr: inner } => {
            without_signs(inner)
        }
        expr => expr,
    }
}

fn select_of(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

/// The position that `expr` is, counted from 1, if it is a number.
pub(super) fn position(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
