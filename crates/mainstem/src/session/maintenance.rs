//! VACUUM and ANALYZE, which have nothing to do here.

use mainstem_storage::Result;

use super::{Notice, Outcome, Session};
use crate::sql::Maintenance;

impl Session {
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
