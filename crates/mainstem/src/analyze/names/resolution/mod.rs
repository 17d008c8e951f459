//! Names that DataFusion takes for others, or does not know, and that say what they mean here: `SELECT k FROM a FULL
//! JOIN b USING (k)`.
//!
//! Comes in: a statement's tree, and what is known of its tables. Goes out: the same tree in words that mean the same
//! to DataFusion as to SQL. Of each query, innermost first:
//!
//! 1. The columns of FROM ([`join_columns`]), in the order of `*`. Joins with USING and NATURAL get ON; what means
//!    their columns by a name alone, in the query or in queries within it, says which it means: `coalesce(a.k, b.k)` of
//!    a FULL JOIN, the right side's of a RIGHT JOIN, else the left side's. DataFusion takes the left side's column for
//!    that of both, which is NULL where only the right side has a row, and leaves it where it stands among the columns
//!    of `*`. It is done in the tree because a plan has forgotten which name was written: `k` and `a.k` are one column
//!    there.
//! 2. Items beside a `*` that have the name of one of its columns get another (`duplicate_names`). A `*` becomes the
//!    list of its columns where DataFusion's list would be another. What means a column with an internal name says
//!    that.
//! 3. HAVING, and ORDER BY in expressions, mean columns of FROM, not select items of that name ([`order_by`]).
//! 4. An alias that names some of a table's columns names the others as they are called.
//! 5. Tables of one name in two schemas get names of their own ([`tables`]).
//!
//! Before all that, without the catalog, WITH queries of one name get names of their own ([`with_queries`]).
//!
//! A name means the column of the innermost query that has one; ORDER BY means select items first, GROUP BY columns
//! first. Left alone: statements that have none of this, and names that are ambiguous: the planner tells of them. It
//! does not own: other names of items (`duplicate_names`, `column_names`).

mod join_columns;
mod needs;
mod order_by;
pub(super) mod select_items;
mod tables;
pub(crate) mod with_queries;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Distinct, Expr, GroupByExpr, Ident, Join, JoinConstraint, NamedWindowDefinition, ObjectName,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias,
    TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use mainstem_storage::{Error, Result};

pub(crate) use self::join_columns::merges_itself;
use self::join_columns::{Column, Columns, Table, constraint, joined, unknown_columns};
use self::needs::Needs;
use self::order_by::{name_distinct, order_above, reads_hidden};
use self::select_items::{
    Output, Outputs, columns_of, complete, expand, expand_excluding, hides, item_called, output, outputs, quoted,
    renamed, repeats, resolves_to_itself, starred,
};
use self::tables::{called, check_once, last, unseen};
use super::KnownTable;
use super::column_names::{name_of, own_name_of_item};
use super::duplicate_names::{Naming, beside_star, name_items, name_repeated};
use crate::analyze::ast::expr::bare;
use crate::names::without_mark;
use crate::sql::{TableName, fold, query_of};
use crate::walk::{walk, walk_mut};

/// See the module.
///
/// # Errors
/// 42703, 42701 and 42702 for what USING names; 42P01, 42P09 and 42712 for tables that are none, or two; 0A000 where
/// columns that a name could mean are not known.
pub(crate) fn resolve_names(
    statement: &mut Statement,
    naming: Naming,
    known: &dyn Fn(&TableName) -> Option<KnownTable>,
) -> Result<()> {
    let mut found = Needs::default();
    let ControlFlow::Continue(()) = walk(statement, &mut found);
    if !found.any && found.several.is_empty() {
        return Ok(());
    }
    let mut scopes = Scopes {
        known,
        naming,
        with: Vec::new(),
        scopes: Vec::new(),
        items: HashSet::new(),
        hiding: HashSet::new(),
        several: found.several,
        renamed: 0,
        derived: 0,
    };
    match scopes.expressions(statement) {
        Err(Stop::Failed(error)) => Err(error),
        // Planning tells of it.
        Err(Stop::NoSuchTable) | Ok(()) => Ok(()),
    }
}

/// Why a statement is not looked through to its end.
enum Stop {
    Failed(Error),
    NoSuchTable,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Found<T> = std::result::Result<T, Stop>;

struct Scopes<'a> {
    known: &'a dyn Fn(&TableName) -> Option<KnownTable>,
    naming: Naming,
    /// The queries of WITH that can be named, the innermost last.
    with: Vec<(String, Outputs)>,
    /// The outer queries what is looked at, the innermost last.
    scopes: Vec<Columns>,
    /// Select items of the innermost of these that mean what a name in ORDER BY means: it can stay.
    items: HashSet<String>,
    /// Select items of the innermost of these that mean another thing than the column of that name, which HAVING means.
    hiding: HashSet<String>,
    /// Names of tables that may be several.
    several: HashSet<String>,
    /// How many of these have got another name.
    renamed: usize,
    /// Derived tables that have got a name.
    derived: usize,
}

impl Scopes<'_> {
    /// Looks through the queries and names in `tree`.
    fn expressions(&mut self, tree: &mut impl VisitMut) -> Found<()> {
        walk_mut(tree, &mut Names { scopes: self, queries: 0, tables: 0 }).break_value().map_or(Ok(()), Err)
    }

    /// Looks through `query`. If others can name its columns, each of them gets a name.
    fn query(&mut self, query: &mut Query, is_named: bool) -> Found<Outputs> {
        let outer = self.with.len();
        let (items, hiding) = (std::mem::take(&mut self.items), std::mem::take(&mut self.hiding));
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                let name = fold(&cte.alias.name);
                if with.recursive {
                    // What it reads under its own name are the columns of its first SELECT.
                    let first = match &*cte.query.body {
                        SetExpr::SetOperation { left, .. } => {
                            let mut left = left.clone();
                            self.body(&mut left, true)?.0
                        }
                        _ => None,
                    };
                    self.with.push((name.clone(), renamed(first, &cte.alias)));
                }
                let own = self.with.len();
                let columns = self.query(&mut cte.query, true)?;
                if with.recursive {
                    self.with.truncate(own.saturating_sub(1));
                }
                complete(Some(&mut cte.alias), &columns);
                self.with.push((name, renamed(columns, &cte.alias)));
            }
        }
        let (columns, scope) = self.body(&mut query.body, is_named)?;
        if let Some(scope) = scope {
            self.order_by(query, scope)?;
        }
        self.with.truncate(outer);
        (self.items, self.hiding) = (items, hiding);
        Ok(columns)
    }

    /// Looks through ORDER BY of `query`, a SELECT from the columns `scope`. (Set operations are ordered by the columns
    /// that they give.)
    fn order_by(&mut self, query: &mut Query, scope: Columns) -> Found<()> {
        let SetExpr::Select(select) = &mut *query.body else { return Ok(()) };
        let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) else {
            return Ok(());
        };
        name_distinct(keys, select, &scope)?;
        let is_hidden = reads_hidden(keys, select, &scope);
        let items: HashSet<String> = select.projection.iter().filter_map(own_name_of_item).collect();
        let is_item = |key: &Expr| matches!(bare(key), Expr::Identifier(ident) if items.contains(&fold(ident)));
        if !is_hidden {
            self.items = select.projection.iter().filter_map(|item| resolves_to_itself(item, &scope)).collect();
        }
        let mut columns = keys.iter_mut().map(|key| &mut key.expr).filter(|key| !is_item(key));
        self.within(scope.clone(), |scopes| columns.try_for_each(|key| scopes.expressions(key)))?;
        if is_hidden {
            order_above(query, &scope)?;
        }
        Ok(())
    }

    /// Looks through `body`: its columns, and what names mean in it, if it is a SELECT.
    fn body(&mut self, body: &mut SetExpr, is_named: bool) -> Found<(Outputs, Option<Columns>)> {
        match body {
            SetExpr::Select(select) => {
                let (columns, scope) = self.select(select, is_named)?;
                Ok((columns, Some(scope)))
            }
            SetExpr::Query(query) => Ok((self.query(query, is_named)?, None)),
            SetExpr::SetOperation { left, right, .. } => {
                let (left, _) = self.body(left, is_named)?;
                let (right, _) = self.body(right, is_named)?;
                let columns = left.map(|left| {
                    let mut right = right.unwrap_or_default().into_iter();
                    let both = |column: Output| {
                        let of_right = right.next().and_then(|column| column.data_type);
                        Output { data_type: column.data_type.filter(|of_left| Some(*of_left) == of_right), ..column }
                    };
                    left.into_iter().map(both).collect()
                });
                Ok((columns, None))
            }
            SetExpr::Values(values) => {
                self.expressions(values)?;
                let width = values.rows.first().map_or(0, |row| row.content.len());
                let column = |at: usize| Output { name: format!("column{at}"), data_type: None };
                Ok((Some((1..=width).map(column).collect()), None))
            }
            _ => Ok((None, None)),
        }
    }

    fn select(&mut self, select: &mut Select, is_named: bool) -> Found<(Outputs, Columns)> {
        let is_merging = select.from.iter().any(merges_itself);
        let scope = self.from(&mut select.from)?;
        let scope = self.stars(&mut select.projection, scope)?;
        expand_excluding(&mut select.projection, &scope)?;
        if beside_star(&select.projection) {
            let starred = starred(&select.projection, &scope);
            if !is_named {
                name_repeated(&mut select.projection, &starred);
            }
            name_items(&mut select.projection, &starred, self.naming);
        }
        if is_merging || repeats(&select.projection) && !scope.others {
            expand(&mut select.projection, &scope)?;
        }
        self.scopes.push(scope);
        if let Some(Distinct::On(keys)) = &mut select.distinct {
            for key in keys.iter_mut() {
                // Select items come first, and DataFusion reads columns there.
                if let Some(item) = item_called(key, &select.projection).filter(|_| is_merging) {
                    *key = item.clone();
                }
            }
            self.expressions(keys)?;
        }
        for item in &mut select.projection {
            self.item(item)?;
        }
        self.expressions(&mut select.selection)?;
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            let items: HashSet<String> = select.projection.iter().filter_map(own_name_of_item).collect();
            let of_from = |name: &str| self.scopes.last().is_some_and(|scope| scope.named(name).next().is_some());
            let is_item = |key: &Expr| match bare(key) {
                Expr::Identifier(ident) => items.contains(&fold(ident)) && !of_from(&fold(ident)),
                _ => false,
            };
            let columns: Vec<&mut Expr> = keys.iter_mut().filter(|key| !is_item(key)).collect();
            for key in columns {
                self.expressions(key)?;
            }
        }
        if select.having.is_some() {
            let scope = self.scopes.last();
            self.hiding = scope.map_or_else(HashSet::new, |scope| {
                select.projection.iter().filter_map(|item| hides(item, scope)).collect()
            });
            self.expressions(&mut select.having)?;
            self.hiding.clear();
        }
        for NamedWindowDefinition(_, window) in &mut select.named_window {
            self.expressions(window)?;
        }
        self.expressions(&mut select.qualify)?;
        let scope = self.scopes.pop().unwrap_or_default();
        let columns = outputs(select, &scope, is_named);
        Ok((columns, scope))
    }

    /// Says the tables of each `t.*` by what they are called.
    fn stars(&mut self, items: &mut [SelectItem], scope: Columns) -> Result<Columns> {
        if self.several.is_empty() {
            return Ok(scope);
        }
        self.scopes.push(scope);
        for item in items {
            let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item else {
                continue;
            };
            let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
            let called = match parts.as_deref() {
                Some([table]) => called(&self.scopes, None, table)?,
                Some([.., schema, table]) => called(&self.scopes, Some(schema), table)?,
                _ => None,
            };
            if let Some(called) = called {
                *name = ObjectName::from(vec![called]);
            }
        }
        Ok(self.scopes.pop().unwrap_or_default())
    }

    /// Says the table of a column that is named with it by what it is called.
    fn qualified(&self, idents: &mut Vec<Ident>) -> Result<()> {
        if let [table, column] = idents.as_slice() {
            let (table, column) = (fold(table), fold(column));
            if let Some(scope) = self.scopes.iter().rev().find(|scope| scope.has(&table)) {
                let columns = || scope.of(&table).filter(|known| without_mark(&known.name) == column);
                match columns().count() {
                    1 => {
                        if let Some(column) = columns().find(|known| known.is_internal()) {
                            *idents = vec![quoted(&table), quoted(&column.name)];
                        }
                    }
                    _ => Columns::check_one(columns(), &[&table, &column])?,
                }
            }
        }
        if self.several.is_empty() || self.scopes.is_empty() {
            return Ok(());
        }
        let (called, column) = match idents.as_slice() {
            [table, column] => (called(&self.scopes, None, &fold(table))?, column.clone()),
            [.., schema, table, column] => (called(&self.scopes, Some(&fold(schema)), &fold(table))?, column.clone()),
            _ => return Ok(()),
        };
        if let Some(called) = called {
            *idents = vec![called, column];
        }
        Ok(())
    }

    /// A select item keeps the name that it has by its column.
    fn item(&mut self, item: &mut SelectItem) -> Found<()> {
        let SelectItem::UnnamedExpr(expr) = item else { return self.expressions(item) };
        let name = name_of(expr);
        self.expressions(expr)?;
        if let Some(name) = name.filter(|name| name_of(expr).as_ref() != Some(name)) {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(&name) };
        }
        Ok(())
    }

    /// The columns of FROM.
    fn from(&mut self, from: &mut [TableWithJoins]) -> Found<Columns> {
        let mut scope = Columns::default();
        for table in from {
            let columns = self.joined(table, &scope)?;
            scope.extend(columns);
        }
        if !self.several.is_empty() {
            check_once(&scope.tables)?;
        }
        Ok(scope)
    }

    /// The columns of `table`, which has those of `before` to its left.
    fn joined(&mut self, table: &mut TableWithJoins, before: &Columns) -> Found<Columns> {
        let mut columns = self.factor(&mut table.relation, before)?;
        for Join { relation, global: _, join_operator } in &mut table.joins {
            let mut left = before.clone();
            left.extend(columns.clone());
            let right = self.factor(relation, &left)?;
            if let Some(JoinConstraint::On(on)) = constraint(join_operator) {
                let mut both = columns.clone();
                both.extend(right.clone());
                self.within(both, |scopes| scopes.expressions(on))?;
            }
            columns = joined(columns, right, join_operator)?;
        }
        Ok(columns)
    }

    /// Does `look` where names mean `scope` first.
    fn within<T>(&mut self, scope: Columns, look: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(scope);
        let looked = look(self);
        self.scopes.pop();
        looked
    }

    fn factor(&mut self, factor: &mut TableFactor, before: &Columns) -> Found<Columns> {
        as_derived(factor)?;
        let mut columns = self.columns(factor, before)?;
        if let (true, Some(alias)) = (columns.tables.is_empty(), alias_of(factor)) {
            let name = fold(&alias.name);
            columns.tables.push(Table { name, schema: None, is_alias: true, called: None });
        }
        Ok(columns)
    }

    fn columns(&mut self, factor: &mut TableFactor, before: &Columns) -> Found<Columns> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let (columns, schema) = self.table(name)?;
                let last = last(name).ok_or(Stop::NoSuchTable)?;
                let called = alias.as_ref().map_or_else(|| last.clone(), |alias| fold(&alias.name));
                let schema = schema.filter(|_| called == last);
                let mut table = Table { name: called, schema, is_alias: alias.is_some(), called: None };
                if alias.is_none() && self.several.contains(&last) {
                    self.renamed += 1;
                    let unseen = unseen(&last, self.renamed);
                    *alias = Some(TableAlias { explicit: true, name: unseen.clone(), columns: Vec::new(), at: None });
                    table.called = Some(unseen);
                }
                complete(alias.as_mut(), &columns);
                let qualifier = table.called.clone().unwrap_or_else(|| quoted(&table.name));
                let columns = columns_of(columns, Some(&qualifier), alias.as_ref());
                Ok(Columns { tables: vec![table], ..columns })
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let columns = match lateral {
                    true => self.within(before.clone(), |scopes| scopes.query(subquery, true))?,
                    false => self.query(subquery, true)?,
                };
                if alias.is_none() {
                    self.derived += 1;
                    let name = quoted(&format!("unnamed_subquery_{}", self.derived));
                    *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
                }
                complete(alias.as_mut(), &columns);
                Ok(columns_of(columns, alias.as_ref().map(|alias| &alias.name), alias.as_ref()))
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.joined(table_with_joins, before),
            TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } => {
                let inner = self.joined(table_with_joins, before)?;
                let columns = (!inner.others).then(|| inner.known.iter().map(output).collect());
                Ok(columns_of(columns, Some(&alias.name), Some(alias)))
            }
            other => {
                self.within(before.clone(), |scopes| scopes.expressions(&mut *other))?;
                Ok(match alias_of(other) {
                    // A function, whose columns have the names that are written.
                    Some(alias) if !alias.columns.is_empty() => {
                        let column = |_: &_| Output { name: String::new(), data_type: None };
                        columns_of(Some(alias.columns.iter().map(column).collect()), Some(&alias.name), Some(alias))
                    }
                    _ => Columns::unknown(),
                })
            }
        }
    }

    /// The columns of the table, view or query that `name` means, and its schema.
    fn table(&self, name: &ObjectName) -> Found<(Outputs, Option<String>)> {
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
        let full = match parts.as_deref() {
            Some([name]) => TableName::bare(name),
            Some([.., schema, name]) => TableName { schema: Some(schema.clone()), name: name.clone() },
            _ => return Err(Stop::NoSuchTable),
        };
        if full.schema.is_none()
            && let Some((_, columns)) = self.with.iter().rev().find(|(with, _)| *with == full.name)
        {
            return Ok((columns.clone(), None));
        }
        let KnownTable { schema, columns, types, key: _ } = (self.known)(&full).ok_or(Stop::NoSuchTable)?;
        let output = |(name, data_type)| Output { name, data_type };
        Ok((Some(columns.into_iter().zip(types).map(output).collect()), Some(schema)))
    }

    /// What `table` is called, a name in front of a column's.
    fn called(&self, table: &Ident) -> Result<Option<Ident>> {
        if self.several.is_empty() { Ok(None) } else { called(&self.scopes, None, &fold(table)) }
    }

    /// What says the column that `name` alone means, if it is one of both sides of a join.
    fn resolve_column(&self, name: &str) -> Result<Option<Expr>> {
        let mut may_be_others = false;
        if self.items.contains(name) {
            return Ok(None);
        }
        if let Some(scope) = self.scopes.last().filter(|_| self.hiding.contains(name)) {
            let found: Vec<&Column> = scope.named(name).collect();
            if let [column] = found.as_slice() {
                return Ok(Some(column.expr.clone()));
            }
        }
        for scope in self.scopes.iter().rev() {
            let mut found = scope.named(name);
            match (found.next(), found.next()) {
                (Some(column), None) if column.is_merged && may_be_others => {
                    return Err(unknown_columns(&format!("the name \"{name}\"")));
                }
                (Some(column), None) => {
                    return Ok((column.is_merged || column.is_internal()).then(|| column.expr.clone()));
                }
                (Some(_), Some(_)) => return Columns::check_one(scope.named(name), &[name]).map(|()| None),
                (None, _) => may_be_others |= scope.others,
            }
        }
        Ok(None)
    }
}

/// Looks at names, and hands queries on.
struct Names<'s, 'a> {
    scopes: &'s mut Scopes<'a>,
    /// How many outer queries there are: what is in them has been looked at.
    queries: usize,
    /// How many of the next names are tables.
    tables: usize,
}

impl VisitorMut for Names<'_, '_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        self.queries += 1;
        if self.queries == 1
            && let Err(stop) = self.scopes.query(query, false)
        {
            return ControlFlow::Break(stop);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Stop> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Stop> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::CompoundFieldAccess { root, access_chain } => {
                let is_table =
                    matches!(&**root, Expr::Identifier(_)) && matches!(access_chain.first(), Some(AccessExpr::Dot(_)));
                self.tables += usize::from(is_table);
                if is_table && let Expr::Identifier(table) = &mut **root {
                    match self.scopes.called(table) {
                        Ok(Some(called)) => *table = called,
                        Ok(None) => {}
                        Err(error) => return ControlFlow::Break(Stop::Failed(error)),
                    }
                }
            }
            Expr::CompoundIdentifier(idents) => {
                if let Err(error) = self.scopes.qualified(idents) {
                    return ControlFlow::Break(Stop::Failed(error));
                }
            }
            Expr::Identifier(_) if self.tables > 0 => self.tables -= 1,
            Expr::Identifier(ident) => match self.scopes.resolve_column(&fold(ident)) {
                Ok(Some(column)) => *expr = column,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(Stop::Failed(error)),
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Makes a join with an alias, whose columns are not those of its tables, a derived table.
fn as_derived(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::NestedJoin { table_with_joins, alias: alias @ Some(_) } = factor else { return Ok(()) };
    if !merges_itself(table_with_joins) {
        return Ok(());
    }
    let mut subquery = query_of("SELECT * FROM a")?;
    if let SetExpr::Select(select) = &mut *subquery.body {
        select.from = vec![(**table_with_joins).clone()];
    }
    *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    Ok(())
}

fn alias_of(factor: &TableFactor) -> Option<&TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
        _ => None,
    }
}
