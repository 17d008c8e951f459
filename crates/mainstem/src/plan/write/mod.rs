//! INSERT, UPDATE and DELETE.
//!
//! Each runs a SELECT of its own (`sql::dml`), and writes what comes: `conflict` decides for each row of an INSERT ...
//! ON CONFLICT, `returning` keeps the rows and computes what the statement gives back, before its writes are applied.

mod assign;
mod conflict;
mod lock;
mod returning;
mod stand_in;

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::UInt64Type;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement as Ast};
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::RowRef;
use mainstem_storage::row::check_batch;
use mainstem_storage::schema::{Identity, TableSchema};
use mainstem_storage::transaction::{StatementWrites, Transaction};
use mainstem_storage::{Error, Result};

use super::columns::literal_columns;
use super::expressions::{Expressions, Source};
use super::row_wise::check_row_wise;
use crate::exec::{Environment, KeptPlan, Rows, Running};
use crate::provider::Names;
use crate::sql::{DefaultCells, Delete, Insert, Overriding, Statement, TableName, Update, existing_column};
use assign::{assigned, check_assigned, check_parameters, counted_by};
use conflict::{Conflicts, Settled};
pub(crate) use lock::{lock, unlocked};
use mainstem_postgres::cast::check_assignment;
use returning::Returning;

/// What a statement wrote, and what its RETURNING gives.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) returned: Option<Rows>,
}

/// The kept plan of a write's query, and whether the write has run by it.
#[derive(Debug)]
pub(crate) struct KeptQuery<'a> {
    plan: &'a KeptPlan,
    has_run: Cell<bool>,
}

impl<'a> KeptQuery<'a> {
    pub(crate) fn new(plan: &'a KeptPlan) -> Self {
        Self { plan, has_run: Cell::new(false) }
    }

    pub(crate) fn has_run(&self) -> bool {
        self.has_run.get()
    }
}

/// Where the rows of a running statement go.
struct Sink {
    table: Arc<TableSchema>,
    expressions: Expressions,
    writes: StatementWrites,
    returning: Option<Returning>,
}

impl Sink {
    fn new(transaction: &Transaction, expressions: Expressions, returning: Option<Returning>) -> Self {
        let table = expressions.table().clone();
        Self { table, expressions, writes: transaction.statement(), returning }
    }

    /// Inserts rows of `values`, one array a column; `carried` is for RETURNING.
    fn insert(&mut self, values: Vec<ArrayRef>, carried: &[ArrayRef]) -> Result<()> {
        let batch = self.expressions.checked(values)?;
        let Some(returning) = &mut self.returning else { return self.writes.insert(&self.table, &batch) };
        // As they are stored: lengths cut, blanks gone.
        let batch = check_batch(&self.table, &batch)?;
        self.writes.insert(&self.table, &batch)?;
        returning.keep(batch.columns(), carried, batch.num_rows())
    }

    /// Ends the statement, which wrote `rows`.
    fn finish(self, env: &mut Environment<'_>, transaction: &mut Transaction, rows: u64) -> Result<Written> {
        // First, because its errors undo the statement.
        let returned = self.returning.map(|returning| returning.finish(env)).transpose()?;
        transaction.apply(self.writes)?;
        Ok(Written { rows, returned })
    }
}

/// The table that `name` means.
///
/// # Errors
/// 42P01, 42809.
pub(crate) fn table_of(names: &Names, transaction: &Transaction, name: &TableName) -> Result<Arc<TableSchema>> {
    names.table(&transaction.catalog(), name)
}

/// Where each column of a table takes its values from: the columns of the input are those that `named` names, or all.
pub(super) fn sources_of(table: &TableSchema, named: &[String], given: usize) -> Result<Vec<Source>> {
    let source = |at: Option<usize>| at.filter(|at| *at < given).map_or(Source::Default, Source::Given);
    if named.is_empty() {
        return Ok((0..table.columns.len()).map(|at| source(Some(at))).collect());
    }
    for name in named {
        existing_column(table, name)?;
    }
    Ok(table.columns.iter().map(|c| source(named.iter().position(|name| *name == c.name))).collect())
}

/// The same for an INSERT, whose VALUES may say DEFAULT.
fn sources_of_insert(table: &TableSchema, insert: &Insert, given: usize) -> Result<Vec<Source>> {
    let DefaultCells::Of(cells) = &insert.defaults else { return Ok(vec![Source::Default; table.columns.len()]) };
    check_counts(table, &insert.columns, given)?;
    let mut sources = sources_of(table, &insert.columns, given)?;
    let all = match &*insert.source.body {
        SetExpr::Values(values) => values.rows.len(),
        _ => usize::MAX,
    };
    for (source, column) in sources.iter_mut().zip(&table.columns) {
        if let Source::Given(at) = *source
            && let Some(rows) = cells.get(&at)
        {
            *source = if rows.len() == all { Source::Default } else { Source::GivenBut(at, rows.clone()) };
        }
        match (column.identity, insert.overriding) {
            (Some(_), Some(Overriding::User)) => *source = Source::Default,
            (Some(Identity { always: true, .. }), None) if source.given().is_some() => {
                return Err(Error::invalid(
                    sqlstate::GENERATED_ALWAYS,
                    format!(
                        "cannot insert a non-DEFAULT value into column \"{}\", an identity column defined as GENERATED \
                         ALWAYS; use OVERRIDING SYSTEM VALUE to override",
                        column.name
                    ),
                ));
            }
            _ => {}
        }
    }
    Ok(sources)
}

/// The same, where what `plan` gives may be assigned to the columns.
fn checked_sources(table: &TableSchema, insert: &Insert, plan: &LogicalPlan) -> Result<Vec<Source>> {
    let sources = sources_of_insert(table, insert, plan.schema().fields().len())?;
    let literals = literal_columns(plan);
    for (column, source) in table.columns.iter().zip(&sources) {
        if let Some(at) = source.given() {
            let is_literal = literals.get(at).copied().unwrap_or(false);
            check_assignment(plan.schema().field(at).data_type(), is_literal, column)?;
        }
    }
    Ok(sources)
}

fn check_counts(table: &TableSchema, named: &[String], given: usize) -> Result<()> {
    let wanted = if named.is_empty() { table.columns.len() } else { named.len() };
    let message = if given > wanted {
        format!("INSERT has more expressions ({given}) than target columns ({wanted})")
    } else if given < wanted && !named.is_empty() {
        format!("INSERT has more target columns ({wanted}) than expressions ({given})")
    } else {
        return Ok(());
    };
    Err(Error::invalid(sqlstate::SYNTAX, message))
}

/// Runs an INSERT, by `kept` if its query has a plan that is kept.
///
/// # Errors
/// Whatever is wrong with it, or with a row; 23505 for a key that is taken.
pub(crate) fn insert(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    insert: &Insert,
    kept: Option<&KeptQuery<'_>>,
) -> Result<Written> {
    let table = table_of(env.settings.names(), transaction, &insert.target.table)?;
    let mut conflicts = Conflicts::plan(env, transaction, insert, &table)?;
    let returning = Returning::plan(env, transaction, &insert.target, &table, false)?;
    let (running, sources) = match started(env, transaction, kept)? {
        Some(running) => {
            let given = kept.map_or(0, |kept| kept.plan.columns());
            (running, sources_of_insert(&table, insert, given)?)
        }
        None => {
            let plan = env.plan(transaction, Ast::Query(insert.query(&table)?), None)?;
            let sources = checked_sources(&table, insert, &plan)?;
            (start_insert(env, insert, &plan)?, sources)
        }
    };
    let takes_default = |at: usize| !matches!(sources.get(at), Some(Source::Given(_)));
    let expressions = Expressions::compile(env, transaction, &table, takes_default)?;
    let mut sink = Sink::new(transaction, expressions, returning);
    for batch in running.batches {
        let batch = batch?;
        env.cancel.check()?;
        let values = sink.expressions.fill(transaction, batch.columns(), &sources, batch.num_rows())?;
        match &mut conflicts {
            None => sink.insert(values, &[])?,
            Some(conflicts) => {
                let rows = check_batch(&table, &sink.expressions.checked(values)?)?;
                let Settled { rows, replaced } = conflicts.settle(env, transaction, rows)?;
                sink.writes.delete(&table, &replaced)?;
                sink.insert(rows.columns().to_vec(), &[])?;
            }
        }
    }
    let inserted = sink.writes.inserted();
    sink.finish(env, transaction, inserted)
}

/// Starts the query of an INSERT; rows that are known by their number come in order.
fn start_insert(env: &mut Environment<'_>, insert: &Insert, plan: &LogicalPlan) -> Result<Running> {
    if insert.defaults.is_empty() { env.start(plan) } else { env.start_in_order(plan) }
}

/// Starts the query of a write by the plan that is kept of it, if there is one.
fn started(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    kept: Option<&KeptQuery<'_>>,
) -> Result<Option<Running>> {
    let Some(kept) = kept else { return Ok(None) };
    let running = env.start_kept(transaction, kept.plan)?;
    kept.has_run.set(running.is_some());
    Ok(running)
}

/// The plan of the query of `statement`, a write, to be run again and again; `None` if that would not write the same,
/// or if it plans more than that query.
///
/// # Errors
/// Whatever is wrong with the statement.
pub(crate) fn kept_write(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    statement: &Statement,
) -> Result<Option<KeptPlan>> {
    match statement {
        Statement::Insert(insert) if insert.defaults.is_empty() => {
            let table = table_of(env.settings.names(), transaction, &insert.target.table)?;
            let query = insert.query(&table)?;
            env.kept_for_write(transaction, query, (None, false), |plan| {
                checked_sources(&table, insert, plan).map(drop)
            })
        }
        Statement::Update(update) if !update.target.gives_rows() => {
            let table = table_of(env.settings.names(), transaction, &update.target.table)?;
            let (select, view) = (update.to_select(&table, Vec::new())?, transaction.view(table.id)?);
            env.kept_for_write(transaction, Box::new(select), (Some(view), true), |plan| {
                check_row_wise(plan, "UPDATE")?;
                check_assigned(plan, &table)
            })
        }
        Statement::Delete(delete) if !delete.target.gives_rows() => {
            let table = table_of(env.settings.names(), transaction, &delete.target.table)?;
            let (select, view) = (delete.to_select(Vec::new())?, transaction.view(table.id)?);
            env.kept_for_write(transaction, Box::new(select), (Some(view), false), |plan| {
                check_row_wise(plan, "DELETE")
            })
        }
        _ => Ok(None),
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

/// Runs an UPDATE, by `kept` if its query has a plan that is kept. When FROM finds several rows for one of the table,
/// the one with the smallest new values counts.
///
/// # Errors
/// Whatever is wrong with it, or with a new row; 23505 for a key that is taken at the end of the statement.
pub(crate) fn update(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    update: &Update,
    kept: Option<&KeptQuery<'_>>,
) -> Result<Written> {
    let table = table_of(env.settings.names(), transaction, &update.target.table)?;
    let view = transaction.view(table.id)?;
    let returning = Returning::plan(env, transaction, &update.target, &table, false)?;
    let carried = returning.as_ref().map(Returning::carried).unwrap_or_default();
    let counted = counted_by(&update.assignments, &table)?;
    let running = match started(env, transaction, kept)? {
        Some(running) => {
            check_parameters(&update.assignments, &table, env.parameters)?;
            running
        }
        None => {
            let select = update.to_select(&table, carried)?;
            let plan = env.plan(transaction, Ast::Query(Box::new(select)), Some(view))?;
            check_row_wise(&plan, "UPDATE")?;
            check_assigned(&plan, &table)?;
            env.start(&plan)?
        }
    };
    let expressions = Expressions::compile(env, transaction, &table, |_| false)?;
    let mut sink = Sink::new(transaction, expressions, returning);
    let mut first_of_each = update.target.has_others().then(FirstOfEach::default);
    for batch in running.batches {
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
        let mut values = assigned(&table, &batch)?;
        for at in &counted {
            if let (Some(column), Some(slot)) = (table.columns.get(*at), values.get_mut(*at)) {
                *slot = sink.expressions.numbers(transaction, column, batch.num_rows())?;
            }
        }
        sink.insert(values, carried)?;
    }
    let updated = sink.writes.inserted();
    sink.finish(env, transaction, updated)
}

/// Runs a DELETE, by `kept` if its query has a plan that is kept. When USING finds several rows for one of the table,
/// RETURNING shows the one with the smallest values.
///
/// # Errors
/// Whatever is wrong with it.
pub(crate) fn delete(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    delete: &Delete,
    kept: Option<&KeptQuery<'_>>,
) -> Result<Written> {
    let table = table_of(env.settings.names(), transaction, &delete.target.table)?;
    let view = transaction.view(table.id)?;
    let returning = Returning::plan(env, transaction, &delete.target, &table, true)?;
    let carried = returning.as_ref().map(Returning::carried).unwrap_or_default();
    let running = match started(env, transaction, kept)? {
        Some(running) => running,
        None => {
            let plan = env.plan(transaction, Ast::Query(Box::new(delete.to_select(carried)?)), Some(view))?;
            check_row_wise(&plan, "DELETE")?;
            env.start(&plan)?
        }
    };
    // Nothing is inserted.
    let mut sink = Sink::new(transaction, Expressions::none(&table), returning);
    let mut first_of_each = (delete.target.has_others() && sink.returning.is_some()).then(FirstOfEach::default);
    for batch in running.batches {
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

/// Inserts `batches`, which have the columns that `named` names, or all, in order.
pub(crate) fn append(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    table: &TableName,
    named: &[String],
    batches: &[RecordBatch],
) -> Result<u64> {
    let table = table_of(env.settings.names(), transaction, table)?;
    let given = if named.is_empty() { table.columns.len() } else { named.len() };
    let sources = sources_of(&table, named, given)?;
    let takes_default = |at: usize| sources.get(at) == Some(&Source::Default);
    let mut expressions = Expressions::compile(env, transaction, &table, takes_default)?;
    let mut writes = transaction.statement();
    for batch in batches {
        if batch.num_columns() != given {
            return Err(Error::invalid(
                sqlstate::TYPE_MISMATCH,
                format!("a batch of {} columns for table \"{}\"", batch.num_columns(), table.name),
            ));
        }
        for (column, source) in table.columns.iter().zip(&sources) {
            if let Some(array) = source.given().and_then(|at| batch.columns().get(at)) {
                check_assignment(array.data_type(), false, column)?;
            }
        }
        let values = expressions.fill(transaction, batch.columns(), &sources, batch.num_rows())?;
        writes.insert(&table, &expressions.checked(values)?)?;
    }
    let inserted = writes.inserted();
    transaction.apply(writes)?;
    Ok(inserted)
}

/// The query whose plan EXPLAIN shows for `statement`, and the target it reads with row references.
pub(crate) fn explained(
    names: &Names,
    transaction: &Transaction,
    statement: &Statement,
) -> Result<(Box<Query>, Option<Arc<TableSchema>>)> {
    match statement {
        Statement::Query(query) => Ok((query.clone(), None)),
        Statement::Lock(lock) => Ok((lock.query.clone(), None)),
        Statement::Insert(insert) => {
            let table = table_of(names, transaction, &insert.target.table)?;
            Ok((insert.query(&table)?, None))
        }
        Statement::Update(update) => {
            let table = table_of(names, transaction, &update.target.table)?;
            Ok((Box::new(update.to_select(&table, Vec::new())?), Some(table)))
        }
        Statement::Delete(delete) => {
            let table = table_of(names, transaction, &delete.target.table)?;
            Ok((Box::new(delete.to_select(Vec::new())?), Some(table)))
        }
        _ => Err(Error::unsupported("EXPLAIN of this statement")),
    }
}
