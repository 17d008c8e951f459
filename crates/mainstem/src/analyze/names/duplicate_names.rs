//! Internal names of select items: DataFusion wants each expression of a node to have a name of its own, SQL does not.
//!
//! Comes in: a statement's tree, and how much of it is named ([`Naming`]). Goes out: the same tree, in which no two
//! items have one name. A column or an alias that repeats has the same name with [`MARK`]s, which nobody can write or
//! see: ORDER BY, HAVING and outer queries cannot mean it by accident, and `OutputNames` takes the marks off.
//!
//! Which texts DataFusion takes for one name is its own matter: a cast has the name of what is cast, an operator may be
//! a function, `+ a` is `a`. So computed items keep DataFusion's names until it refuses them. Then the statement is
//! planned again with a marked name for each of them, and at last with labels in calls and groups
//! ([`super::cast_labels`]). A statement whose names differ pays nothing.
//!
//! In queries of FROM and WITH all items of one name are marked unless they are the same, for their name is ambiguous
//! outside. Of those that are the same the first keeps it, for ORDER BY. Items beside a `*` are named where its columns
//! are known (`resolution`). In passing, a function in FROM names its column: by its alias, or by its own name, as in
//! PostgreSQL.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, VisitorMut,
};
use mainstem_storage::{Error, Result};

use super::cast_labels::label_casts;
use super::column_names::{marked, own_name_of_item};
use super::output_names::title;
use crate::analyze::ast::expr::{alias, bare, first_select, is_star};
use crate::names::MARK;
use crate::sql::{fold, state};
use crate::walk::{walk_expressions, walk_mut};

/// How much of a statement has internal names. Each step has those of the steps before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Naming {
    /// Columns and aliases that repeat.
    Repeated,
    /// All select items that are computed.
    Items,
    /// Casts and subqueries within calls and groups.
    Expressions,
}

/// Gives internal names to select items of `statement`, and names to columns of functions in FROM.
///
/// # Errors
/// 42702 for an ORDER BY that may mean two items.
pub(crate) fn name_duplicates(statement: &mut Statement, naming: Naming) -> Result<()> {
    walk_mut(statement, &mut Duplicates { naming }).break_value().map_or(Ok(()), Err)
}

/// Whether a `*` of `items` has others beside it, which may have the name of one of its columns.
pub(crate) fn beside_star(items: &[SelectItem]) -> bool {
    items.len() > 1 && items.iter().any(is_star)
}

struct Duplicates {
    naming: Naming,
}

impl VisitorMut for Duplicates {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut with = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        let named = with.try_for_each(|cte| name_ambiguous(&mut cte.query));
        if self.naming >= Naming::Items {
            hide_dotted(&mut query.body, &mut query.order_by);
        }
        match named.and_then(|()| check_order(query)) {
            Err(error) => ControlFlow::Break(error),
            Ok(()) => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if self.naming >= Naming::Expressions {
            label_selects(&mut query.body, &mut query.order_by);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if !beside_star(&select.projection) {
            name_items(&mut select.projection, &HashSet::new(), self.naming);
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

/// Gives internal names to the items of `query`, one of FROM or WITH, that have one name: outside it means none of
/// them.
///
/// # Errors
/// As [`check_order`], which knows the items by their names.
fn name_ambiguous(query: &mut Query) -> Result<()> {
    check_order(query)?;
    let Some(select) = first_select(&mut query.body) else { return Ok(()) };
    if beside_star(&select.projection) {
        return Ok(());
    }
    let names: Vec<Option<String>> = select.projection.iter().map(own_name_of_item).collect();
    let mut seen = HashSet::new();
    if names.iter().flatten().all(|name| seen.insert(name)) {
        return Ok(());
    }
    let items = select.projection.clone();
    for (at, item) in select.projection.iter_mut().enumerate() {
        let Some(Some(name)) = names.get(at) else { continue };
        let others = items.iter().zip(&names).enumerate().filter(|(_, (_, its))| its.as_ref() == Some(name));
        let mut others = others.filter(|(other, _)| *other != at);
        let is_ambiguous = others.any(|(other, (its, _))| other < at || !is_same_item(its, item));
        if is_ambiguous && let SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: marked(name, at + 1) };
        }
    }
    Ok(())
}

/// Gives internal names to items of `body` whose aliases may be what DataFusion calls a column with its table, and to
/// what means them in `order_by`.
fn hide_dotted(body: &mut SetExpr, order_by: &mut Option<OrderBy>) {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { left, right, .. } => {
            hide_dotted(left, order_by);
            return hide_dotted(right, &mut None);
        }
        _ => return,
    };
    for (position, item) in (1..).zip(&mut select.projection) {
        let SelectItem::ExprWithAlias { alias, .. } = item else { continue };
        let name = fold(alias);
        if !name.contains('.') || name.ends_with(MARK) {
            continue;
        }
        *alias = marked(&name, position);
        let Some(OrderByKind::Expressions(keys)) = order_by.as_mut().map(|order_by| &mut order_by.kind) else {
            continue;
        };
        for key in keys {
            if let Expr::Identifier(ident) = &mut key.expr
                && fold(ident) == name
            {
                *ident = alias.clone();
            }
        }
    }
}

/// Labels the casts of each SELECT of `body`.
fn label_selects(body: &mut SetExpr, order_by: &mut Option<OrderBy>) {
    match body {
        SetExpr::Select(select) => label_casts(select, order_by),
        SetExpr::SetOperation { left, right, .. } => {
            label_selects(left, &mut None);
            label_selects(right, &mut None);
        }
        _ => {}
    }
}

/// Gives an internal name to each of `items` that repeats the name of an earlier one, or of a column that a `*` stands
/// for: `starred`. With [`Naming::Items`] so has each that is computed.
pub(super) fn name_items(items: &mut [SelectItem], starred: &HashSet<String>, naming: Naming) {
    let mut given = starred.clone();
    for (position, item) in (1..).zip(items) {
        let name = match (own_name_of_item(item), &*item) {
            (Some(name), _) if given.insert(name.clone()) => continue,
            (Some(name), _) => name,
            (None, SelectItem::UnnamedExpr(expr)) if naming >= Naming::Items || holds_query(expr) => title(expr),
            (None, _) => continue,
        };
        if let SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: marked(&name, position) };
        }
    }
}

/// Gives a name that can be seen, `a_2`, to each item of a select list with a `*`, or of RETURNING, that repeats the
/// name of an earlier one or of `starred`.
pub(crate) fn name_repeated(items: &mut [SelectItem], starred: &HashSet<String>) {
    let names: HashSet<String> =
        items.iter().filter(|item| alias(item).is_none()).filter_map(own_name_of_item).collect();
    let mut taken: HashSet<String> = items.iter().filter_map(alias).collect();
    taken.extend(starred.iter().cloned());
    let mut given = starred.clone();
    for (position, item) in (1..).zip(items) {
        let Some(name) = own_name_of_item(item) else { continue };
        if given.insert(name.clone()) {
            continue;
        }
        let mut other = format!("{name}_{position}");
        while names.contains(&other) || !taken.insert(other.clone()) {
            other.push('_');
        }
        given.insert(other.clone());
        if let SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', other) };
        }
    }
}

/// Whether a query is a part of `expr`: DataFusion calls all of EXISTS, IN, ANY and ALL the same, the latter otherwise
/// when it has rewritten them, and a scalar subquery like its column.
fn holds_query(expr: &Expr) -> bool {
    let is_query = |expr: &Expr| matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
    walk_expressions(expr, |expr| if is_query(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        .is_break()
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
        let mut items = select.projection.iter().filter(|item| own_name_of_item(item).as_ref() == Some(&name));
        let Some(first) = items.next() else { continue };
        if items.any(|item| !is_same_item(first, item)) {
            return Err(Error::invalid(state::AMBIGUOUS_COLUMN, format!("ORDER BY \"{name}\" is ambiguous")));
        }
    }
    Ok(())
}

/// Whether two select items are one expression.
fn is_same_item(left: &SelectItem, right: &SelectItem) -> bool {
    let expr = |item: &'_ SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
        _ => None,
    };
    expr(left).zip(expr(right)).is_some_and(|(left, right)| is_same(left, right))
}

/// Whether two expressions are one: whatever the parentheses and quotes in them, and the tables in front of columns
/// where only one says them.
pub(crate) fn is_same(left: Expr, right: Expr) -> bool {
    let (left, right) = (Text::of(left), Text::of(right));
    left.text == right.text
        && left.tables.iter().zip(&right.tables).all(|(left, right)| left.is_none() || right.is_none() || left == right)
}

/// An expression without the tables of its columns, and these, in the order of the columns.
#[derive(Default)]
struct Text {
    text: String,
    tables: Vec<Option<String>>,
}

impl Text {
    fn of(mut expr: Expr) -> Self {
        let mut text = Self::default();
        let ControlFlow::Continue(()) = walk_mut(&mut expr, &mut text);
        text.text = expr.to_string();
        text
    }
}

impl VisitorMut for Text {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Nested(inner) => *expr = (**inner).clone(),
            Expr::Identifier(ident) => {
                self.tables.push(None);
                *ident = Ident::with_quote('"', fold(ident));
            }
            Expr::CompoundIdentifier(idents) => {
                let column = idents.pop().map(|ident| fold(&ident)).unwrap_or_default();
                self.tables.push(idents.last().map(fold));
                *expr = Expr::Identifier(Ident::with_quote('"', column));
            }
            Expr::Function(function) => {
                for part in &mut function.name.0 {
                    if let ObjectNamePart::Identifier(name) = part {
                        *name = Ident::with_quote('"', fold(name));
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
