//! One piece of work in parts, done by several threads at once: what somebody waits for, on cores that are idle
//! meanwhile.
//!
//! Comes in: how many threads, how many parts, and what to do for a part. Goes out: what came of each, in order. The
//! calling thread works too; the others wait for the next call, all of the process for the same: what a thread has
//! allocated is at hand when it works again.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Result;
use crate::limits;

/// Threads that this machine runs at once.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The threads that help; none where the system has none.
fn helpers() -> Option<&'static ThreadPool> {
    static HELPERS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || {
        let builder = ThreadPoolBuilder::new().num_threads(cores().max(limits::LOAD_THREADS_MAX));
        builder.thread_name(|number| format!("mainstem part {number}")).build().ok()
    };
    HELPERS.get_or_init(start).as_ref()
}

/// What `work` makes of each of `parts` parts, by at most `threads` threads: fewer where the system has none. After an
/// error no part is begun any more.
///
/// # Errors
/// That of the first part, in order, that has one.
pub fn in_parallel<T: Send>(threads: usize, parts: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let threads = threads.min(parts);
    let Some(helpers) = helpers().filter(|_| threads > 1) else { return (0..parts).map(work).collect() };
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = Mutex::new(Vec::with_capacity(parts));
    let some_parts = || {
        while !failed.load(Ordering::Relaxed) {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                break;
            }
            let outcome = work(part);
            if outcome.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            done.lock().push((part, outcome));
        }
    };
    helpers.in_place_scope(|scope| {
        (1..threads).for_each(|_| scope.spawn(|_| some_parts()));
        some_parts();
    });
    // Each part that was begun was ended, so that none is missing before the first error.
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(part, _)| *part);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::error::Error;

    #[test]
    fn each_part_is_done_once_and_in_its_place() {
        for (threads, parts) in [(1, 5), (2, 0), (3, 1), (2, 2), (4, 100)] {
            let begun: Vec<_> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            let squares = in_parallel(threads, parts, |part| {
                begun[part].fetch_add(1, Ordering::Relaxed);
                Ok(part * part)
            });
            assert_eq!(squares.unwrap(), (0..parts).map(|part| part * part).collect::<Vec<_>>());
            assert!(begun.iter().all(|begun| begun.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn threads_work_at_once() {
        let all_there = Barrier::new(3);
        in_parallel(3, 3, |_| {
            all_there.wait();
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn the_first_error_is_told_and_ends_it() {
        let begun = AtomicUsize::new(0);
        let outcome = in_parallel(2, 1_000, |part| {
            begun.fetch_add(1, Ordering::Relaxed);
            if part >= 7 { Err(Error::internal(format!("part {part}"))) } else { Ok(part) }
        });
        assert!(outcome.unwrap_err().message().contains("part 7"));
        assert!(begun.load(Ordering::Relaxed) < 12);
    }

    #[test]
    #[should_panic(expected = "of a part")]
    fn a_panic_is_passed_on() {
        let both = Barrier::new(2);
        let _ = in_parallel(2, 2, |part| {
            both.wait();
            assert!(part == 0, "of a part");
            Ok(())
        });
    }
}
