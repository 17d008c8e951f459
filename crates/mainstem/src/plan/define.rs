//! What defines things, in a transaction: CREATE TABLE, also of the rows of a query, here; schemas, views and ALTER
//! TABLE below.

mod alter;
mod rebuild;
mod schemas;
mod views;
mod widened;

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
use mainstem_storage::{Error, Result};

use super::columns::nullable_schema;
use super::expressions::Expressions;
use crate::exec::{Environment, Notice};
use crate::sql::{CreateTable, CreateTableAs, ROW_REF, item_names};
pub(crate) use alter::{alter_table, truncate};
use mainstem_postgres::cast::assign;
use mainstem_postgres::types::field_type;
pub(crate) use schemas::{create_schema, drop_objects};
pub(crate) use views::create_view;
use widened::widened;

/// Makes a table.
///
/// # Errors
/// 42P07 when the name is taken, 42P16 and others for a bad definition.
pub(crate) fn create_table(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    create: &CreateTable,
) -> Result<Created> {
    let name = new_name(env, transaction, create)?;
    if let Some(notice) = there_already(transaction, &name, create)? {
        return Ok(Created::There(notice));
    }
    let columns = create
        .columns
        .iter()
        .map(|c| ColumnDefinition {
            default: c.default.as_deref().map(Arc::from),
            identity: c.identity,
            ..ColumnDefinition::new(c.name.clone(), c.data_type, c.nullable)
        })
        .collect();
    let definition = definition(env, name, create, columns)?;
    all_or_nothing(transaction, |transaction| {
        make_namespace(env, transaction, &definition)?;
        let table = transaction.create_table(definition)?;
        validate(env, transaction, table)?;
        Ok(Created::Made { table, rows: 0 })
    })
}

/// What CREATE TABLE IF NOT EXISTS says when there is one.
fn there_already(transaction: &Transaction, name: &RelationName, create: &CreateTable) -> Result<Option<Notice>> {
    if transaction.catalog().relation(name).is_none() {
        return Ok(None);
    }
    let message = format!("relation \"{}\" already exists", create.name);
    if create.if_not_exists {
        return Ok(Some(Notice::new(sqlstate::DUPLICATE_TABLE, format!("{message}, skipping"))));
    }
    Err(Error::invalid(sqlstate::DUPLICATE_TABLE, message))
}

fn definition(
    env: &Environment<'_>,
    name: RelationName,
    create: &CreateTable,
    columns: Vec<ColumnDefinition>,
) -> Result<TableDefinition> {
    Ok(TableDefinition {
        name,
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

/// What the table is called in full.
fn new_name(env: &Environment<'_>, transaction: &Transaction, create: &CreateTable) -> Result<RelationName> {
    let names = env.settings.names();
    if create.temporary || names.says_temporary(&create.name) {
        return names.new_temporary(&create.name);
    }
    names.new_relation(&transaction.catalog(), &create.name)
}

/// Makes the schema of the session's temporary tables when its first one is made.
fn make_namespace(env: &Environment<'_>, transaction: &mut Transaction, definition: &TableDefinition) -> Result<()> {
    let namespace = &definition.name.namespace;
    if env.settings.names().is_temporary(namespace) && !transaction.catalog().has_namespace(namespace) {
        transaction.create_namespace(namespace)?;
    }
    Ok(())
}

/// What became of a CREATE TABLE.
#[derive(Debug)]
pub(crate) enum Created {
    /// It is there, and has so many rows.
    Made { table: TableId, rows: u64 },
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
    let name = new_name(env, transaction, &create.table)?;
    if let Some(notice) = there_already(transaction, &name, &create.table)? {
        return Ok(Created::There(notice));
    }
    // Before there is a table: the query does not see it.
    let plan = env.plan(transaction, Ast::Query(create.query.clone()), None)?;
    let mut names = item_names(&create.query);
    names.truncate(plan.schema().fields().len());
    for (at, name) in create.names.iter().enumerate() {
        match names.get_mut(at) {
            Some(slot) => *slot = Some(name.clone()),
            None => names.push(Some(name.clone())),
        }
    }
    let columns = columns_of(&plan, &names)?;
    let definition = definition(env, name, &create.table, columns)?;
    all_or_nothing(transaction, |transaction| {
        make_namespace(env, transaction, &definition)?;
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
        Ok(Created::Made { table, rows })
    })
}

/// The columns of the rows of `plan`, called `names` as far as they say.
fn columns_of(plan: &LogicalPlan, names: &[Option<String>]) -> Result<Vec<ColumnDefinition>> {
    let fields = plan.schema().fields();
    if names.len() > fields.len() {
        return Err(Error::invalid(sqlstate::SYNTAX, "CREATE TABLE AS names more columns than the query has"));
    }
    let column = |(at, field): (usize, &FieldRef)| {
        let name = names.get(at).and_then(Option::as_ref).unwrap_or(field.name());
        if name.starts_with(ROW_REF) {
            return Err(Error::unsupported(format_args!("the column name \"{name}\", which the engine uses itself,")));
        }
        // A column of nothing but NULL is text, as in PostgreSQL.
        let data_type = match field.data_type() {
            ArrowType::Null => DataType::Text { max_chars: None },
            other => field_type(field).map(|data_type| widened(plan, at, data_type)).ok_or_else(|| {
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
pub(super) fn all_or_nothing<T>(
    transaction: &mut Transaction,
    work: impl FnOnce(&mut Transaction) -> Result<T>,
) -> Result<T> {
    let before = transaction.savepoint();
    let outcome = work(transaction);
    if outcome.is_err() {
        transaction.rollback_to(&before)?;
    }
    transaction.release(before)?;
    outcome
}
