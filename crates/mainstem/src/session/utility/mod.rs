//! Utility statements of a session: DESCRIBE and SUMMARIZE below; SET, RESET and SHOW; VACUUM and ANALYZE, which have
//! nothing to do here.
//! SET, RESET and SHOW; VACUUM and ANALYZE, which have nothing to do here.

mod describe;

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::{Current, Outcome, Session, ready};
use crate::exec::Notice;
use crate::sql::{Maintenance, SettingStatement};
pub(super) use describe::columns;

impl Session {
    /// SET, RESET, SHOW.
    pub(super) fn setting(&mut self, setting: SettingStatement) -> Result<Outcome> {
        match setting {
            SettingStatement::Set { name, value, local } => {
                self.settings.set(&name, value.as_deref(), local)?;
                if local && !matches!(self.current, Current::Open { .. }) {
                    // Checked like any other, and over at once.
                    self.settings.end(true);
                    return Ok(Outcome::done("SET").with_notices(vec![Notice::new(
                        sqlstate::NO_TRANSACTION,
                        "SET LOCAL has no effect outside a transaction",
                    )]));
                }
                Ok(Outcome::done("SET"))
            }
            SettingStatement::Config { name, value, local, column } => {
                self.settings.set(&name, value.as_deref(), local)?;
                let shown = self.settings.show(&name)?;
                if local && !matches!(self.current, Current::Open { .. }) {
                    self.settings.end(true);
                }
                ready("SELECT", &[(&column, vec![shown])])
            }
            SettingStatement::ResetAll => {
                self.settings.reset_all();
                Ok(Outcome::done("RESET"))
            }
            SettingStatement::Show { name } => {
                let value = self.settings.show(&name)?;
                ready("SHOW", &[(&name, vec![value])])
            }
            SettingStatement::ShowAll => {
                let all = self.settings.all();
                ready(
                    "SHOW",
                    &[
                        ("name", all.iter().map(|(name, ..)| (*name).to_string()).collect()),
                        ("setting", all.iter().map(|(_, value, _)| value.clone()).collect()),
                        ("description", all.iter().map(|(.., description)| (*description).to_string()).collect()),
                    ],
                )
            }
            SettingStatement::Transaction(begin) => match &mut self.current {
                Current::Open { read_only, .. } => {
                    if *read_only && !begin.read_only {
                        return Err(Error::unsupported("making a read-only transaction read-write"));
                    }
                    *read_only = begin.read_only;
                    Ok(Outcome::done("SET"))
                }
                _ => Ok(Outcome::done("SET").with_notices(vec![Notice::new(
                    sqlstate::NO_TRANSACTION,
                    "SET TRANSACTION has no effect outside a transaction",
                )])),
            },
        }
    }

    /// VACUUM, ANALYZE: a notice, where their tables are there.
    pub(super) fn maintenance(&mut self, maintenance: &Maintenance) -> Result<Outcome> {
        self.read(|env, transaction| {
            let catalog = transaction.catalog();
            maintenance.tables.iter().try_for_each(|name| env.settings.names().table(&catalog, name).map(drop))
        })?;
        let message = match maintenance.command {
            "VACUUM" => "VACUUM has nothing to do: merges leave deleted rows out by themselves",
            _ => "ANALYZE has nothing to do: statistics are those of the rows themselves",
        };
        Ok(Outcome::done(maintenance.command).with_notices(vec![Notice::new("00000", message)]))
    }
}
