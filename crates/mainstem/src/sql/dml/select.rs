//! Putting SELECTs together.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr,
    TableFactor, TableWithJoins, Value, With,
};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::{Error, Result};

use super::super::dialect::{MainstemDialect, syntax};
use super::{TARGET_SCHEMA, quoted};

/// A SELECT to be.
pub(super) struct SelectOf {
    pub(super) with: Option<With>,
    pub(super) items: Vec<SelectItem>,
    pub(super) from: Vec<TableWithJoins>,
    pub(super) selection: Option<Expr>,
    /// Rows come in the order of all columns.
    pub(super) sorted: bool,
}

impl SelectOf {
    pub(super) fn query(self) -> Result<Query> {
        let mut query = *query_of("SELECT 1")?;
        let columns = self.items.len();
        let SetExpr::Select(body) = &mut *query.body else {
            return Err(Error::internal("a SELECT parsed as no SELECT"));
        };
        let Select { projection, from, selection, .. } = &mut **body;
        *projection = self.items;
        *from = self.from;
        *selection = self.selection;
        query.with = self.with;
        if self.sorted {
            query.order_by = Some(OrderBy { kind: OrderByKind::Expressions(ordinals(columns)), interpolate: None });
        }
        Ok(query)
    }
}

/// `SELECT expr, ... [FROM table]`.
pub(crate) fn select_of(exprs: Vec<Expr>, table: Option<&TableSchema>) -> Result<Query> {
    let items = exprs.into_iter().enumerate().map(|(at, expr)| item(expr, &format!("value_{at}"))).collect();
    let from = match table {
        Some(table) => vec![stored_table(table, &quoted(&table.name))?],
        None => Vec::new(),
    };
    SelectOf { with: None, items, from, selection: None, sorted: false }.query()
}

/// `SELECT items [FROM table AS alias, ...]`: the same table under each of `aliases`.
pub(crate) fn select_over(items: Vec<SelectItem>, table: &TableSchema, aliases: &[&str]) -> Result<Query> {
    let from = aliases.iter().map(|alias| stored_table(table, &quoted(alias))).collect::<Result<_>>()?;
    SelectOf { with: None, items, from, selection: None, sorted: false }.query()
}

/// `SELECT 1 FROM table [WHERE condition] LIMIT 1`.
pub(crate) fn any_row_of(table: &TableSchema, condition: Option<Expr>) -> Result<Query> {
    let items = vec![item(Expr::value(Value::Number("1".to_owned(), false)), "found")];
    let from = vec![stored_table(table, &quoted(&table.name))?];
    let mut query = SelectOf { with: None, items, from, selection: condition, sorted: false }.query()?;
    query.limit_clause = query_of("SELECT 1 LIMIT 1")?.limit_clause;
    Ok(query)
}

/// The tree of a query that we wrote ourselves, to be filled in.
pub(crate) fn query_of(text: &str) -> Result<Box<Query>> {
    let dialect = MainstemDialect::new(text.len());
    Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| parser.parse_query()).map_err(|e| syntax(&e))
}

fn ordinals(columns: usize) -> Vec<OrderByExpr> {
    (1..=columns)
        .map(|number| OrderByExpr {
            expr: Expr::value(Value::Number(number.to_string(), false)),
            options: OrderByOptions { asc: None, nulls_first: None },
            with_fill: None,
        })
        .collect()
}

/// The table as the target of a write, with row references; without `alias` by its own name.
pub(super) fn target_table(table: &str, alias: Option<&Ident>) -> Result<TableWithJoins> {
    named_table(TARGET_SCHEMA, table, alias)
}

/// The table as everybody sees it.
pub(super) fn stored_table(table: &TableSchema, alias: &Ident) -> Result<TableWithJoins> {
    named_table(&table.namespace, &table.name, Some(alias))
}

fn named_table(schema: &str, table: &str, called: Option<&Ident>) -> Result<TableWithJoins> {
    let query = query_of("SELECT 1 FROM a AS b")?;
    let SetExpr::Select(body) = *query.body else { return Err(Error::internal("a SELECT parsed as no SELECT")) };
    let mut named = body.from.into_iter().next().ok_or_else(|| Error::internal("a FROM parsed as none"))?;
    if let TableFactor::Table { name, alias, .. } = &mut named.relation {
        *name = ObjectName::from(vec![quoted(schema), quoted(table)]);
        match (called, &mut *alias) {
            (Some(called), Some(alias)) => alias.name = called.clone(),
            _ => *alias = None,
        }
    }
    Ok(named)
}

/// `expr AS alias`.
pub(super) fn item(expr: Expr, alias: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(alias) }
}

/// `qualifier.column`.
pub(super) fn compound(qualifier: &Ident, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![qualifier.clone(), quoted(column)])
}
