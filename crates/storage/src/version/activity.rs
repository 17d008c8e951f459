//! Who is at work for users right now: what background work yields to (contract 8).
//!
//! Comes in: a guard around each piece of such work. Goes out: how many threads are busy with it, about, and how long
//! there has been none. Counting waits for nobody.
//!
//! A short statement takes microseconds, in which it may not touch memory that other threads write to. It has no guard:
//! whoever wants to know looks at the time line now and then (`short_readers`).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub struct Activity {
    since: Instant,
    queries: AtomicUsize,
    threads: AtomicUsize,
    /// When somebody was seen last, in nanoseconds since `since`.
    last: AtomicU64,
}

/// What a guard stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A query or a statement, on any number of threads.
    Query,
    /// One thread of it.
    Thread,
}

/// Somebody is at work while it lives.
#[derive(Debug)]
pub struct AtWork<'a> {
    activity: &'a Activity,
    work: Work,
}

/// Somebody at work waits while it lives.
#[derive(Debug)]
pub struct Paused<'a> {
    activity: &'a Activity,
    work: Work,
}

impl Default for Activity {
    fn default() -> Self {
        let zero = || AtomicUsize::new(0);
        Self { since: Instant::now(), queries: zero(), threads: zero(), last: AtomicU64::new(0) }
    }
}

impl Activity {
    /// `work` begins.
    #[must_use]
    pub fn begin(&self, work: Work) -> AtWork<'_> {
        self.counter(work).fetch_add(1, Ordering::Relaxed);
        AtWork { activity: self, work }
    }

    /// Whoever does `work` waits for others while the answer lives, and has no use for a core: it is not counted.
    #[must_use]
    pub fn pause(&self, work: Work) -> Paused<'_> {
        self.stop(work);
        Paused { activity: self, work }
    }

    fn stop(&self, work: Work) {
        self.last.store(self.now(), Ordering::Relaxed);
        self.counter(work).fetch_sub(1, Ordering::Relaxed);
    }

    /// Threads at work, at least as many as queries; one when the last has stopped for less than `pause`, as a query
    /// does between two batches.
    #[must_use]
    pub fn threads(&self, pause: Duration) -> usize {
        let counted = self.queries.load(Ordering::Relaxed).max(self.threads.load(Ordering::Relaxed));
        let last = self.last.load(Ordering::Relaxed);
        let recent = last > 0 && self.now().saturating_sub(last) < nanoseconds(pause);
        counted.max(usize::from(recent))
    }

    fn counter(&self, work: Work) -> &AtomicUsize {
        match work {
            Work::Query => &self.queries,
            Work::Thread => &self.threads,
        }
    }

    fn now(&self) -> u64 {
        nanoseconds(self.since.elapsed())
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.activity.stop(self.work);
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.activity.counter(self.work).fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_while_they_work_and_a_little_longer() {
        let (activity, long) = (Activity::default(), Duration::from_secs(3_600));
        assert_eq!((activity.threads(long), activity.threads(Duration::ZERO)), (0, 0), "nobody was ever there");
        let query = activity.begin(Work::Query);
        assert_eq!(activity.threads(Duration::ZERO), 1);
        let threads = [Work::Thread; 3].map(|work| activity.begin(work));
        assert_eq!(activity.threads(Duration::ZERO), 3, "threads of the query");
        drop(threads);
        assert_eq!(activity.threads(Duration::ZERO), 1);
        let paused = activity.pause(Work::Query);
        assert_eq!((activity.threads(long), activity.threads(Duration::ZERO)), (1, 0));
        drop(paused);
        assert_eq!(activity.threads(Duration::ZERO), 1);
        drop(query);
        assert_eq!((activity.threads(long), activity.threads(Duration::ZERO)), (1, 0));
    }
}
