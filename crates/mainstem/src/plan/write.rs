//! INSERT, UPDATE and DELETE.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, new_null_array};
use arrow::datatypes::{Field, Schema, SchemaRef, UInt64Type};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Query, Statement as Ast};
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::RowRef;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, ErrorKind, Result};

use super::assign::{assign, check};
use crate::session::{Environment, Running};
use crate::sql::{Delete, Insert, Statement, Update, state};

/// The table called `name`.
///
/// # Errors
/// 42P01.
pub(crate) fn table_of(transaction: &Transaction, name: &str) -> Result<Arc<TableSchema>> {
    transaction.catalog().table_named(name).cloned().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, format!("table \"{name}\" does not exist"))
    })
}

/// The table's Arrow schema with every column nullable: whether NULL is allowed is storage's to say, with a better message.
pub(crate) fn nullable_schema(table: &TableSchema) -> SchemaRef {
    Arc::new(Schema::new(
        table.columns.iter().map(|c| Field::new(&c.name, c.data_type.arrow(), true)).collect::<Vec<_>>(),
    ))
}

/// Where each column of a table takes its values from: a column of the input, or NULL.
pub(super) fn positions(table: &TableSchema, named: &[String], given: usize) -> Result<Vec<Option<usize>>> {
    if named.is_empty() {
        return Ok((0..table.columns.len()).map(|at| (at < given).then_some(at)).collect());
    }
    for name in named {
        if table.column_named(name).is_none() {
            return Err(Error::new(
                ErrorKind::NotFound,
                sqlstate::UNDEFINED_COLUMN,
                format!("column \"{name}\" of table \"{}\" does not exist", table.name),
            ));
        }
    }
    Ok(table.columns.iter().map(|c| named.iter().position(|name| *name == c.name)).collect())
}

fn check_counts(table: &TableSchema, named: &[String], given: usize) -> Result<()> {
    let wanted = if named.is_empty() { table.columns.len() } else { named.len() };
    let message = if given > wanted {
        format!("INSERT has more expressions ({given}) than target columns ({wanted})")
    } else if given < wanted {
        format!(
            "INSERT has more target columns ({wanted}) than expressions ({given}); name the columns that get a value"
        )
    } else {
        return Ok(());
    };
    Err(Error::invalid(sqlstate::SYNTAX, message))
}

/// Runs an INSERT; returns the rows inserted.
pub(crate) fn insert(env: &mut Environment<'_>, transaction: &mut Transaction, insert: &Insert) -> Result<u64> {
    let table = table_of(transaction, &insert.table)?;
    let plan = env.plan(transaction, Ast::Query(insert.query(&table)), None)?;
    let given = plan.schema().fields().len();
    check_counts(&table, &insert.columns, given)?;
    let sources = positions(&table, &insert.columns, given)?;
    let literals = literal_columns(&plan);
    for (column, source) in table.columns.iter().zip(&sources) {
        if let Some(at) = source {
            let is_literal = literals.get(*at).copied().unwrap_or(false);
            check(plan.schema().field(*at).data_type(), is_literal, column)?;
        }
    }
    let Running { schema: _, batches } = env.start(&plan)?;
    let arrow = nullable_schema(&table);
    let mut writes = transaction.statement();
    for batch in batches {
        let batch = batch?;
        env.cancel.check()?;
        let values = assigned(&table, &batch, &sources)?;
        writes.insert(&table, &RecordBatch::try_new(arrow.clone(), values)?)?;
    }
    let inserted = writes.inserted();
    transaction.apply(writes)?;
    Ok(inserted)
}

/// Values of all columns of `table`, taken from `batch`.
pub(super) fn assigned(table: &TableSchema, batch: &RecordBatch, sources: &[Option<usize>]) -> Result<Vec<ArrayRef>> {
    table
        .columns
        .iter()
        .zip(sources)
        .map(|(column, source)| match source.and_then(|at| batch.columns().get(at)) {
            Some(array) => assign(array, column),
            None => Ok(new_null_array(&column.data_type.arrow(), batch.num_rows())),
        })
        .collect()
}

/// Which columns of the plan are string literals as far as strings go: those may spell values of any type.
fn literal_columns(plan: &LogicalPlan) -> Vec<bool> {
    match plan {
        LogicalPlan::Values(values) => (0..plan.schema().fields().len())
            .map(|at| values.values.iter().all(|row| row.get(at).is_some_and(is_literal)))
            .collect(),
        LogicalPlan::Projection(projection) => {
            let below = literal_columns(&projection.input);
            projection
                .expr
                .iter()
                .map(|expr| match expr.clone().unalias() {
                    Expr::Column(column) => projection
                        .input
                        .schema()
                        .maybe_index_of_column(&column)
                        .and_then(|at| below.get(at).copied())
                        .unwrap_or(false),
                    other => is_literal(&other),
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A literal, perhaps cast by the planner to the type of the other rows.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Alias(alias) => is_literal(&alias.expr),
        Expr::Cast(cast) => matches!(&*cast.expr, Expr::Literal(..)),
        _ => false,
    }
}

/// The rows of a write's SELECT must be rows of the target, each once.
fn check_row_wise(plan: &LogicalPlan, statement: &str) -> Result<()> {
    match plan {
        LogicalPlan::Projection(p) => check_row_wise(&p.input, statement),
        LogicalPlan::Filter(f) => check_row_wise(&f.input, statement),
        LogicalPlan::SubqueryAlias(s) => check_row_wise(&s.input, statement),
        LogicalPlan::TableScan(_) => Ok(()),
        LogicalPlan::Aggregate(_) => {
            Err(Error::invalid(state::GROUPING, format!("aggregate functions are not allowed in {statement}")))
        }
        LogicalPlan::Window(_) => {
            Err(Error::invalid("42P20", format!("window functions are not allowed in {statement}")))
        }
        _ => Err(Error::unsupported(format_args!("a set-returning expression in {statement}"))),
    }
}

fn row_refs(batch: &RecordBatch) -> Result<Vec<RowRef>> {
    let refs = batch.columns().first().and_then(|c| c.as_primitive_opt::<UInt64Type>());
    let refs = refs.ok_or_else(|| Error::internal("a write's query gave no row references"))?;
    Ok(refs.values().iter().map(|bits| RowRef::from_bits(*bits)).collect())
}

/// Runs an UPDATE; returns the rows updated.
pub(crate) fn update(env: &mut Environment<'_>, transaction: &mut Transaction, update: &Update) -> Result<u64> {
    let table = table_of(transaction, &update.table)?;
    let target = transaction.view(table.id)?;
    let select = update.to_select(&table)?;
    let plan = env.plan(transaction, Ast::Query(Box::new(select)), Some(target))?;
    check_row_wise(&plan, "UPDATE")?;
    let literals = literal_columns(&plan);
    for (at, column) in table.columns.iter().enumerate() {
        let is_literal = literals.get(at + 1).copied().unwrap_or(false);
        check(plan.schema().field(at + 1).data_type(), is_literal, column)?;
    }
    let Running { schema: _, batches } = env.start(&plan)?;
    let arrow = nullable_schema(&table);
    let sources: Vec<Option<usize>> = (0..table.columns.len()).map(|at| Some(at + 1)).collect();
    let mut writes = transaction.statement();
    for batch in batches {
        let batch = batch?;
        env.cancel.check()?;
        let rows = row_refs(&batch)?;
        let before = writes.deleted();
        writes.delete(&table, &rows)?;
        if writes.deleted() - before != rows.len() as u64 {
            return Err(Error::invalid(sqlstate::ROW_TWICE, "UPDATE would write a row twice"));
        }
        let values = assigned(&table, &batch, &sources)?;
        writes.insert(&table, &RecordBatch::try_new(arrow.clone(), values)?)?;
    }
    let updated = writes.inserted();
    transaction.apply(writes)?;
    Ok(updated)
}

/// Runs a DELETE; returns the rows deleted.
pub(crate) fn delete(env: &mut Environment<'_>, transaction: &mut Transaction, delete: &Delete) -> Result<u64> {
    let table = table_of(transaction, &delete.table)?;
    let target = transaction.view(table.id)?;
    let plan = env.plan(transaction, Ast::Query(Box::new(delete.to_select()?)), Some(target))?;
    check_row_wise(&plan, "DELETE")?;
    let Running { schema: _, batches } = env.start(&plan)?;
    let mut writes = transaction.statement();
    for batch in batches {
        let batch = batch?;
        env.cancel.check()?;
        writes.delete(&table, &row_refs(&batch)?)?;
    }
    let deleted = writes.deleted();
    transaction.apply(writes)?;
    Ok(deleted)
}

/// Inserts `batches`, which have the columns of `table` in order.
pub(crate) fn append(transaction: &mut Transaction, table: &str, batches: &[RecordBatch]) -> Result<u64> {
    let table = table_of(transaction, table)?;
    let arrow = nullable_schema(&table);
    let mut writes = transaction.statement();
    for batch in batches {
        if batch.num_columns() != table.columns.len() {
            return Err(Error::invalid(
                sqlstate::TYPE_MISMATCH,
                format!("a batch of {} columns for table \"{}\"", batch.num_columns(), table.name),
            ));
        }
        let mut values = Vec::with_capacity(table.columns.len());
        for (array, column) in batch.columns().iter().zip(&table.columns) {
            check(array.data_type(), false, column)?;
            values.push(assign(array, column)?);
        }
        writes.insert(&table, &RecordBatch::try_new(arrow.clone(), values)?)?;
    }
    let inserted = writes.inserted();
    transaction.apply(writes)?;
    Ok(inserted)
}

/// The query whose plan EXPLAIN shows for `statement`, and the target it reads with row references.
pub(crate) fn explained(
    transaction: &Transaction,
    statement: &Statement,
) -> Result<(Box<Query>, Option<Arc<TableSchema>>)> {
    match statement {
        Statement::Query(query) => Ok((query.clone(), None)),
        Statement::Insert(insert) => {
            let table = table_of(transaction, &insert.table)?;
            Ok((insert.query(&table), None))
        }
        Statement::Update(update) => {
            let table = table_of(transaction, &update.table)?;
            Ok((Box::new(update.to_select(&table)?), Some(table)))
        }
        Statement::Delete(delete) => {
            let table = table_of(transaction, &delete.table)?;
            Ok((Box::new(delete.to_select()?), Some(table)))
        }
        _ => Err(Error::unsupported("EXPLAIN of this statement")),
    }
}
