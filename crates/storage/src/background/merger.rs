//! Carries merges out, one at a time, and remembers them.
//!
//! 1. A snapshot H of the present is registered; the log is fsynced up to it (contract 3).
//! 2. The policy chooses from the version at H, or the caller asks for a flush or for everything.
//! 3. Plan, job, install. Until the install is done H stays registered, so that deletes after it can be told apart.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use crate::background::unwinding;
use crate::commit::Engine;
use crate::error::{Error, Result};
use crate::ids::TableId;
use crate::merge::{MergeChoice, MergeControl, MergeJob, MergePlan, MergeReason, TableDescription, choose};
use crate::version::{Base, TableVersion};

/// How long a table is left alone after a failed merge: twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// And at most.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Merges remembered.
const HISTORY_MAX: usize = 256;
/// Times a merge somebody asked for is tried again when its inputs changed meanwhile.
const ATTEMPTS_MAX: usize = 8;

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

/// Does merges, one at a time.
#[derive(Debug, Default)]
pub struct Merger {
    one: Mutex<()>,
    history: Mutex<History>,
    /// Tables whose last merge failed.
    failed: Mutex<BTreeMap<TableId, Failed>>,
}

/// Until when a table is left alone after a failed merge.
#[derive(Debug)]
struct Failed {
    until: Instant,
    pause: Duration,
}

#[derive(Debug, Default)]
struct History {
    merges: VecDeque<MergeStatus>,
    count: u64,
    /// Ends the running merge, and all that would begin.
    running: Option<(Arc<MergeControl>, Instant)>,
    stopped: bool,
}

impl Merger {
    /// Ends the running merge; none begins any more.
    pub fn cancel(&self) {
        let mut history = self.history.lock();
        history.stopped = true;
        if let Some((control, _)) = &history.running {
            control.cancel();
        }
    }

    /// One step of the first table for which the policy has one. A table whose merge fails is left alone for a while: it keeps
    /// no other from being merged, nor the log from being shortened. Returns whether there was one.
    ///
    /// # Errors
    /// Closed when nothing can be written any more.
    pub fn step(&self, engine: &Engine) -> Result<bool> {
        let (_, root) = engine.timeline.present();
        self.failed.lock().retain(|table, _| root.tables.contains_key(table));
        for table in root.tables.keys() {
            if self.failed.lock().get(table).is_some_and(|failed| Instant::now() < failed.until) {
                continue;
            }
            match self.merge(engine, *table, |version| choose(&TableDescription::of(version))) {
                Ok(true) => {
                    self.failed.lock().remove(table);
                    return Ok(true);
                }
                Ok(false) => {}
                Err(e) => {
                    engine.check_writable()?;
                    self.pause_after(*table, &e);
                    // Deltas cost every reader, and hold the log: a damaged run must not keep them.
                    if self.merge(engine, *table, frozen_deltas_alone).unwrap_or(false) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn pause_after(&self, table: TableId, error: &Error) {
        let mut failed = self.failed.lock();
        let before = failed.get(&table).map_or(PAUSE_MIN / 2, |failed| failed.pause);
        let pause = (2 * before).min(PAUSE_MAX);
        tracing::warn!("a merge of table {table} failed, the next one in {pause:?}: {error}");
        failed.insert(table, Failed { until: Instant::now() + pause, pause });
    }

    /// Freezes the delta of `table` and merges its frozen deltas into a run.
    pub fn flush(&self, engine: &Engine, table: TableId) -> Result<()> {
        engine.freeze(table)?;
        self.until_done(engine, table, frozen_deltas_alone)
    }

    /// Freezes the delta of `table` and merges everything into one run.
    pub fn merge_all(&self, engine: &Engine, table: TableId) -> Result<()> {
        engine.freeze(table)?;
        let mut done = false;
        self.until_done(engine, table, |version| {
            let deltas: Vec<_> = version.frozen_deltas().iter().map(|delta| delta.id()).collect();
            let runs: Vec<_> = version.runs.iter().map(|run| run.id()).collect();
            let dead = version.runs.iter().flat_map(|run| run.segments()).any(|p| p.segment.deletes().count_now() > 0);
            let wanted = !deltas.is_empty() || runs.len() > 1 || (dead && !done);
            done = true;
            wanted.then_some(MergeChoice { deltas, runs, reason: MergeReason::Asked })
        })
    }

    /// Merges, oldest first.
    pub fn history(&self) -> Vec<MergeStatus> {
        let history = self.history.lock();
        let mut merges: Vec<MergeStatus> = history.merges.iter().cloned().collect();
        if let (Some(last), Some((control, since))) = (merges.last_mut(), &history.running) {
            last.duration = since.elapsed();
            last.rows_written = control.rows_done();
        }
        merges
    }

    /// Merges as `wanted` says until it wants nothing; a merge whose inputs changed meanwhile is done again.
    fn until_done(
        &self,
        engine: &Engine,
        table: TableId,
        mut wanted: impl FnMut(&TableVersion) -> Option<MergeChoice>,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            if !self.merge(engine, table, &mut wanted)? {
                break;
            }
        }
        engine.release_unneeded()
    }

    /// One merge of `table`, if `choice` finds one to do. Returns whether it did.
    fn merge(
        &self,
        engine: &Engine,
        table: TableId,
        choice: impl FnOnce(&TableVersion) -> Option<MergeChoice>,
    ) -> Result<bool> {
        let _one = self.one.lock();
        let snapshot = engine.timeline.snapshot(Base::Applied, false);
        let Some(version) = snapshot.root().tables.get(&table) else { return Ok(false) };
        let Some(choice) = choice(version) else { return Ok(false) };
        let control = Arc::new(MergeControl::default());
        let plan = MergePlan::new(version, choice, snapshot.ts())?;
        if !self.begin(&version.schema.name, &plan, &control) {
            return Ok(false);
        }
        let done = unwinding("a merge", || {
            engine.log.sync_all()?;
            let outcome = MergeJob::new(plan, engine.load_target(), control.clone())?.run()?;
            let written = outcome.rows_written();
            Ok((engine.install(table, outcome)?.is_some(), written))
        });
        self.end(&done);
        match done {
            Err(_) if control.is_cancelled() => Ok(false),
            other => other.map(|_| true),
        }
    }

    fn begin(&self, table: &str, plan: &MergePlan, control: &Arc<MergeControl>) -> bool {
        let mut history = self.history.lock();
        if history.stopped {
            return false;
        }
        history.count += 1;
        history.running = Some((control.clone(), Instant::now()));
        let status = MergeStatus {
            number: history.count,
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
        if history.merges.len() == HISTORY_MAX {
            history.merges.pop_front();
        }
        history.merges.push_back(status);
        true
    }

    fn end(&self, done: &Result<(bool, u64)>) {
        let mut history = self.history.lock();
        let took = history.running.take().map(|(_, since)| since.elapsed());
        let Some(last) = history.merges.back_mut() else { return };
        last.duration = took.unwrap_or_default();
        last.state = match done {
            Ok((installed, written)) => {
                last.rows_written = *written;
                if *installed { MergeState::Installed } else { MergeState::Discarded }
            }
            Err(e) => MergeState::Failed(e.to_string()),
        };
    }
}

/// All frozen deltas into a run of their own.
fn frozen_deltas_alone(version: &TableVersion) -> Option<MergeChoice> {
    let deltas: Vec<_> = version.frozen_deltas().iter().map(|delta| delta.id()).collect();
    (!deltas.is_empty()).then(|| MergeChoice { deltas, runs: Vec::new(), reason: MergeReason::Flush })
}
