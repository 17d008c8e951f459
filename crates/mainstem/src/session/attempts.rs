//! A write outside a transaction never shows 40001 (contract 2): it is run again.
//!
//! 1. The first attempt runs at *visible*, as a transaction would.
//! 2. The second at *applied*: at visible it would only meet the same undurable commit again. Its answer, errors included,
//!    is held until *visible* reaches what it read.
//! 3. From the third on, the write gate of its table is closed to later writers until it is done. Attempts that do not hold
//!    it wait before they take their snapshot: an older one would only meet the commit that was waited for.

use mainstem_storage::transaction::{Transaction, TransactionMode};
use mainstem_storage::version::Base;
use mainstem_storage::{ErrorKind, Result};

use super::Environment;

/// A write that can be run any number of times, each in a transaction of its own.
pub(super) type Write<'a, T> = &'a mut dyn FnMut(&mut Environment<'_>, &mut Transaction) -> Result<T>;

/// Runs `write` in transactions of its own until one commits or fails for good. `table` is the one it writes to.
pub(super) fn in_own_transaction<T>(env: &mut Environment<'_>, table: Option<&str>, write: Write<'_, T>) -> Result<T> {
    let storage = env.shared.storage.clone();
    let mut gate = None;
    let mut attempt = 1_u32;
    loop {
        env.cancel.check()?;
        let base = if attempt == 1 { Base::Visible } else { Base::Applied };
        let mode = TransactionMode { read_only: false, synchronous: env.settings.synchronous(), base };
        let id = |transaction: &Transaction| Some(transaction.catalog().table_named(table?)?.id);
        let mut transaction = if attempt < 3 { storage.begin_behind_gate(mode, id)? } else { storage.begin(mode)? };
        if let Some(id) = id(&transaction).filter(|_| attempt >= 3 && gate.is_none()) {
            drop(transaction);
            gate = Some(storage.close_write_gate(id));
            // Only now: what was read before the gate closed is old.
            transaction = storage.begin(mode)?;
        }
        let read_ts = transaction.read_ts();
        let outcome = write(env, &mut transaction).and_then(|value| transaction.commit().map(|_| value));
        match outcome {
            Err(error) if error.kind() == ErrorKind::Conflict => attempt += 1,
            outcome => {
                if attempt > 1 {
                    storage.wait_visible(read_ts)?;
                }
                return outcome;
            }
        }
    }
}
