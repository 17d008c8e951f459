//! Install: a finished merge becomes part of the current version (contract 3).
//!
//! 1. Deletes that landed in the inputs after H are carried to the output in rounds, outside the lock, until few are left.
//! 2. Under the lock, the rest is carried; timestamp I; log record; the output replaces its inputs in the version; *applied*
//!    moves. A table that is gone, or an input that left the version, discards the merge.
//! 3. Forwarding is kept while a snapshot older than I may still write; dropped segments' files go later.

use std::sync::Arc;

use crate::commit::Engine;
use crate::commit::record::encode_install;
use crate::deletes::DeleteSet;
use crate::error::Result;
use crate::ids::{CommitTs, ContainerId, TableId};
use crate::merge::MergeOutcome;
use crate::segment::Segment;
use crate::settings::Synchronous;
use crate::version::{Base, TableVersion};
use crate::wal::{NewRecord, RecordKind};

/// Commits that may be left for the lock after the rounds outside it.
const CARRY_UNDER_LOCK_COMMITS: u64 = 64;
/// Log space for the deletes carried under the lock: of the last commits, each with its references in the record.
const CARRY_UNDER_LOCK_BYTES: usize = 4 << 20;
/// Rounds before the rest goes under the lock, however much it is.
const CARRY_ROUNDS_MAX: u32 = 16;

type Carried = Vec<(ContainerId, CommitTs, DeleteSet)>;

impl Engine {
    /// Installs `outcome` for `table` and returns I, or `None` when the merge had to be discarded.
    ///
    /// # Errors
    /// Full or Closed when the log takes no record: nothing changed, the output's files go away.
    pub fn install(&self, table: TableId, outcome: MergeOutcome) -> Result<Option<CommitTs>> {
        self.check_writable()?;
        let mut upto = outcome.h;
        let mut carried: Carried = Vec::new();
        // Registered, so that no fold joins the deletes of two rounds.
        let mut rounds = Vec::new();
        for _ in 0..CARRY_ROUNDS_MAX {
            let round = self.timeline.snapshot(Base::Applied, false);
            let Some(version) = round.root().tables.get(&table) else { return Ok(None) };
            if round.ts().0 - upto.0 <= CARRY_UNDER_LOCK_COMMITS {
                break;
            }
            carried.extend(outcome.carry(upto, round.ts(), version));
            upto = round.ts();
            rounds.push(round);
        }
        let output = outcome.output.as_deref();
        let bare = encode_install(table, outcome.h, &outcome.consumed_deltas, &outcome.consumed_runs, output, &[]);
        let bytes: usize = carried.iter().map(|(_, _, set)| set.heap_bytes() + 32).sum();
        let space = self.log.reserve(bare.len() + bytes + CARRY_UNDER_LOCK_BYTES)?;

        let mut lock = self.lock()?;
        self.check_writable()?;
        let (applied, root) = self.timeline.present();
        let Some(version) = root.tables.get(&table).filter(|version| has_inputs(version, &outcome)) else {
            return Ok(None);
        };
        carried.extend(outcome.carry(upto, applied, version));
        carried.sort_by_key(|(_, end, _)| *end);
        let at = applied.next();
        let sets: Vec<(ContainerId, DeleteSet)> = carried.iter().map(|(id, _, set)| (*id, set.clone())).collect();
        let record = encode_install(table, outcome.h, &outcome.consumed_deltas, &outcome.consumed_runs, output, &sets);
        let new = NewRecord {
            ts: at,
            kind: RecordKind::Install,
            schema_version: version.schema.version,
            level: Synchronous::Off,
            payload: &record,
        };
        self.log.append(space, new)?;
        let next = version.with_merge(at, &outcome.consumed_deltas, &outcome.consumed_runs, outcome.output.clone());
        for (id, end, set) in &carried {
            if let Some(container) = next.container(*id) {
                container.deletes().record(*end, set);
            }
        }
        if self.timeline.oldest_writer().is_some_and(|ts| ts < at) {
            self.forwardings.add(at, table, outcome.forwarding.clone());
        }
        lock.state.dropped.push((at, dropped_segments(version, &next)));
        self.timeline.apply(at, Some(Arc::new(root.with_table_version(Arc::new(next)))));
        self.log.mark_applied(at);
        outcome.keep_files();
        drop(lock);
        self.timeline.advance_visible(self.log.visible());
        Ok(Some(at))
    }
}

/// Whether every input is still part of `version`.
fn has_inputs(version: &TableVersion, outcome: &MergeOutcome) -> bool {
    let deltas = outcome.consumed_deltas.iter().all(|id| version.frozen_deltas().iter().any(|d| d.id() == *id));
    let runs = outcome.consumed_runs.iter().all(|id| version.runs.iter().any(|r| r.id() == *id));
    deltas && runs
}

/// Segments of `before` that `after` no longer lists.
fn dropped_segments(before: &TableVersion, after: &TableVersion) -> Vec<Arc<Segment>> {
    let listed = |id: ContainerId| after.runs.iter().flat_map(|run| run.segments()).any(|p| p.segment.id() == id);
    before
        .runs
        .iter()
        .flat_map(|run| run.segments())
        .filter(|part| !listed(part.segment.id()))
        .map(|part| part.segment.clone())
        .collect()
}
