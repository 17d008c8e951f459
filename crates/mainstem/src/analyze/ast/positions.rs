//! ORDER BY a position: DataFusion takes it for the column of that text.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Value};

use super::expr::bare;
use crate::sql::fold;

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

fn select_of(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

/// The position that `expr` is, counted from 1, if it is a number.
pub(in crate::analyze) fn position(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
