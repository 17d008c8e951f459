//! What one statement sees of one table.

use std::sync::Arc;

use crate::delta_store::DeltaGeneration;
use crate::ids::{CommitTs, RowRef};
use crate::schema::TableSchema;
use crate::txn::TableWrites;
use crate::version::{Snapshot, TableVersion};

/// A table at a snapshot, with the transaction's own writes of earlier statements. Immutable; pins its snapshot; may be
/// sent to other threads and outlive the transaction.
#[derive(Clone, Debug)]
pub struct TableView {
    schema: Arc<TableSchema>,
    version: Arc<TableVersion>,
    own: Option<Arc<TableWrites>>,
    ts: CommitTs,
    #[expect(dead_code, reason = "held so that what the view reads stays")]
    snapshot: Option<Arc<Snapshot>>,
}

impl TableView {
    /// `version` at `ts`, with `own` writes, under `schema`. `snapshot` keeps it alive.
    #[must_use]
    pub fn new(
        schema: Arc<TableSchema>,
        version: Arc<TableVersion>,
        own: Option<Arc<TableWrites>>,
        ts: CommitTs,
        snapshot: Option<Arc<Snapshot>>,
    ) -> Self {
        Self { schema, version, own, ts, snapshot }
    }

    /// The schema the statement reads under.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The containers.
    #[must_use]
    pub fn version(&self) -> &Arc<TableVersion> {
        &self.version
    }

    /// The transaction's own writes to the table, if it has any.
    #[must_use]
    pub fn own(&self) -> Option<&Arc<TableWrites>> {
        self.own.as_ref()
    }

    /// Commits at or before it are seen.
    #[must_use]
    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Rows of `delta` that began at or before the snapshot: a prefix.
    #[must_use]
    pub fn delta_rows(&self, delta: &DeltaGeneration) -> u32 {
        delta.rows_at(self.ts)
    }

    /// Whether the row that is named, of a container of this view, is seen: neither deleted at the snapshot nor by the
    /// transaction itself. The row must have begun at or before the snapshot.
    #[must_use]
    pub fn is_live(&self, row: RowRef) -> bool {
        if self.own.as_ref().is_some_and(|own| own.is_deleted(row)) {
            return false;
        }
        if row.container().is_own_rows() {
            return true;
        }
        self.version
            .container(row.container())
            .is_none_or(|container| !container.deletes().is_deleted(row.offset(), self.ts))
    }
}
