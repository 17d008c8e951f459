//! Carries merges out, one at a time in each lane, and remembers them.
//!
//! 1. The inputs are claimed, then a snapshot H of the present is registered: no two merges read the same container.
//!    The claim passes the commit lock before H: a load that has not seen it has made its run longer by then.
//! 2. The policy chooses from the version at H, or the caller asks for a flush or for everything. The log is fsynced up
//!    to H (contract 3).
//! 3. Plan, job, install. Until the install is done H stays registered, so that deletes after it can be told apart, and
//!    the claim stands.
//! 4. A merge that nobody has asked for is paced (`pace`).
//!
//! Invariants: whoever holds both lanes took the long one first; only the short lane consumes deltas, from the oldest
//! on; it is never held for longer than a short merge takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::history::History;
pub use super::history::{MergeState, MergeStatus};
use super::pace::{Load, MachineClock, Pacer};
use super::watch::Seen;
use crate::background::unwinding;
use crate::commit::Engine;
use crate::error::{Error, Result};
use crate::ids::{ContainerId, RunId, TableId};
use crate::merge::{
    Lane, MergeChoice, MergeControl, MergeJob, MergeOutcome, MergePlan, MergeReason, TableDescription, choose,
    short_rows_max,
};
use crate::threads::cores;
use crate::version::{Base, ShortReaders, Snapshot, TableVersion};

/// How long a table is left alone after a failed merge: twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// And at most.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// And at most while a writer waits for it.
const PAUSE_MAX_WAITED_FOR: Duration = Duration::from_millis(100);
/// Users are at work still when they were seen no longer ago.
const USERS_PAUSE: Duration = Duration::from_millis(10);
/// Times a merge somebody asked for is tried again when its inputs changed meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// Does merges, one at a time in each lane.
#[derive(Debug, Default)]
pub struct Merger {
    short: Mutex<()>,
    long: Mutex<()>,
    /// Claims among it: locked while inputs are chosen.
    history: Mutex<History>,
    /// Callers that wait for a merge they asked for.
    asked: AtomicUsize,
    /// Tables whose last merge in a lane failed.
    failed: Mutex<BTreeMap<(TableId, Lane), Failed>>,
    seen: Seen,
    /// Merges yield to nobody.
    unpaced: AtomicBool,
}

/// Since when, and for how long, a table is left alone in a lane after a failed merge.
#[derive(Clone, Copy, Debug)]
struct Failed {
    at: Instant,
    pause: Duration,
    /// Not even its deltas could be flushed alone.
    deltas_too: bool,
}

/// Who wants a merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Nobody waits for it: it is paced, as one of this lane.
    Later(Lane),
    /// A caller waits for it.
    Caller,
}

/// A merge that has its inputs for itself.
struct Claimed {
    number: u64,
    plan: MergePlan,
    control: Arc<MergeControl>,
    /// H.
    snapshot: Arc<Snapshot>,
}

/// What came of a wish to merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Merged {
    /// There was nothing to do, or nothing may be done any more.
    Nothing,
    Installed,
    /// The inputs left the table meanwhile.
    Discarded,
}

impl Merger {
    /// Ends the running merges; none begins any more.
    pub fn cancel(&self) {
        self.history.lock().stop();
    }

    /// Whether merges yield to users.
    pub fn set_paced(&self, paced: bool) {
        self.unpaced.store(!paced, Ordering::Relaxed);
    }

    /// Where the watch notes what it has seen.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Whether a merge has failed that is to be tried again.
    pub fn has_failed(&self) -> bool {
        !self.failed.lock().is_empty()
    }

    /// One step of the first table for which the policy has one in `lane`; those whose deltas have waited longest come
    /// first. A table whose merge fails is left alone for a while: it keeps no other from being merged, nor the log
    /// from being shortened. Returns whether there was one.
    ///
    /// # Errors
    /// Closed when nothing can be written any more.
    pub fn step(&self, engine: &Engine, lane: Lane) -> Result<bool> {
        let (_, root) = engine.timeline.present();
        self.failed.lock().retain(|(table, _), _| root.tables.contains_key(table));
        let mut tables: Vec<_> = root.tables.iter().collect();
        if lane == Lane::Short {
            let waiting = |version: &TableVersion| version.frozen_deltas().first().map(|delta| delta.id());
            tables.sort_by_key(|(_, version)| waiting(version).map_or((true, None), |id| (false, Some(id))));
        }
        for (table, _) in tables {
            if self.step_of(engine, *table, lane)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn step_of(&self, engine: &Engine, table: TableId, lane: Lane) -> Result<bool> {
        let failed = self.failed.lock().get(&(table, lane)).copied();
        let pause_max = if lane == Lane::Short && engine.is_waited_for() { PAUSE_MAX_WAITED_FOR } else { PAUSE_MAX };
        let paused = failed.is_some_and(|failed| failed.at.elapsed() < failed.pause.min(pause_max));
        if !paused {
            let choice = |version: &TableVersion, busy: &dyn Fn(RunId) -> bool| {
                choose(&TableDescription::of(version, busy), lane)
            };
            match self.merge_in(engine, table, lane, For::Later(lane), choice) {
                Ok(merged) => {
                    self.failed.lock().remove(&(table, lane));
                    if lane == Lane::Short && merged == Merged::Installed {
                        engine.note_flush(&Ok(()));
                    }
                    return Ok(merged != Merged::Nothing);
                }
                Err(e) => {
                    engine.check_writable()?;
                    self.pause_after(table, lane, &e);
                }
            }
        } else if failed.is_some_and(|failed| failed.deltas_too) {
            return Ok(false);
        }
        if lane == Lane::Long {
            return Ok(false);
        }
        // Deltas cost every reader, and hold the log: a damaged run must not keep them.
        let flushed = self.merge_in(engine, table, lane, For::Later(lane), |version, _| {
            frozen_deltas_alone(version, ContainerId::MAX)
        });
        if !matches!(flushed, Ok(Merged::Nothing | Merged::Discarded)) {
            engine.note_flush(&flushed);
        }
        if let (Err(_), Some(failed)) = (&flushed, self.failed.lock().get_mut(&(table, lane))) {
            failed.deltas_too = true;
        }
        Ok(flushed.is_ok_and(|merged| merged != Merged::Nothing))
    }

    fn pause_after(&self, table: TableId, lane: Lane, error: &Error) {
        let mut failed = self.failed.lock();
        let before = failed.get(&(table, lane)).map_or(PAUSE_MIN / 2, |failed| failed.pause);
        let pause = (2 * before).min(PAUSE_MAX);
        tracing::warn!("a merge of table {table} failed, the next one in {pause:?}: {error}");
        failed.insert((table, lane), Failed { at: Instant::now(), pause, deltas_too: false });
    }

    /// Freezes the delta of `table` and merges its frozen deltas into a run. Never waits for a long merge.
    pub fn flush(&self, engine: &Engine, table: TableId) -> Result<()> {
        let _asked = Asked::new(&self.asked);
        engine.freeze(table)?;
        // What is frozen later is not this caller's business: under load there would always be more.
        let (_, root) = engine.timeline.present();
        let last = root.tables.get(&table).and_then(|version| version.frozen_deltas().last().map(|delta| delta.id()));
        let Some(last) = last else { return Ok(()) };
        for _ in 0..ATTEMPTS_MAX {
            let choice = |version: &TableVersion, _: &dyn Fn(RunId) -> bool| frozen_deltas_alone(version, last);
            if self.merge_in(engine, table, Lane::Short, For::Caller, choice)? == Merged::Nothing {
                break;
            }
        }
        engine.release_unneeded()
    }

    /// Freezes the delta of `table` and merges everything into one run.
    pub fn merge_all(&self, engine: &Engine, table: TableId) -> Result<()> {
        let _asked = Asked::new(&self.asked);
        engine.freeze(table)?;
        for _ in 0..ATTEMPTS_MAX {
            if self.merge_whole(engine, table)? != Merged::Discarded {
                break;
            }
        }
        engine.release_unneeded()
    }

    /// Merges everything of `table`, in the long lane. Deltas come along where all of it is short; else they are
    /// flushed first, for a long merge would hold them, and with them the log, for as long as it takes.
    fn merge_whole(&self, engine: &Engine, table: TableId) -> Result<Merged> {
        let _long = self.long.lock();
        let short = self.short.lock();
        let (_, root) = engine.timeline.present();
        let Some(version) = root.tables.get(&table) else { return Ok(Merged::Nothing) };
        if rows_of(version) <= short_rows_max(version.schema.options.segment_rows) {
            return self.do_merge(engine, table, For::Caller, |version, _| everything(version, true));
        }
        self.do_merge(engine, table, For::Caller, |version, _| frozen_deltas_alone(version, ContainerId::MAX))?;
        // In the short lane still, so that no flush has one of the runs.
        let runs = self.claim(engine, table, |version, _| everything(version, false))?;
        drop(short);
        runs.map_or(Ok(Merged::Nothing), |claimed| self.finish(engine, table, For::Caller, claimed))
    }

    /// Merges, oldest first.
    pub fn history(&self) -> Vec<MergeStatus> {
        self.history.lock().all()
    }

    pub(super) fn lane(&self, lane: Lane) -> MutexGuard<'_, ()> {
        match lane {
            Lane::Short => self.short.lock(),
            Lane::Long => self.long.lock(),
        }
    }

    /// One merge of `table` in `lane`, if `choice` finds one to do.
    fn merge_in(
        &self,
        engine: &Engine,
        table: TableId,
        lane: Lane,
        wanted: For,
        choice: impl FnOnce(&TableVersion, &dyn Fn(RunId) -> bool) -> Option<MergeChoice>,
    ) -> Result<Merged> {
        let _lane = self.lane(lane);
        self.do_merge(engine, table, wanted, choice)
    }

    /// One merge of `table`, if `choice` finds one to do. The caller holds a lane.
    fn do_merge(
        &self,
        engine: &Engine,
        table: TableId,
        wanted: For,
        choice: impl FnOnce(&TableVersion, &dyn Fn(RunId) -> bool) -> Option<MergeChoice>,
    ) -> Result<Merged> {
        let claimed = self.claim(engine, table, choice)?;
        claimed.map_or(Ok(Merged::Nothing), |claimed| self.finish(engine, table, wanted, claimed))
    }

    /// Takes a snapshot, and the inputs that `choice` finds. `choice` is told which runs are another's.
    fn claim(
        &self,
        engine: &Engine,
        table: TableId,
        choice: impl FnOnce(&TableVersion, &dyn Fn(RunId) -> bool) -> Option<MergeChoice>,
    ) -> Result<Option<Claimed>> {
        // Before the snapshot: a claim ends after its install, so what is not claimed is as the snapshot shows it.
        let mut history = self.history.lock();
        if history.is_stopped() {
            return Ok(None);
        }
        let snapshot = engine.timeline.snapshot(Base::Applied, false);
        let Some(version) = snapshot.root().tables.get(&table) else { return Ok(None) };
        let Some(choice) = choice(version, &|run| history.is_busy(run)) else { return Ok(None) };
        engine.begin_merging(&choice.runs).inspect_err(|_| engine.end_merging(&choice.runs))?;
        let snapshot = engine.timeline.snapshot(Base::Applied, false);
        let planned = match snapshot.root().tables.get(&table) {
            Some(version) if choice.is_of(version) => MergePlan::new(version, choice.clone(), snapshot.ts()).map(Some),
            _ => Ok(None),
        };
        let Some(plan) = planned.inspect_err(|_| engine.end_merging(&choice.runs))? else {
            engine.end_merging(&choice.runs);
            return Ok(None);
        };
        let control = Arc::new(MergeControl::default());
        let number = history.begin(&version.schema.name, &plan, &control);
        Ok(Some(Claimed { number, plan, control, snapshot }))
    }

    /// Does a merge of `lane` that nobody has asked for.
    fn run_paced(&self, engine: &Engine, lane: Lane, job: MergeJob, control: &MergeControl) -> Result<MergeOutcome> {
        let cores = cores();
        let readers = ShortReaders::new(&engine.timeline);
        let pacer = Pacer::new(MachineClock::default(), || Load {
            cores,
            users: engine.timeline.activity().threads(USERS_PAUSE) + readers.threads(),
            merges: self.history.lock().running(),
            urgent: self.is_urgent(engine, lane),
        });
        job.run_at(&|| pacer.breathe(|| !control.is_cancelled()))
    }

    /// Whether somebody waits for merges of `lane`, or soon will. What writers wait for is done in the short lane
    /// alone: a long merge that hurried would only take the core that the flush needs. Without long merges, though,
    /// runs would pile up until flushes stop for them.
    pub(super) fn is_urgent(&self, engine: &Engine, lane: Lane) -> bool {
        let wanted = match lane {
            Lane::Short => engine.demand().is_urgent(),
            Lane::Long => self.seen.runs_pile_up(),
        };
        wanted || self.asked.load(Ordering::Acquire) > 0 || self.unpaced.load(Ordering::Relaxed)
    }

    /// Does the merge, installs it, and lets go of its inputs.
    fn finish(&self, engine: &Engine, table: TableId, wanted: For, claimed: Claimed) -> Result<Merged> {
        let Claimed { number, plan, control, snapshot } = claimed;
        let runs = plan.choice().runs.clone();
        let done = unwinding("a merge", || {
            engine.log.sync_all()?;
            let job = MergeJob::new(plan, engine.load_target(), control.clone())?;
            let outcome = match wanted {
                For::Caller => job.run()?,
                For::Later(lane) => self.run_paced(engine, lane, job, &control)?,
            };
            let written = outcome.rows_written();
            Ok((engine.install(table, outcome)?.is_some(), written))
        });
        drop(snapshot);
        engine.end_merging(&runs);
        self.history.lock().end(number, &done);
        match done {
            Err(_) if control.is_cancelled() => Ok(Merged::Nothing),
            Err(e) => Err(e),
            Ok((true, _)) => Ok(Merged::Installed),
            Ok((false, _)) => Ok(Merged::Discarded),
        }
    }
}

/// A caller that waits for a merge; counted while it lives.
struct Asked<'a>(&'a AtomicUsize);

impl<'a> Asked<'a> {
    fn new(asked: &'a AtomicUsize) -> Self {
        asked.fetch_add(1, Ordering::AcqRel);
        Self(asked)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The frozen deltas up to `last` into a run of their own.
fn frozen_deltas_alone(version: &TableVersion, last: ContainerId) -> Option<MergeChoice> {
    let deltas: Vec<_> = version.frozen_deltas().iter().map(|delta| delta.id()).filter(|id| *id <= last).collect();
    (!deltas.is_empty()).then(|| MergeChoice { deltas, runs: Vec::new(), reason: MergeReason::Flush })
}

/// All runs, and with `deltas` the frozen deltas, into one run, unless they are one without dead rows.
fn everything(version: &TableVersion, deltas: bool) -> Option<MergeChoice> {
    let frozen = if deltas { version.frozen_deltas() } else { &[] };
    let deltas: Vec<_> = frozen.iter().map(|delta| delta.id()).collect();
    let runs: Vec<_> = version.runs.iter().map(|run| run.id()).collect();
    let dead = version.runs.iter().flat_map(|run| run.segments()).any(|part| part.segment.deletes().count_now() > 0);
    let wanted = !deltas.is_empty() || runs.len() > 1 || dead;
    wanted.then_some(MergeChoice { deltas, runs, reason: MergeReason::Asked })
}

/// Rows of the runs and frozen deltas, deleted ones included.
fn rows_of(version: &TableVersion) -> u64 {
    let deltas: u64 = version.frozen_deltas().iter().map(|delta| u64::from(delta.rows())).sum();
    deltas + version.runs.iter().map(|run| run.rows()).sum::<u64>()
}
