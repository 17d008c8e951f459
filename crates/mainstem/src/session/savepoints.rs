//! The savepoints of an open transaction: names for states of it.
//!
//! A name may be given several times; the newest counts, and those before it come back when it goes (PostgreSQL). Invariant:
//! they stand in the order in which they were made; what is rolled back to stays, what is released goes, with all after it.

use mainstem_storage::transaction::{Savepoint, Transaction};
use mainstem_storage::{Error, ErrorKind, Result};

use crate::sql::state;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Savepoints(Vec<(String, Savepoint)>);

impl Savepoints {
    /// SAVEPOINT.
    pub(super) fn set(&mut self, transaction: &mut Transaction, name: String) {
        self.0.push((name, transaction.savepoint()));
    }

    /// ROLLBACK TO SAVEPOINT.
    pub(super) fn rollback_to(&mut self, transaction: &mut Transaction, name: &str) -> Result<()> {
        let at = self.place_of(name)?;
        self.0.truncate(at + 1);
        match self.0.last() {
            Some((_, savepoint)) => transaction.rollback_to(savepoint),
            None => Err(unknown(name)),
        }
    }

    /// RELEASE SAVEPOINT.
    pub(super) fn release(&mut self, transaction: &mut Transaction, name: &str) -> Result<()> {
        let at = self.place_of(name)?;
        self.0.truncate(at + 1);
        match self.0.pop() {
            Some((_, savepoint)) => transaction.release(savepoint),
            None => Err(unknown(name)),
        }
    }

    fn place_of(&self, name: &str) -> Result<usize> {
        self.0.iter().rposition(|(known, _)| known == name).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, state::UNDEFINED_SAVEPOINT, format!("savepoint \"{name}\" does not exist"))
}
