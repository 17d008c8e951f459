//! Who is at work for users right now: what background work yields to (contract 8).
//!
//! Comes in: a guard around each piece of such work. Goes out: how many threads are busy with it, about, and how long
//! there has been none. Counting waits for nobody.
//!
//! A short statement takes microseconds, in which it may not touch memory that other threads write to. It has no guard:
//! whoever wants to know looks now and then how many snapshots each stripe of the time line has given to readers
//! ([`ShortReaders`]).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Timeline;

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

/// A thread is busy reading when it takes a snapshot at least each so long. One that waits for a client or a disk in
/// between leaves most of its core to others.
const READ_EACH: Duration = Duration::from_micros(200);
/// A shorter time than this tells nothing about a thread.
const LOOK_EACH: Duration = Duration::from_millis(1);

/// A thread that was busy reading is at work still for so long: where cores are short it waits for one most of the
/// time, all the more while a merge has it.
const READS_AGAIN: Duration = Duration::from_millis(50);

/// Threads that do nothing but short reads, seen by how many snapshots they take.
#[derive(Debug)]
pub struct ShortReaders<'a> {
    timeline: &'a Timeline,
    since: Instant,
    seen: RefCell<Seen>,
}

/// What the last look at the stripes showed.
#[derive(Debug)]
struct Seen {
    at: Duration,
    reads: Vec<u64>,
    /// Of each, when its thread was last found busy.
    busy: Vec<Option<Duration>>,
}

impl<'a> ShortReaders<'a> {
    /// None seen yet.
    #[must_use]
    pub fn new(timeline: &'a Timeline) -> Self {
        Self { timeline, since: Instant::now(), seen: RefCell::new(Seen::new(timeline.reads())) }
    }

    /// How many there are, of late.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.seen.borrow_mut().look(self.since.elapsed(), || self.timeline.reads())
    }
}

impl Seen {
    fn new(reads: Vec<u64>) -> Self {
        Self { at: Duration::ZERO, busy: vec![None; reads.len()], reads }
    }

    /// How many threads are busy at `now`, when stripes have given `reads`, which are looked at if it is time to.
    fn look(&mut self, now: Duration, reads: impl FnOnce() -> Vec<u64>) -> usize {
        let elapsed = now.saturating_sub(self.at);
        if elapsed >= LOOK_EACH {
            let reads = reads();
            let due = (nanoseconds(elapsed) / nanoseconds(READ_EACH)).max(1);
            for ((before, reads), busy) in self.reads.iter().zip(&reads).zip(&mut self.busy) {
                if reads.saturating_sub(*before) >= due {
                    *busy = Some(now);
                }
            }
            (self.at, self.reads) = (now, reads);
        }
        let still = |busy: &Duration| now.saturating_sub(*busy) < READS_AGAIN;
        self.busy.iter().flatten().filter(|busy| still(busy)).count()
    }
}

fn nanoseconds(time: Duration) -> u64 {
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
    use std::sync::Arc;

    use super::*;
    use crate::ids::CommitTs;
    use crate::version::Base;

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

    #[test]
    fn threads_that_read_again_and_again_are_seen_and_a_little_longer() {
        let ms = |ms| Duration::from_millis(ms);
        let mut seen = Seen::new(vec![7, 100, 0, 4]);
        assert_eq!(seen.look(ms(0), || panic!("too soon")), 0);
        assert_eq!(seen.look(ms(1), || vec![12, 105, 4, 4]), 2, "each 200 us");
        assert_eq!(seen.look(ms(1), || panic!("too soon")), 2);
        assert_eq!(seen.look(ms(11), || vec![61, 105, 4, 4]), 2, "both wait for a core, or had it for a while");
        assert_eq!(seen.look(ms(13), || vec![61, 105, 14, 4]), 3);
        assert_eq!(seen.look(ms(51), || vec![61, 106, 14, 4]), 1, "the others have stopped");
        assert_eq!(seen.look(ms(63), || vec![61, 106, 14, 4]), 0);
    }

    #[test]
    fn who_may_write_is_no_reader() {
        let timeline = Timeline::new(Arc::default(), CommitTs::ZERO);
        let mut seen = Seen::new(timeline.reads());
        // More in each look than a busy thread takes at least.
        let mut take = |look, writes| {
            (0..100).for_each(|_| drop(timeline.snapshot(Base::Visible, writes)));
            seen.look(LOOK_EACH * 2 * look, || timeline.reads())
        };
        assert_eq!((take(1, true), take(2, false), take(3, false)), (0, 1, 1));
        let readers = ShortReaders::new(&timeline);
        assert_eq!(readers.threads(), 0, "none since it looks");
    }
}
