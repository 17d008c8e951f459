//! `setval`: where an IDENTITY column goes on counting, as dumps say it.
//!
//! There are no sequences by themselves: the one that is named is that of an IDENTITY column, called as PostgreSQL
//! calls it, `table_column_seq`.

use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::{Identity, TableSchema};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, ErrorKind, Result};
use std::sync::Arc;

use crate::exec::Environment;
use crate::sql::SetPosition;

/// Runs a `setval`.
///
/// # Errors
/// 42P01 where no column counts under that name; 22003 for a value that the column does not count through; 0A000 to go
/// back: numbers are never given out twice.
pub(crate) fn set_position(env: &Environment<'_>, transaction: &mut Transaction, set: &SetPosition) -> Result<()> {
    let (table, column, identity) = find(env, transaction, set)?;
    let (start, increment) = (i128::from(identity.start), i128::from(identity.increment));
    let steps = (i128::from(set.value) - start).checked_div(increment).unwrap_or(0);
    let exact = start + steps * increment == i128::from(set.value);
    // Numbers up to the value are taken; the value itself if it was given out, or does not count.
    let taken = steps + i128::from(set.is_called || !exact);
    let taken = if (i128::from(set.value) - start) * increment.signum() < 0 { 0 } else { taken };
    let taken = u64::try_from(taken).map_err(|_| {
        let message = format!("setval: value {} is out of bounds for sequence \"{}\"", set.value, set.sequence);
        Error::invalid("22003", message)
    })?;
    transaction.advance_numbers(table.id, column, taken)
}

/// The column that counts under the name.
fn find(
    env: &Environment<'_>,
    transaction: &Transaction,
    set: &SetPosition,
) -> Result<(Arc<TableSchema>, ColumnId, Identity)> {
    let names = env.settings.names();
    let catalog = transaction.catalog();
    let is_here = |table: &TableSchema| match &set.sequence.schema {
        Some(schema) => table.namespace == *schema,
        None => names.sees(&table.namespace),
    };
    for table in catalog.tables().filter(|table| is_here(table)) {
        for column in &table.columns {
            if let Some(identity) = column.identity
                && set.sequence.name == format!("{}_{}_seq", table.name, column.name)
            {
                return Ok((table.clone(), column.id, identity));
            }
        }
    }
    let message = format!(
        "relation \"{}\" does not exist: a sequence is that of an IDENTITY column, and called table_column_seq",
        set.sequence
    );
    Err(Error::new(ErrorKind::NotFound, mainstem_storage::error::sqlstate::UNDEFINED_TABLE, message))
}
