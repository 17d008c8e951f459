//! The pace of background merges: they use idle cores and yield to queries until a writer would have to wait (contract
//! 8).
//!
//! 1. Between two batches a merge *breathes* ([`Pacer::breathe`]). When it has worked for a slice of time it looks at
//!    the [`Load`].
//! 2. [`rest`] says how long it rests then: not at all while there is a core for it, or somebody waits for background
//!    work or soon will; else a multiple of what it has worked.
//! 3. The rest ends early when that changes, or the merge is cancelled.
//!
//! Invariants: deciding is a pure function; a merge always has at least 1 / (1 + [`RESTS_PER_WORK`]) of the time, so
//! that it ends however long queries go on. It does not own: who is at work (`version::activity`), what is waited for
//! (`commit::pressure`).
//!
//! Queries, statements, loads (but not those that wait for others) and threads that read short statement after short
//! statement are yielded to. Short writes are not: each makes work for a merge, and a merge that rests makes each
//! dearer, for look-ups ask every frozen delta; they would only meet back-pressure sooner. Merges that somebody asked
//! for, a flush that the log's tail needs among them, are not paced.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a merge works before it looks around: a batch or a few.
const SLICE: Duration = Duration::from_millis(2);
/// How long it rests for what it has worked.
pub(super) const RESTS_PER_WORK: u32 = 3;
/// How long it rests at a time before it looks again.
const NAP: Duration = Duration::from_millis(1);

/// What a merge may know of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Cores of the machine.
    pub cores: usize,
    /// Threads at work for users.
    pub users: usize,
    /// Merges under way, this one included.
    pub merges: usize,
    /// Somebody waits for background work, or soon will.
    pub urgent: bool,
}

/// How long a merge rests that has worked for `worked`.
pub(super) fn rest(worked: Duration, load: Load) -> Duration {
    let has_core = load.users + load.merges <= load.cores;
    if load.urgent || load.users == 0 || has_core { Duration::ZERO } else { worked * RESTS_PER_WORK }
}

/// Time, as it is or as a test has it.
pub(super) trait Clock {
    /// Time since some moment.
    fn now(&self) -> Duration;
    /// Lets `time` go by.
    fn sleep(&self, time: Duration);
}

/// The time of the machine.
pub(super) struct MachineClock(Instant);

impl Default for MachineClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// One merge's pace.
pub(super) struct Pacer<C, L> {
    clock: C,
    load: L,
    /// When it last began to work.
    since: Cell<Duration>,
}

impl<C: Clock, L: Fn() -> Load> Pacer<C, L> {
    /// A merge that begins to work now, beside what `load` tells.
    pub fn new(clock: C, load: L) -> Self {
        let since = Cell::new(clock.now());
        Self { clock, load, since }
    }

    /// Rests, if it is time to, while `goes_on`.
    pub fn breathe(&self, goes_on: impl Fn() -> bool) {
        let start = self.clock.now();
        let worked = start.saturating_sub(self.since.get());
        if worked < SLICE {
            return;
        }
        while goes_on() {
            let left = rest(worked, (self.load)()).saturating_sub(self.clock.now().saturating_sub(start));
            if left.is_zero() {
                break;
            }
            self.clock.sleep(left.min(NAP));
        }
        self.since.set(self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn load(users: usize, merges: usize) -> Load {
        Load { cores: 2, users, merges, urgent: false }
    }

    #[test]
    fn a_merge_rests_only_when_it_takes_a_core_from_users() {
        for (users, merges, rests) in [(0, 1, 0), (0, 3, 0), (1, 1, 0), (1, 2, 30), (2, 1, 30), (9, 2, 30)] {
            assert_eq!(rest(10 * MS, load(users, merges)), rests * MS, "{users} users, {merges} merges");
            assert_eq!(rest(10 * MS, Load { urgent: true, ..load(users, merges) }), Duration::ZERO);
        }
    }

    /// Time that goes by only when somebody sleeps, or the test says so.
    #[derive(Default)]
    struct Told(Cell<Duration>);

    impl Clock for &Told {
        fn now(&self) -> Duration {
            self.0.get()
        }

        fn sleep(&self, time: Duration) {
            self.0.set(self.0.get() + time);
        }
    }

    /// Of a second beside `load`, how long the merge has worked in batches of `batch`.
    fn worked_beside(load: impl Fn(Duration) -> Load, batch: Duration) -> Duration {
        let clock = Told::default();
        let pacer = Pacer::new(&clock, || load(clock.0.get()));
        let mut worked = Duration::ZERO;
        while clock.0.get() < 1_000 * MS {
            (&clock).sleep(batch);
            worked += batch;
            pacer.breathe(|| true);
        }
        worked
    }

    #[test]
    fn a_merge_has_a_part_of_the_time_however_long_queries_go_on() {
        for batch in [MS / 10, MS, 7 * MS, 50 * MS] {
            let idle = worked_beside(|_| load(0, 2), batch);
            let busy = worked_beside(|_| load(4, 2), batch);
            assert!(idle >= 1_000 * MS, "{idle:?}");
            assert!(busy >= 240 * MS && busy <= 320 * MS, "{busy:?} in batches of {batch:?}");
        }
    }

    #[test]
    fn a_rest_ends_when_somebody_waits_or_nobody_is_there_any_more() {
        let changes = [Load { urgent: true, ..load(4, 2) }, load(0, 2), load(1, 1)];
        for change in changes {
            let clock = Told::default();
            let pacer = Pacer::new(&clock, || if clock.0.get() < 105 * MS { load(4, 2) } else { change });
            (&clock).sleep(100 * MS);
            pacer.breathe(|| true);
            assert_eq!(clock.0.get(), 105 * MS);
        }
        let clock = Told::default();
        let pacer = Pacer::new(&clock, || load(4, 2));
        (&clock).sleep(100 * MS);
        pacer.breathe(|| clock.0.get() < 103 * MS);
        assert_eq!(clock.0.get(), 103 * MS, "cancelled");
    }
}
