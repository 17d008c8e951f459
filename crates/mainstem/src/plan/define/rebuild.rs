//! A new PRIMARY KEY or UNIQUE of a table that is there already: its rows are written again, under the key.
//!
//! 1. The rows are read at the snapshot, with what the transaction has written.
//! 2. A table takes the place of the old one: the same columns and name, with the key; a table without an order gets
//!    that of a primary key, as if it had been made with it. IDENTITY columns go on where they were.
//! 3. The rows go in as one statement, which checks the keys.
//!
//! All of it is part of the transaction. A commit to the table since its snapshot is a conflict.

use std::sync::Arc;

use arrow::array::RecordBatch;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::{ColumnId, KeyId};
use mainstem_storage::schema::{Layout, TableSchema, UniqueKey};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::super::columns::nullable_schema;
use super::super::copy_to::rows_of;
use super::alter::{any_null, constraint_names};
use super::views::Over;
use super::{all_or_nothing, validate};
use crate::exec::{Environment, Notice};
use crate::sql::{Constraints, existing_column};

/// Gives `table` the keys of `constraints`.
///
/// # Errors
/// 42703, 42710, 42P16 for the definition; 23502, 23505 for rows that it does not take; 40001; 0A000 for a temporary
/// table.
pub(super) fn add_keys(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    constraints: &Constraints,
) -> Result<Vec<Notice>> {
    if env.settings.names().is_temporary(&table.namespace) {
        return Err(Error::unsupported("a new PRIMARY KEY or UNIQUE of a temporary table"));
    }
    let next = with_keys(table, constraints)?;
    let primary = next.primary_key.iter().filter_map(|id| table.column(*id));
    for column in primary.filter(|column| column.nullable) {
        any_null(env, transaction, table, &column.name)?;
    }
    let over = Over::table(env, transaction, &table.relation_name())?;
    let rows = rows_of(env, transaction, table)?;
    all_or_nothing(transaction, |transaction| {
        let next = transaction.replace_table(table.id, next)?;
        validate(env, transaction, next.id)?;
        let mut writes = transaction.statement();
        for batch in rows.batches {
            let batch = batch?;
            env.cancel.check()?;
            writes.insert(&next, &RecordBatch::try_new(nullable_schema(&next), batch.columns().to_vec())?)?;
        }
        transaction.apply(writes)?;
        over.check(env, transaction, false)
    })
}

/// The definition of `table` with the keys of `constraints`.
fn with_keys(table: &TableSchema, constraints: &Constraints) -> Result<TableSchema> {
    let mut next = TableSchema::clone(table);
    let keys = constraints.clone().into_keys(&table.name, &mut constraint_names(table))?;
    let ids = |columns: &[String]| {
        let mut ids: Vec<ColumnId> = Vec::with_capacity(columns.len());
        for name in columns {
            let id = existing_column(table, name)?.id;
            if ids.contains(&id) {
                let message = format!("column \"{name}\" appears twice in a key");
                return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, message));
            }
            ids.push(id);
        }
        Ok(ids)
    };
    if let Some((name, columns)) = keys.primary {
        if !table.primary_key.is_empty() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
            return Err(Error::invalid(sqlstate::INVALID_TABLE, message));
        }
        next.primary_key = ids(&columns)?;
        next.primary_key_name = Some(name);
        for column in &mut next.columns {
            column.nullable = column.nullable && !next.primary_key.contains(&column.id);
        }
        if next.sort_key.is_empty() {
            next.sort_key.clone_from(&next.primary_key);
            next.layout = Layout::Sorted;
        }
    }
    for (name, columns) in keys.unique {
        let id = next.next_key;
        next.unique_keys.push(UniqueKey { id, columns: ids(&columns)?, name });
        next.next_key = KeyId(id.0 + 1);
    }
    Ok(next)
}
