//! The savepoints of an open transaction: names for states of it.
//!
//! A name may be given several times; the newest counts, and those before it come back when it goes (PostgreSQL).
//! Invariant: they stand in the order in which they were made; what is rolled back to stays, what is released goes,
//! with all after it. Each knows the settings of its time: ROLLBACK TO undoes SET.

use mainstem_storage::transaction::{Savepoint, Transaction};
use mainstem_storage::{Error, ErrorKind, Result};

use crate::exec::SettingsState;
use crate::sql::state;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Savepoints(Vec<Named>);

#[derive(Debug)]
struct Named {
    name: String,
    savepoint: Savepoint,
    settings: SettingsState,
}

impl Savepoints {
    /// SAVEPOINT.
    pub(super) fn set(&mut self, transaction: &mut Transaction, name: String, settings: SettingsState) {
        self.0.push(Named { name, savepoint: transaction.savepoint(), settings });
    }

    /// ROLLBACK TO SAVEPOINT: the settings that come back with it.
    pub(super) fn rollback_to(&mut self, transaction: &mut Transaction, name: &str) -> Result<SettingsState> {
        let at = self.place_of(name)?;
        self.0.truncate(at + 1);
        let Some(named) = self.0.last() else { return Err(unknown(name)) };
        transaction.rollback_to(&named.savepoint)?;
        Ok(named.settings.clone())
    }

    /// RELEASE SAVEPOINT.
    pub(super) fn release(&mut self, transaction: &mut Transaction, name: &str) -> Result<()> {
        let at = self.place_of(name)?;
        self.0.truncate(at + 1);
        match self.0.pop() {
            Some(named) => transaction.release(named.savepoint),
            None => Err(unknown(name)),
        }
    }

    fn place_of(&self, name: &str) -> Result<usize> {
        self.0.iter().rposition(|named| named.name == name).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, state::UNDEFINED_SAVEPOINT, format!("savepoint \"{name}\" does not exist"))
}
