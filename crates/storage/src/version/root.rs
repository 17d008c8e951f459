//! Table versions and the root they hang on.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::deletes::DeleteLog;
use crate::delta_store::DeltaGeneration;
use crate::ids::{CommitTs, ContainerId, TableId};
use crate::main_store::Run;
use crate::schema::TableSchema;
use crate::shared_map::SharedMap;

/// The containers of one table, immutable.
#[derive(Clone, Debug)]
pub struct TableVersion {
    /// The schema rows are written under from here on.
    pub schema: Arc<TableSchema>,
    /// Snapshots at or after this timestamp use this version, or a later one.
    pub valid_from: CommitTs,
    /// Grows whenever rows moved, left together or arrived other than through the active delta: installs, TRUNCATE and
    /// large commits. Two versions with the same count have the same runs: they differ at most in what froze, and in
    /// their schema.
    pub moves: u64,
    /// Delta generations, oldest first; the last one takes new rows.
    pub deltas: Vec<Arc<DeltaGeneration>>,
    /// Sorted runs, oldest first. Rows with equal sort keys: older run first.
    pub runs: Vec<Arc<Run>>,
}

/// A container of a table version.
pub enum Container<'a> {
    /// A delta generation.
    Delta(&'a Arc<DeltaGeneration>),
    /// A segment.
    Segment(&'a Arc<crate::segment::Segment>),
}

impl<'a> Container<'a> {
    /// Its delete log.
    #[must_use]
    pub fn deletes(&self) -> &'a DeleteLog {
        match self {
            Self::Delta(delta) => delta.deletes(),
            Self::Segment(segment) => segment.deletes(),
        }
    }
}

impl TableVersion {
    /// A new table: one empty delta. A replay makes deltas when their first rows come.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>, valid_from: CommitTs, delta: impl Into<Option<Arc<DeltaGeneration>>>) -> Self {
        Self { schema, valid_from, moves: 0, deltas: delta.into().into_iter().collect(), runs: Vec::new() }
    }

    /// Whether every row of `then`, an earlier version of the table, is where it was, under the same schema, and new
    /// rows are in deltas only.
    #[must_use]
    pub fn has_rows_placed_as(&self, then: &Self) -> bool {
        self.moves == then.moves && self.schema.version == then.schema.version
    }

    /// The delta that takes new rows: always the last.
    #[must_use]
    pub fn active_delta(&self) -> Option<&Arc<DeltaGeneration>> {
        self.deltas.last()
    }

    /// The deltas that take no rows any more, oldest first.
    #[must_use]
    pub fn frozen_deltas(&self) -> &[Arc<DeltaGeneration>] {
        self.deltas.split_last().map_or(&[], |(_, frozen)| frozen)
    }

    /// The container with id `id`. O(deltas + runs log segments); recent ones first.
    #[must_use]
    pub fn container(&self, id: ContainerId) -> Option<Container<'_>> {
        if let Some(delta) = self.deltas.iter().rev().find(|d| d.id() == id) {
            return Some(Container::Delta(delta));
        }
        self.runs.iter().rev().find_map(|run| run.segment(id)).map(|part| Container::Segment(&part.segment))
    }

    /// This version with a fresh active delta behind the present one (contract 3, freeze). Holds the same rows, so it
    /// keeps its `valid_from`.
    #[must_use]
    pub fn with_freeze(&self, fresh: Arc<DeltaGeneration>) -> Self {
        let mut next = self.clone();
        next.deltas.push(fresh);
        next
    }

    /// This version from `at` on under `schema`, with `fresh`, a delta for rows of it, behind the present ones, which
    /// take no rows any more; an empty one goes. Containers keep the schema they were written under (contract 1).
    #[must_use]
    pub fn altered(
        &self,
        schema: Arc<TableSchema>,
        at: CommitTs,
        fresh: impl Into<Option<Arc<DeltaGeneration>>>,
    ) -> Self {
        let mut next = Self { schema, valid_from: at, ..self.clone() };
        next.deltas.pop_if(|active| active.rows() == 0);
        next.deltas.extend(fresh.into());
        next
    }

    /// This version from `at` on without any container but `fresh`, an empty delta: TRUNCATE. Rows left, so they are
    /// not where they were.
    #[must_use]
    pub fn emptied(&self, at: CommitTs, fresh: impl Into<Option<Arc<DeltaGeneration>>>) -> Self {
        Self { moves: self.moves + 1, ..Self::new(self.schema.clone(), at, fresh) }
    }

    /// This version from `at` on with `runs` behind the present ones: a large commit. One with the id of a present run
    /// is that run, extended, and takes its place.
    #[must_use]
    pub fn with_load(&self, at: CommitTs, runs: &[Arc<Run>]) -> Self {
        let mut next = self.clone();
        next.valid_from = at;
        next.moves += 1;
        for run in runs {
            match next.runs.iter_mut().rfind(|known| known.id() == run.id()) {
                Some(known) => *known = run.clone(),
                None => next.runs.push(run.clone()),
            }
        }
        next
    }

    /// The runs of this version that `then`, an earlier one, does not have, or what they have beyond those, and nothing
    /// else.
    #[must_use]
    pub fn with_runs_after(&self, then: &Self) -> Self {
        let new = |run: &Arc<Run>| match then.runs.iter().find(|known| known.id() == run.id()) {
            None => Some(run.clone()),
            Some(known) => run.behind(known).map(Arc::new),
        };
        let runs = self.runs.iter().filter_map(new).collect();
        Self { schema: self.schema.clone(), deltas: Vec::new(), runs, ..*self }
    }

    /// This version from `at` on with the deltas and runs in `gone` replaced by `output` (contract 3, install). The
    /// output takes the place of the oldest input run, so that older rows stay before newer ones.
    #[must_use]
    pub fn with_merge(
        &self,
        at: CommitTs,
        gone_deltas: &[ContainerId],
        gone_runs: &[crate::ids::RunId],
        output: Option<Arc<Run>>,
    ) -> Self {
        let mut next = self.clone();
        next.valid_from = at;
        next.moves += 1;
        next.deltas.retain(|d| !gone_deltas.contains(&d.id()));
        let place = next.runs.iter().position(|r| gone_runs.contains(&r.id())).unwrap_or(next.runs.len());
        next.runs.retain(|r| !gone_runs.contains(&r.id()));
        if let Some(run) = output {
            next.runs.insert(place.min(next.runs.len()), run);
        }
        next
    }
}

/// All tables of one moment. A clone costs two pointers, and to change a table of it a logarithm of how many there are.
#[derive(Clone, Debug, Default)]
pub struct Root {
    /// Snapshots at or after this timestamp use this root, or a later one.
    pub valid_from: CommitTs,
    /// Names and schemas.
    pub catalog: Arc<Catalog>,
    /// Containers per table; its keys are exactly the catalog's tables.
    pub tables: SharedMap<TableId, Arc<TableVersion>>,
}

impl Root {
    /// This root with `version` in place of the table's present one. The root is valid from the later of both.
    #[must_use]
    pub fn with_table_version(&self, version: Arc<TableVersion>) -> Self {
        let mut next = self.from(self.valid_from.max(version.valid_from));
        next.tables.insert(version.schema.id, version);
        next
    }

    /// This root, to be changed, from `at` on.
    #[must_use]
    pub fn from(&self, at: CommitTs) -> Self {
        Self { valid_from: at, ..self.clone() }
    }
}
