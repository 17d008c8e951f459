//! Merges under way, what they have claimed, and those that have ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::error::Result;
use crate::ids::RunId;
use crate::merge::{MergeControl, MergePlan, MergeReason};

/// Ended merges remembered.
const HISTORY_MAX: usize = 256;

/// What became of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeState {
    /// It runs.
    Running,
    /// Its output is part of the table.
    Installed,
    /// Its inputs left the table meanwhile: nothing changed.
    Discarded,
    /// It failed, with this message: nothing changed.
    Failed(String),
}

/// A merge, for `mainstem.merges`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeStatus {
    /// Number since the database was opened.
    pub number: u64,
    /// The table's name.
    pub table: String,
    /// Why it was done.
    pub reason: MergeReason,
    /// What became of it.
    pub state: MergeState,
    /// When it began.
    pub started: SystemTime,
    /// How long it took, or has taken so far.
    pub duration: Duration,
    /// Deltas it consumes.
    pub deltas: usize,
    /// Runs it consumes.
    pub runs: usize,
    /// Rows of its inputs, deleted ones included.
    pub rows_in: u64,
    /// Rows it wrote; those of segments kept as they are do not count.
    pub rows_written: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By number.
    running: BTreeMap<u64, Running>,
    /// In the order in which they ended.
    ended: VecDeque<MergeStatus>,
    count: u64,
    stopped: bool,
}

#[derive(Debug)]
struct Running {
    status: MergeStatus,
    control: Arc<MergeControl>,
    since: Instant,
    runs: Vec<RunId>,
}

impl History {
    /// Cancels what runs; nothing is to begin any more.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.running.values().for_each(|running| running.control.cancel());
    }

    /// Whether nothing is to begin any more.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether a merge under way reads `run`.
    pub fn is_busy(&self, run: RunId) -> bool {
        self.running.values().any(|running| running.runs.contains(&run))
    }

    /// How many merges are under way.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// A merge begins, and claims its runs; returns its number.
    pub fn begin(&mut self, table: &str, plan: &MergePlan, control: &Arc<MergeControl>) -> u64 {
        self.count += 1;
        let status = MergeStatus {
            number: self.count,
            table: table.to_owned(),
            reason: plan.choice().reason,
            state: MergeState::Running,
            started: SystemTime::now(),
            duration: Duration::ZERO,
            deltas: plan.choice().deltas.len(),
            runs: plan.choice().runs.len(),
            rows_in: plan.rows(),
            rows_written: 0,
        };
        let runs = plan.choice().runs.clone();
        self.running.insert(self.count, Running { status, control: control.clone(), since: Instant::now(), runs });
        self.count
    }

    /// Merge `number` has ended with (installed, rows written), and lets go of its runs.
    pub fn end(&mut self, number: u64, done: &Result<(bool, u64)>) {
        let Some(Running { mut status, since, .. }) = self.running.remove(&number) else { return };
        status.duration = since.elapsed();
        status.state = match done {
            Ok((installed, written)) => {
                status.rows_written = *written;
                if *installed { MergeState::Installed } else { MergeState::Discarded }
            }
            Err(e) => MergeState::Failed(e.to_string()),
        };
        if self.ended.len() == HISTORY_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(status);
    }

    /// Those that have ended and those that run, by number.
    pub fn all(&self) -> Vec<MergeStatus> {
        let running = self.running.values().map(|running| MergeStatus {
            duration: running.since.elapsed(),
            rows_written: running.control.rows_done(),
            ..running.status.clone()
        });
        let mut all: Vec<_> = self.ended.iter().cloned().chain(running).collect();
        all.sort_by_key(|merge| merge.number);
        all
    }
}
