//! INSERT, UPDATE and DELETE.
//!
//! Each runs a SELECT of its own (`sql::dml`), and writes what comes: `conflict` decides for each row of an INSERT ... ON
//! CONFLICT, `returning` keeps the rows and computes what the statement gives back, before its writes are applied.

mod conflict;
mod returning;
mod stand_in;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Field, Schema, SchemaRef, UInt64Type};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Query, Statement as Ast};
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::RowRef;
use mainstem_storage::row::check_batch;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::{StatementWrites, Transaction};
use mainstem_storage::{Error, ErrorKind, Result};

use super::assign::{assign, check};
use crate::session::{Environment, Rows};
use crate::sql::{Delete, Insert, Statement, Update};
use conflict::{Conflicts, Settled};
use returning::Returning;
use stand_in::check_row_wise;

/// What a statement wrote, and what its RETURNING gives.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) returned: Option<Rows>,
}

/// Where the rows of a running statement go.
struct Sink {
    table: Arc<TableSchema>,
    arrow: SchemaRef,
    writes: StatementWrites,
    returning: Option<Returning>,
}

impl Sink {
    fn new(transaction: &Transaction, table: &Arc<TableSchema>, returning: Option<Returning>) -> Self {
        let arrow = nullable_schema(table);
        Self { table: table.clone(), arrow, writes: transaction.statement(), returning }
    }

    /// Inserts rows of `values`, one array a column; `carried` is for RETURNING.
    fn insert(&mut self, values: Vec<ArrayRef>, carried: &[ArrayRef]) -> Result<()> {
        let batch = RecordBatch::try_new(self.arrow.clone(), values)?;
        self.writes.insert(&self.table, &batch)?;
        match &mut self.returning {
            Some(returning) => returning.keep(batch.columns(), carried, batch.num_rows()),
            None => Ok(()),
        }
    }

    /// Ends the statement, which wrote `rows`.
    fn finish(self, env: &mut Environment<'_>, transaction: &mut Transaction, rows: u64) -> Result<Written> {
        // First, because its errors undo the statement.
        let returned = self.returning.map(|returning| returning.finish(env)).transpose()?;
        transaction.apply(self.writes)?;
        Ok(Written { rows, returned })
    }
}

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

/// Runs an INSERT.
///
/// # Errors
/// Whatever is wrong with it, or with a row; 23505 for a key that is taken.
pub(crate) fn insert(env: &mut Environment<'_>, transaction: &mut Transaction, insert: &Insert) -> Result<Written> {
    let table = table_of(transaction, &insert.target.table)?;
    let mut conflicts = Conflicts::plan(env, transaction, insert, &table)?;
    let returning = Returning::plan(env, transaction, &insert.target, &table, false)?;
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
    let mut sink = Sink::new(transaction, &table, returning);
    for batch in env.start(&plan)?.batches {
        let batch = batch?;
        env.cancel.check()?;
        let values = assigned(&table, &batch, &sources)?;
        match &mut conflicts {
            None => sink.insert(values, &[])?,
            Some(conflicts) => {
                let rows = check_batch(&table, &RecordBatch::try_new(sink.arrow.clone(), values)?)?;
                let Settled { rows, replaced } = conflicts.settle(env, transaction, rows)?;
                sink.writes.delete(&table, &replaced)?;
                sink.insert(rows.columns().to_vec(), &[])?;
            }
        }
    }
    let inserted = sink.writes.inserted();
    sink.finish(env, transaction, inserted)
}

/// Checks that each value of a SELECT of references and new values can be assigned to its column.
fn check_assigned(plan: &LogicalPlan, table: &TableSchema) -> Result<()> {
    let literals = literal_columns(plan);
    for (at, column) in (1..).zip(&table.columns) {
        let is_literal = literals.get(at).copied().unwrap_or(false);
        check(plan.schema().field(at).data_type(), is_literal, column)?;
    }
    Ok(())
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
        LogicalPlan::Sort(sort) => literal_columns(&sort.input),
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

fn row_refs(batch: &RecordBatch) -> Result<Vec<RowRef>> {
    let refs = batch.columns().first().and_then(|c| c.as_primitive_opt::<UInt64Type>());
    let refs = refs.ok_or_else(|| Error::internal("a write's query gave no row references"))?;
    Ok(refs.values().iter().map(|bits| RowRef::from_bits(*bits)).collect())
}

/// The first row of each reference in batches in which rows of one reference follow one another.
#[derive(Default)]
struct FirstOfEach(Option<RowRef>);

impl FirstOfEach {
    fn of(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let first = row_refs(batch)?.into_iter().map(|row| self.0.replace(row) != Some(row)).collect::<Vec<_>>();
        Ok(filter_record_batch(batch, &BooleanArray::from(first))?)
    }
}

/// Runs an UPDATE. When FROM finds several rows for one of the table, the one with the smallest new values counts.
///
/// # Errors
/// Whatever is wrong with it, or with a new row; 23505 for a key that is taken at the end of the statement.
pub(crate) fn update(env: &mut Environment<'_>, transaction: &mut Transaction, update: &Update) -> Result<Written> {
    let table = table_of(transaction, &update.target.table)?;
    let view = transaction.view(table.id)?;
    let returning = Returning::plan(env, transaction, &update.target, &table, false)?;
    let carried = returning.as_ref().map(Returning::carried).unwrap_or_default();
    let select = update.to_select(&table, carried)?;
    let plan = env.plan(transaction, Ast::Query(Box::new(select)), Some(view))?;
    check_row_wise(&plan, "UPDATE")?;
    check_assigned(&plan, &table)?;
    let sources: Vec<Option<usize>> = (0..table.columns.len()).map(|at| Some(at + 1)).collect();
    let mut sink = Sink::new(transaction, &table, returning);
    let mut first_of_each = update.target.has_others().then(FirstOfEach::default);
    for batch in env.start(&plan)?.batches {
        let mut batch = batch?;
        env.cancel.check()?;
        if let Some(first_of_each) = &mut first_of_each {
            batch = first_of_each.of(&batch)?;
        }
        let rows = row_refs(&batch)?;
        let before = sink.writes.deleted();
        sink.writes.delete(&table, &rows)?;
        if sink.writes.deleted() - before != rows.len() as u64 {
            return Err(Error::invalid(sqlstate::ROW_TWICE, "UPDATE would write a row twice"));
        }
        let carried = batch.columns().get(table.columns.len() + 1..).unwrap_or_default();
        sink.insert(assigned(&table, &batch, &sources)?, carried)?;
    }
    let updated = sink.writes.inserted();
    sink.finish(env, transaction, updated)
}

/// Runs a DELETE. When USING finds several rows for one of the table, RETURNING shows the one with the smallest values.
///
/// # Errors
/// Whatever is wrong with it.
pub(crate) fn delete(env: &mut Environment<'_>, transaction: &mut Transaction, delete: &Delete) -> Result<Written> {
    let table = table_of(transaction, &delete.target.table)?;
    let view = transaction.view(table.id)?;
    let returning = Returning::plan(env, transaction, &delete.target, &table, true)?;
    let carried = returning.as_ref().map(Returning::carried).unwrap_or_default();
    let select = delete.to_select(carried)?;
    let plan = env.plan(transaction, Ast::Query(Box::new(select)), Some(view))?;
    check_row_wise(&plan, "DELETE")?;
    let mut sink = Sink::new(transaction, &table, returning);
    let mut first_of_each = (delete.target.has_others() && sink.returning.is_some()).then(FirstOfEach::default);
    for batch in env.start(&plan)?.batches {
        let mut batch = batch?;
        env.cancel.check()?;
        if let Some(first_of_each) = &mut first_of_each {
            batch = first_of_each.of(&batch)?;
        }
        sink.writes.delete(&table, &row_refs(&batch)?)?;
        if let Some(returning) = &mut sink.returning {
            returning.keep(&[], batch.columns().get(1..).unwrap_or_default(), batch.num_rows())?;
        }
    }
    let deleted = sink.writes.deleted();
    sink.finish(env, transaction, deleted)
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
            let table = table_of(transaction, &insert.target.table)?;
            Ok((insert.query(&table), None))
        }
        Statement::Update(update) => {
            let table = table_of(transaction, &update.target.table)?;
            Ok((Box::new(update.to_select(&table, Vec::new())?), Some(table)))
        }
        Statement::Delete(delete) => {
            let table = table_of(transaction, &delete.target.table)?;
            Ok((Box::new(delete.to_select(Vec::new())?), Some(table)))
        }
        _ => Err(Error::unsupported("EXPLAIN of this statement")),
    }
}
