//! Joins with USING and NATURAL: `SELECT k FROM a FULL JOIN b USING (k)`.
//!
//! DataFusion takes the left side's column for that of both, which is NULL where only the right side has a row, and leaves it where it
//! stands among the columns of `*`. So such a join is said with ON, and what means its columns by a name alone says which it means, in the
//! statement's tree: `coalesce(a.k, b.k)` of a FULL JOIN, the right side's of a RIGHT JOIN, else the left side's. In the tree, because a plan
//! has forgotten which name was written: `k` and `a.k` are one column there.
//!
//! Comes in: a statement's tree, and what is known of its tables. Goes out: the same tree without USING and NATURAL. Of each query,
//! innermost first:
//!
//! 1. The columns of FROM ([`columns`]), in PostgreSQL's order: those of both sides, the left side's others, the right side's. A join with an alias
//!    becomes a derived table.
//! 2. Each name alone in the query, and in the queries within it, that means a column of both sides. A name means the column of the
//!    innermost query that has one; ORDER BY means select items first, GROUP BY columns first.
//! 3. Each `*` becomes the list of its columns.
//!
//! In passing, an alias that names some of its table's columns names the others as they are called. Left alone: statements without such joins, and names that mean no such column, ambiguous ones too: the planner tells of them.
//! It does not own: names of items that repeat (`twins`), which are told apart before.

mod columns;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Distinct, Expr, GroupByExpr, Ident, Join, JoinConstraint, NamedWindowDefinition, ObjectName,
    ObjectNamePart, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement,
    TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
    WildcardAdditionalOptions,
};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use self::columns::{Column, Columns, constraint, joined, merges, unknown_columns};
use super::columns::{mentioned, name_of, said};
use super::names::title;
use super::{KnownTable, bare};
use crate::sql::{TableName, fold, query_of};

/// See the module.
///
/// # Errors
/// 42703, 42701 and 42702 for what USING names; 0A000 where columns that a name could mean are not known.
pub(crate) fn spell_joins(statement: &mut Statement, known: &dyn Fn(&TableName) -> Option<KnownTable>) -> Result<()> {
    if !has_any(statement) {
        return Ok(());
    }
    let mut joins = Joins { known, with: Vec::new(), scopes: Vec::new(), items: HashSet::new(), derived: 0 };
    match joins.expressions(statement) {
        Err(Stop::Failed(error)) => Err(error),
        // Planning tells of it.
        Err(Stop::NoSuchTable) | Ok(()) => Ok(()),
    }
}

/// Whether USING or NATURAL stands anywhere in `tree`.
fn has_any(tree: &impl Visit) -> bool {
    fn found(any: bool) -> ControlFlow<()> {
        if any { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    struct Found;
    impl Visitor for Found {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            found(select.from.iter().any(merges_itself))
        }

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match factor {
                TableFactor::NestedJoin { table_with_joins, .. } => found(merges_itself(table_with_joins)),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    tree.visit(&mut Found).is_break()
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

/// A column that a query gives; without a name if only its position tells.
#[derive(Clone, Debug)]
struct Output {
    name: String,
    data_type: Option<DataType>,
}

/// The columns of a query; `None` if they are not known.
type Outputs = Option<Vec<Output>>;

struct Joins<'a> {
    known: &'a dyn Fn(&TableName) -> Option<KnownTable>,
    /// The queries of WITH that can be named, the innermost last.
    with: Vec<(String, Outputs)>,
    /// The queries around what is looked at, the innermost last.
    scopes: Vec<Columns>,
    /// Select items of the innermost of these that mean what a name in ORDER BY means: it can stay.
    items: HashSet<String>,
    /// Derived tables that have got a name.
    derived: usize,
}

impl Joins<'_> {
    /// Looks through the queries and names in `tree`.
    fn expressions(&mut self, tree: &mut impl VisitMut) -> Found<()> {
        match tree.visit(&mut Names { joins: self, queries: 0, tables: 0 }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(stop) => Err(stop),
        }
    }

    /// Looks through `query`. If others can name its columns, each of them gets a name.
    fn query(&mut self, query: &mut Query, is_named: bool) -> Found<Outputs> {
        let outer = self.with.len();
        let items = std::mem::take(&mut self.items);
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
        if let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
            // Set operations are ordered by the columns that they give.
            if let (Some(scope), SetExpr::Select(select)) = (scope, &*query.body) {
                let said: HashSet<String> = select.projection.iter().filter_map(said).collect();
                let is_item = |key: &Expr| matches!(bare(key), Expr::Identifier(ident) if said.contains(&fold(ident)));
                let mut columns = keys.iter_mut().map(|key| &mut key.expr).filter(|key| !is_item(key));
                self.items = select.projection.iter().filter_map(|item| means_itself(item, &scope)).collect();
                self.within(scope, |joins| columns.try_for_each(|key| joins.expressions(key)))?;
            }
        }
        self.with.truncate(outer);
        self.items = items;
        Ok(columns)
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
        if is_merging {
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
            let said: HashSet<String> = select.projection.iter().filter_map(said).collect();
            let of_from = |name: &str| self.scopes.last().is_some_and(|scope| scope.named(name).next().is_some());
            let is_item = |key: &Expr| match bare(key) {
                Expr::Identifier(ident) => said.contains(&fold(ident)) && !of_from(&fold(ident)),
                _ => false,
            };
            let columns: Vec<&mut Expr> = keys.iter_mut().filter(|key| !is_item(key)).collect();
            for key in columns {
                self.expressions(key)?;
            }
        }
        self.expressions(&mut select.having)?;
        for NamedWindowDefinition(_, window) in &mut select.named_window {
            self.expressions(window)?;
        }
        self.expressions(&mut select.qualify)?;
        let scope = self.scopes.pop().unwrap_or_default();
        let columns = outputs(select, &scope, is_named);
        Ok((columns, scope))
    }

    /// A select item keeps the name that it has by its column.
    fn item(&mut self, item: &mut SelectItem) -> Found<()> {
        let SelectItem::UnnamedExpr(expr) = item else { return self.expressions(item) };
        let name = match bare(expr) {
            Expr::Identifier(ident) => Some(fold(ident)),
            _ => None,
        };
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
                self.within(both, |joins| joins.expressions(on))?;
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
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let columns = self.table(name)?;
                let qualifier = match (&*alias, name.0.last()) {
                    (Some(alias), _) => Some(alias.name.clone()),
                    (None, Some(ObjectNamePart::Identifier(name))) => Some(name.clone()),
                    _ => None,
                };
                complete(alias.as_mut(), &columns);
                Ok(columns_of(columns, qualifier.as_ref(), alias.as_ref()))
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let columns = match lateral {
                    true => self.within(before.clone(), |joins| joins.query(subquery, true))?,
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
                self.within(before.clone(), |joins| joins.expressions(&mut *other))?;
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

    /// The columns of the table, view or query that `name` means.
    fn table(&self, name: &ObjectName) -> Found<Outputs> {
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
        let full = match parts.as_deref() {
            Some([name]) => TableName::bare(name),
            Some([.., schema, name]) => TableName { schema: Some(schema.clone()), name: name.clone() },
            _ => return Err(Stop::NoSuchTable),
        };
        if full.schema.is_none()
            && let Some((_, columns)) = self.with.iter().rev().find(|(with, _)| *with == full.name)
        {
            return Ok(columns.clone());
        }
        let KnownTable { columns, types, key: _ } = (self.known)(&full).ok_or(Stop::NoSuchTable)?;
        let output = |(name, data_type)| Output { name, data_type };
        Ok(Some(columns.into_iter().zip(types).map(output).collect()))
    }

    /// What says the column that `name` alone means, if it is one of both sides of a join.
    fn meant(&self, name: &str) -> Result<Option<Expr>> {
        let mut may_be_others = false;
        if self.items.contains(name) {
            return Ok(None);
        }
        for scope in self.scopes.iter().rev() {
            let mut found = scope.named(name);
            match (found.next(), found.next()) {
                (Some(column), None) if column.is_merged && may_be_others => {
                    return Err(unknown_columns(&format!("the name \"{name}\"")));
                }
                (Some(column), None) => return Ok(column.is_merged.then(|| column.expr.clone())),
                (Some(_), Some(_)) => return Ok(None),
                (None, _) => may_be_others |= scope.others,
            }
        }
        Ok(None)
    }
}

/// Looks at names, and hands queries on.
struct Names<'j, 'a> {
    joins: &'j mut Joins<'a>,
    /// How many queries are around: what is in them has been looked at.
    queries: usize,
    /// How many of the next names are tables.
    tables: usize,
}

impl VisitorMut for Names<'_, '_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        self.queries += 1;
        if self.queries == 1
            && let Err(stop) = self.joins.query(query, false)
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
            }
            Expr::Identifier(_) if self.tables > 0 => self.tables -= 1,
            Expr::Identifier(ident) => match self.joins.meant(&fold(ident)) {
                Ok(Some(column)) => *expr = column,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(Stop::Failed(error)),
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether the columns of `from` are other than those of its tables one after the other.
fn merges_itself(from: &TableWithJoins) -> bool {
    let of_factor = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => merges_itself(table_with_joins),
        _ => false,
    };
    let of_join = |join: &Join| of_factor(&join.relation) || merges(&join.join_operator);
    of_factor(&from.relation) || from.joins.iter().any(of_join)
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
        | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

/// The columns `columns` of a table that is called `qualifier`, with the names that `alias` gives them.
fn columns_of(columns: Outputs, qualifier: Option<&Ident>, alias: Option<&TableAlias>) -> Columns {
    let columns = match alias {
        Some(alias) => renamed(columns, alias),
        None => columns,
    };
    let (Some(columns), Some(qualifier)) = (columns, qualifier) else { return Columns::unknown() };
    let column = |Output { name, data_type }| Column {
        expr: Expr::CompoundIdentifier(vec![quoted(&fold(qualifier)), quoted(&name)]),
        name,
        data_type,
        is_merged: false,
    };
    let known: Vec<Column> = columns.into_iter().map(column).collect();
    let own = known.iter().map(|column| (fold(qualifier), column.clone())).collect();
    Columns { known, own, others: false }
}

/// Names those of `columns` that `alias` does not, if it names any: DataFusion wants all of them.
fn complete(alias: Option<&mut TableAlias>, columns: &Outputs) {
    if let (Some(alias), Some(columns)) = (alias, columns)
        && !alias.columns.is_empty()
    {
        let rest = columns.iter().skip(alias.columns.len());
        alias.columns.extend(rest.map(|column| TableAliasColumnDef { name: quoted(&column.name), data_type: None }));
    }
}

/// `columns` with the names that `alias` gives them, from the first one on.
fn renamed(columns: Outputs, alias: &TableAlias) -> Outputs {
    let mut columns = columns?;
    for (column, of_alias) in columns.iter_mut().zip(&alias.columns) {
        column.name = fold(&of_alias.name);
    }
    Some(columns)
}

/// Puts the columns that each `*` of `items` stands for in its place.
fn expand(items: &mut Vec<SelectItem>, scope: &Columns) -> Result<()> {
    let mut expanded = Vec::with_capacity(items.len());
    let mut seen: HashSet<Expr> = HashSet::new();
    for item in items.drain(..) {
        let SelectItem::Wildcard(options) = &item else {
            expanded.push(item);
            continue;
        };
        if scope.others {
            return Err(unknown_columns("*"));
        }
        if *options != WildcardAdditionalOptions::default() {
            return Err(Error::unsupported(format_args!("* with options over a join with USING or NATURAL")));
        }
        for column in &scope.known {
            let position = expanded.len() + 1;
            let of_table = name_of(&column.expr).as_ref() == Some(&column.name);
            // Beside a name alone, the same with a table's name is ambiguous.
            let is_alone = |other: &Column| other.name == column.name && name_of(&other.expr).is_none();
            let is_new = seen.insert(column.expr.clone());
            expanded.push(match of_table && is_new && !scope.known.iter().any(is_alone) {
                true => SelectItem::UnnamedExpr(column.expr.clone()),
                false => {
                    let is_first = is_new && !of_table;
                    let name = if is_first { column.name.clone() } else { format!("{}_{position}", column.name) };
                    SelectItem::ExprWithAlias { expr: column.expr.clone(), alias: quoted(&name) }
                }
            });
        }
    }
    *items = expanded;
    Ok(())
}

/// The columns that `items` give. If others can name them, each gets a name.
fn outputs(select: &mut Select, scope: &Columns, is_named: bool) -> Outputs {
    let mut outputs = Vec::with_capacity(select.projection.len());
    // DataFusion reads select items in HAVING.
    let mut taken = select.having.as_ref().map(mentioned).unwrap_or_default();
    taken.extend(select.projection.iter().filter_map(said));
    if select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)))
    {
        taken.extend(scope.own.iter().map(|(_, column)| column.name.clone()));
    }
    for (position, item) in (1..).zip(&mut select.projection) {
        match item {
            SelectItem::Wildcard(_) if scope.others => return None,
            SelectItem::Wildcard(_) => outputs.extend(scope.known.iter().map(output)),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let table = fold(name.0.last()?.as_ident()?);
                if !scope.own.iter().any(|(own, _)| *own == table) {
                    return None;
                }
                outputs.extend(scope.own.iter().filter(|(own, _)| *own == table).map(|(_, column)| output(column)));
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                outputs.push(Output { name: fold(alias), data_type: type_of(expr, scope) });
            }
            SelectItem::UnnamedExpr(expr) => {
                let data_type = type_of(expr, scope);
                if let Some(name) = name_of(expr) {
                    outputs.push(Output { name, data_type });
                    continue;
                }
                if !is_named {
                    return None;
                }
                let mut name = title(expr);
                while !taken.insert(name.clone()) {
                    name = format!("{name}_{position}");
                }
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(&name) };
                outputs.push(Output { name, data_type });
            }
            SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => return None,
        }
    }
    Some(outputs)
}

fn output(column: &Column) -> Output {
    Output { name: column.name.clone(), data_type: column.data_type }
}

/// The type of `expr`, if it is a column.
fn type_of(expr: &Expr, scope: &Columns) -> Option<DataType> {
    match bare(expr) {
        Expr::Identifier(ident) => scope.named(&fold(ident)).next()?.data_type,
        Expr::CompoundIdentifier(idents) => {
            let [.., table, name] = idents.as_slice() else { return None };
            let (table, name) = (fold(table), fold(name));
            scope.own.iter().find(|(own, column)| *own == table && column.name == name)?.1.data_type
        }
        _ => None,
    }
}

/// The alias of `item` if it is that of a column of both sides, with that name.
fn means_itself(item: &SelectItem, scope: &Columns) -> Option<String> {
    let SelectItem::ExprWithAlias { expr, alias } = item else { return None };
    let name = fold(alias);
    let found: Vec<&Column> = scope.named(&name).collect();
    matches!(found.as_slice(), [column] if column.expr == *expr).then_some(name)
}

/// What the select item is that DISTINCT ON means by `key`, a name.
fn item_called<'i>(key: &Expr, items: &'i [SelectItem]) -> Option<&'i Expr> {
    let Expr::Identifier(ident) = bare(key) else { return None };
    let name = fold(ident);
    let item = items.iter().find(|item| said(item).as_ref() == Some(&name))?;
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
