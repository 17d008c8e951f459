//! What one statement sees of one table.

use std::sync::Arc;

use crate::delta_store::DeltaGeneration;
use crate::ids::{CommitTs, RowRef, TableId};
use crate::schema::TableSchema;
use crate::version::timeline::ViewedTable;
use crate::version::{AtWork, Snapshot, TableVersion, Work};
use crate::write_set::TableWrites;

/// A table at a snapshot, with the transaction's own writes of earlier statements. Immutable; pins its snapshot; may be
/// sent to other threads and outlive the transaction.
#[derive(Clone, Debug)]
pub struct TableView {
    table: Arc<ViewedTable>,
    own: Option<Arc<TableWrites>>,
    ts: CommitTs,
    /// Held so that what the view reads stays.
    snapshot: Option<Arc<Snapshot>>,
}

impl TableView {
    /// The table `id` at `snapshot`, without writes of a transaction; `None` if it is not there. Many threads may take
    /// views of one table at once and share no counter.
    #[must_use]
    pub fn at(snapshot: &Arc<Snapshot>, id: TableId) -> Option<Self> {
        let table = snapshot.table(id)?;
        Some(Self { table, own: None, ts: snapshot.ts(), snapshot: Some(snapshot.clone()) })
    }

    /// The same with the writes of a transaction.
    #[must_use]
    pub fn with_own(self, own: Option<Arc<TableWrites>>) -> Self {
        Self { own, ..self }
    }

    /// `version` at `ts`, with `own` writes, under `schema`. `snapshot` keeps it alive.
    #[must_use]
    pub fn new(
        schema: Arc<TableSchema>,
        version: Arc<TableVersion>,
        own: Option<Arc<TableWrites>>,
        ts: CommitTs,
        snapshot: Option<Arc<Snapshot>>,
    ) -> Self {
        Self { table: Arc::new(ViewedTable { schema, version }), own, ts, snapshot }
    }

    /// `work` on it begins, if the view is of a database.
    #[must_use]
    pub fn begin(&self, work: Work) -> Option<AtWork<'_>> {
        self.snapshot.as_ref().map(|snapshot| snapshot.activity().begin(work))
    }

    /// The schema the statement reads under.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.table.schema
    }

    /// The containers.
    #[must_use]
    pub fn version(&self) -> &Arc<TableVersion> {
        &self.table.version
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
        self.table
            .version
            .container(row.container())
            .is_none_or(|container| !container.deletes().is_deleted(row.offset(), self.ts))
    }
}
