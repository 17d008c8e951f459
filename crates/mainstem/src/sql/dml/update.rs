//! UPDATE.

use datafusion::sql::sqlparser::ast::{Expr, Query, Update as AstUpdate, UpdateTableFromKind, With};
use mainstem_storage::Result;
use mainstem_storage::schema::TableSchema;

use super::super::check_query;
use super::assignments::{self, Assignments};
use super::select::SelectOf;
use super::target::{Target, carried, one_table};
use crate::sql::refuse::refuse;

/// UPDATE.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) target: Target,
    pub(crate) assignments: Assignments,
    selection: Option<Expr>,
}

/// Reads an UPDATE, `with` the queries in front of it.
pub(in super::super) fn update(update: AstUpdate, with: Option<With>) -> Result<Update> {
    let AstUpdate {
        update_token: _,
        optimizer_hints: _,
        table,
        assignments,
        from,
        selection,
        returning,
        output,
        or,
        order_by,
        limit,
    } = update;
    refuse(&[
        (matches!(from, Some(UpdateTableFromKind::BeforeSet(_))), "FROM in front of SET"),
        (
            output.is_some() || or.is_some() || !order_by.is_empty() || limit.is_some(),
            "a clause of another database's UPDATE",
        ),
    ])?;
    let (name, alias) = one_table(&table, "UPDATE")?;
    let others = match from {
        Some(UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from)) => from,
        None => Vec::new(),
    };
    if let Some(selection) = &selection {
        check_query(selection)?;
    }
    let target = Target::new(name, alias, with, others, returning)?;
    Ok(Update { target, assignments: assignments::read(assignments)?, selection })
}

impl Update {
    /// Assignments and condition, if that is all there is to it but for RETURNING.
    pub(crate) fn plain(&self) -> Option<(&Assignments, Option<&Expr>)> {
        self.target.is_plain().then_some((&self.assignments, self.selection.as_ref()))
    }

    /// The SELECT of row references and new values, one for each column of `schema`, then `more`. With FROM, rows of
    /// one reference follow one another, in the order of all values.
    ///
    /// # Errors
    /// 42703 when an assigned column does not exist.
    pub(crate) fn to_select(&self, schema: &TableSchema, more: Vec<Expr>) -> Result<Query> {
        let target = &self.target;
        let mut items = vec![target.row_ref()];
        items.extend(self.assignments.items(schema, target)?);
        items.extend(carried(more));
        SelectOf {
            with: target.with().cloned(),
            items,
            from: target.from()?,
            selection: self.selection.clone(),
            sorted: target.has_others(),
        }
        .query()
    }
}
