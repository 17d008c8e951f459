//! Whole tables and databases to folders and back.
//!
//! UNLOAD writes what the snapshot sees in the form that segments have, LOAD takes it back (storage's `unload`). The
//! folder is written aside, and gets its name when all of it is durable. EXPORT and IMPORT do the same by SQL
//! (`export`).

mod dump;
mod export;
mod position;
mod schema_text;

use std::path::Path;

use mainstem_storage::disk::RealDisk;
use mainstem_storage::schema::RelationName;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::unload::Compression;
use mainstem_storage::{Error, Result};

use super::aside::Aside;
use super::define::all_or_nothing;
use super::write::table_of;
use crate::exec::Environment;
use crate::provider::{Names, TEMPORARY};
use crate::sql::{TableName, TransferOf};

pub(crate) use dump::dump;
pub(crate) use export::{export, import_place, import_texts};
pub(crate) use position::set_position;

/// Runs an UNLOAD; returns the rows written.
///
/// # Errors
/// 58P02 for a folder with something in it; 42P01; Io and Full: there is no folder then.
pub(crate) fn unload(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    what: &TransferOf,
    folder: &str,
    compression: Compression,
) -> Result<u64> {
    let aside = Aside::of_folder(folder)?;
    let disk = RealDisk::open(aside.path(), false)?;
    let cancel = env.cancel.clone();
    let go_on = move || cancel.check();
    let written = match what {
        TransferOf::Database => transaction.unload_all(&disk, compression, is_temporary, &go_on),
        TransferOf::Table(name) => {
            let table = table_of(env.settings.names(), transaction, name)?;
            transaction.unload_table(table.id, &disk, compression, &go_on)
        }
    };
    let summary = written.map_err(|e| e.context(format_args!("UNLOAD TO \"{folder}\"")))?;
    aside.install()?;
    Ok(summary.rows)
}

/// Whether `namespace` is that of the temporary tables of a session.
pub(super) fn is_temporary(namespace: &str) -> bool {
    namespace.strip_prefix(TEMPORARY).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Runs a LOAD of what was unloaded; returns the rows.
///
/// # Errors
/// Those of storage: Corrupt, which names the file; 58P01, 42P07, 42P16, 23505.
pub(crate) fn load(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    what: &TransferOf,
    folder: &str,
) -> Result<u64> {
    let in_folder = |e: Error| e.context(format_args!("LOAD FROM \"{folder}\""));
    let disk = RealDisk::open(Path::new(folder), false).map_err(in_folder)?;
    let cancel = env.cancel.clone();
    let go_on = move || cancel.check();
    let loaded = all_or_nothing(transaction, |transaction| match what {
        TransferOf::Database => transaction.reload_all(&disk, &go_on),
        TransferOf::Table(name) => {
            let name = relation_name(env.settings.names(), transaction, name)?;
            transaction.reload_table(&name, &disk, &go_on)
        }
    });
    loaded.map_err(in_folder)
}

/// The table that `name` means, or would mean if it were there.
fn relation_name(names: &Names, transaction: &Transaction, name: &TableName) -> Result<RelationName> {
    match table_of(names, transaction, name) {
        Ok(table) => Ok(table.relation_name()),
        Err(_) => names.new_relation(&transaction.catalog(), name),
    }
}
