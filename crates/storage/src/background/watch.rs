//! The watch: what must be looked after however long a merge takes or rests, and however often merges fail.
//!
//! 1. Every tick in which commits may have gone by, and each second: deltas are measured, and the largest active ones
//!    frozen when all of them take too much, and those whose dead rows readers step over. O(deltas).
//! 2. Delete logs are folded, the other memory is measured, and tables are looked through for runs that pile up.
//!    O(segments), so it takes at most a twentieth of the watch's time.
//! 3. What nobody needs any more is let go of.
//!
//! Invariants: it waits for no merge and for no writer, holds the commit lock for no longer than a freeze does, and
//! reads and writes no file. It does not own: deciding (`commit::pressure`), merging (`merger`), the log's tail, which
//! takes merges to shorten.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{MERGE_TICK, Stop, unwinding};
use crate::commit::Engine;
use crate::error::Result;
use crate::ids::CommitTs;
use crate::merge::has_too_many_runs;
use crate::version::TableVersion;

/// What takes long is done again when this many times the time it took has gone by.
const RESTS_PER_ROUND: u32 = 19;
/// It is done so often though nothing is committed: what queries leave is lent to the block cache then.
const EACH: Duration = Duration::from_secs(1);

/// What the watch has seen, for merges.
#[derive(Debug, Default)]
pub(super) struct Seen {
    runs_pile_up: AtomicBool,
}

impl Seen {
    /// Whether a table has so many runs that flushes stop for merging them, or soon will: long merges do not keep up.
    pub fn runs_pile_up(&self) -> bool {
        self.runs_pile_up.load(Ordering::Relaxed)
    }
}

/// The watch's own notes.
#[derive(Debug)]
pub(super) struct Watch {
    /// The last commit that deltas were measured after.
    deltas: CommitTs,
    /// When that was.
    looked_at_deltas: Instant,
    /// And the last one that all was.
    all: CommitTs,
    /// When all may be measured again.
    not_before: Instant,
}

/// Looks after `engine` until it is told to stop.
pub(super) fn run(engine: &Engine, stop: &Stop, seen: &Seen) {
    let mut watch = Watch::default();
    while stop.sleep(MERGE_TICK) {
        if engine.log.is_poisoned() {
            return;
        }
        if let Err(e) = unwinding("the watch", || watch.look(engine, seen)) {
            tracing::warn!("memory could not be looked after, trying again: {e}");
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        let now = Instant::now();
        Self { deltas: CommitTs::ZERO, looked_at_deltas: now, all: CommitTs::ZERO, not_before: now }
    }
}

impl Watch {
    /// Once around: all of it, as far as it is time to.
    pub fn look(&mut self, engine: &Engine, seen: &Seen) -> Result<()> {
        let applied = engine.timeline.applied();
        let start = Instant::now();
        // Readers step over dead rows though nothing is committed.
        if applied != self.deltas || start >= self.looked_at_deltas + EACH {
            let frozen = engine.watch_deltas()?;
            if frozen > 0 {
                tracing::debug!("{frozen} deltas frozen, for their memory or their dead rows");
            }
            (self.deltas, self.looked_at_deltas) = (applied, start);
        }
        if start >= self.not_before && (applied != self.all || start >= self.not_before + EACH) {
            fold_delete_logs(engine);
            engine.measure_memory();
            let (_, root) = engine.timeline.present();
            seen.runs_pile_up.store(root.tables.values().any(|version| pile_up(version)), Ordering::Relaxed);
            self.all = applied;
            self.not_before = Instant::now() + start.elapsed() * RESTS_PER_ROUND;
        }
        engine.release_unneeded()
    }
}

fn pile_up(version: &TableVersion) -> bool {
    has_too_many_runs(version.runs.len(), version.runs.iter().map(|run| run.rows()).sum())
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
