//! CREATE TABLE, also of the rows of a query, and DROP TABLE in a transaction.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::TableId;
use mainstem_storage::schema::{DataType, RelationName};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, ErrorKind, Result};

use super::assign::assign;
use super::expressions::Expressions;
use super::write::nullable_schema;
use crate::session::{Environment, Notice};
use crate::sql::{CreateTable, CreateTableAs, DropTable, ROW_REF};
use crate::value::sql_type;

/// Makes a table.
///
/// # Errors
/// 42P07 when the name is taken, 42P16 and others for a bad definition.
pub(crate) fn create_table(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    create: &CreateTable,
) -> Result<Vec<Notice>> {
    if let Some(notice) = there_already(transaction, create)? {
        return Ok(vec![notice]);
    }
    let columns = create
        .columns
        .iter()
        .map(|c| ColumnDefinition {
            default: c.default.as_deref().map(Arc::from),
            ..ColumnDefinition::new(c.name.clone(), c.data_type, c.nullable)
        })
        .collect();
    let definition = definition(env, create, columns)?;
    all_or_nothing(transaction, |transaction| {
        let table = transaction.create_table(definition)?;
        validate(env, transaction, table)?;
        Ok(Vec::new())
    })
}

/// What CREATE TABLE IF NOT EXISTS says when there is one.
fn there_already(transaction: &Transaction, create: &CreateTable) -> Result<Option<Notice>> {
    if transaction.catalog().table_named(&create.name).is_none() {
        return Ok(None);
    }
    let message = format!("table \"{}\" already exists", create.name);
    if create.if_not_exists {
        return Ok(Some(Notice::new(sqlstate::DUPLICATE_TABLE, format!("{message}, skipping"))));
    }
    Err(Error::invalid(sqlstate::DUPLICATE_TABLE, message))
}

fn definition(env: &Environment<'_>, create: &CreateTable, columns: Vec<ColumnDefinition>) -> Result<TableDefinition> {
    Ok(TableDefinition {
        name: RelationName::public(&create.name),
        columns,
        primary_key: create.primary_key.clone(),
        primary_key_name: create.primary_key_name.clone(),
        unique_keys: create.unique_keys.clone(),
        checks: create.checks.clone(),
        sort_key: create.sort_key.clone(),
        layout: create.layout,
        options: env.settings.table_options(create.segment_rows, create.delta_rows)?,
    })
}

/// What became of a CREATE TABLE AS.
#[derive(Debug)]
pub(crate) enum Created {
    /// It has so many rows.
    Filled(u64),
    /// There was one before.
    There(Notice),
}

/// Makes a table of the rows of a query, as one statement.
///
/// # Errors
/// As [`create_table`]; those of the query; 42701 for two columns of one name, 42601 for more names than columns.
pub(crate) fn create_table_as(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    create: &CreateTableAs,
) -> Result<Created> {
    if let Some(notice) = there_already(transaction, &create.table)? {
        return Ok(Created::There(notice));
    }
    // Before there is a table: the query does not see it.
    let plan = env.plan(transaction, Ast::Query(create.query.clone()), None)?;
    let columns = columns_of(&plan, &create.names)?;
    let definition = definition(env, &create.table, columns)?;
    all_or_nothing(transaction, |transaction| {
        let table = transaction.create_table(definition)?;
        let schema = transaction.catalog().table(table).cloned();
        let schema = schema.ok_or_else(|| Error::internal("a table that was made is not there"))?;
        let mut writes = transaction.statement();
        if create.with_data {
            for batch in env.start(&plan)?.batches {
                let batch = batch?;
                env.cancel.check()?;
                let values = batch.columns().iter().zip(&schema.columns).map(|(array, column)| assign(array, column));
                let values = values.collect::<Result<Vec<_>>>()?;
                writes.insert(&schema, &RecordBatch::try_new(nullable_schema(&schema), values)?)?;
            }
        }
        let rows = writes.inserted();
        transaction.apply(writes)?;
        Ok(Created::Filled(rows))
    })
}

/// The columns of the rows of `plan`, the first of them called `names`.
fn columns_of(plan: &LogicalPlan, names: &[String]) -> Result<Vec<ColumnDefinition>> {
    let fields = plan.schema().fields();
    if names.len() > fields.len() {
        return Err(Error::invalid(sqlstate::SYNTAX, "CREATE TABLE AS names more columns than the query has"));
    }
    let column = |(at, field): (usize, &FieldRef)| {
        let name = names.get(at).unwrap_or(field.name());
        if name.starts_with(ROW_REF) {
            return Err(Error::unsupported(format_args!("the column name \"{name}\", which the engine uses itself,")));
        }
        // A column of nothing but NULL is text, as in PostgreSQL.
        let data_type = match field.data_type() {
            ArrowType::Null => DataType::Text { max_chars: None },
            other => sql_type(other).ok_or_else(|| {
                Error::unsupported(format_args!("column \"{name}\" of type {}", other.to_string().to_lowercase()))
            })?,
        };
        Ok(ColumnDefinition::new(name.clone(), data_type, true))
    };
    fields.iter().enumerate().map(column).collect()
}

/// Looks at the expressions of a table that is new or changed.
fn validate(env: &mut Environment<'_>, transaction: &Transaction, table: TableId) -> Result<()> {
    let schema = transaction.catalog().table(table).cloned();
    let schema = schema.ok_or_else(|| Error::internal("a table that was made is not there"))?;
    Expressions::validate(env, transaction, &schema)
}

/// Runs `work`, which changes the catalog in several steps; after an error none is done.
fn all_or_nothing<T>(transaction: &mut Transaction, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
    let before = transaction.savepoint();
    let outcome = work(transaction);
    if outcome.is_err() {
        transaction.rollback_to(&before)?;
    }
    transaction.release(before)?;
    outcome
}

/// Drops tables, all or none.
///
/// # Errors
/// 42P01.
pub(crate) fn drop_table(transaction: &mut Transaction, drop: &DropTable) -> Result<Vec<Notice>> {
    let catalog = transaction.catalog();
    let (mut tables, mut notices) = (Vec::new(), Vec::new());
    for name in &drop.names {
        match catalog.table_named(name) {
            Some(table) if tables.contains(&table.id) => {}
            Some(table) => tables.push(table.id),
            None if drop.if_exists => {
                notices.push(Notice::new("00000", format!("table \"{name}\" does not exist, skipping")));
            }
            None => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    sqlstate::UNDEFINED_TABLE,
                    format!("table \"{name}\" does not exist"),
                ));
            }
        }
    }
    for table in tables {
        transaction.drop_table(table)?;
    }
    Ok(notices)
}
