//! SELECT ... FOR UPDATE and FOR SHARE, with the names of the rows that it reads beside its own columns.

use datafusion::sql::sqlparser::ast::{
    GroupByExpr, JoinOperator, LockClause, ObjectName, Query, Select, SetExpr, TableAlias, TableFactor, TableWithJoins,
};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::TableSchema;
use mainstem_storage::{Error, ErrorKind, Result};

use super::super::{TableName, check_query, column_name, fold, table_name};
use super::select::{compound, item, target_table};
use super::target::name_of;
use super::{ROW_REF, quoted};

/// Name of the column that names the rows.
const LOCKED: &str = "_row_ref_locked";

/// A SELECT that keeps others from changing the rows it reads.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    /// The table whose rows those are.
    pub(crate) table: TableName,
    /// The SELECT without the clause.
    pub(crate) query: Box<Query>,
    /// What the query calls the table.
    called: String,
}

/// Reads a query with FOR UPDATE or FOR SHARE.
///
/// # Errors
/// 0A000 where rows of the result are not rows of one table; 42P01 when OF names none.
pub(in super::super) fn lock(mut query: Query) -> Result<Lock> {
    let of = match std::mem::take(&mut query.locks).as_slice() {
        // The stronger of the two holds for both.
        [LockClause { lock_type: _, of, nonblock: None }] => of.clone(),
        [_] => return Err(Error::unsupported("NOWAIT, SKIP LOCKED (nothing waits)")),
        _ => return Err(Error::unsupported("several FOR UPDATE, FOR SHARE")),
    };
    check_query(&query)?;
    let SetExpr::Select(select) = &*query.body else { return Err(not_allowed("UNION, INTERSECT, EXCEPT, VALUES")) };
    let Select { distinct, group_by, having, from, .. } = &**select;
    let grouped =
        !matches!(group_by, GroupByExpr::Expressions(exprs, modifiers) if exprs.is_empty() && modifiers.is_empty());
    if distinct.is_some() || grouped || having.is_some() {
        return Err(not_allowed("DISTINCT, GROUP BY, HAVING"));
    }
    let (table, called) = locked_table(from, of.as_ref())?;
    let in_with = |name: &str| {
        query.with.as_ref().is_some_and(|with| with.cte_tables.iter().any(|cte| fold(&cte.alias.name) == name))
    };
    if table.schema.is_none() && in_with(&table.name) {
        return Err(not_allowed("a WITH query"));
    }
    Ok(Lock { table, query: Box::new(query), called })
}

fn not_allowed(what: &str) -> Error {
    Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, format!("FOR UPDATE and FOR SHARE are not allowed with {what}"))
}

/// The one table that is meant, and what it is called.
fn locked_table(from: &[TableWithJoins], of: Option<&ObjectName>) -> Result<(TableName, String)> {
    let outer = from.iter().flat_map(|table| &table.joins).any(|join| {
        !matches!(join.join_operator, JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_))
    });
    if outer {
        return Err(not_allowed("an outer join"));
    }
    let mut factors = from
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    let factor = match of {
        Some(of) => {
            let name = column_name(of)?;
            factors.find(|factor| name_of(factor).as_ref() == Some(&name)).ok_or_else(|| {
                let message = format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause");
                Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, message)
                    .with_object(NamedObject::new(ObjectKind::Table, [name.as_str()]))
            })?
        }
        None => match (factors.next(), factors.next()) {
            (Some(factor), None) => factor,
            (None, _) => return Err(not_allowed("a query without a table")),
            _ => return Err(Error::unsupported("FOR UPDATE of several tables (name one: FOR UPDATE OF t)")),
        },
    };
    match factor {
        TableFactor::Table { name, args: None, alias, .. }
            if alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) =>
        {
            Ok((table_name(name)?, name_of(factor).unwrap_or_default()))
        }
        _ => Err(not_allowed("anything but a table")),
    }
}

impl Lock {
    /// The query with the references of the rows as its last column. `*` may show them too: [`Lock::is_reference`].
    ///
    /// # Errors
    /// Internal only.
    pub(crate) fn marked(&self, table: &TableSchema) -> Result<Query> {
        let mut query = (*self.query).clone();
        let SetExpr::Select(select) = &mut *query.body else { return Err(Error::internal("a SELECT that is none")) };
        let called = quoted(&self.called);
        let target = target_table(&table.name, Some(&called))?.relation;
        let factors = select.from.iter_mut().flat_map(|table| {
            std::iter::once(&mut table.relation).chain(table.joins.iter_mut().map(|join| &mut join.relation))
        });
        for factor in factors {
            if name_of(factor).as_ref() == Some(&self.called)
                && let (TableFactor::Table { name, alias, .. }, TableFactor::Table { name: of_target, .. }) =
                    (factor, &target)
            {
                name.clone_from(of_target);
                alias.get_or_insert_with(|| TableAlias {
                    explicit: true,
                    name: called.clone(),
                    columns: Vec::new(),
                    at: None,
                });
            }
        }
        select.projection.push(item(compound(&called, ROW_REF), LOCKED));
        Ok(query)
    }

    /// Whether a column of [`Lock::marked`] is none of the query's own.
    pub(crate) fn is_reference(name: &str) -> bool {
        name == ROW_REF || name == LOCKED
    }
}
