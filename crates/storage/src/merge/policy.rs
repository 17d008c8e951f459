//! What to merge next: a pure function of a description, and of the lane that asks.
//!
//! Merges run in two lanes (MemSQL section VI.A: the fast and the slow merger), one at a time in each. The *short* lane
//! flushes frozen deltas and does nothing that takes in more than [`limits::FLUSH_SEGMENTS_MAX`] segments of older
//! rows, so that no flush waits for long; the *long* lane merges runs, of any size, and never a delta. A run that a
//! merge in the other lane reads is busy: no choice has it.
//!
//! The rule is MemSQL's (section IV.A): of two neighbouring runs the newer one has at most 1 /
//! [`limits::RUN_DECAY_RATIO`] of the older one's live rows, so there are at most 1 + log8(rows) runs once the merger
//! has caught up. Runs merge with neighbours only, so that rows with equal sort keys stay in the order in which they
//! came.
//!
//! 1. Short: frozen deltas cost every reader. A flush takes along the newest runs that its output would have to merge
//!    with at once, while that stays short.
//! 2. Long: where neighbours break the rule, the group of up to [`limits::MERGE_FAN_IN`] neighbours merges that
//!    rewrites the fewest rows for each run it removes; it grows by whatever its output would have to merge with at
//!    once (section V: collapse).
//! 3. Long: a run with many dead rows is rewritten alone, and one that has segments with few of them, which readers
//!    have stepped over in the time that it takes to rewrite these segments. Small segments need no rule: no merge
//!    keeps one as it is (`plan`), and few are made (`job`).
//!
//! When flushes would let runs pile up behind a long merge, the short lane does step 2 too, before step 1, with groups
//! that stay short. Then two neighbours of those that are not busy have more rows than a short merge takes.

use std::ops::Range;

use crate::ids::{ContainerId, RunId};
use crate::limits::{self, MERGE_FAN_IN, RUN_DECAY_RATIO};

use super::description::{RunDescription, TableDescription};

/// Why a merge was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeReason {
    /// Frozen deltas wait.
    Flush,
    /// Neighbouring runs are too much alike in size.
    Decay,
    /// Too many rows of a run are deleted.
    DeadRows,
    /// Somebody asked for it.
    Asked,
}

impl std::fmt::Display for MergeReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flush => "flush",
            Self::Decay => "decay",
            Self::DeadRows => "dead rows",
            Self::Asked => "asked",
        })
    }
}

/// Who does a merge: one thread of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Flushes of frozen deltas, and other merges that do not take long.
    Short,
    /// Merges of runs.
    Long,
}

/// What to merge into one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeChoice {
    /// Frozen deltas, oldest first.
    pub deltas: Vec<ContainerId>,
    /// Runs, oldest first, neighbours.
    pub runs: Vec<RunId>,
    /// Why.
    pub reason: MergeReason,
}

/// The merge that `table` needs most of those that `lane` does, if it needs one.
#[must_use]
pub fn choose(table: &TableDescription, lane: Lane) -> Option<MergeChoice> {
    match lane {
        Lane::Short => {
            let crowded = table.runs.len() >= runs_max(table.runs.iter().map(|run| run.live_rows).sum());
            let first = if crowded { decay(table, short_rows_max(table.segment_rows)) } else { None };
            first.or_else(|| flush(table))
        }
        Lane::Long => decay(table, u64::MAX).or_else(|| dead_rows(table)),
    }
}

/// Rows up to which a merge is short.
#[must_use]
pub fn short_rows_max(segment_rows: u32) -> u64 {
    limits::FLUSH_SEGMENTS_MAX.saturating_mul(u64::from(segment_rows))
}

/// Runs that a table has at most once the merger has caught up.
#[must_use]
pub fn settled_runs_max(rows: u64) -> usize {
    1 + rows.max(1).ilog(RUN_DECAY_RATIO) as usize
}

/// Runs from which on the short lane merges them before it flushes deltas.
fn runs_max(rows: u64) -> usize {
    settled_runs_max(rows) + MERGE_FAN_IN
}

/// Whether `runs` of so many `rows` are half as many again as a table has when merges keep up, on the way to where
/// flushes stop for merging them.
#[must_use]
pub fn has_too_many_runs(runs: usize, rows: u64) -> bool {
    runs > settled_runs_max(rows) + MERGE_FAN_IN / 2
}

/// Live rows; one without any, so that empty runs merge too.
fn size(run: &RunDescription) -> u64 {
    run.live_rows.max(1)
}

/// Whether `newer`, rows of a run or of one to be, is too large to stand beside `older`.
fn too_large(older: u64, newer: u64) -> bool {
    newer.saturating_mul(RUN_DECAY_RATIO) > older
}

fn flush(table: &TableDescription) -> Option<MergeChoice> {
    let deltas = table.frozen.get(..table.frozen.len().min(MERGE_FAN_IN))?;
    if deltas.is_empty() {
        return None;
    }
    let mut rows: u64 = deltas.iter().map(|delta| delta.live_rows).sum();
    let rows_max = short_rows_max(table.segment_rows);
    let mut from = table.runs.len();
    // A flush that leaves nothing takes nothing along.
    while rows > 0
        && let Some(older) = from.checked_sub(1).and_then(|at| table.runs.get(at))
        && table.runs.len() - from < MERGE_FAN_IN
        && !older.busy
        && too_large(size(older), rows)
        && rows + older.live_rows <= rows_max
    {
        rows += older.live_rows;
        from -= 1;
    }
    Some(MergeChoice {
        deltas: deltas.iter().map(|delta| delta.id).collect(),
        runs: ids(table, from..table.runs.len()),
        reason: MergeReason::Flush,
    })
}

/// The best group of at most `rows_max` rows.
fn decay(table: &TableDescription, rows_max: u64) -> Option<MergeChoice> {
    let runs = &table.runs;
    let broken: Vec<bool> = runs.windows(2).map(|pair| too_large(size(&pair[0]), size(&pair[1]))).collect();
    let rows_of = |group: &Range<usize>| -> u64 { runs.get(group.clone()).unwrap_or_default().iter().map(size).sum() };
    let mut best: Option<(Range<usize>, u64)> = None;
    for start in 0..runs.len() {
        for len in 2..=MERGE_FAN_IN.min(runs.len() - start) {
            let group = start..start + len;
            // Only what breaks the rule is worth a merge.
            if !broken.get(start..start + len - 1).is_some_and(|pairs| pairs.contains(&true)) {
                continue;
            }
            let rows = rows_of(&group);
            if rows > rows_max || runs.get(group.clone()).is_some_and(|runs| runs.iter().any(|run| run.busy)) {
                break;
            }
            let better = best.as_ref().is_none_or(|(other, other_rows)| {
                let (removed, other_removed) = (len as u128 - 1, other.len() as u128 - 1);
                u128::from(rows) * other_removed < u128::from(*other_rows) * removed
            });
            if better {
                best = Some((group, rows));
            }
        }
    }
    let (group, rows) = best?;
    let group = collapse(runs, group, rows, rows_max);
    Some(MergeChoice { deltas: Vec::new(), runs: ids(table, group), reason: MergeReason::Decay })
}

/// Grows `group` by the neighbours that its output would have to merge with at once, up to `rows_max` rows.
fn collapse(runs: &[RunDescription], mut group: Range<usize>, mut rows: u64, rows_max: u64) -> Range<usize> {
    while group.len() < MERGE_FAN_IN {
        let fits = |run: &&RunDescription| !run.busy && rows.saturating_add(size(run)) <= rows_max;
        let older = group.start.checked_sub(1).and_then(|at| runs.get(at)).filter(fits).map(size);
        let newer = runs.get(group.end).filter(fits).map(size);
        match (older, newer) {
            (Some(older), _) if too_large(older, rows) => {
                group.start -= 1;
                rows += older;
            }
            (_, Some(newer)) if too_large(rows, newer) => {
                group.end += 1;
                rows += newer;
            }
            _ => break,
        }
    }
    group
}

/// The smallest run with many dead rows, or with some that readers step over again and again, alone.
fn dead_rows(table: &TableDescription) -> Option<MergeChoice> {
    let is_wanted = |run: &&RunDescription| {
        let dead = run.rows - run.live_rows.min(run.rows);
        dead.saturating_mul(limits::DEAD_SHARE) > run.rows || run.stepped_over
    };
    let run = table.runs.iter().filter(|run| !run.busy).filter(is_wanted).min_by_key(|run| run.live_rows)?;
    Some(MergeChoice { deltas: Vec::new(), runs: vec![run.id], reason: MergeReason::DeadRows })
}

fn ids(table: &TableDescription, group: Range<usize>) -> Vec<RunId> {
    table.runs.get(group).unwrap_or_default().iter().map(|run| run.id).collect()
}
