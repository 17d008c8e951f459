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
use crate::plan::write::table_of;
use crate::sql::{Sequence, SetPosition};

/// Runs a `setval`.
///
/// # Errors
/// 42P01 where no column counts under that name, 42P09 where several do; 22003 for a value that the column does not
/// count through; 0A000 to go back: numbers are never given out twice.
pub(crate) fn set_position(env: &Environment<'_>, transaction: &mut Transaction, set: &SetPosition) -> Result<()> {
    let (table, column, identity) = find(env, transaction, set)?;
    let taken = identity.taken_upto(set.value, set.is_called).ok_or_else(|| {
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
    let found = match &set.sequence {
        Sequence::OfColumn { table, column } => {
            let table = table_of(names, transaction, table)?;
            let identity = table.column_named(column).and_then(|column| Some((column.id, column.identity?)));
            identity.map(|(id, identity)| (table.clone(), id, identity))
        }
        Sequence::Named(sequence) => {
            let is_here = |table: &&Arc<TableSchema>| match &sequence.schema {
                Some(schema) => table.namespace == *schema,
                None => names.sees(&table.namespace),
            };
            let columns = catalog.tables().filter(is_here).flat_map(|table| {
                let identities = table.columns.iter().filter_map(|column| Some((column, column.identity?)));
                identities.map(move |(column, identity)| (table, column, identity))
            });
            let mut alike =
                columns.filter(|(table, column, _)| sequence.name == format!("{}_{}_seq", table.name, column.name));
            let first = alike.next().map(|(table, column, identity)| (table.clone(), column.id, identity));
            if alike.next().is_some() {
                let message = format!(
                    "sequence \"{sequence}\" is ambiguous: several IDENTITY columns count under that name; \
                     say pg_get_serial_sequence('table', 'column')"
                );
                return Err(Error::invalid("42P09", message));
            }
            first
        }
    };
    found.ok_or_else(|| {
        let message = format!(
            "relation \"{}\" does not exist: a sequence is that of an IDENTITY column, and called table_column_seq",
            set.sequence
        );
        Error::new(ErrorKind::NotFound, mainstem_storage::error::sqlstate::UNDEFINED_TABLE, message)
    })
}
