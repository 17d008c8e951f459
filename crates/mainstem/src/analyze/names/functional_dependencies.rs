//! Columns that GROUP BY of a PRIMARY KEY determines: `SELECT id, n, count(*) FROM a GROUP BY id`.
//!
//! Where GROUP BY has all columns of a table's PRIMARY KEY, the table's other columns that the query reads outside of
//! aggregates are added to it: that makes no other groups, behind outer joins neither, where all of them are NULL
//! together. DataFusion would do so if it were told the keys; it then takes them for keys of joins and aggregates above
//! too, which they are not, and drops a DISTINCT that is needed.
//!
//! DataFusion 55.2 knows groups by their names, and a cast has the name of what is cast: `GROUP BY x::integer, y` over
//! groups by `x` are groups by `x` to it, which determine `y`. So casts in GROUP BY have labels
//! ([`super::cast_labels`]) where another group has their name, or where FROM has more than tables.
//!
//! Left alone: grouping sets, tables inside parentheses of FROM, and tables whose columns an alias renames.

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor, UnaryOperator, Value, Visitor, VisitorMut,
};
use mainstem_postgres::registry;

use super::KnownTable;
use super::cast_labels::label_casts;
use super::column_names::name_of;
use crate::analyze::ast::expr::{bare, is_star};
use crate::sql::{TableName, fold, table_name};
use crate::walk::{walk, walk_mut};

/// See the module.
pub(crate) fn add_dependent_columns(statement: &mut Statement, known: &dyn Fn(&TableName) -> Option<KnownTable>) {
    let mut of_with = OfWith::default();
    let ControlFlow::Continue(()) = walk(statement, &mut of_with);
    if of_with.groups {
        let ControlFlow::Continue(()) = walk_mut(statement, &mut Grouped { known, of_with: of_with.names });
    }
}

/// The names of all queries in WITH, which hide tables.
#[derive(Default)]
struct OfWith {
    names: HashSet<String>,
    /// Whether there is any GROUP BY.
    groups: bool,
}

impl Visitor for OfWith {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.names.extend(tables.map(|table| fold(&table.alias.name)));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        self.groups |= matches!(&select.group_by, GroupByExpr::Expressions(by, _) if !by.is_empty());
        ControlFlow::Continue(())
    }
}

struct Grouped<'a> {
    known: &'a dyn Fn(&TableName) -> Option<KnownTable>,
    of_with: HashSet<String>,
}

impl VisitorMut for Grouped<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let mut keys = Mentioned::default();
        if let Some(OrderByKind::Expressions(by)) = query.order_by.as_ref().map(|order_by| &order_by.kind) {
            let ControlFlow::Continue(()) = walk(by, &mut keys);
        }
        let Query { body, order_by, .. } = query;
        self.selects(body, &keys, order_by);
        ControlFlow::Continue(())
    }
}

/// A table of FROM.
struct Source {
    qualifier: Ident,
    name: String,
    table: KnownTable,
}

impl Grouped<'_> {
    fn selects(&self, body: &mut SetExpr, keys: &Mentioned, order_by: &mut Option<OrderBy>) {
        match body {
            SetExpr::Select(select) => {
                self.complete(select, keys);
                if self.mixes_up(select) {
                    label_casts(select, order_by);
                }
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.selects(left, &Mentioned::default(), &mut None);
                self.selects(right, &Mentioned::default(), &mut None);
            }
            _ => {}
        }
    }

    /// Whether a cast in GROUP BY of `select` may be taken for another group.
    fn mixes_up(&self, select: &Select) -> bool {
        let GroupByExpr::Expressions(by, _) = &select.group_by else { return false };
        let mut groups = Vec::new();
        by.iter().for_each(|expr| members(expr, &mut groups));
        // An alias may be a column of FROM instead: then it is labelled in vain.
        groups.iter_mut().for_each(|group| *group = item_of(group, &select.projection).map_or(*group, bare));
        if groups.iter().all(|group| std::ptr::eq(without_casts(group), *group)) {
            return false;
        }
        let mut names = HashSet::new();
        let repeats = groups.iter().filter_map(|group| name_of(without_casts(group))).any(|name| !names.insert(name));
        let factors = select.from.iter().map(|from| 1 + from.joins.len()).sum::<usize>();
        let is_table = |source: &Source| source.table.types.iter().all(Option::is_some);
        let tables = self.sources(select).iter().filter(|source| is_table(source)).count();
        repeats || tables < factors
    }

    /// Adds what the keys in GROUP BY of `select` determine to it, as far as it is read there or by ORDER BY.
    fn complete(&self, select: &mut Select, keys: &Mentioned) {
        let GroupByExpr::Expressions(by, modifiers) = &select.group_by else { return };
        let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSets(_) | Expr::Rollup(_) | Expr::Cube(_));
        if by.is_empty() || !modifiers.is_empty() || by.iter().any(is_set) {
            return;
        }
        let sources = self.sources(select);
        if sources.iter().all(|source| source.table.key.is_empty()) {
            return;
        }
        let find = |expr: &Expr| column_of(expr, &sources);
        let grouped: HashSet<(usize, String)> =
            by.iter().filter_map(|expr| find(expr).or_else(|| find(item_of(expr, &select.projection)?))).collect();
        let mut read = Mentioned::default();
        let ControlFlow::Continue(()) = walk(&select.projection, &mut read);
        let ControlFlow::Continue(()) = walk(&select.having, &mut read);
        let ControlFlow::Continue(()) = walk(&select.distinct, &mut read);
        let ControlFlow::Continue(()) = walk(&select.named_window, &mut read);
        let mut added = Vec::new();
        for (at, source) in sources.iter().enumerate() {
            let has_key = !source.table.key.is_empty()
                && source.table.key.iter().all(|column| grouped.contains(&(at, column.clone())));
            if !has_key {
                continue;
            }
            let all = select.projection.iter().any(|item| is_star_of(item, &source.name));
            for column in &source.table.columns {
                let is_read = all || [keys, &read].iter().any(|read| read.has(&source.name, column));
                if is_read && !grouped.contains(&(at, column.clone())) {
                    let column = Ident::with_quote('"', column.clone());
                    added.push(Expr::CompoundIdentifier(vec![source.qualifier.clone(), column]));
                }
            }
        }
        if let GroupByExpr::Expressions(by, _) = &mut select.group_by {
            by.extend(added);
        }
    }

    /// The tables of FROM that are known.
    fn sources(&self, select: &Select) -> Vec<Source> {
        let factors = select
            .from
            .iter()
            .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
        factors.filter_map(|factor| self.source(factor)).collect()
    }

    fn source(&self, factor: &TableFactor) -> Option<Source> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
        let full = table_name(name).ok()?;
        if full.schema.is_none() && self.of_with.contains(&full.name) {
            return None;
        }
        let qualifier = match alias {
            Some(alias) if alias.columns.is_empty() => fold(&alias.name),
            Some(_) => return None,
            None => full.name.clone(),
        };
        let table = (self.known)(&full)?;
        Some(Source { qualifier: Ident::with_quote('"', qualifier.clone()), name: qualifier, table })
    }
}

/// The groups that `expr` of GROUP BY stands for.
fn members<'a>(expr: &'a Expr, groups: &mut Vec<&'a Expr>) {
    match bare(expr) {
        Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
            sets.iter().flatten().for_each(|expr| members(expr, groups));
        }
        Expr::Tuple(exprs) => exprs.iter().for_each(|expr| members(expr, groups)),
        expr => groups.push(expr),
    }
}

/// What `expr` casts.
fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => without_casts(inner),
        expr => expr,
    }
}

/// The table of `sources` that `expr` is a column of, by position, and the column.
fn column_of(expr: &Expr, sources: &[Source]) -> Option<(usize, String)> {
    match bare(expr) {
        Expr::Identifier(ident) => {
            let name = fold(ident);
            let mut having = (0..).zip(sources).filter(|(_, source)| source.table.columns.contains(&name));
            let (at, _) = having.next()?;
            having.next().is_none().then_some((at, name))
        }
        Expr::CompoundIdentifier(idents) => {
            let [.., qualifier, column] = idents.as_slice() else { return None };
            let (qualifier, column) = (fold(qualifier), fold(column));
            let at = sources.iter().position(|source| source.name == qualifier)?;
            Some((at, column))
        }
        _ => None,
    }
}

/// What `expr` of GROUP BY means by the position or alias of a select item.
fn item_of<'a>(expr: &Expr, items: &'a [SelectItem]) -> Option<&'a Expr> {
    match bare(expr) {
        Expr::Value(value) => {
            let Value::Number(number, _) = &value.value else { return None };
            let position: usize = number.parse().ok()?;
            let front = items.get(..position)?;
            match front.last()? {
                _ if front.iter().any(is_star) => None,
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
                _ => None,
            }
        }
        Expr::Identifier(ident) => items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if fold(alias) == fold(ident) => Some(expr),
            _ => None,
        }),
        _ => None,
    }
}

/// Whether `item` is all columns, or all of `qualifier`.
fn is_star_of(item: &SelectItem, qualifier: &str) -> bool {
    match item {
        SelectItem::Wildcard(_) => true,
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(ObjectName(parts)), _) => {
            matches!(parts.last(), Some(ObjectNamePart::Identifier(ident)) if fold(ident) == qualifier)
        }
        _ => false,
    }
}

/// Columns named outside of aggregates.
#[derive(Default)]
struct Mentioned {
    bare: BTreeSet<String>,
    qualified: BTreeSet<(String, String)>,
    /// How many aggregates are around.
    aggregates: usize,
}

impl Mentioned {
    fn has(&self, qualifier: &str, column: &str) -> bool {
        self.bare.contains(column) || self.qualified.contains(&(qualifier.to_owned(), column.to_owned()))
    }
}

impl Visitor for Mentioned {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Function(function) if is_aggregate(function) => self.aggregates += 1,
            Expr::Identifier(ident) if self.aggregates == 0 => {
                self.bare.insert(fold(ident));
            }
            Expr::CompoundIdentifier(idents) if self.aggregates == 0 => {
                if let [.., qualifier, column] = idents.as_slice() {
                    self.qualified.insert((fold(qualifier), fold(column)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if let Expr::Function(function) = expr
            && is_aggregate(function)
        {
            self.aggregates = self.aggregates.saturating_sub(1);
        }
        ControlFlow::Continue(())
    }
}

fn is_aggregate(function: &Function) -> bool {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return false };
    function.over.is_none() && registry::is_aggregate(&fold(name))
}
