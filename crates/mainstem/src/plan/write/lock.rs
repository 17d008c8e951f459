//! SELECT ... FOR UPDATE and FOR SHARE in a transaction.
//!
//! The rows that are read are locked in storage: who changes one of them after the snapshot, or has done so, is a
//! conflict for the transaction, as if it had deleted them (contract 2). Nothing is written, and transactions that but
//! read the same rows so are in nobody's way, be it FOR UPDATE or FOR SHARE.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Schema, UInt64Type};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::RowRef;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::super::shown;
use super::table_of;
use crate::error::from_datafusion;
use crate::exec::{Environment, Rows};
use crate::sql::Lock;

/// The query without the clause, for a transaction that ends with it: nothing can be kept from anybody then.
///
/// # Errors
/// Those of planning; 0A000 where rows of the result are no rows of the table.
pub(crate) fn unlocked(env: &mut Environment<'_>, transaction: &Transaction, lock: &Lock) -> Result<LogicalPlan> {
    table_of(env.settings.names(), transaction, &lock.table)?;
    let plan = env.plan(transaction, Ast::Query(lock.query.clone()), None)?;
    check_rows(&plan)?;
    Ok(plan)
}

/// Runs it; gives the rows.
///
/// # Errors
/// Those of the query; 40001 for a row that somebody else has changed since the snapshot; 0A000 where rows of the
/// result are no rows of the table.
pub(crate) fn lock(env: &mut Environment<'_>, transaction: &mut Transaction, lock: &Lock) -> Result<Rows> {
    // As it was written: what is wrong with it shows without the references.
    unlocked(env, transaction, lock)?;
    let table = table_of(env.settings.names(), transaction, &lock.table)?;
    let view = transaction.view(table.id)?;
    let plan = env.plan(transaction, Ast::Query(Box::new(lock.marked(&table)?)), Some(view))?;
    let running = env.start(&shown(plan)?)?;
    let own: Vec<usize> = (0..running.schema.fields().len())
        .filter(|at| running.schema.fields().get(*at).is_some_and(|field| !Lock::is_reference(field.name())))
        .collect();
    let schema = Arc::new(Schema::new(own.iter().map(|at| running.schema.field(*at).clone()).collect::<Vec<_>>()));
    let memory = env.reservation("FOR UPDATE");
    let (mut batches, mut locked) = (Vec::new(), Vec::new());
    for batch in running.batches {
        let batch = batch?;
        env.cancel.check()?;
        let refs = batch.columns().last().and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let refs = refs.ok_or_else(|| Error::internal("FOR UPDATE lost its rows"))?;
        locked.extend(refs.values().iter().map(|bits| RowRef::from_bits(*bits)));
        let batch = batch.project(&own)?;
        memory
            .try_grow(batch.get_array_memory_size() + refs.len() * size_of::<RowRef>())
            .map_err(|e| from_datafusion(&e))?;
        batches.push(batch);
    }
    // A join finds a row several times.
    locked.sort_unstable_by_key(|row: &RowRef| row.to_bits());
    locked.dedup();
    transaction.lock_rows(&table, &locked)?;
    Ok(Rows::Ready { schema, batches, memory: Some(memory) })
}

/// Checks that each row of `plan` comes from one row of each of its tables.
fn check_rows(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Projection(projection) => check_rows(&projection.input),
        LogicalPlan::Filter(filter) => check_rows(&filter.input),
        LogicalPlan::Sort(sort) => check_rows(&sort.input),
        LogicalPlan::Limit(limit) => check_rows(&limit.input),
        LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) => Ok(()),
        _ => Err(Error::invalid(
            sqlstate::FEATURE_NOT_SUPPORTED,
            "FOR UPDATE and FOR SHARE are not allowed with aggregate and window functions",
        )),
    }
}
