//! `SET a = 1, (b, c) = (2, 3), (d, e) = (SELECT ...)`.

use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr,
    TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Value,
};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{Column, TableSchema};
use mainstem_storage::{Error, Result};

use super::super::stored::{expression_of, is_default};
use super::super::{check_query, column_name, existing_column};
use super::select::{SelectOf, compound, item};
use super::target::Target;
use super::{check_once, quoted};

/// What SET assigns: each column once.
#[derive(Clone, Debug)]
pub(crate) struct Assignments(Vec<(String, Expr)>);

/// Reads the assignments of a SET.
pub(super) fn read(assignments: Vec<Assignment>) -> Result<Assignments> {
    let mut pairs = Vec::with_capacity(assignments.len());
    for Assignment { target, value } in assignments {
        check_query(&value)?;
        match target {
            AssignmentTarget::ColumnName(column) => pairs.push((column_name(&column)?, value)),
            AssignmentTarget::Tuple(columns) => {
                let columns = columns.iter().map(column_name).collect::<Result<Vec<_>>>()?;
                let values = spread(value, columns.len())?;
                if values.len() != columns.len() {
                    return Err(Error::invalid(
                        sqlstate::SYNTAX,
                        format!("SET assigns {} values to {} columns", values.len(), columns.len()),
                    ));
                }
                pairs.extend(columns.into_iter().zip(values));
            }
        }
    }
    let columns: Vec<String> = pairs.iter().map(|(column, _)| column.clone()).collect();
    check_once(&columns)?;
    Ok(Assignments(pairs))
}

/// The values of a list of `columns` columns.
fn spread(value: Expr, columns: usize) -> Result<Vec<Expr>> {
    match value {
        Expr::Tuple(values) => Ok(values),
        Expr::Nested(value) => Ok(vec![*value]),
        Expr::Subquery(query) => {
            (0..subquery_columns(&query, columns)).map(|at| column_of(&query, at, columns)).collect()
        }
        Expr::Function(row) if row.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = row.args else { return Ok(Vec::new()) };
            list.args
                .into_iter()
                .map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
                    other => Err(Error::unsupported(format_args!("{other} in ROW"))),
                })
                .collect()
        }
        _ => Err(Error::unsupported("a list of columns set to anything but ROW(...), (...) or (SELECT ...)")),
    }
}

/// The items of a SELECT whose other clauses do not count them.
fn plain_items(query: &Query) -> Option<&[SelectItem]> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let plain = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    let counted = select.distinct.is_some() || query.order_by.is_some();
    (!counted && select.projection.iter().all(plain)).then_some(select.projection.as_slice())
}

/// How many columns a subquery has, which should have `columns`.
fn subquery_columns(query: &Query, columns: usize) -> usize {
    plain_items(query).map_or(columns, <[_]>::len)
}

/// Column `at` of a subquery with `columns` columns, as a subquery of its own: DataFusion's have one column each.
fn column_of(query: &Query, at: usize, columns: usize) -> Result<Expr> {
    if let Some(item) = plain_items(query).and_then(|items| items.get(at)) {
        let mut alone = query.clone();
        if let SetExpr::Select(select) = &mut *alone.body {
            select.projection = vec![item.clone()];
        }
        return Ok(Expr::Subquery(Box::new(alone)));
    }
    let name = |at: usize| format!("value_{at}");
    let alias = quoted("set_values");
    let definitions = (0..columns).map(|at| TableAliasColumnDef::from_name(name(at))).collect();
    let derived = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(TableAlias { explicit: true, name: alias.clone(), columns: definitions, at: None }),
        sample: None,
    };
    let select = SelectOf {
        with: None,
        items: vec![SelectItem::UnnamedExpr(compound(&alias, &name(at)))],
        from: vec![TableWithJoins { relation: derived, joins: Vec::new() }],
        selection: None,
        sorted: false,
    };
    Ok(Expr::Subquery(Box::new(select.query()?)))
}

/// What `SET column = DEFAULT` computes.
fn default_of(column: &Column) -> Result<Expr> {
    match &column.default {
        Some(text) => expression_of(text),
        None => Ok(Expr::value(Value::Null)),
    }
}

impl Assignments {
    /// Column and value, each column once.
    pub(crate) fn pairs(&self) -> &[(String, Expr)] {
        &self.0
    }

    /// Column and value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, Expr)> {
        self.0.iter()
    }

    /// The new value of each column of `schema`, that of `target`; a column without an assignment keeps its value.
    ///
    /// # Errors
    /// 42703 when an assigned column does not exist.
    pub(super) fn items(&self, schema: &TableSchema, target: &Target) -> Result<Vec<SelectItem>> {
        for (column, _) in &self.0 {
            existing_column(schema, column)?;
        }
        let mut items = Vec::with_capacity(schema.columns.len());
        for (at, column) in schema.columns.iter().enumerate() {
            let expr = match self.0.iter().find(|(name, _)| *name == column.name) {
                None => target.column_of(schema, &column.name),
                Some((_, value)) if is_default(value) => default_of(column)?,
                Some((_, value)) => value.clone(),
            };
            // Positions, because a column may be called anything.
            items.push(item(expr, &format!("value_{at}")));
        }
        Ok(items)
    }
}
