//! What the engine does by itself: hands the log on, folds delete logs, merges, checkpoints.
//!
//! Comes in: the state of the engine. Goes out: the same rows in fewer, larger, cleaner containers, and a short log
//! tail.
//!
//! 1. The log thread wakes every 10 ms: `off` commits are handed to the operating system. The sync thread has `normal`
//!    ones fsynced when a second has passed (contract 4), or so much was written that the end of a log file would have
//!    to wait for it. It makes the next log file ahead of its time.
//! 2. The watch looks after memory, delete logs and what nobody needs any more, whatever the others do (`watch`).
//! 3. The flush thread wakes when commits have gone by, or a writer waits for it: does the short merges that the policy
//!    of `merge` wants, and shortens the log's tail: flushes the deltas that hold it, however small or idle, then makes
//!    a checkpoint.
//! 4. The merge thread does the long merges, beside it. Merges of both yield to users (`pace`); what shortens the log's
//!    tail does not: every writer would wait for it, and it is due long before one does.
//!
//! Invariants: one merge at a time in each lane, no two on the same container; a failed step leaves nothing, is shown
//! in `mainstem.merges` and tried again; readers and writers never wait for any of it, save lock holds and
//! back-pressure. It does not own: deciding (`merge::policy`), installing (`commit::install`), how long a writer waits
//! (`commit::pressure`, `commit::pressure::tail`).

mod history;
mod merger;
mod pace;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::commit::Engine;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, TableId};
use crate::limits;
use crate::merge::Lane;
use crate::settings::Synchronous;

use merger::Merger;
pub use merger::{MergeState, MergeStatus};

/// How often the log and sync threads look around.
const LOG_TICK: Duration = Duration::from_millis(limits::WAL_OFF_WRITE_MS);
/// How often the flush and merge threads look around.
const MERGE_TICK: Duration = Duration::from_millis(20);
/// And for work though nothing is committed.
const LOOK_EACH: Duration = Duration::from_secs(1);
/// How long they rest at most after work has failed.
const REST_MAX: Duration = Duration::from_secs(5);
/// And while a writer waits for them.
const REST_MAX_WAITED_FOR: Duration = Duration::from_millis(100);

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
        if !self.is_wanted() {
            self.woken.wait_for(&mut lock, time);
        }
        !self.is_wanted()
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    fn now(&self) {
        let _lock = self.lock.lock();
        self.wanted.store(true, Ordering::Release);
        self.woken.notify_all();
    }
}

impl Background {
    /// Starts the threads `engine`'s options ask for: none for a read-only database; no merges by themselves when
    /// `background` is off.
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
            threads.extend(spawn("mainstem-sync", {
                let (engine, stop) = (engine.clone(), stop.clone());
                move || run_sync(&engine, &stop)
            }));
            if engine.options.background {
                threads.extend(spawn("mainstem-watch", {
                    let (engine, stop, merger) = (engine.clone(), stop.clone(), merger.clone());
                    move || watch::run(&engine, &stop, merger.seen())
                }));
                threads.extend(spawn("mainstem-flush", {
                    let (engine, stop, merger) = (engine.clone(), stop.clone(), merger.clone());
                    let mut tail = Tail::default();
                    move || run_merges(&engine, &stop, &merger, || tend(&engine, &merger, &stop, &mut tail))
                }));
                threads.extend(spawn("mainstem-merge", {
                    let (engine, stop, merger) = (engine.clone(), stop.clone(), merger.clone());
                    move || run_merges(&engine, &stop, &merger, || merge_runs(&engine, &merger, &stop))
                }));
            }
        }
        Self { merger, stop, threads: Mutex::new(threads) }
    }

    /// Ends the threads and waits for them; merges under way are cancelled.
    pub fn stop(&self) {
        self.stop.now();
        self.merger.cancel();
        for thread in self.threads.lock().drain(..) {
            // A panic there was already reported by the panic hook; there is nobody to pass it to.
            let _ = thread.join();
        }
    }

    /// Freezes the delta of `table` and merges its frozen deltas into a run, however long a merge of runs is under way.
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

    /// Whether merges yield to users.
    pub fn set_paced(&self, paced: bool) {
        self.merger.set_paced(paced);
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

/// What is to be done with the log soon, without waiting for the disk's cache.
fn run_log(engine: &Engine, stop: &Stop) {
    while stop.sleep(LOG_TICK) {
        if !flush_log(engine, Synchronous::Off) {
            return;
        }
    }
}

/// What is to be done with it now and then, and takes longer.
fn run_sync(engine: &Engine, stop: &Stop) {
    let mut synced = Instant::now();
    while stop.sleep(LOG_TICK) {
        let due = synced.elapsed() >= Duration::from_millis(limits::WAL_NORMAL_SYNC_MS);
        if due || engine.log.unsynced_bytes() >= limits::WAL_SYNC_AHEAD_BYTES {
            synced = Instant::now();
            if !flush_log(engine, Synchronous::Full) {
                return;
            }
        }
        if let Err(e) = engine.log.prepare_next() {
            tracing::debug!("the next log file could not be made ahead of its time: {e}");
        }
    }
}

/// Whether the log is sound.
fn flush_log(engine: &Engine, level: Synchronous) -> bool {
    if engine.log.is_poisoned() {
        return false;
    }
    if let Err(e) = engine.log.flush(level) {
        tracing::error!("the log could not be written: {e}");
        return false;
    }
    engine.timeline.advance_visible(engine.log.visible());
    true
}

/// Does `work` whenever there may be some; rests after a failure.
fn run_merges(engine: &Engine, stop: &Stop, merger: &Merger, mut work: impl FnMut() -> Result<()>) {
    let (mut seen, mut looked) = (CommitTs::ZERO, Instant::now());
    let mut rest = Duration::ZERO;
    let mut not_before = Instant::now();
    while stop.sleep(MERGE_TICK) {
        if engine.log.is_poisoned() {
            return;
        }
        let waited_for = engine.is_waited_for();
        let applied = engine.timeline.applied();
        // Readers step over dead rows though nothing is committed.
        let is_due = applied != seen || looked.elapsed() >= LOOK_EACH;
        if !is_due && rest.is_zero() && !waited_for && !merger.has_failed() {
            continue;
        }
        if Instant::now() < not_before && !(waited_for && not_before - Instant::now() + REST_MAX_WAITED_FOR <= rest) {
            continue;
        }
        (seen, looked) = (applied, Instant::now());
        match unwinding("background work", &mut work) {
            Ok(()) => rest = Duration::ZERO,
            Err(e) => {
                tracing::warn!("background work failed, trying again later: {e}");
                rest = (rest * 2).clamp(MERGE_TICK, REST_MAX);
                not_before = Instant::now() + rest;
            }
        }
    }
}

/// Rounds of everything until no short merge is wanted. Under load there is always one: the rest must not wait for the
/// last.
fn tend(engine: &Engine, merger: &Merger, stop: &Stop, tail: &mut Tail) -> Result<()> {
    let mut shortened = Ok(());
    loop {
        engine.release_unneeded()?;
        if tail.is_due(engine) {
            shortened = engine.shortening_tail(|| shorten_tail(engine, merger, stop));
        }
        if stop.is_wanted() || !merger.step(engine, Lane::Short)? {
            return engine.release_unneeded().and(shortened);
        }
    }
}

/// Long merges until none is wanted.
fn merge_runs(engine: &Engine, merger: &Merger, stop: &Stop) -> Result<()> {
    while !stop.is_wanted() && merger.step(engine, Lane::Long)? {}
    engine.release_unneeded()
}

/// When the log's tail was shortened last.
#[derive(Debug, Default)]
struct Tail {
    end: u64,
}

impl Tail {
    /// Whether the tail is long, and has grown by a good part since it was last shortened: what holds it may not be
    /// mergeable. A writer that waits for it wants another attempt in any case.
    fn is_due(&mut self, engine: &Engine) -> bool {
        let end = engine.replay_bytes();
        let goal = engine.tail_bytes_wanted();
        let long = engine.log_tail_bytes() > goal;
        let grown = end >= self.end.saturating_add(goal / 8);
        let due = engine.is_tail_waited_for() || (long && grown);
        if due {
            self.end = end;
        }
        due
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

/// Flushes the deltas that hold the oldest half of the allowed tail, then writes a checkpoint.
fn shorten_tail(engine: &Engine, merger: &Merger, stop: &Stop) -> Result<()> {
    let end = engine.log.position_of_next();
    let keep = end.0.saturating_sub(engine.tail_bytes_wanted() / 2);
    let mut last = None;
    let mut failed = None;
    while let Some((table, start)) = engine.table_with_oldest_rows()? {
        if start.0 >= keep || last == Some((table, start)) || stop.is_wanted() {
            break;
        }
        last = Some((table, start));
        if let Err(e) = merger.flush(engine, table) {
            // The checkpoint may still let go of what is before these rows.
            failed = Some(e.context("a delta that holds the log could not be flushed"));
            break;
        }
    }
    engine.checkpoint()?;
    failed.map_or(Ok(()), Err)
}
