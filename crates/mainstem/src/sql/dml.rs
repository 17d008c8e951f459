//! INSERT, UPDATE and DELETE, and the SELECT that each is planned as (contract 6).
//!
//! An UPDATE becomes `SELECT _row_ref, <value of every column> FROM <target> WHERE ...`, a DELETE `SELECT _row_ref FROM
//! <target> WHERE ...`. The target stands under [`TARGET_SCHEMA`], where it shows its row references; everywhere else, the
//! same table in a subquery included, it has none.

use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, CastKind, DataType as SqlType, Delete as AstDelete, Expr, FromTable, Ident,
    Insert as AstInsert, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableObject,
    TableWithJoins, Update as AstUpdate, Value,
};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{DataType, TableSchema};
use mainstem_storage::{Error, Result};

use super::dialect::MainstemDialect;
use super::parse::syntax;
use super::types::sql_name;
use super::{check_query, column_name, fold, table_name};

/// Name of the schema that shows the target of the running write, with its row references, to the write's own SELECT.
pub(crate) const TARGET_SCHEMA: &str = "write_target";
/// Name of the column of row references.
pub(crate) const ROW_REF: &str = "_row_ref";

/// INSERT.
#[derive(Clone, Debug)]
pub(crate) struct Insert {
    pub(crate) table: String,
    /// The named columns; empty means all, in order.
    pub(crate) columns: Vec<String>,
    pub(crate) source: Box<Query>,
}

/// UPDATE.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) table: String,
    alias: Option<Ident>,
    /// Column and value, each column once.
    pub(crate) assignments: Vec<(String, Expr)>,
    selection: Option<Expr>,
}

/// DELETE.
#[derive(Clone, Debug)]
pub(crate) struct Delete {
    pub(crate) table: String,
    alias: Option<Ident>,
    selection: Option<Expr>,
}

/// Reads an INSERT.
pub(super) fn insert(insert: AstInsert) -> Result<Insert> {
    let AstInsert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into,
        table,
        table_alias,
        columns,
        overwrite,
        source,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword,
        on,
        returning,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    let refusals = [
        (on.is_some() || or.is_some() || ignore || replace_into, "INSERT ... ON CONFLICT"),
        (returning.is_some() || output.is_some(), "INSERT ... RETURNING"),
        (table_alias.is_some() || insert_alias.is_some(), "an alias in INSERT"),
        (
            overwrite
                || !assignments.is_empty()
                || partitioned.is_some()
                || !after_columns.is_empty()
                || has_table_keyword
                || priority.is_some()
                || settings.is_some()
                || format_clause.is_some()
                || multi_table_insert_type.is_some()
                || !multi_table_into_clauses.is_empty()
                || !multi_table_when_clauses.is_empty()
                || multi_table_else_clause.is_some(),
            "a clause of another database's INSERT",
        ),
        (source.is_none(), "INSERT ... DEFAULT VALUES"),
    ];
    refuse(&refusals)?;
    if !into {
        return Err(Error::invalid(sqlstate::SYNTAX, "syntax error: INSERT without INTO"));
    }
    let TableObject::TableName(name) = table else {
        return Err(Error::unsupported("INSERT into anything but a table"));
    };
    let Some(source) = source else { return Err(Error::unsupported("INSERT ... DEFAULT VALUES")) };
    check_query(&source)?;
    if let SetExpr::Values(values) = &*source.body {
        values.rows.iter().flat_map(|row| &row.content).try_for_each(refuse_default)?;
    }
    let columns = columns.iter().map(column_name).collect::<Result<Vec<_>>>()?;
    check_once(&columns)?;
    Ok(Insert { table: table_name(&name)?, columns, source })
}

fn check_once(columns: &[String]) -> Result<()> {
    for (at, name) in columns.iter().enumerate() {
        if columns.iter().take(at).any(|before| before == name) {
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, format!("column \"{name}\" is named twice")));
        }
    }
    Ok(())
}

fn refuse_default(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default") => {
            Err(Error::unsupported("DEFAULT as a value"))
        }
        _ => Ok(()),
    }
}

fn refuse(refusals: &[(bool, &str)]) -> Result<()> {
    match refusals.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

impl Insert {
    /// The rows of VALUES, if that is all there is to it.
    pub(crate) fn plain_values(&self) -> Option<Vec<&[Expr]>> {
        let SetExpr::Values(values) = &*self.source.body else { return None };
        let mut plain = query_of("VALUES (1)").ok()?;
        plain.body.clone_from(&self.source.body);
        (plain == self.source).then(|| values.rows.iter().map(|row| row.content.as_slice()).collect())
    }

    /// The query whose rows are inserted into `table`. In a column of VALUES that mixes string literals with other
    /// expressions, each literal is cast to the column's type by itself, as PostgreSQL reads it.
    pub(crate) fn query(&self, table: &TableSchema) -> Box<Query> {
        let mut query = self.source.clone();
        let SetExpr::Values(values) = &mut *query.body else { return query };
        let width = values.rows.first().map_or(0, |row| row.content.len());
        for at in 0..width {
            let column = match self.columns.get(at) {
                Some(name) => table.column_named(name),
                None if self.columns.is_empty() => table.columns.get(at),
                None => None,
            };
            let kinds = values.rows.iter().filter_map(|row| row.content.get(at));
            let strings = kinds.clone().filter(|e| is_string(e)).count();
            let others = kinds.filter(|e| !is_string(e) && !is_null(e)).count();
            let Some(data_type) = column.filter(|_| strings > 0 && others > 0).and_then(|c| ast_type(c.data_type))
            else {
                continue;
            };
            for row in &mut values.rows {
                if let Some(expr) = row.content.get_mut(at).filter(|e| is_string(e)) {
                    *expr = Expr::Cast {
                        kind: CastKind::Cast,
                        expr: Box::new(expr.clone()),
                        data_type: data_type.clone(),
                        array: false,
                        format: None,
                    };
                }
            }
        }
        query
    }
}

fn is_string(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(v) if matches!(v.value, Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_)))
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(v) if matches!(v.value, Value::Null))
}

/// A column type for a cast. Text has no length there: it is checked when it is stored.
pub(crate) fn ast_type(data_type: DataType) -> Option<SqlType> {
    match data_type {
        DataType::Text { .. } => Some(SqlType::Text),
        other => Parser::new(&MainstemDialect).try_with_sql(&sql_name(other)).ok()?.parse_data_type().ok(),
    }
}

/// Reads an UPDATE.
pub(super) fn update(update: AstUpdate) -> Result<Update> {
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
        (from.is_some(), "UPDATE ... FROM (use a subquery)"),
        (returning.is_some() || output.is_some(), "UPDATE ... RETURNING"),
        (or.is_some() || !order_by.is_empty() || limit.is_some(), "a clause of another database's UPDATE"),
    ])?;
    let (name, alias) = target(&table, "UPDATE")?;
    let mut pairs = Vec::with_capacity(assignments.len());
    for Assignment { target, value } in assignments {
        let AssignmentTarget::ColumnName(column) = target else {
            return Err(Error::unsupported("SET with a list of columns"));
        };
        check_query(&value)?;
        refuse_default(&value)?;
        pairs.push((column_name(&column)?, value));
    }
    let columns: Vec<String> = pairs.iter().map(|(column, _)| column.clone()).collect();
    check_once(&columns)?;
    if let Some(selection) = &selection {
        check_query(selection)?;
    }
    Ok(Update { table: name, alias, assignments: pairs, selection })
}

/// Reads a DELETE.
pub(super) fn delete(delete: AstDelete) -> Result<Delete> {
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
        (using.is_some() || !tables.is_empty(), "DELETE ... USING (use a subquery)"),
        (returning.is_some() || output.is_some(), "DELETE ... RETURNING"),
        (!order_by.is_empty() || limit.is_some(), "DELETE with ORDER BY or LIMIT (use a subquery)"),
    ])?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let [table] = from.as_slice() else { return Err(Error::unsupported("DELETE from several tables")) };
    let (name, alias) = target(table, "DELETE")?;
    if let Some(selection) = &selection {
        check_query(selection)?;
    }
    Ok(Delete { table: name, alias, selection })
}

/// Name and alias of the one table that a statement writes.
fn target(table: &TableWithJoins, statement: &str) -> Result<(String, Option<Ident>)> {
    let TableWithJoins { relation, joins } = table;
    check_query(relation)?;
    match relation {
        TableFactor::Table { name, alias, args: None, .. } if joins.is_empty() => {
            let alias = match alias {
                None => None,
                Some(TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => Some(name.clone()),
                Some(alias) => return Err(Error::unsupported(format_args!("the alias \"{alias}\""))),
            };
            Ok((table_name(name)?, alias))
        }
        _ => Err(Error::unsupported(format_args!("{statement} of anything but one table"))),
    }
}

impl Update {
    /// The table's alias.
    pub(crate) fn alias(&self) -> Option<&Ident> {
        self.alias.as_ref()
    }

    /// Assignments and condition, if that is all there is to it.
    pub(crate) fn plain(&self) -> Option<(&[(String, Expr)], Option<&Expr>)> {
        Some((&self.assignments, self.selection.as_ref()))
    }

    /// The SELECT of row references and new values, one for each column of `schema`.
    ///
    /// # Errors
    /// 42703 when an assigned column does not exist.
    pub(crate) fn to_select(&self, schema: &TableSchema) -> Result<Query> {
        for (column, _) in &self.assignments {
            if schema.column_named(column).is_none() {
                return Err(Error::new(
                    mainstem_storage::ErrorKind::NotFound,
                    sqlstate::UNDEFINED_COLUMN,
                    format!("column \"{column}\" of table \"{}\" does not exist", self.table),
                ));
            }
        }
        let qualifier = self.alias.clone().unwrap_or_else(|| quoted(&self.table));
        let mut items = vec![item(compound(&qualifier, ROW_REF), ROW_REF)];
        for (at, column) in schema.columns.iter().enumerate() {
            let value = self.assignments.iter().find(|(name, _)| *name == column.name);
            let expr = value.map_or_else(|| compound(&qualifier, &column.name), |(_, value)| value.clone());
            // Positions, because a column may be called anything.
            items.push(item(expr, &format!("value_{at}")));
        }
        select(items, &self.table, qualifier, self.selection.clone())
    }
}

impl Delete {
    /// The table's alias.
    pub(crate) fn alias(&self) -> Option<&Ident> {
        self.alias.as_ref()
    }

    /// The condition, if that is all there is to it.
    pub(crate) fn plain_selection(&self) -> Option<Option<&Expr>> {
        Some(self.selection.as_ref())
    }

    /// The SELECT of row references.
    ///
    /// # Errors
    /// Internal only.
    pub(crate) fn to_select(&self) -> Result<Query> {
        let qualifier = self.alias.clone().unwrap_or_else(|| quoted(&self.table));
        select(vec![item(compound(&qualifier, ROW_REF), ROW_REF)], &self.table, qualifier, self.selection.clone())
    }
}

/// The tree of a query that we wrote ourselves, to be filled in.
pub(crate) fn query_of(text: &str) -> Result<Box<Query>> {
    let dialect = MainstemDialect;
    Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| parser.parse_query()).map_err(|e| syntax(&e))
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn compound(qualifier: &Ident, column: &str) -> Expr {
    let qualifier = quoted(&fold(qualifier));
    Expr::CompoundIdentifier(vec![qualifier, quoted(column)])
}

fn item(expr: Expr, alias: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(alias) }
}

/// `SELECT items FROM write_target.table AS alias WHERE selection`.
fn select(items: Vec<SelectItem>, table: &str, alias: Ident, where_clause: Option<Expr>) -> Result<Query> {
    let mut query = *query_of("SELECT 1 FROM a AS b")?;
    let SetExpr::Select(body) = &mut *query.body else { return Err(Error::internal("a SELECT parsed as no SELECT")) };
    let Select { projection, from, selection, .. } = &mut **body;
    *projection = items;
    *selection = where_clause;
    for factor in from {
        if let TableFactor::Table { name, alias: Some(as_name), .. } = &mut factor.relation {
            *name = ObjectName::from(vec![quoted(TARGET_SCHEMA), quoted(table)]);
            as_name.name = quoted(&fold(&alias));
        }
    }
    Ok(query)
}
