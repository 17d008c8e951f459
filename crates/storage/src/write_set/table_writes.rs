//! The write set, one part per table.
//!
//! All of it is shared with the views of earlier statements and with savepoints, none of which sees what is written
//! later: a statement costs its own size, whoever else looks on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{DdlChange, LockedRows, OwnRows, RowLayers, RowSets};
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, CommitTs, ContainerId, RowRef, RunId, TableId};
use crate::limits;
use crate::main_store::Run;
use crate::memory::MemoryBudget;
use crate::row::{RowBuffer, RowLayout, RowView};
use crate::schema::TableSchema;

/// What a transaction writes to one table. A clone is cheap, and stays as it is.
#[derive(Clone, Debug)]
pub struct TableWrites {
    schema: Arc<TableSchema>,
    rows: OwnRows,
    runs: Arc<Vec<Arc<Run>>>,
    deletes: RowLayers,
    /// Segments of runs that were merged.
    moved: Arc<BTreeSet<ContainerId>>,
}

impl TableWrites {
    /// Nothing written to `schema`'s table yet; rows will be container `id`.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>, budget: &Arc<MemoryBudget>, id: ContainerId) -> Self {
        let layout = RowLayout::new(&schema);
        Self {
            rows: OwnRows::new(id, layout, budget.clone()),
            runs: Arc::default(),
            deletes: RowLayers::new(budget.clone()),
            moved: Arc::default(),
            schema,
        }
    }

    /// Nothing written to the table any more, though something was: later rows are another container, `id`.
    #[must_use]
    pub fn emptied(&self, schema: &Arc<TableSchema>, budget: &Arc<MemoryBudget>, id: ContainerId) -> Self {
        let mut next = Self::new(schema.clone(), budget, id);
        next.moved = self.moved.clone();
        next
    }

    /// The same writes under `schema`, the next version of the table's: live rows are written anew, with the missing
    /// values of columns that they lack, as another container, `id`. Runs stay as they are.
    ///
    /// # Errors
    /// Constraint (23502) or Invalid (54000) when `schema` does not take a row; Internal for another table.
    pub fn altered(&self, schema: &Arc<TableSchema>, budget: &Arc<MemoryBudget>, id: ContainerId) -> Result<Self> {
        if self.schema.id != schema.id {
            return Err(Error::internal("rows of one table under the schema of another"));
        }
        let mut next = self.emptied(schema, budget, id);
        next.runs = self.runs.clone();
        next.deletes = self.deletes.clone();
        next.deletes.forget(|id| id == self.rows.id());
        let places: Vec<_> = schema.columns.iter().map(|column| (self.schema.position(column.id), column)).collect();
        let layout = next.rows.layout().clone();
        let mut rows = RowBuffer::new(layout.clone());
        let mut values = Vec::with_capacity(places.len());
        for (_, row) in self.live_rows_from(0) {
            values.clear();
            values.extend(places.iter().map(|(place, column)| match place {
                Some(position) => row.value(*position),
                None => column.missing_value.clone(),
            }));
            rows.push_values(&values)?;
            if rows.len() >= limits::OWN_CHUNK_ROWS {
                next.rows.append(std::mem::replace(&mut rows, RowBuffer::new(layout.clone())));
            }
        }
        next.rows.append(rows);
        Ok(next)
    }

    /// The schema version the writes were made under.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Rows inserted and not written aside, those deleted again among them.
    #[must_use]
    pub fn rows(&self) -> &OwnRows {
        &self.rows
    }

    /// Rows written aside as runs of segments, whose files go unless a commit keeps them; those deleted again among
    /// them.
    #[must_use]
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Rows that are deleted: of the stores, of [`TableWrites::rows`] and of [`TableWrites::runs`].
    #[must_use]
    pub fn deletes(&self) -> &RowLayers {
        &self.deletes
    }

    /// Whether this transaction deleted `row`.
    #[must_use]
    pub fn is_deleted(&self, row: RowRef) -> bool {
        self.deletes.contains(row)
    }

    /// Whether `container` holds rows of this transaction.
    #[must_use]
    pub fn is_own(&self, container: ContainerId) -> bool {
        container.is_own_rows() || self.runs.iter().any(|run| run.segment(container).is_some())
    }

    /// [`TableWrites::rows`] that are not deleted, from offset `from` on.
    pub fn live_rows_from(&self, from: u32) -> impl Iterator<Item = (u32, RowView<'_>)> {
        let dead: Vec<_> = self.deletes.sets_of(self.rows.id()).collect();
        self.rows.rows_from(from).filter(move |(offset, _)| !dead.iter().any(|set| set.contains(*offset)))
    }

    /// How many [`TableWrites::rows`] are not deleted.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        self.rows.len() as u64 - self.deletes.count_of(self.rows.id())
    }

    /// Rows that a commit deletes: of the stores and of [`TableWrites::runs`].
    #[must_use]
    pub fn stored_deletes(&self) -> RowSets {
        self.deletes.collect(|id| !id.is_own_rows())
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.runs.is_empty() && self.deletes.is_empty()
    }

    /// Deletes `rows`.
    pub fn delete(&mut self, rows: RowSets) {
        self.deletes.add(rows);
    }

    /// Inserts `rows`, and those of `runs`.
    pub fn insert(&mut self, rows: RowBuffer, runs: Vec<Arc<Run>>) {
        self.rows.append(rows);
        if !runs.is_empty() {
            Arc::make_mut(&mut self.runs).extend(runs);
        }
    }

    /// Puts `runs`, which hold exactly its live rows, in the place of [`TableWrites::rows`]. References to those name
    /// nothing any more: later rows are another container, `id`.
    pub fn spilled(&mut self, runs: Vec<Arc<Run>>, id: ContainerId) {
        let rows = self.rows.id();
        self.deletes.forget(|id| id == rows);
        self.rows = self.rows.next(id);
        Arc::make_mut(&mut self.runs).extend(runs);
    }

    /// Puts `output`, which holds exactly the live rows of `consumed`, neighbours among its runs, in their place.
    /// References to rows that moved name nothing any more.
    pub fn merged(&mut self, consumed: &[RunId], output: Option<Arc<Run>>) {
        let is_consumed = |run: &Arc<Run>| consumed.contains(&run.id());
        let segments: BTreeSet<ContainerId> = self
            .runs
            .iter()
            .filter(|run| is_consumed(run))
            .flat_map(|run| run.segments())
            .map(|part| part.segment.id())
            .collect();
        let is_kept = |id| output.as_ref().is_some_and(|output| output.segment(id).is_some());
        let gone = BTreeSet::from_iter(segments.into_iter().filter(|id| !is_kept(*id)));
        self.deletes.forget(|id| gone.contains(&id));
        Arc::make_mut(&mut self.moved).extend(gone);
        let at = self.runs.iter().position(is_consumed).unwrap_or(self.runs.len());
        let runs = Arc::make_mut(&mut self.runs);
        runs.retain(|run| !is_consumed(run));
        if let Some(output) = output {
            runs.insert(at.min(runs.len()), output);
        }
    }

    /// Whether `container` held rows of this transaction that stand elsewhere now.
    #[must_use]
    pub fn has_moved(&self, container: ContainerId) -> bool {
        self.moved.contains(&container)
    }
}

/// All a transaction wants to write. A clone costs a pointer per table.
#[derive(Clone, Debug, Default)]
pub struct WriteSet {
    /// Per table; shared with the scans of later statements.
    pub tables: BTreeMap<TableId, Arc<TableWrites>>,
    /// Rows of the stores that must be as they were read, per table.
    pub locked: BTreeMap<TableId, LockedRows>,
    /// Tables of whose IDENTITY columns it has numbers that all transactions share, with a timestamp at or before which
    /// nobody had drawn one of them: a restart of counting after it gives them to others again.
    pub drawn: BTreeMap<TableId, CommitTs>,
    /// How many numbers were reserved of columns whose counting `ddl` hands on to another table: another mark at the
    /// commit is a conflict, for others have drawn since.
    pub numbers_seen: BTreeMap<(TableId, ColumnId), Option<u64>>,
    /// Schema changes in statement order.
    pub ddl: Vec<DdlChange>,
    /// The snapshot's catalog with them, if there are any.
    pub catalog: Option<Arc<Catalog>>,
    /// Whether schema changes are the whole of the transaction: it has neither seen nor written a row (contract 2).
    pub alone: bool,
}

impl WriteSet {
    /// Whether there is nothing to write; rows that are only locked may have to be looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ddl.is_empty() && self.tables.values().all(|t| t.is_empty())
    }
}
