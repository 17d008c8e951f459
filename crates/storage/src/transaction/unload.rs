//! Unloading what a transaction's snapshot sees, and loading it again.
//!
//! The files are those of [`crate::unload`]. What is unloaded is the snapshot's: a transaction that has written
//! something of its own cannot. What is loaded is a write like others: nobody sees it before the commit, whose record
//! names the new segments.

use std::sync::Arc;

use super::{Transaction, no_table};
use crate::disk::Disk;
use crate::error::{Error, Result, sqlstate};
use crate::ids::{ColumnId, SchemaVersion, TableId};
use crate::schema::{Column, RelationName, TableSchema};
use crate::unload::{Compression, Unload, UnloadManifest, UnloadSummary, Unloaded, UnloadedTable, ViewedTable};
use crate::write_set::DdlChange;

impl Transaction {
    /// Writes all tables and views to the folder `disk`, but for those whose schema `is_passed_over`.
    ///
    /// # Errors
    /// Invalid (25001) when this transaction has written something; Full or Io, Corrupt, those of `go_on`, which is
    /// asked now and then: the folder cannot be loaded then.
    pub fn unload_all(
        &self,
        disk: &dyn Disk,
        compression: Compression,
        is_passed_over: impl Fn(&str) -> bool,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<UnloadSummary> {
        let catalog = self.catalog();
        let is_kept = |name: &str| !is_passed_over(name);
        let tables: Vec<TableId> =
            catalog.tables().filter(|table| is_kept(&table.namespace)).map(|table| table.id).collect();
        let manifest = UnloadManifest {
            whole: true,
            ts: self.read_ts(),
            compression,
            namespaces: catalog.namespaces().filter(|name| is_kept(name)).map(str::to_owned).collect(),
            tables: Vec::new(),
            views: catalog.views().filter(|view| is_kept(&view.name.namespace)).cloned().collect(),
        };
        self.unload(disk, manifest, &tables, go_on)
    }

    /// Writes one table to the folder `disk`.
    ///
    /// # Errors
    /// As [`Transaction::unload_all`]; NotFound (42P01).
    pub fn unload_table(
        &self,
        table: TableId,
        disk: &dyn Disk,
        compression: Compression,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<UnloadSummary> {
        let manifest = UnloadManifest {
            whole: false,
            ts: self.read_ts(),
            compression,
            namespaces: Vec::new(),
            tables: Vec::new(),
            views: Vec::new(),
        };
        self.unload(disk, manifest, &[table], go_on)
    }

    fn unload(
        &self,
        disk: &dyn Disk,
        manifest: UnloadManifest,
        tables: &[TableId],
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<UnloadSummary> {
        if self.has_writes() {
            let message = "UNLOAD cannot run in a transaction that has written something: it writes what is committed";
            return Err(Error::invalid(sqlstate::ACTIVE_TRANSACTION, message));
        }
        let taken = self.numbers_taken()?;
        let of_table = |table: TableId| {
            let found = taken.iter().filter(|((of, _), _)| *of == table);
            found.map(|((_, column), taken)| (*column, *taken)).collect::<Vec<_>>()
        };
        let viewed = |table: &TableId| Ok(ViewedTable { view: self.view(*table)?, numbers: of_table(*table) });
        let views = tables.iter().map(viewed).collect::<Result<Vec<_>>>()?;
        let engine = &self.engine;
        let unload = Unload {
            disk,
            compression: manifest.compression,
            encodings: engine.options.encodings,
            threads: engine.load_threads(),
            go_on: &|| engine.check_open().and_then(|()| go_on()),
        };
        unload.run(manifest, &views)
    }

    /// Makes everything that was unloaded to the folder `disk`, with all rows; returns how many.
    ///
    /// # Errors
    /// Corrupt, which names the file; 42P07 and others for names that are taken; 58P01 where there is nothing; Full or
    /// Io, those of `go_on`. The transaction has part of it then.
    pub fn reload_all(&mut self, disk: &dyn Disk, go_on: &(dyn Fn() -> Result<()> + Sync)) -> Result<u64> {
        let unloaded = Unloaded::open(disk)?;
        let manifest = unloaded.manifest().clone();
        for name in &manifest.namespaces {
            if !self.catalog.has_namespace(name) {
                self.create_namespace(name)?;
            }
        }
        let mut rows = 0;
        for table in &manifest.tables {
            let id = self.create_as(&table.schema, table.schema.relation_name(), &table.numbers)?;
            rows += self.load_runs(&unloaded, table, id, go_on)?;
        }
        for view in &manifest.views {
            self.create_view(view.as_ref().clone())?;
        }
        Ok(rows)
    }

    /// Loads the rows of a table that was unloaded to the folder `disk` into the table `name`; makes it if there is
    /// none. A folder of many tables has one of that name. Returns the rows.
    ///
    /// # Errors
    /// As [`Transaction::reload_all`]; 42P01 for a folder without that table; 42P16 for a table that is defined
    /// otherwise; 23505 for a key that is taken.
    pub fn reload_table(
        &mut self,
        name: &RelationName,
        disk: &dyn Disk,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<u64> {
        let unloaded = Unloaded::open(disk)?;
        let manifest = unloaded.manifest();
        let table = match manifest.tables.as_slice() {
            [one] if !manifest.whole => Some(one),
            tables => tables.iter().find(|table| table.schema.relation_name() == *name),
        };
        let table = table.ok_or_else(|| {
            let message = format!("there is no table \"{name}\" among those that were unloaded");
            Error::new(crate::ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, message)
        })?;
        let present = self.catalog.table_called(name).map(|present| present.id);
        let id = match present {
            Some(id) => id,
            None => self.create_as(&table.schema, name.clone(), &table.numbers)?,
        };
        let rows = self.load_runs(&unloaded, table, id, go_on)?;
        if present.is_some() {
            self.take_numbers(table, id)?;
        }
        Ok(rows)
    }

    /// IDENTITY columns of table `id` give out no value that a row of `table` may have.
    fn take_numbers(&self, table: &UnloadedTable, id: TableId) -> Result<()> {
        let schema = self.catalog.table(id).ok_or_else(no_table)?;
        for (column, taken) in table.numbers.iter().filter(|(_, taken)| *taken > 0) {
            // Both have the same columns in the same order.
            let position = table.schema.position(*column);
            let there = position.and_then(|at| Some((table.schema.columns.get(at)?, schema.columns.get(at)?)));
            let Some((was, is)) = there else { continue };
            let (Some(was), Some(counts)) = (was.identity, is.identity) else { continue };
            let last = i128::from(was.start) + i128::from(taken - 1) * i128::from(was.increment);
            let last = i64::try_from(last).ok().and_then(|last| counts.taken_upto(last, true));
            self.advance_numbers(id, is.id, last.unwrap_or(u64::MAX))?;
        }
        Ok(())
    }

    /// Drops `table` and makes one of its name that is defined by `schema`, empty, with the numbers of IDENTITY columns
    /// going on. Column ids are those of `schema`.
    ///
    /// # Errors
    /// As [`Transaction::drop_table`] and [`Transaction::create_table`].
    pub fn replace_table(&mut self, table: TableId, schema: TableSchema) -> Result<Arc<TableSchema>> {
        let old = self.catalog.table(table).ok_or_else(no_table)?.clone();
        self.drop_table(table)?;
        let id = self.create_as(&schema, schema.relation_name(), &[])?;
        self.go_on_counting(&old, id);
        self.catalog.table(id).cloned().ok_or_else(no_table)
    }

    /// Makes a table like `schema`, called `name`.
    fn create_as(&mut self, schema: &TableSchema, name: RelationName, numbers: &[(ColumnId, u64)]) -> Result<TableId> {
        self.check_may_write()?;
        let RelationName { namespace, name } = name;
        let id = self.engine.next_table();
        let schema = Arc::new(TableSchema { id, version: SchemaVersion(1), namespace, name, ..schema.clone() });
        self.change_catalog(DdlChange::Create(schema.clone()), |catalog| catalog.with_table(schema.clone()))?;
        let counts = |column: &ColumnId| schema.column(*column).is_some_and(|column| column.identity.is_some());
        let mut own = self.numbers.get_or_init(Box::default).lock();
        own.extend(numbers.iter().filter(|(column, _)| counts(column)).map(|(column, taken)| ((id, *column), *taken)));
        Ok(id)
    }

    fn load_runs(
        &mut self,
        unloaded: &Unloaded<'_>,
        table: &UnloadedTable,
        id: TableId,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<u64> {
        let schema = self.catalog.table(id).ok_or_else(no_table)?.clone();
        if let Some(what) = difference(&table.schema, &schema) {
            let message = format!(
                "table \"{}\" was unloaded under another definition: {what}; load it into a table of its own",
                schema.name
            );
            return Err(Error::invalid(sqlstate::INVALID_TABLE, message));
        }
        let engine = self.engine.clone();
        let go_on = || engine.check_open().and_then(|()| go_on());
        let runs = unloaded.runs(table, &schema, &engine.load_target(), engine.load_threads(), &go_on)?;
        let mut writes = self.statement();
        writes.insert_runs(&schema, runs)?;
        let rows = writes.inserted();
        self.apply(writes)?;
        Ok(rows)
    }
}

/// What `there` has otherwise than `here`, as far as rows of the one may not be rows of the other.
fn difference(here: &TableSchema, there: &TableSchema) -> Option<String> {
    let names = |schema: &TableSchema, ids: &[ColumnId]| {
        ids.iter().filter_map(|id| Some(schema.column(*id)?.name.clone())).collect::<Vec<_>>()
    };
    let column = |column: &Column| {
        format!("{} {}{}", column.name, column.data_type, if column.nullable { "" } else { " NOT NULL" })
    };
    let columns = |schema: &TableSchema| schema.columns.iter().map(column).collect::<Vec<_>>();
    let (old, new) = (columns(here), columns(there));
    if old != new {
        return Some(format!("columns ({}), and now ({})", old.join(", "), new.join(", ")));
    }
    let keys = |schema: &TableSchema| {
        let unique = schema.unique_keys.iter().map(|key| names(schema, &key.columns));
        let mut unique: Vec<_> = unique.collect();
        unique.sort();
        (names(schema, &schema.primary_key), unique, names(schema, &schema.sort_key), schema.layout)
    };
    if keys(here) != keys(there) {
        return Some("its keys or its order".to_owned());
    }
    let checks = |schema: &TableSchema| {
        let mut checks: Vec<_> = schema.checks.iter().map(|check| check.expression.clone()).collect();
        checks.sort();
        checks
    };
    (checks(here) != checks(there)).then(|| "its CHECK constraints".to_owned())
}
