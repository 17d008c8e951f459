//! Schema changes under the commit lock: the catalog and the table versions after them.
//!
//! Comes in: the changes of one transaction, in statement order. Goes out: a root with them, or 40001.
//!
//! 1. [`Engine::edit_root`], before the record is logged: each change on top of the one before. What somebody else has
//!    done to a table or a name since the snapshot is a conflict; DROP, ALTER and TRUNCATE that are the whole of a
//!    transaction take the rows as they are now, so that no stream of writers keeps them from it (contract 2).
//! 2. [`Engine::note_ddl`], behind the record: what the commit state remembers of tables and their numbers.
//!
//! ALTER leaves the active delta frozen ([`Engine::seal`], behind the record) and goes on with one of the next schema
//! version; no container is rewritten (contract 1). TRUNCATE makes a version without containers: older snapshots keep
//! theirs, a merge of what was in it finds its inputs gone and is discarded, and a row that an older writer names is
//! nowhere, which is a conflict (contract 3).
//!
//! Invariants: memory only. A change costs a logarithm of what the catalog has, and the deltas of its table. Where the
//! catalog is still the snapshot's, the transaction's own takes its place; else each change is made to the present one.
//! It does not own: what a change means for a definition (`catalog`), nor numbers that are given out ([`numbers`]).

pub(super) mod blocks;
pub(super) mod ended_numbers;
pub(super) mod numbers;
pub(super) mod record;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::commit::Engine;
use crate::commit::conflict::{catalog_conflict, table_conflict};
use crate::commit::engine::{CommitLock, CommitState, Dropped};
use crate::commit::prepare::{Prepared, PreparedTable};
use crate::delta_store::DeltaGeneration;
use crate::error::Result;
use crate::ids::{ColumnId, CommitTs, TableId};
use crate::memory::MemoryKind;
use crate::schema::TableSchema;
use crate::version::{Root, Snapshot, TableVersion};
use crate::write_set::DdlChange;

/// What a transaction stands on, for the conflicts of its schema changes.
struct Footing<'a> {
    state: &'a CommitState,
    /// Its snapshot.
    since: CommitTs,
    /// Whether schema changes are all it does.
    alone: bool,
}

impl Footing<'_> {
    /// Refuses to change a table that somebody has written to since the snapshot, unless that does not matter.
    fn check_unwritten(&self, schema: &TableSchema, looked_at_rows: bool) -> Result<()> {
        let written = self.state.stamps.get(&schema.id).map_or(CommitTs::ZERO, |stamp| stamp.last_write);
        if written > self.since && (looked_at_rows || !self.alone) {
            return Err(table_conflict(schema));
        }
        Ok(())
    }

    /// Refuses to hand numbers of columns on that others have drawn from since they were `seen`.
    fn check_undrawn(&self, root: &Root, seen: &BTreeMap<(TableId, ColumnId), Option<u64>>) -> Result<()> {
        match seen.iter().find(|(of, mark)| self.state.numbers.get(of) != mark.as_ref()) {
            None => Ok(()),
            Some(((table, _), _)) => {
                Err(root.catalog.table(*table).map_or_else(catalog_conflict, |t| table_conflict(t)))
            }
        }
    }

    /// Refuses to take something away that a view may read which was made since the snapshot.
    fn check_unread(&self) -> Result<()> {
        if self.state.view_made > self.since { Err(catalog_conflict()) } else { Ok(()) }
    }
}

impl Engine {
    /// Applies the schema changes to `root`. A table somebody changed since the snapshot is a conflict (contract 2).
    pub(super) fn edit_root(
        &self,
        root: &mut Root,
        lock: &CommitLock<'_>,
        prepared: &Prepared,
        snapshot: &Snapshot,
        ts: CommitTs,
    ) -> Result<()> {
        let footing = Footing { state: &lock.state, since: snapshot.ts(), alone: prepared.alone };
        footing.check_undrawn(root, &prepared.numbers_seen)?;
        match prepared.catalog.as_ref().filter(|_| Arc::ptr_eq(&root.catalog, &snapshot.root().catalog)) {
            Some(finished) => root.catalog = finished.clone(),
            None => {
                let mut catalog = Catalog::clone(&root.catalog);
                prepared.ddl.iter().try_for_each(|change| edit_catalog(&mut catalog, change))?;
                root.catalog = Arc::new(catalog);
            }
        }
        for (change, fresh) in prepared.ddl.iter().zip(&prepared.fresh) {
            self.edit_by(root, change, fresh.as_ref(), &footing, ts)?;
        }
        Ok(())
    }

    /// The empty delta that `change` needs, if it needs one. Outside the lock, where time to find memory is no matter.
    pub(super) fn fresh_delta(&self, change: &DdlChange, tables: &[PreparedTable]) -> Option<Arc<DeltaGeneration>> {
        let (DdlChange::Create(schema) | DdlChange::Alter { after: schema, .. } | DdlChange::Truncate { schema, .. }) =
            change
        else {
            return None;
        };
        let ours = |table: &&PreparedTable| table.schema.id == schema.id && table.schema.version == schema.version;
        let made = matches!(change, DdlChange::Create(_)).then(|| tables.iter().find(ours)?.first_delta.clone());
        Some(made.flatten().unwrap_or_else(|| self.new_delta(schema)))
    }

    fn new_delta(&self, schema: &Arc<TableSchema>) -> Arc<DeltaGeneration> {
        Arc::new(DeltaGeneration::new(self.next_container(), schema.clone()))
    }

    /// One change to the tables of `root`, whose catalog has all of them.
    fn edit_by(
        &self,
        root: &mut Root,
        change: &DdlChange,
        fresh: Option<&Arc<DeltaGeneration>>,
        footing: &Footing<'_>,
        ts: CommitTs,
    ) -> Result<()> {
        // Somebody may have altered the table that a TRUNCATE alone empties.
        let fresh = |schema: &Arc<TableSchema>| {
            let fits = fresh.filter(|fresh| fresh.schema().version == schema.version);
            fits.cloned().unwrap_or_else(|| self.new_delta(schema))
        };
        match change {
            DdlChange::Create(schema) => {
                let delta = fresh(schema);
                root.tables.insert(schema.id, Arc::new(TableVersion::new(schema.clone(), ts, delta)));
            }
            DdlChange::Drop(schema) => {
                footing.check_unwritten(schema, false)?;
                footing.check_unread()?;
                root.tables.remove(&schema.id);
            }
            DdlChange::Alter { before, after, looked_at_rows } => {
                let present = root.tables.get(&before.id).filter(|version| version.schema.version == before.version);
                let present = present.ok_or_else(|| table_conflict(before))?;
                footing.check_unwritten(before, *looked_at_rows)?;
                footing.check_unread()?;
                let next = present.altered(after.clone(), ts, fresh(after));
                root.tables.insert(after.id, Arc::new(next));
            }
            DdlChange::Truncate { schema, .. } => {
                let present = root.tables.get(&schema.id).ok_or_else(|| table_conflict(schema))?;
                footing.check_unwritten(schema, false)?;
                let next = present.emptied(ts, fresh(&present.schema));
                root.tables.insert(schema.id, Arc::new(next));
            }
            DdlChange::CreateView(_) => {
                if footing.state.relation_changed > footing.since {
                    return Err(catalog_conflict());
                }
            }
            DdlChange::DropView(_) => footing.check_unread()?,
            DdlChange::CreateNamespace(_) | DdlChange::DropNamespace(_) => {}
            // Whoever takes the rows as they are has not been told that the column is gone; a restart would stop at the
            // record.
            DdlChange::TakeNumbers { table, column, .. } => {
                let counts = root.catalog.table(*table).and_then(|schema| schema.column(*column)?.identity);
                counts.ok_or_else(catalog_conflict)?;
            }
        }
        Ok(())
    }

    /// The change stands in the log: what the commit state has of its table follows.
    pub(super) fn note_ddl(&self, lock: &mut CommitLock<'_>, before: &Root, change: &DdlChange, ts: CommitTs) {
        let state = &mut *lock.state;
        match change {
            DdlChange::Create(_) | DdlChange::CreateNamespace(_) | DdlChange::DropNamespace(_) => {}
            DdlChange::Drop(schema) => {
                state.stamps.remove(&schema.id);
                self.end_numbers(state, schema.id, |_| true, ts);
                state.relation_changed = ts;
                self.forget_containers(state, before, schema.id, ts);
            }
            DdlChange::Alter { after, .. } => {
                state.note_write(after.id, ts);
                let ends = |id| after.column(id).is_none_or(|column| column.identity.is_none());
                self.end_numbers(state, after.id, ends, ts);
                state.relation_changed = ts;
            }
            DdlChange::Truncate { schema, restart_identity } => {
                let stamp = state.note_write(schema.id, ts);
                if *restart_identity {
                    stamp.numbers_restarted = ts;
                    self.end_numbers(state, schema.id, |_| true, ts);
                    self.numbers.begin_anew(schema.id);
                }
                self.forget_containers(state, before, schema.id, ts);
            }
            DdlChange::CreateView(_) => state.view_made = ts,
            DdlChange::DropView(_) => state.relation_changed = ts,
            DdlChange::TakeNumbers { table, column, taken } => {
                state.numbers.insert((*table, *column), *taken);
            }
        }
    }

    /// What nobody asks for any more when `change` is made. Outside the lock: it may be a good deal to let go of.
    pub(super) fn forget_rest(&self, change: &DdlChange) {
        if let DdlChange::Drop(schema) = change {
            self.forwardings.forget_table(schema.id);
            self.numbers.forget(schema.id);
        }
    }

    /// Remembers the segments that `table` had, so that their files go when nobody needs them; its deltas are old ones.
    fn forget_containers(&self, state: &mut CommitState, before: &Root, table: TableId, ts: CommitTs) {
        let Some(version) = before.tables.get(&table) else { return };
        for delta in &version.deltas {
            state.delta_starts.forget(delta.id());
            delta.count_as(&self.memory, MemoryKind::OldDeltas);
        }
        if !version.runs.is_empty() {
            state.dropped.push((ts, Dropped::Runs(version.runs.clone())));
        }
    }
}

/// One change to a catalog that somebody else has changed since the snapshot.
fn edit_catalog(catalog: &mut Catalog, change: &DdlChange) -> Result<()> {
    let made = match change {
        DdlChange::Create(schema) => catalog.with_table(schema.clone()),
        DdlChange::Drop(schema) => catalog.without_table(schema.id),
        DdlChange::Alter { after, .. } => catalog.with_version(after.clone()),
        DdlChange::CreateView(view) => catalog.with_view(view.clone()),
        DdlChange::DropView(name) => catalog.without_view(name),
        DdlChange::CreateNamespace(name) => catalog.with_namespace(name),
        DdlChange::DropNamespace(name) => catalog.without_namespace(name),
        DdlChange::Truncate { .. } | DdlChange::TakeNumbers { .. } => return Ok(()),
    };
    *catalog = made.map_err(|_| match change {
        DdlChange::Create(schema) | DdlChange::Drop(schema) | DdlChange::Alter { before: schema, .. } => {
            table_conflict(schema)
        }
        _ => catalog_conflict(),
    })?;
    Ok(())
}
