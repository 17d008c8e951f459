//! Temporary tables: a schema of the session's own, `pg_temp` by name, `pg_temp_N` in the catalog.
//!
//! It is made with the first temporary table and goes, with all that stands in it, when the session ends; what a crash
//! leaves is removed when the database is opened. Others see neither it nor its tables
//! ([`Names::sees`](crate::provider::Names::sees)). ON COMMIT is done as the last thing in each transaction of the
//! session.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mainstem_storage::Result;
use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::settings::Synchronous;
use mainstem_storage::transaction::{Transaction, TransactionMode};
use mainstem_storage::version::Base;

use super::attempts::Targets;
use super::{Current, Session};
use crate::exec::Shared;
use crate::provider::TEMPORARY;
use crate::sql::OnCommit;

/// The tables of a session for which the end of a transaction does something.
#[derive(Debug, Default)]
pub(super) struct Temporary(Vec<(TableId, OnCommit)>);

impl Temporary {
    /// Whether there are none.
    pub(super) fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the end of a transaction does something for `table`. For others nothing is to be done in a transaction
    /// that writes to none of these: they are empty, or gone, since the last one.
    pub(super) fn acts_on(&self, table: TableId) -> bool {
        self.0.iter().any(|(id, _)| *id == table)
    }

    /// What is to be done at the end of `transaction`. Tables that it does not see are gone, or were never made.
    ///
    /// # Errors
    /// Those of storage.
    pub(super) fn end(&self, transaction: &mut Transaction) -> Result<()> {
        for (table, on_commit) in &self.0 {
            if transaction.catalog().table(*table).is_none() {
                continue;
            }
            match on_commit {
                OnCommit::PreserveRows => {}
                OnCommit::DeleteRows if transaction.view(*table)?.statistics_of(&[]).rows == 0 => {}
                OnCommit::DeleteRows => transaction.truncate(*table, false)?,
                OnCommit::Drop => transaction.drop_table(*table)?,
            }
        }
        Ok(())
    }
}

impl Shared {
    /// The name of a new session's temporary schema.
    pub(super) fn next_temporary(&self) -> Arc<str> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        Arc::from(format!("{TEMPORARY}_{number}"))
    }
}

impl Session {
    /// A table was made, with `on_commit`.
    ///
    /// # Errors
    /// Those of storage.
    pub(super) fn note_temporary(&mut self, table: TableId, on_commit: OnCommit) -> Result<()> {
        if on_commit == OnCommit::PreserveRows {
            return Ok(());
        }
        self.temporary.0.push((table, on_commit));
        match self.current {
            // The statement was a transaction of its own: this is the end of it.
            Current::None if on_commit == OnCommit::Drop => self.write(Targets::None, &mut |_, _| Ok(())),
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.current = Current::None;
        let Some(name) = self.settings.names().temporary().map(str::to_owned) else { return };
        let storage = &self.shared.storage;
        if storage.catalog().has_namespace(&name) {
            // Whatever is left is removed when the database is opened.
            let _ = remove(storage, &[name]);
        }
    }
}

/// Removes the temporary tables of sessions that a crash has ended.
///
/// # Errors
/// Those of storage.
pub(crate) fn forget_temporary(storage: &Database) -> Result<()> {
    let catalog = storage.catalog();
    let left: Vec<String> =
        catalog.namespaces().filter(|name| name.starts_with(TEMPORARY)).map(str::to_owned).collect();
    if left.is_empty() || storage.options().read_only { Ok(()) } else { remove(storage, &left) }
}

fn remove(storage: &Database, namespaces: &[String]) -> Result<()> {
    let mode = TransactionMode { read_only: false, synchronous: Synchronous::Off, base: Base::Applied };
    let mut transaction = storage.begin(mode)?;
    let catalog = transaction.catalog();
    for table in catalog.tables().filter(|table| namespaces.contains(&table.namespace)) {
        transaction.drop_table(table.id)?;
    }
    for name in namespaces.iter().filter(|name| catalog.has_namespace(name)) {
        transaction.drop_namespace(name)?;
    }
    transaction.commit().map(|_| ())
}
