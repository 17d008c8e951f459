//! What the engine does by itself: hands the log on, folds delete logs, merges, checkpoints.
//!
//! Comes in: the state of the engine. Goes out: the same rows in fewer, larger, cleaner containers, and a short log tail.
//!
//! 1. The log thread wakes every 10 ms: `off` commits are handed to the operating system, `normal` ones fsynced when a
//!    second has passed (contract 4).
//! 2. The merge thread wakes when commits have gone by: folds delete logs, lets go of what nobody needs, asks the policy of
//!    `merge` what to do for each table, does one step at a time, and makes a checkpoint when the log tail is long, after
//!    merging the deltas that hold it.
//!
//! Invariants: one merge at a time; a failed step leaves nothing and is shown in `mainstem.merges`; readers and writers never
//! wait for any of it, save lock holds. It does not own: deciding (`merge::policy`), installing (`commit::install`).

mod merger;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::commit::Engine;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, TableId};
use crate::limits;
use crate::settings::Synchronous;

use merger::Merger;
pub use merger::{MergeState, MergeStatus};

/// How often the merge thread looks around.
const MERGE_TICK: Duration = Duration::from_millis(20);

/// The engine's own threads.
#[derive(Debug)]
pub struct Background {
    merger: Arc<Merger>,
    stop: Arc<Stop>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Tells threads to end.
#[derive(Debug, Default)]
struct Stop {
    wanted: AtomicBool,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Stop {
    /// Sleeps; returns whether to go on.
    fn sleep(&self, time: Duration) -> bool {
        let mut lock = self.lock.lock();
        if !self.wanted.load(Ordering::Acquire) {
            self.woken.wait_for(&mut lock, time);
        }
        !self.wanted.load(Ordering::Acquire)
    }

    fn now(&self) {
        let _lock = self.lock.lock();
        self.wanted.store(true, Ordering::Release);
        self.woken.notify_all();
    }
}

impl Background {
    /// Starts the threads `engine`'s options ask for: none for a read-only database; no merges by themselves when `background`
    /// is off.
    #[must_use]
    pub fn start(engine: &Arc<Engine>) -> Self {
        let merger = Arc::new(Merger::default());
        let stop = Arc::new(Stop::default());
        let mut threads = Vec::new();
        if !engine.options.read_only {
            threads.extend(spawn("mainstem-log", {
                let (engine, stop) = (engine.clone(), stop.clone());
                move || run_log(&engine, &stop)
            }));
            if engine.options.background {
                threads.extend(spawn("mainstem-merge", {
                    let (engine, stop, merger) = (engine.clone(), stop.clone(), merger.clone());
                    move || run_merges(&engine, &stop, &merger)
                }));
            }
        }
        Self { merger, stop, threads: Mutex::new(threads) }
    }

    /// Ends the threads and waits for them; a merge under way is cancelled.
    pub fn stop(&self) {
        self.stop.now();
        self.merger.cancel();
        for thread in self.threads.lock().drain(..) {
            // A panic there was already reported by the panic hook; there is nobody to pass it to.
            let _ = thread.join();
        }
    }

    /// Freezes the delta of `table` and merges its frozen deltas into a run.
    ///
    /// # Errors
    /// Those of a merge.
    pub fn flush(&self, engine: &Engine, table: TableId) -> Result<()> {
        self.merger.flush(engine, table)
    }

    /// Freezes the delta of `table` and merges everything into one run.
    ///
    /// # Errors
    /// Those of a merge.
    pub fn merge_all(&self, engine: &Engine, table: TableId) -> Result<()> {
        self.merger.merge_all(engine, table)
    }

    /// Merges, running and past.
    #[must_use]
    pub fn merges(&self) -> Vec<MergeStatus> {
        self.merger.history()
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    match std::thread::Builder::new().name(name.into()).spawn(body) {
        Ok(thread) => Some(thread),
        Err(e) => {
            tracing::warn!("could not start thread {name}: {e}");
            None
        }
    }
}

fn run_log(engine: &Engine, stop: &Stop) {
    let mut synced = Instant::now();
    while stop.sleep(Duration::from_millis(limits::WAL_OFF_WRITE_MS)) {
        if engine.log.is_poisoned() {
            return;
        }
        let due = synced.elapsed() >= Duration::from_millis(limits::WAL_NORMAL_SYNC_MS);
        let level = if due { Synchronous::Full } else { Synchronous::Off };
        if due {
            synced = Instant::now();
        }
        if let Err(e) = engine.log.flush(level) {
            tracing::error!("the log could not be written: {e}");
            return;
        }
        engine.timeline.advance_visible(engine.log.visible());
    }
}

fn run_merges(engine: &Engine, stop: &Stop, merger: &Merger) {
    let mut seen = CommitTs::ZERO;
    let mut wait = MERGE_TICK;
    let mut tail = Tail::default();
    while stop.sleep(wait) {
        if engine.log.is_poisoned() {
            return;
        }
        let applied = engine.timeline.applied();
        if applied == seen && wait == MERGE_TICK {
            if let Err(e) = engine.release_unneeded() {
                tracing::error!("{e}");
                return;
            }
            continue;
        }
        seen = applied;
        wait = match unwinding("background work", || tend(engine, merger, stop, &mut tail)) {
            Ok(()) => MERGE_TICK,
            Err(e) => {
                tracing::warn!("background work failed, trying again later: {e}");
                (wait * 2).min(Duration::from_secs(5))
            }
        };
    }
}

/// Rounds of everything until no merge is wanted. Under load there is always one: the rest must not wait for the last.
fn tend(engine: &Engine, merger: &Merger, stop: &Stop, tail: &mut Tail) -> Result<()> {
    loop {
        fold_delete_logs(engine);
        engine.release_unneeded()?;
        if tail.is_due(engine) {
            shorten_tail(engine, merger)?;
        }
        if stop.wanted.load(Ordering::Acquire) || !merger.step(engine)? {
            return engine.release_unneeded();
        }
    }
}

/// When the log's tail was shortened last.
#[derive(Debug, Default)]
struct Tail {
    end: u64,
}

impl Tail {
    /// Whether the tail is long, and has grown by a good part since it was last shortened: what holds it may not be mergeable.
    fn is_due(&mut self, engine: &Engine) -> bool {
        let end = engine.replay_bytes();
        let long = engine.log_tail_bytes() > engine.options.checkpoint_bytes;
        let grown = end >= self.end.saturating_add(engine.options.checkpoint_bytes / 8);
        if long && grown {
            self.end = end;
        }
        long && grown
    }
}

/// What `work` returns; a panic in it becomes an Internal error, for the thread has more to do.
fn unwinding<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::internal(format!("{what} panicked: {text}")))
    })
}

/// Merges the deltas that hold the oldest half of the allowed tail, then writes a checkpoint.
fn shorten_tail(engine: &Engine, merger: &Merger) -> Result<()> {
    let end = engine.log.position_of_next();
    let keep = end.0.saturating_sub(engine.options.checkpoint_bytes / 2);
    let mut last = None;
    while let Some((table, start)) = engine.table_with_oldest_rows()? {
        if start.0 >= keep || last == Some((table, start)) {
            break;
        }
        last = Some((table, start));
        if let Err(e) = merger.flush(engine, table) {
            // The checkpoint may still let go of what is before these rows.
            tracing::warn!("a delta that holds the log could not be merged: {e}");
            break;
        }
    }
    engine.checkpoint()
}

/// Folds long delete logs into bitmaps, keeping what a snapshot may need.
fn fold_delete_logs(engine: &Engine) {
    let (_, root) = engine.timeline.present();
    let mut needed = None;
    for version in root.tables.values() {
        let deltas = version.deltas.iter().map(|delta| delta.deletes());
        let segments = version.runs.iter().flat_map(|run| run.segments()).map(|part| part.segment.deletes());
        for log in deltas.chain(segments).filter(|log| log.wants_fold()) {
            log.fold(needed.get_or_insert_with(|| engine.timeline.needed()));
        }
    }
}
