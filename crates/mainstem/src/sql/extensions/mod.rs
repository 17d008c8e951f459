//! What DuckDB's users write and PostgreSQL has not, as statements that the planner reads.
//!
//! - `FROM t` and `FROM t SELECT a` are SELECT with FROM behind it.
//! - `FROM 'file'` is a call of a function that reads files (`files`).
//! - `ORDER BY ALL` is ORDER BY each position, where the select list shows how many there are; the planner reads it of
//!   a plain SELECT with `*`.

mod files;

use std::ops::ControlFlow;

pub(super) use self::files::is_latin1;
use self::files::name_file;
pub(crate) use self::files::{
    CsvHints, FILES_SCHEMA, FileCompression, FileFunction, FileRequest, reads_files, refuse_files,
};
use crate::walk::walk_mut;
use datafusion::sql::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr, TableFactor, Value, VisitMut,
    VisitorMut, WildcardAdditionalOptions,
};
use mainstem_storage::{Error, Result};

/// Rewrites all of `tree`, a statement or a query: every query that is parsed comes through here.
///
/// # Errors
/// 0A000 for `ORDER BY ALL` of a set operation over `*`.
pub(super) fn rewrite_extensions(tree: &mut impl VisitMut) -> Result<()> {
    walk_mut(tree, &mut Extensions).break_value().map_or(Ok(()), Err)
}

struct Extensions;

impl VisitorMut for Extensions {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        select.flavor = SelectFlavor::Standard;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        name_file(factor);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let Some(order_by) = &mut query.order_by else { return ControlFlow::Continue(()) };
        let OrderByKind::All(options) = &order_by.kind else { return ControlFlow::Continue(()) };
        match columns(&query.body) {
            Some(columns) => {
                let key = |position: usize| OrderByExpr {
                    expr: Expr::value(Value::Number(position.to_string(), false)),
                    options: *options,
                    with_fill: None,
                };
                order_by.kind = OrderByKind::Expressions((1..=columns).map(key).collect());
            }
            None if matches!(*query.body, SetExpr::Select(_)) => {}
            None => return ControlFlow::Break(Error::unsupported("ORDER BY ALL of a set operation over *")),
        }
        ControlFlow::Continue(())
    }
}

/// How many columns `body` has; None where a `*` is among them.
fn columns(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one =
                |item: &SelectItem| !matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::Query(query) => columns(&query.body),
        SetExpr::SetOperation { left, right, .. } => columns(left).or_else(|| columns(right)),
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}
