//! A choice with its inputs.

use std::sync::Arc;

use mainstem_kernels::bitmap;
use roaring::RoaringBitmap;

use crate::delta_store::DeltaGeneration;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, ContainerId, RunId};
use crate::limits;
use crate::main_store::{Run, RunSegment};
use crate::order::Part;
use crate::schema::{Column, TableSchema};
use crate::version::TableVersion;
use crate::write_set::RowSets;

use super::{DeltaDescription, MergeChoice, MergeReason, RunDescription, TableDescription};

impl TableDescription {
    /// What `version` is made of now, with the runs that are `busy`. O(segments).
    #[must_use]
    pub fn of(version: &TableVersion, busy: impl Fn(RunId) -> bool) -> Self {
        let delta = |delta: &Arc<DeltaGeneration>| DeltaDescription {
            id: delta.id(),
            rows: u64::from(delta.rows()),
            live_rows: u64::from(delta.rows()).saturating_sub(delta.deletes().count_now()),
            bytes: delta.bytes_of_rows(),
        };
        let run = |run: &Arc<Run>| {
            let dead: u64 = run.segments().iter().map(|part| part.segment.deletes().count_now()).sum();
            RunDescription {
                id: run.id(),
                segments: run.segments().len() as u64,
                rows: run.rows(),
                live_rows: run.rows().saturating_sub(dead),
                stepped_over: run.segments().iter().any(is_stepped_over),
                busy: busy(run.id()),
            }
        };
        Self {
            segment_rows: version.schema.options.segment_rows,
            frozen: version.frozen_deltas().iter().map(delta).collect(),
            runs: version.runs.iter().map(run).collect(),
        }
    }
}

/// The inputs of a merge, as of its snapshot H. Whoever holds it also holds a snapshot at H, so that delete logs still
/// tell.
#[derive(Clone, Debug)]
pub struct MergePlan {
    pub(super) schema: Arc<TableSchema>,
    pub(super) choice: MergeChoice,
    pub(super) h: CommitTs,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) deltas: Vec<Arc<DeltaGeneration>>,
    /// Dead rows of the runs, where it is not their delete logs that tell.
    dead: Option<RowSets>,
}

impl MergeChoice {
    /// Whether `version` has all of it.
    #[must_use]
    pub fn is_of(&self, version: &TableVersion) -> bool {
        let has_run = |id: &RunId| version.runs.iter().any(|run| run.id() == *id);
        let has_delta = |id: &ContainerId| version.deltas.iter().any(|delta| delta.id() == *id);
        self.runs.iter().all(has_run) && self.deltas.iter().all(has_delta)
    }
}

impl MergePlan {
    /// The plan to do `choice` on `version`, the table's version at snapshot `h`.
    ///
    /// # Errors
    /// Internal when an input is not in the version, a delta still takes rows, or one has rows that began after `h`.
    pub fn new(version: &TableVersion, choice: MergeChoice, h: CommitTs) -> Result<Self> {
        let name = &version.schema.name;
        let run = |id: &RunId| {
            let run = version.runs.iter().find(|run| run.id() == *id);
            run.cloned().ok_or_else(|| Error::internal(format!("run {id} is not in table \"{name}\"")))
        };
        let delta = |id: &ContainerId| {
            let delta = version.deltas.iter().find(|delta| delta.id() == *id);
            let ready = |delta: &&Arc<DeltaGeneration>| delta.is_frozen() && delta.rows_at(h) == delta.rows();
            let missing = || Error::internal(format!("delta {id} of table \"{name}\" cannot be merged at {h}"));
            delta.filter(ready).cloned().ok_or_else(missing)
        };
        let runs = choice.runs.iter().map(run).collect::<Result<Vec<_>>>()?;
        let deltas = choice.deltas.iter().map(delta).collect::<Result<Vec<_>>>()?;
        Ok(Self { schema: version.schema.clone(), choice, h, runs, deltas, dead: None })
    }

    /// The plan to merge `runs`, neighbours that one transaction has written aside, for `schema`'s table; `dead` names
    /// those of their rows that it has deleted again.
    #[must_use]
    pub fn of_own(schema: Arc<TableSchema>, runs: Vec<Arc<Run>>, dead: RowSets) -> Self {
        let ids = runs.iter().map(|run| run.id()).collect();
        let choice = MergeChoice { deltas: Vec::new(), runs: ids, reason: MergeReason::Decay };
        Self { schema, choice, h: CommitTs::ZERO, runs, deltas: Vec::new(), dead: Some(dead) }
    }

    /// What is merged, and why.
    #[must_use]
    pub fn choice(&self) -> &MergeChoice {
        &self.choice
    }

    /// The snapshot it reads at.
    #[must_use]
    pub fn h(&self) -> CommitTs {
        self.h
    }

    /// Rows of the inputs, deleted ones included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let runs: u64 = self.runs.iter().map(|run| run.rows()).sum();
        runs + self.deltas.iter().map(|delta| u64::from(delta.rows())).sum::<u64>()
    }

    /// Bytes that merging its runs by `threads` threads takes at once, about: of as many columns a block of every run,
    /// and one that is written; what is kept of the blocks written; entries of key indexes.
    #[must_use]
    pub fn memory_bytes(&self, threads: usize) -> usize {
        let block = |run: &Arc<Run>, column: &Column| {
            let metas = run.segments().iter().filter_map(|part| part.segment.meta().column(column.id));
            metas.filter_map(|meta| Some(meta.block.as_ref()?.len)).max().unwrap_or(0)
        };
        let of_column = |column: &Column| -> (u64, u64) {
            let blocks = self.runs.iter().map(|run| block(run, column));
            blocks.fold((0, 0), |(sum, largest), bytes| (sum + bytes, largest.max(bytes)))
        };
        let (mut read, mut written) = (Vec::with_capacity(self.schema.columns.len()), 0);
        for (sum, largest) in self.schema.columns.iter().map(of_column) {
            read.push(sum + largest);
            written += largest;
        }
        read.sort_unstable();
        let read = read.iter().rev().take(threads.max(1)).sum::<u64>();
        let entries = match self.schema.indexed_keys().count() as u64 {
            0 => 0,
            keys => (self.rows() * keys).min(limits::KEY_INDEX_SORT_ENTRIES as u64) * limits::KEY_INDEX_ENTRY_BYTES,
        };
        let bytes = read + written.min(limits::WRITTEN_BLOCKS_KEPT_BYTES as u64) + entries;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The streams to merge: runs oldest first, then deltas oldest first.
    pub(super) fn streams(&self) -> Vec<Vec<Part>> {
        let segment_rows = self.schema.options.segment_rows;
        let part = |part: &RunSegment| {
            let dead = match &self.dead {
                None => part.segment.deletes().bitmap_at(self.h),
                Some(own) => own.get(&part.segment.id()).map(words_of),
            };
            let whole = !is_stepped_over(part) && is_worth_keeping(part, dead.as_deref(), segment_rows);
            let part = Part::segment(part.segment.clone(), part.range.clone()).without(dead);
            if whole { part.keep_whole() } else { part }
        };
        let runs = self.runs.iter().map(|run| run.segments().iter().map(part).collect());
        let deltas = self.deltas.iter().map(|delta| {
            let dead = delta.deletes().bitmap_at(self.h);
            vec![Part::delta(delta.clone(), delta.rows()).without(dead)]
        });
        runs.chain(deltas).collect()
    }
}

/// Whether readers step over dead rows of the segment again and again.
fn is_stepped_over(part: &RunSegment) -> bool {
    part.segment.deletes().is_stepped_over(u64::from(part.segment.rows()) * limits::SEGMENT_DEAD_STEPS_OF_ROW)
}

/// `set` as a bitmap.
fn words_of(set: &RoaringBitmap) -> Arc<[u64]> {
    let mut words = vec![0; set.max().map_or(0, |max| bitmap::words(max as usize + 1))];
    for offset in set {
        if let Some(word) = words.get_mut(offset as usize / 64) {
            *word |= 1 << (offset % 64);
        }
    }
    words.into()
}

/// Whether a segment is at least half full and has few enough dead rows to stay as it is. All such segments together
/// keep the promise of the policy: a run of them has neither many dead rows nor small segments.
fn is_worth_keeping(part: &RunSegment, dead: Option<&[u64]>, segment_rows: u32) -> bool {
    let rows = u64::from(part.rows());
    let range = part.range.start as usize..part.range.end as usize;
    let dead = dead.map_or(0, |dead| {
        let end = range.end.min(dead.len() * 64);
        bitmap::count_range(dead, range.start.min(end)..end) as u64
    });
    rows * 2 >= u64::from(segment_rows) && dead * limits::DEAD_SHARE <= rows
}
