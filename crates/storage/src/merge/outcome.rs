//! What a merge has made, to be installed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::deletes::{DeleteLog, DeleteSet};
use crate::error::Result;
use crate::ids::{CommitTs, ContainerId, RowRef, RunId};
use crate::main_store::Run;
use crate::run_writer::WrittenRun;
use crate::segment::Segment;
use crate::version::{Forward, ForwardingTable, TableVersion};

use super::MergePlan;

/// The result of a merge. Dropped before [`MergeOutcome::keep_files`], it takes its files along.
#[derive(Debug)]
pub struct MergeOutcome {
    /// The snapshot that the merge read at.
    pub h: CommitTs,
    /// Deltas that it replaces.
    pub consumed_deltas: Vec<ContainerId>,
    /// Runs that it replaces. Segments of them that the output lists too were kept.
    pub consumed_runs: Vec<RunId>,
    /// Rows of those runs: a load may have extended one since.
    pub consumed_run_rows: u64,
    /// What takes their place, durable; `None` when no row was left.
    pub output: Option<Arc<Run>>,
    /// Where each row of the inputs went, kept segments excepted.
    pub forwarding: Arc<ForwardingTable>,
    /// Segments of the output that the merge wrote.
    written: Vec<Arc<Segment>>,
}

impl MergeOutcome {
    pub(super) fn new(plan: MergePlan, written: Option<WrittenRun>, forwarding: Arc<ForwardingTable>) -> Result<Self> {
        let (output, written) = written.map_or((None, Vec::new()), |written| (Some(written.run), written.written));
        let (consumed_deltas, consumed_runs) = (plan.choice.deltas, plan.choice.runs);
        let consumed_run_rows = plan.runs.iter().map(|run| run.rows()).sum();
        Ok(Self { h: plan.h, consumed_deltas, consumed_runs, consumed_run_rows, output, forwarding, written })
    }

    /// The deletes of input rows with `after` < end <= `upto`, as (output segment, end, rows): ends ascend, so they can
    /// be recorded one after the other. `after` is H, or the `upto` of the call before. Of `inputs`, with their logs,
    /// which may leave out those that nothing was deleted from.
    #[must_use]
    pub fn carry<'a>(
        &self,
        after: CommitTs,
        upto: CommitTs,
        inputs: impl Iterator<Item = (ContainerId, &'a DeleteLog)>,
    ) -> Vec<(ContainerId, CommitTs, DeleteSet)> {
        let mut moved: BTreeMap<(CommitTs, ContainerId), Vec<u32>> = BTreeMap::new();
        for (container, log) in inputs {
            if log.last_delete_ts() <= after || !self.forwarding.has_input(container) {
                continue;
            }
            for (end, set) in log.between(after, upto) {
                for offset in &set {
                    if let Some(Forward::To(row)) = self.forwarding.forward(RowRef::new(container, offset)) {
                        moved.entry((end, row.container())).or_default().push(row.offset());
                    }
                }
            }
        }
        moved.into_iter().map(|((end, container), rows)| (container, end, rows.into_iter().collect())).collect()
    }

    /// All inputs, which `version` still has, with their delete logs.
    pub fn inputs_in<'a>(&'a self, version: &'a TableVersion) -> impl Iterator<Item = (ContainerId, &'a DeleteLog)> {
        let deltas = version.deltas.iter().filter(|delta| self.consumed_deltas.contains(&delta.id()));
        let runs = version.runs.iter().filter(|run| self.consumed_runs.contains(&run.id()));
        let parts = runs.flat_map(|run| run.segments());
        let deltas = deltas.map(|delta| (delta.id(), delta.deletes()));
        deltas.chain(parts.map(|part| (part.segment.id(), part.segment.deletes())))
    }

    /// The output is listed: its files stay.
    pub fn keep_files(&self) {
        self.own_segments().for_each(|segment| segment.keep());
    }

    /// Takes [`MergeOutcome::keep_files`] back.
    pub fn release_files(&self) {
        self.own_segments().for_each(|segment| segment.drop_when_unreferenced());
    }

    /// The segments that the merge wrote, those of key indexes included.
    pub fn own_segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        let of_indexes = self.output.iter().flat_map(|run| run.index_segments());
        self.written.iter().chain(of_indexes.map(|part| &part.segment))
    }

    /// Rows that the merge wrote: those of the output but for kept segments.
    #[must_use]
    pub fn rows_written(&self) -> u64 {
        self.written.iter().map(|segment| u64::from(segment.rows())).sum()
    }
}
