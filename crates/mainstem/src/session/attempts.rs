//! A write outside a transaction never shows 40001 (contract 2): it is run again.
//!
//! 1. The first attempt runs at *visible*, as a transaction would.
//! 2. The second at *applied*: at visible it would only meet the same undurable commit again. Its answer, errors included,
//!    is held until *visible* reaches what it read and wrote.
//! 3. From the third on, the write gate of its table is closed to later writers until it is done. Attempts that do not hold
//!    it wait before they take their snapshot: an older one would only meet the commit that was waited for.

use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::settings::Synchronous;
use mainstem_storage::transaction::{Transaction, TransactionMode};
use mainstem_storage::version::Base;
use mainstem_storage::{Error, ErrorKind, Result};

use super::{Cancel, Environment};
use crate::sql::TableName;

/// A write that can be run any number of times, each in a transaction of its own.
pub(super) type Write<'a, T> = &'a mut dyn FnMut(&mut Environment<'_>, &mut Transaction) -> Result<T>;

/// Runs `write` in transactions of its own until one commits or fails for good. `table` is the one it writes to.
pub(super) fn in_own_transaction<T>(
    env: &mut Environment<'_>,
    table: Option<&TableName>,
    write: Write<'_, T>,
) -> Result<T> {
    let storage = env.shared.storage.clone();
    let mut gate = None;
    let mut attempt = 1_u32;
    loop {
        env.cancel.check()?;
        let base = if attempt == 1 { Base::Visible } else { Base::Applied };
        let mode = TransactionMode { read_only: false, synchronous: env.settings.synchronous(), base };
        let names = env.settings.names().clone();
        let id = |transaction: &Transaction| Some(names.table(&transaction.catalog(), table?).ok()?.id);
        let mut transaction = if attempt < 3 {
            storage.begin_behind_gate(mode, id, || env.cancel.check())?
        } else {
            storage.begin(mode)?
        };
        if let Some(id) = id(&transaction).filter(|_| attempt >= 3 && gate.is_none()) {
            drop(transaction);
            gate = Some(storage.close_write_gate(id, || env.cancel.check())?);
            // Only now: what was read before the gate closed is old.
            transaction = storage.begin(mode)?;
        }
        let read_ts = transaction.read_ts();
        let outcome = write(env, &mut transaction)
            .and_then(|value| transaction.commit_applied().map(|committed| (value, committed)));
        match outcome {
            Err(error) if error.kind() == ErrorKind::Conflict => attempt += 1,
            outcome => {
                // Who waits at the gate may go on while this one waits for the disk: many commits share one fsync.
                drop(gate);
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

/// Runs `write`, a short statement that commits by itself and writes to `table`, until it has committed or fails for good. All its
/// runs begin at *applied*: a row that others are changing all the time would be in its way at *visible*.
pub(super) fn short_in_own_transaction<T>(
    storage: &Database,
    synchronous: Synchronous,
    table: TableId,
    watch: impl Fn() -> Cancel,
    mut write: impl FnMut(Transaction) -> Result<T>,
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
        let transaction = if attempt < 3 {
            storage.begin_behind_gate(mode, |_| Some(table), &mut go_on)?
        } else {
            if gate.is_none() {
                gate = Some(storage.close_write_gate(table, &mut go_on)?);
            }
            storage.begin(mode)?
        };
        let read_ts = transaction.read_ts();
        match write(transaction) {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            outcome => {
                storage.wait_visible(read_ts)?;
                return outcome;
            }
        }
    }
    Err(Error::internal("more runs of a statement than can be counted"))
}
