//! Threads that do nothing but short reads, which have no guard: seen now and then by how many snapshots each stripe of
//! the time line has given to readers.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::Timeline;
use super::activity::nanoseconds;

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::CommitTs;
    use crate::version::Base;

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
