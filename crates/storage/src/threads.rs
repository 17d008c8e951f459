//! One piece of work in parts, done by several threads at once: what somebody waits for, on cores that are idle
//! meanwhile.
//!
//! Comes in: how many threads, how many parts or a stream of them, and what to do for a part. Goes out: what came of
//! each, in order. Threads that help with parts wait for the next call, all of the process for the same: what one has
//! allocated is at hand when it works again. Those that a stream is handed to live no longer than the call.

mod streams;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

use parking_lot::{Condvar, Mutex};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};
use crate::limits;

pub use streams::{Parts, streams_in_order};

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
/// error no part is begun any more. Parts are short: calls share the threads that help, and may wait for those of
/// others.
///
/// # Errors
/// That of the first part, in order, that has one.
pub fn in_parallel<T: Send>(threads: usize, parts: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let threads = threads.min(parts);
    let Some(helpers) = helpers().filter(|_| threads > 1) else { return (0..parts).map(work).collect() };
    all_parts(parts, work, |some_parts| {
        helpers.in_place_scope(|scope| {
            (1..threads).for_each(|_| scope.spawn(|_| some_parts()));
            some_parts();
        });
    })
}

/// As [`in_parallel`], by threads of its own, which live no longer than the call: its parts may take long.
///
/// # Errors
/// As [`in_parallel`].
pub fn in_parallel_alone<T: Send>(
    threads: usize,
    parts: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let threads = threads.min(parts);
    if threads <= 1 {
        return (0..parts).map(work).collect();
    }
    all_parts(parts, work, |some_parts| {
        std::thread::scope(|scope| {
            let helper = |_| Builder::new().name("mainstem part".into()).spawn_scoped(scope, some_parts).ok();
            let helpers: Vec<_> = (1..threads).map_while(helper).collect();
            some_parts();
            for helper in helpers {
                if let Err(panic) = helper.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    })
}

/// What `work` makes of each of `parts` parts, by all who run what `run` is given.
fn all_parts<T: Send>(
    parts: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
    run: impl FnOnce(&(dyn Fn() + Sync)),
) -> Result<Vec<T>> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = Mutex::new(Vec::with_capacity(parts));
    run(&|| {
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
    });
    // Each part that was begun was ended, so that none is missing before the first error.
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(part, _)| *part);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Hands what `work` makes of each of `parts` to `take`, in order. This thread makes the parts and takes; `threads`
/// others work, or this one where there are none. At most `ahead` parts are made and not taken yet.
///
/// # Errors
/// That of the first part that has one, of `parts`, of `take`. Nothing is taken behind it.
pub fn in_order<P: Send, T: Send>(
    threads: usize,
    ahead: usize,
    parts: impl Iterator<Item = Result<P>>,
    work: impl Fn(P) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let queue = Queue { state: Mutex::new(State::default()), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let _end = EndAtDrop(&queue, false);
        let worker = || {
            // A panic must not leave others waiting.
            let _end = EndAtDrop(&queue, true);
            while let Some((number, part)) = queue.claim() {
                queue.deliver(number, work(part));
            }
        };
        let helper = |_| Builder::new().name("mainstem part".into()).spawn_scoped(scope, worker).ok();
        let helpers = if threads <= 1 { 0 } else { (0..threads).map_while(helper).count() };
        if helpers == 0 {
            return parts.into_iter().try_for_each(|part| take(work(part?)?));
        }
        let (mut made, mut taken, mut failed) = (0, 0, Ok(()));
        for part in parts {
            match part {
                Ok(part) => queue.put(made, part),
                // Those before it may have one.
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            }
            made += 1;
            while taken < made
                && let Some(done) = queue.next(taken, made - taken >= ahead.max(1))?
            {
                taken += 1;
                take(done?)?;
            }
        }
        while taken < made {
            let Some(done) = queue.next(taken, true)? else { break };
            taken += 1;
            take(done?)?;
        }
        failed
    })
}

/// Parts by their numbers, on their way through [`in_order`].
struct Queue<P, T> {
    state: Mutex<State<P, T>>,
    changed: Condvar,
}

struct State<P, T> {
    to_do: VecDeque<(usize, P)>,
    done: BTreeMap<usize, Result<T>>,
    ended: bool,
}

impl<P, T> Default for State<P, T> {
    fn default() -> Self {
        Self { to_do: VecDeque::new(), done: BTreeMap::new(), ended: false }
    }
}

impl<P, T> Queue<P, T> {
    fn put(&self, number: usize, part: P) {
        self.state.lock().to_do.push_back((number, part));
        self.changed.notify_all();
    }

    /// The next part to work on; none at the end.
    fn claim(&self) -> Option<(usize, P)> {
        let mut state = self.state.lock();
        loop {
            if state.ended {
                return None;
            }
            match state.to_do.pop_front() {
                Some(part) => return Some(part),
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn deliver(&self, number: usize, done: Result<T>) {
        self.state.lock().done.insert(number, done);
        self.changed.notify_all();
    }

    /// What came of part `number`; `None` if that is not known yet, unless it `waits`.
    fn next(&self, number: usize, waits: bool) -> Result<Option<Result<T>>> {
        let mut state = self.state.lock();
        loop {
            if let Some(done) = state.done.remove(&number) {
                return Ok(Some(done));
            }
            if state.ended {
                return Err(Error::internal("a thread that worked on a part has ended"));
            }
            if !waits {
                return Ok(None);
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Ends the work on parts, only in a panic if the flag says so.
struct EndAtDrop<'a, P, T>(&'a Queue<P, T>, bool);

impl<P, T> Drop for EndAtDrop<'_, P, T> {
    fn drop(&mut self) {
        if !self.1 || std::thread::panicking() {
            self.0.state.lock().ended = true;
            self.0.changed.notify_all();
        }
    }
}
