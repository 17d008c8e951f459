//! Schema changes of a transaction: seen by itself at once, by others when it commits.
//!
//! Comes in: definitions and changes. Goes out: a catalog of the transaction's own, and [`DdlChange`]s for the commit.
//!
//! 1. A change is made to the transaction's catalog, which says what is wrong with it.
//! 2. What the transaction has written to the table follows: DROP and TRUNCATE forget it; ALTER writes buffered rows
//!    anew under the next version of the definition, runs stay as they are.
//! 3. At the commit [`Transaction::finish_ddl`] says whether schema changes are the whole of the transaction: it has
//!    seen no row, so that they may take the state at their commit (contract 2).
//!
//! Invariants: a change that fails changes nothing; rows that are written aside under an older version keep its columns
//! by their ids. It does not own: conflicts with others (`commit`), expressions, which are SQL here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Transaction, no_table};
use crate::catalog::{Catalog, TableChange, TableDefinition};
use crate::error::Result;
use crate::ids::TableId;
use crate::memory::MemoryKind;
use crate::schema::{RelationName, TableSchema, View};
use crate::write_set::{DdlChange, TableWrites};

impl Transaction {
    /// Makes a table, seen by this transaction at once and by others when it commits.
    ///
    /// # Errors
    /// Invalid: a bad definition, a name that is taken (42P07), or in a namespace that is not there (3F000).
    pub fn create_table(&mut self, definition: TableDefinition) -> Result<TableId> {
        self.check_may_write()?;
        let schema = Arc::new(definition.into_schema(self.engine.next_table())?);
        self.change_catalog(DdlChange::Create(schema.clone()), |catalog| catalog.with_table(schema.clone()))?;
        Ok(schema.id)
    }

    /// Drops a table.
    ///
    /// # Errors
    /// NotFound (42P01).
    pub fn drop_table(&mut self, table: TableId) -> Result<()> {
        self.check_may_write()?;
        let schema = self.catalog.table(table).ok_or_else(no_table)?.clone();
        let made_here = self.has_made(table);
        self.change_catalog(DdlChange::Drop(schema), |catalog| catalog.without_table(table))?;
        if made_here {
            self.writes.ddl.retain(|change| change.table() != Some(table));
        }
        self.writes.tables.remove(&table);
        self.writes.locked.remove(&table);
        self.keys.remove(&table);
        Ok(())
    }

    /// Changes a table's definition by all `changes` of one statement: one version for all of them, which is returned.
    /// Rewrites no stored row. Where a change [looks at rows](TableChange::looks_at_rows), the caller makes sure, in
    /// this transaction, that every row fulfils it.
    ///
    /// # Errors
    /// NotFound (42P01); those of [`TableSchema::with_changes`], and for a new name those of
    /// [`Transaction::create_table`]; Constraint (23502) for a row of this transaction that the new version does not
    /// take; Io, Full.
    pub fn alter_table(&mut self, table: TableId, changes: &[TableChange]) -> Result<Arc<TableSchema>> {
        self.check_may_write()?;
        let before = self.catalog.table(table).ok_or_else(no_table)?.clone();
        let after = Arc::new(before.with_changes(changes)?);
        let looked_at_rows = changes.iter().any(TableChange::looks_at_rows);
        let own = match self.writes.tables.get(&table).cloned() {
            Some(own) => Some(self.under_next_version(&own, &after)?),
            None => None,
        };
        let change = DdlChange::Alter { before, after: after.clone(), looked_at_rows };
        self.change_catalog(change, |catalog| catalog.with_version(after.clone()))?;
        self.keys.remove(&table);
        if let Some(own) = own {
            if let Some(mut keys) = self.new_keys(&after) {
                for keys in &mut keys {
                    own.live_rows_from(0).for_each(|(offset, row)| keys.insert(offset, row));
                }
                self.keys.insert(table, keys);
            }
            self.writes.tables.insert(table, Arc::new(own));
        }
        Ok(after)
    }

    /// Deletes every row of a table, in a time that does not depend on how many there are. With `restart_identity` its
    /// IDENTITY columns begin anew.
    ///
    /// # Errors
    /// NotFound (42P01).
    pub fn truncate(&mut self, table: TableId, restart_identity: bool) -> Result<()> {
        self.check_may_write()?;
        let schema = self.catalog.table(table).ok_or_else(no_table)?.clone();
        if restart_identity {
            self.replaced.remove(&table);
            if let Some(numbers) = self.numbers.get() {
                numbers.lock().retain(|(of, _), _| *of != table);
            }
        }
        if !self.has_made(table) {
            self.writes.ddl.push(DdlChange::Truncate { schema: schema.clone(), restart_identity });
        }
        self.keys.remove(&table);
        // Any commit to the table is now a conflict.
        self.writes.locked.remove(&table);
        if let Some(own) = self.writes.tables.get_mut(&table) {
            *own = Arc::new(own.emptied(&schema, &self.engine.memory, self.own_containers.next_id()));
        }
        Ok(())
    }

    /// Makes a view.
    ///
    /// # Errors
    /// Invalid: the name is taken (42P07), or in a namespace that is not there (3F000).
    pub fn create_view(&mut self, view: View) -> Result<()> {
        self.check_may_write()?;
        let view = Arc::new(view);
        self.change_catalog(DdlChange::CreateView(view.clone()), |catalog| catalog.with_view(view))
    }

    /// Drops a view.
    ///
    /// # Errors
    /// NotFound (42P01).
    pub fn drop_view(&mut self, name: &RelationName) -> Result<()> {
        self.check_may_write()?;
        self.change_catalog(DdlChange::DropView(name.clone()), |catalog| catalog.without_view(name))
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// Invalid: there is one of that name (42P06).
    pub fn create_namespace(&mut self, name: &str) -> Result<()> {
        self.check_may_write()?;
        self.change_catalog(DdlChange::CreateNamespace(name.to_owned()), |catalog| catalog.with_namespace(name))
    }

    /// Drops a namespace.
    ///
    /// # Errors
    /// Invalid: there is none (3F000), or something stands in it (2BP01).
    pub fn drop_namespace(&mut self, name: &str) -> Result<()> {
        self.check_may_write()?;
        self.change_catalog(DdlChange::DropNamespace(name.to_owned()), |catalog| catalog.without_namespace(name))
    }

    /// What a commit must know of the schema changes beside themselves.
    ///
    /// # Errors
    /// Closed.
    pub(super) fn finish_ddl(&mut self) -> Result<()> {
        if self.writes.ddl.is_empty() {
            return Ok(());
        }
        let wrote = self.writes.tables.values().any(|table| !table.is_empty());
        self.writes.alone = !wrote && !self.looked.load(Ordering::Relaxed);
        self.take_own_numbers()?;
        self.writes.catalog = Some(self.catalog.clone());
        Ok(())
    }

    /// Whether this transaction has made the table.
    pub(super) fn has_made(&self, table: TableId) -> bool {
        self.writes.ddl.iter().any(|change| matches!(change, DdlChange::Create(schema) if schema.id == table))
    }

    pub(super) fn change_catalog(
        &mut self,
        change: DdlChange,
        make: impl FnOnce(&Catalog) -> Result<Catalog>,
    ) -> Result<()> {
        self.catalog = Arc::new(make(&self.catalog)?);
        self.writes.ddl.push(change);
        Ok(())
    }

    /// `own` under `after`. Rows for which there is no room twice go aside under the version they have.
    fn under_next_version(&mut self, own: &TableWrites, after: &Arc<TableSchema>) -> Result<TableWrites> {
        let memory = &self.engine.memory;
        let needed = memory.used(MemoryKind::WriteSets) + own.rows().bytes() as u64;
        if needed <= memory.share(MemoryKind::WriteSets) {
            return own.altered(after, memory, self.own_containers.next_id());
        }
        let mut own = own.clone();
        let aside = self.engine.write_aside(&own)?;
        own.spilled(aside, self.own_containers.next_id());
        own.altered(after, memory, self.own_containers.next_id())
    }
}
