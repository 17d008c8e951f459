//! Members of GROUP BY: positions within ROLLUP, CUBE and GROUPING SETS, which DataFusion takes for numbers; members
//! that repeat, which it refuses; numbers with a sign, which it takes for any number of that value; names of items that
//! are numbers, which it takes for positions.

use datafusion::sql::sqlparser::ast::{DataType, Expr, GroupByExpr, Select, SelectItem, UnaryOperator};

use crate::analyze::ast::expr::{bare, cast};
use crate::analyze::ast::positions::position;
use crate::analyze::names::is_same;
use crate::sql::fold;

/// A CUBE of more has more grouping sets than anybody writes.
const CUBE_MEMBERS_MAX: usize = 12;

/// Puts the select items in the place of their positions within grouping sets of `select`, and writes sets with members
/// that repeat without these. A number with a sign in GROUP BY, which is no position, becomes a cast.
pub(in crate::analyze) fn normalize_members(select: &mut Select) {
    let Select { projection, group_by: GroupByExpr::Expressions(by, _), .. } = select else { return };
    for set in by {
        number_as_cast(set, projection);
        let (Expr::Rollup(members) | Expr::Cube(members) | Expr::GroupingSets(members)) = set else {
            sign_as_cast(set, projection);
            continue;
        };
        for member in members.iter_mut().flatten() {
            let item = position(bare(member)).and_then(|at| projection.get(at.checked_sub(1)?));
            if let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item {
                *member = expr.clone();
            }
            sign_as_cast(member, projection);
            number_as_cast(member, projection);
        }
        without_repetitions(set);
    }
}

/// Makes a cast of `group` if it is a number with a sign, and of the select `items` that are the same: DataFusion takes
/// each number of this value in the query for the group, as in `GROUP BY ROLLUP (a, + 0) HAVING sum(b) = 0`.
fn sign_as_cast(group: &mut Expr, items: &mut [SelectItem]) {
    let Some(number) = position(without_signs(group)).filter(|_| has_plus(group)) else {
        return;
    };
    let given = group.clone();
    *group = whole_number(given.clone(), number);
    for item in items {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
            && is_same(expr.clone(), given.clone())
        {
            *expr = group.clone();
        }
    }
}

/// Makes a cast of the number that the select item is which `group` names.
fn number_as_cast(group: &Expr, items: &mut [SelectItem]) {
    let Expr::Identifier(name) = bare(group) else { return };
    for item in items {
        if let SelectItem::ExprWithAlias { expr, alias } = item
            && fold(alias) == fold(name)
            && let Some(number) = position(bare(expr))
        {
            *expr = whole_number(expr.clone(), number);
        }
    }
}

/// `expr`, which is `number`, with its type, as a cast.
fn whole_number(expr: Expr, number: usize) -> Expr {
    let is_integer = i32::try_from(number).is_ok();
    cast(expr, if is_integer { DataType::Integer(None) } else { DataType::BigInt(None) })
}

fn has_plus(expr: &Expr) -> bool {
    matches!(bare(expr), Expr::UnaryOp { op: UnaryOperator::Plus, .. })
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
