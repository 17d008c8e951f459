//! DELETE.

use datafusion::sql::sqlparser::ast::{Delete as AstDelete, Expr, FromTable, Query, With};
use mainstem_storage::{Error, Result};

use super::super::check_query;
use super::select::SelectOf;
use super::target::{Target, carried, one_table};
use crate::sql::refuse::refuse;

/// DELETE.
#[derive(Clone, Debug)]
pub(crate) struct Delete {
    pub(crate) target: Target,
    selection: Option<Expr>,
}

/// Reads a DELETE, `with` the queries in front of it.
pub(in super::super) fn delete(delete: AstDelete, with: Option<With>) -> Result<Delete> {
    let AstDelete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from,
        using,
        selection,
        returning,
        output,
        order_by,
        limit,
    } = delete;
    refuse(&[
        (!tables.is_empty() || output.is_some(), "a clause of another database's DELETE"),
        (!order_by.is_empty() || limit.is_some(), "DELETE with ORDER BY or LIMIT (use a subquery)"),
    ])?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let [table] = from.as_slice() else { return Err(Error::unsupported("DELETE from several tables")) };
    let (name, alias) = one_table(table, "DELETE")?;
    if let Some(selection) = &selection {
        check_query(selection)?;
    }
    Ok(Delete { target: Target::new(name, alias, with, using.unwrap_or_default(), returning)?, selection })
}

impl Delete {
    /// The condition, if that is all there is to it but for RETURNING.
    pub(crate) fn plain_selection(&self) -> Option<Option<&Expr>> {
        self.target.is_plain().then_some(self.selection.as_ref())
    }

    /// The SELECT of row references, then `more`. With USING a row may come several times; those of one reference then
    /// follow one another, in the order of all values, if there is `more` than the reference.
    ///
    /// # Errors
    /// Internal only.
    pub(crate) fn to_select(&self, more: Vec<Expr>) -> Result<Query> {
        let target = &self.target;
        let sorted = target.has_others() && !more.is_empty();
        let mut items = vec![target.row_ref()];
        items.extend(carried(more));
        SelectOf {
            with: target.with().cloned(),
            items,
            from: target.from()?,
            selection: self.selection.clone(),
            sorted,
        }
        .query()
    }
}
