//! The early check of a statement (contract 2): rows it deletes or updates that somebody else changed after its
//! snapshot.
//!
//! Comes in: row references of a statement's view. Goes out: 40001, or nothing. Each row is forwarded to where it lives
//! in the present, as a commit would: a row that a merge moved is no conflict, one that was deleted before or after it
//! moved is.
//!
//! Costs O(rows), and nothing when nothing was committed since the snapshot. It decides nothing: what is committed
//! after it has looked is left to the commit.

use crate::commit::Engine;
use crate::commit::conflict::{row_conflict, table_conflict};
use crate::deletes::DeleteLog;
use crate::error::Result;
use crate::ids::{CommitTs, ContainerId, RowRef};
use crate::schema::TableSchema;
use crate::version::{Snapshot, TableVersion};

/// Where the rows of a container are now.
enum Place<'a> {
    /// Where they were, and none was deleted since the snapshot; or in the transaction itself.
    Unchanged,
    /// Where they were.
    Here(&'a DeleteLog),
    /// A merge moved them.
    Moved,
}

impl Engine {
    /// Refuses `rows`, which a view of `schema`'s table at `snapshot` showed, when a later commit changed one of them.
    ///
    /// # Errors
    /// Conflict (40001).
    pub fn check_unchanged(
        &self,
        schema: &TableSchema,
        snapshot: &Snapshot,
        rows: impl IntoIterator<Item = RowRef>,
    ) -> Result<()> {
        if self.timeline.applied() == snapshot.ts() {
            return Ok(());
        }
        let (applied, root) = self.timeline.present();
        // A table that this transaction makes has no rows of others.
        let Some(then) = snapshot.root().tables.get(&schema.id).filter(|_| applied > snapshot.ts()) else {
            return Ok(());
        };
        let now = root.tables.get(&schema.id).filter(|now| now.schema.version == then.schema.version);
        let now = now.ok_or_else(|| table_conflict(schema))?;
        let mut current = None;
        for row in rows {
            let place = match &current {
                Some((container, place)) if *container == row.container() => place,
                _ => &current.insert((row.container(), place_of(row.container(), then, now, snapshot.ts()))).1,
            };
            let changed = match place {
                Place::Unchanged => false,
                Place::Here(deletes) => is_deleted(deletes, row, applied),
                Place::Moved => self.moved_row_is_gone(row, now, applied),
            };
            if changed {
                return Err(row_conflict(schema));
            }
        }
        Ok(())
    }

    fn moved_row_is_gone(&self, row: RowRef, now: &TableVersion, applied: CommitTs) -> bool {
        let row = self.forwardings.resolve(row, |container| now.container(container).is_some());
        row.is_none_or(|row| {
            now.container(row.container()).is_none_or(|holder| is_deleted(holder.deletes(), row, applied))
        })
    }
}

fn place_of<'a>(container: ContainerId, then: &TableVersion, now: &'a TableVersion, at: CommitTs) -> Place<'a> {
    match now.container(container) {
        Some(holder) if holder.deletes().last_delete_ts() <= at => Place::Unchanged,
        Some(holder) => Place::Here(holder.deletes()),
        None if then.container(container).is_some() => Place::Moved,
        None => Place::Unchanged,
    }
}

/// A commit that is being applied does not count yet: run again at *applied*, the statement would only meet it once
/// more.
fn is_deleted(deletes: &DeleteLog, row: RowRef, applied: CommitTs) -> bool {
    deletes.is_deleted_now(row.offset()) && deletes.is_deleted(row.offset(), applied)
}
