//! Rows that were read FOR UPDATE or FOR SHARE, at the commit of their transaction: validated as if it deleted them
//! (contract 2), at P outside the lock and against what came after P under it. Nothing of them is logged or applied.

use std::sync::Arc;

use super::Validation;
use super::target_rows::{NamedSets, Since, check_live, check_live_since, check_live_under_lock, forward};
use crate::commit::Engine;
use crate::commit::conflict::table_conflict;
use crate::deletes::Lookups;
use crate::error::Result;
use crate::ids::{CommitTs, SchemaVersion};
use crate::schema::TableSchema;
use crate::version::{Root, TableVersion};
use crate::write_set::{DdlChange, LockedRows, RowSets, Standing};

/// The locked rows of one table.
pub(super) struct LockedTable {
    schema: Arc<TableSchema>,
    /// The version of the definition that the table has until this commit.
    expected: SchemaVersion,
    /// As the snapshot names them: what forwarding starts from again.
    named: RowSets,
    /// As of P, after forwarding.
    rows: NamedSets,
    /// The version validated against at P.
    version: Option<Arc<TableVersion>>,
}

impl LockedTable {
    /// `None` where `ddl`, of the same transaction, has emptied the table: then any commit to it is a conflict.
    pub fn new(locked: &LockedRows, ddl: &[DdlChange]) -> Option<Self> {
        let schema = locked.schema().clone();
        let Standing::Kept(expected) = Standing::of(ddl, &schema) else { return None };
        Some(Self { schema, expected, named: locked.sets(), rows: NamedSets::new(), version: None })
    }

    pub fn version(&self) -> Option<&Arc<TableVersion>> {
        self.version.as_ref()
    }

    /// Looks at all of them in `root`, as of P.
    pub fn validate(&mut self, engine: &Engine, root: &Root) -> Result<()> {
        let version = self.find_in(root)?;
        self.look_again(engine, version)
    }

    /// As [`LockedTable::validate`] at a later P, when they were live `after` the last one.
    pub fn validate_since(&mut self, engine: &Engine, root: &Root, after: CommitTs) -> Result<()> {
        let version = self.find_in(root)?;
        if !self.version.as_ref().is_some_and(|then| version.has_rows_placed_as(then)) {
            return self.look_again(engine, version);
        }
        check_live_since(&self.schema, &version, &self.rows, after)?;
        self.version = Some(version);
        Ok(())
    }

    /// Under the lock, in `now`, where all rows are in the places that they had at P.
    pub fn validate_under_lock(&self, now: &TableVersion, since: &Since<'_>, left: &mut Lookups) -> Result<Validation> {
        check_live_under_lock(&self.schema, now, &self.rows, since, left)
    }

    fn find_in(&self, root: &Root) -> Result<Arc<TableVersion>> {
        let version = root.tables.get(&self.schema.id).filter(|version| version.schema.version == self.expected);
        version.cloned().ok_or_else(|| table_conflict(&self.schema))
    }

    fn look_again(&mut self, engine: &Engine, version: Arc<TableVersion>) -> Result<()> {
        self.rows = forward(engine, &self.schema, &version, &self.named, |_| false)?;
        check_live(&self.schema, &version, &self.rows)?;
        self.version = Some(version);
        Ok(())
    }
}
