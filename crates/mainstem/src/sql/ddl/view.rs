//! The query of a view, as the catalog keeps it: with full names of its tables, and no `*` that a new column would
//! change.
//!
//! A name is full in the text if and only if it is no query of a WITH: what a view reads can be told from its text.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_storage::schema::RelationName;
use mainstem_storage::{Error, Result};

use super::super::dialect::{MainstemDialect, STORED_NESTING_MAX, syntax};
use super::super::{TableName, fold, table_name};
use super::objects::quoted;
use crate::walk::{walk_mut, walk_relations};

/// The names of a WITH that are seen where a walk stands.
struct Scope {
    /// Those of the WITH, in order.
    names: Vec<String>,
    /// How many of them are seen: a query sees those before it, or all of a recursive WITH.
    seen: usize,
    /// Queries of the WITH that were walked.
    walked: usize,
}

/// Gives tables their full names.
struct Qualify<'a> {
    resolve: &'a dyn Fn(&TableName) -> Option<RelationName>,
    scopes: Vec<Scope>,
}

impl VisitorMut for Qualify<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.as_ref();
        let names: Vec<String> =
            with.map(|with| with.cte_tables.iter().map(|cte| fold(&cte.alias.name)).collect()).unwrap_or_default();
        let seen = if with.is_some_and(|with| with.recursive) { names.len() } else { 0 };
        self.scopes.push(Scope { names, seen, walked: 0 });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.pop();
        // The first queries inside one are those of its WITH, in order.
        if let Some(outer) = self.scopes.last_mut()
            && outer.walked < outer.names.len()
        {
            outer.walked += 1;
            outer.seen = outer.seen.max(outer.walked);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        // A name of a system table is full already.
        let Ok(name) = table_name(relation) else { return ControlFlow::Continue(()) };
        let of_with = |scope: &Scope| scope.names.iter().take(scope.seen).any(|known| *known == name.name);
        if name.schema.is_none() && self.scopes.iter().any(of_with) {
            return ControlFlow::Continue(());
        }
        if let Some(full) = (self.resolve)(&name) {
            *relation = ObjectName::from(vec![quoted(&full.namespace), quoted(&full.name)]);
        }
        ControlFlow::Continue(())
    }
}

/// Gives the tables of `tree`, a query or a statement, the full names that `resolve` knows.
pub(crate) fn qualify(tree: &mut impl VisitMut, resolve: &dyn Fn(&TableName) -> Option<RelationName>) {
    let _: ControlFlow<()> = walk_mut(tree, &mut Qualify { resolve, scopes: Vec::new() });
}

/// The full names in the stored query `text`: what a view reads, system tables aside.
///
/// # Errors
/// Internal.
pub(crate) fn read_by(text: &str) -> Result<BTreeSet<RelationName>> {
    let mut read = BTreeSet::new();
    let _ = walk_relations(&stored_query(text)?, |relation| {
        if let Ok(TableName { schema: Some(schema), name }) = table_name(relation) {
            read.insert(RelationName::new(schema, name));
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(read)
}

/// The query that is stored as `text`.
///
/// # Errors
/// Internal: it was read before.
pub(crate) fn stored_query(text: &str) -> Result<Box<Query>> {
    parsed(text).map_err(|e| Error::internal(format!("a stored query cannot be read: {}", e.message())))
}

fn parsed(text: &str) -> Result<Box<Query>> {
    let dialect = MainstemDialect::new(text.len());
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(STORED_NESTING_MAX).try_with_sql(text).map_err(|e| syntax(&e))?;
    parser.parse_query().map_err(|e| syntax(&e))
}

/// The text of `query`, which reads back as the same tree.
///
/// # Errors
/// 0A000 when it does not.
pub(crate) fn query_text(query: &Query) -> Result<String> {
    let text = query.to_string();
    match parsed(&text) {
        Ok(again) if *again == *query => Ok(text),
        _ => Err(Error::unsupported(format_args!("this query as that of a view"))),
    }
}

/// The names that the columns of `query` are given by a name or an alias in it, as far as it has no `*`: those that
/// occur twice are made different when it is planned.
pub(crate) fn item_names(query: &Query) -> Vec<Option<String>> {
    let mut body = &*query.body;
    let select = loop {
        match body {
            SetExpr::SetOperation { left, .. } => body = left,
            SetExpr::Query(query) => body = &query.body,
            SetExpr::Select(select) => break select,
            _ => return Vec::new(),
        }
    };
    let mut names = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        names.push(match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(fold(name)),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last().map(fold),
            SelectItem::UnnamedExpr(_) => None,
            // What comes behind it has another place.
            _ => break,
        });
    }
    names
}

/// Puts columns in the place of each `*` in the SELECTs whose rows are those of `query`. `columns` gives those of a
/// query, with the name of their table.
///
/// # Errors
/// Those of `columns`.
pub(crate) fn expand_wildcards(
    query: &mut Query,
    columns: &mut dyn FnMut(Query) -> Result<Vec<(Option<String>, String)>>,
) -> Result<()> {
    let outer = query.clone();
    expand_in(&mut query.body, &outer, columns)
}

fn expand_in(
    body: &mut SetExpr,
    outer: &Query,
    columns: &mut dyn FnMut(Query) -> Result<Vec<(Option<String>, String)>>,
) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            expand_in(left, outer, columns)?;
            expand_in(right, outer, columns)
        }
        // A query in parentheses.
        SetExpr::Query(query) => {
            let mut inside = query.clone();
            if inside.with.is_none() {
                inside.with.clone_from(&outer.with);
            }
            expand_in(&mut query.body, &inside, columns)
        }
        SetExpr::Select(select) => expand_select(select, outer, columns),
        _ => Ok(()),
    }
}

fn expand_select(
    select: &mut Select,
    outer: &Query,
    columns: &mut dyn FnMut(Query) -> Result<Vec<(Option<String>, String)>>,
) -> Result<()> {
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        if !matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)) {
            items.push(item);
            continue;
        }
        let said: Option<Vec<Ident>> = match &item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                name.0.iter().map(|part| part.as_ident().cloned()).collect()
            }
            _ => None,
        };
        let mut alone = *super::super::query_of("SELECT 1")?;
        alone.with.clone_from(&outer.with);
        if let SetExpr::Select(body) = &mut *alone.body {
            body.from.clone_from(&select.from);
            body.projection = vec![item];
        }
        items.extend(columns(alone)?.into_iter().map(|(table, column)| {
            let table = said.clone().or_else(|| Some(vec![quoted(&table?)]));
            SelectItem::UnnamedExpr(match table {
                Some(mut names) => {
                    names.push(quoted(&column));
                    Expr::CompoundIdentifier(names)
                }
                None => Expr::Identifier(quoted(&column)),
            })
        }));
    }
    select.projection = items;
    Ok(())
}
