//! A write outside a transaction never shows 40001 (contract 2): it is run again.
//!
//! 1. The first attempt runs at *visible*, as a transaction would.
//! 2. The second at *applied*: at visible it would only meet the same undurable commit again. Its answer, errors
//!    included, is held until *visible* reaches what it read and wrote.
//! 3. From the third on, the write gate of its table is closed to later writers until it is done. Attempts that do not
//!    hold it wait before they take their snapshot: an older one would only meet the commit that was waited for. DROP
//!    and TRUNCATE of several tables have as many gates ([`Targets`]).
//!
//! Between two attempts it waits for the commit that is being applied: that may be the one that was in its way, and
//! costs one run then.

use mainstem_storage::database::Database;
use mainstem_storage::ids::{CommitTs, TableId};
use mainstem_storage::settings::Synchronous;
use mainstem_storage::transaction::{Transaction, TransactionMode, Waiting};
use mainstem_storage::version::Base;
use mainstem_storage::{Error, ErrorKind, Result};

use crate::exec::{Cancel, Environment};
use crate::provider::Names;
use crate::sql::TableName;

#[cfg(test)]
mod tests;

/// A write that can be run any number of times, each in a transaction of its own.
pub(super) type Write<'a, T> = &'a mut dyn FnMut(&mut Environment<'_>, &mut Transaction) -> Result<T>;

/// The tables that a statement writes to: those that stand already, and have gates.
#[derive(Clone, Copy, Debug)]
pub(super) enum Targets<'a> {
    /// None.
    None,
    /// Those of these names, where there are such tables.
    Tables(&'a [TableName]),
    /// Those in these schemas.
    Schemas(&'a [String]),
}

impl<'a> Targets<'a> {
    pub(super) fn one(table: &'a TableName) -> Self {
        Self::Tables(std::slice::from_ref(table))
    }

    /// In ascending order, as `transaction` sees them: the order in which gates are closed.
    pub(super) fn ids(self, names: &Names, transaction: &Transaction) -> Vec<TableId> {
        let catalog = transaction.catalog();
        let mut ids: Vec<TableId> = match self {
            Self::None => Vec::new(),
            Self::Tables(tables) => {
                tables.iter().filter_map(|name| Some(names.table(&catalog, name).ok()?.id)).collect()
            }
            Self::Schemas(schemas) => {
                catalog.tables().filter(|table| schemas.contains(&table.namespace)).map(|table| table.id).collect()
            }
        };
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Runs `write`, which writes to `targets`, in transactions of its own until one commits or fails for good.
pub(super) fn in_own_transaction<T>(env: &mut Environment<'_>, targets: Targets<'_>, write: Write<'_, T>) -> Result<T> {
    let storage = env.shared.storage.clone();
    let mut gates = Vec::new();
    let mut attempt = 1_u32;
    loop {
        env.cancel.check()?;
        let base = if attempt == 1 { Base::Visible } else { Base::Applied };
        let mode = TransactionMode { read_only: false, synchronous: env.settings.synchronous(), base };
        let names = env.settings.names().clone();
        let ids = |transaction: &Transaction| targets.ids(&names, transaction);
        let mut transaction = if attempt < 3 {
            storage.begin_behind_gate(mode, ids, || env.cancel.check())?
        } else {
            storage.begin(mode)?
        };
        if attempt >= 3 && gates.is_empty() {
            let ids = ids(&transaction);
            drop(transaction);
            for id in ids {
                gates.push(storage.close_write_gate(id, || env.cancel.check())?);
            }
            // Only now: what was read before the gates closed is old.
            transaction = storage.begin(mode)?;
        }
        // Others wait for whoever holds a gate.
        transaction.wait_as(if gates.is_empty() { env.cancel.waiting() } else { Waiting::Never });
        let read_ts = transaction.read_ts();
        let outcome = write(env, &mut transaction)
            .and_then(|value| transaction.commit_applied().map(|committed| (value, committed)));
        match outcome {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                attempt += 1;
                storage.wait_for_commit_under_way()?;
            }
            outcome => {
                storage.note_statement_runs(attempt);
                // Who waits at the gate may go on while this one waits for the disk: many commits share one fsync.
                drop(gates);
                let (outcome, held_until) = match outcome {
                    Ok((value, committed)) => (Ok(value), read_ts.max(committed)),
                    Err(error) => (Err(error), read_ts),
                };
                storage.wait_visible(held_until)?;
                return outcome;
            }
        }
    }
}

/// Which run of a short statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// One of the first: whatever comes in between has it run again.
    Open,
    /// Its table's gate is closed: only a commit that was under way then may have it run again, and no merge.
    BehindGate,
}

/// Runs `write`, a short statement that commits by itself and writes to `table`, until it has committed or fails for
/// good. All its runs begin at *applied*: a row that others are changing all the time would be in its way at *visible*.
/// `write` also says what has to be visible before anybody is told. How often it runs:
/// `docs/design/0005-last-attempt.md`.
pub(super) fn short_in_own_transaction<T>(
    storage: &Database,
    synchronous: Synchronous,
    table: TableId,
    watch: impl Fn() -> Cancel,
    mut write: impl FnMut(Transaction, Run) -> Result<(T, CommitTs)>,
) -> Result<T> {
    let mode = TransactionMode { read_only: false, synchronous, base: Base::Applied };
    let mut gate = None;
    // Asked for only when it waits, or runs again: the first run takes microseconds.
    let mut cancel = None;
    let mut go_on = || cancel.get_or_insert_with(&watch).check();
    for attempt in 1_u32.. {
        if attempt > 1 {
            go_on()?;
        }
        let (transaction, run) = if attempt < 3 {
            (storage.begin_behind_gate(mode, |_| Some(table), &mut go_on)?, Run::Open)
        } else {
            if gate.is_none() {
                gate = Some(storage.close_write_gate(table, &mut go_on)?);
            }
            let mut transaction = storage.begin(mode)?;
            transaction.wait_as(Waiting::Never);
            (transaction, Run::BehindGate)
        };
        let read_ts = transaction.read_ts();
        match write(transaction, run) {
            Err(error) if error.kind() == ErrorKind::Conflict => storage.wait_for_commit_under_way()?,
            outcome => {
                storage.note_statement_runs(attempt);
                // As above: others may go on meanwhile.
                drop(gate);
                let held_until = outcome.as_ref().map_or(read_ts, |(_, committed)| read_ts.max(*committed));
                storage.wait_visible(held_until)?;
                return outcome.map(|(value, _)| value);
            }
        }
    }
    Err(Error::internal("more runs of a statement than can be counted"))
}
