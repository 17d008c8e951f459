//! Several streams of parts, each made by one thread, taken one stream behind the other.
//!
//! Comes in: how many streams, and what makes the parts of one. Goes out: all parts, in order, to the calling thread.
//!
//! Invariants: parts that were made and not taken have no more bytes than are granted, but for one of the stream that
//! is taken: so that one always goes on, and never waits for those behind it. Nothing is taken behind an error.

use std::collections::{BTreeMap, VecDeque};
use std::thread::Builder;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

/// Hands the parts of `streams` streams to `take`, in order, on this thread. `threads` others make them with `make`, a
/// stream at a time, up to `bytes_max` bytes ahead.
///
/// # Errors
/// That of the first stream that has one, or of `take`; Io when no thread can be started.
pub fn streams_in_order<T: Send>(
    threads: usize,
    streams: usize,
    bytes_max: u64,
    make: impl Fn(usize, &Parts<'_, T>) -> Result<()> + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let queue = Queue { state: Mutex::new(State::default()), changed: Condvar::new(), streams, bytes_max };
    std::thread::scope(|scope| {
        let _end = EndAtDrop(&queue, false);
        let worker = || {
            // A panic must not leave others waiting.
            let _end = EndAtDrop(&queue, true);
            while let Some(stream) = queue.claim() {
                queue.close(stream, make(stream, &Parts { queue: &queue, stream }));
            }
        };
        for number in 0..threads.clamp(1, streams.max(1)) {
            let started = Builder::new().name("mainstem part".into()).spawn_scoped(scope, worker);
            if let Err(e) = started
                && number == 0
            {
                return Err(Error::io("start", "a thread", e));
            }
        }
        while let Some(part) = queue.take()? {
            take(part)?;
        }
        Ok(())
    })
}

/// Where the parts of one stream go.
pub struct Parts<'a, T> {
    queue: &'a Queue<T>,
    stream: usize,
}

impl<T> Parts<'_, T> {
    /// Hands `part`, of `bytes` bytes, over, as soon as there is room for it. False when nobody takes parts any more.
    pub fn put(&self, part: T, bytes: u64) -> bool {
        let mut state = self.queue.state.lock();
        loop {
            if state.ended {
                return false;
            }
            let is_awaited = state.taking == self.stream && state.is_empty(self.stream);
            if is_awaited || state.bytes + bytes <= self.queue.bytes_max {
                break;
            }
            self.queue.changed.wait(&mut state);
        }
        state.bytes += bytes;
        state.parts.entry(self.stream).or_default().push_back((part, bytes));
        self.queue.changed.notify_all();
        true
    }
}

struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    streams: usize,
    bytes_max: u64,
}

struct State<T> {
    /// Streams that were begun.
    begun: usize,
    /// The stream that is taken.
    taking: usize,
    /// Those that wait to be taken, of each stream, with their bytes, and the sum of these.
    parts: BTreeMap<usize, VecDeque<(T, u64)>>,
    bytes: u64,
    /// How streams ended.
    closed: BTreeMap<usize, Result<()>>,
    ended: bool,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        let (parts, closed) = (BTreeMap::new(), BTreeMap::new());
        Self { begun: 0, taking: 0, parts, bytes: 0, closed, ended: false }
    }
}

impl<T> State<T> {
    fn is_empty(&self, stream: usize) -> bool {
        self.parts.get(&stream).is_none_or(VecDeque::is_empty)
    }
}

impl<T> Queue<T> {
    /// The next stream to make; none when there are no more.
    fn claim(&self) -> Option<usize> {
        let mut state = self.state.lock();
        if state.ended || state.begun == self.streams {
            return None;
        }
        state.begun += 1;
        Some(state.begun - 1)
    }

    fn close(&self, stream: usize, outcome: Result<()>) {
        self.state.lock().closed.insert(stream, outcome);
        self.changed.notify_all();
    }

    /// The next part in order; none behind the last one.
    fn take(&self) -> Result<Option<T>> {
        let mut state = self.state.lock();
        loop {
            let stream = state.taking;
            if let Some((part, bytes)) = state.parts.get_mut(&stream).and_then(VecDeque::pop_front) {
                state.bytes -= bytes;
                self.changed.notify_all();
                return Ok(Some(part));
            }
            if stream == self.streams {
                return Ok(None);
            }
            if let Some(outcome) = state.closed.remove(&stream) {
                outcome?;
                state.parts.remove(&stream);
                state.taking += 1;
                self.changed.notify_all();
                continue;
            }
            if state.ended {
                return Err(Error::internal("a thread that made a stream has ended"));
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Ends the making of parts, only in a panic if the flag says so.
struct EndAtDrop<'a, T>(&'a Queue<T>, bool);

impl<T> Drop for EndAtDrop<'_, T> {
    fn drop(&mut self) {
        if !self.1 || std::thread::panicking() {
            self.0.state.lock().ended = true;
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;

    /// Streams of different lengths, some without parts, with room for few parts or for none: all come, in order, and
    /// no more are ahead than there is room for.
    #[test]
    fn parts_come_in_order_and_never_far_ahead() {
        for (threads, streams, bytes_max) in [(1, 5, 100), (2, 0, 9), (3, 40, 30), (2, 7, 0), (4, 3, 1_000)] {
            let (made, most) = (AtomicU64::new(0), AtomicU64::new(0));
            let parts_of = |stream: usize| stream * 3 % 7;
            let make = |stream: usize, parts: &Parts<'_, (usize, usize)>| {
                for part in 0..parts_of(stream) {
                    if stream.is_multiple_of(5) {
                        std::thread::sleep(Duration::from_micros(300));
                    }
                    most.fetch_max(made.fetch_add(10, Ordering::SeqCst) + 10, Ordering::SeqCst);
                    assert!(parts.put((stream, part), 10));
                }
                Ok(())
            };
            let mut taken = Vec::new();
            streams_in_order(threads, streams, bytes_max, make, |part| {
                made.fetch_sub(10, Ordering::SeqCst);
                taken.push(part);
                Ok(())
            })
            .unwrap();
            let all = (0..streams).flat_map(|stream| (0..parts_of(stream)).map(move |part| (stream, part)));
            assert_eq!(taken, all.collect::<Vec<_>>());
            // One of the stream that is taken, one that is taken and still counted, and those that wait to be put.
            assert!(most.into_inner() <= bytes_max + 10 * (threads as u64 + 2), "{threads} {bytes_max}");
        }
    }

    /// The error of a stream is told behind its parts, and nothing comes behind it; that of who takes ends all.
    #[test]
    fn errors_end_it_where_they_stand() {
        let make = |stream: usize, parts: &Parts<'_, usize>| {
            (0..4).all(|_| parts.put(stream, 1));
            if stream == 2 { Err(Error::internal("of stream 2")) } else { Ok(()) }
        };
        let mut taken = Vec::new();
        let take = |part| {
            taken.push(part);
            Ok(())
        };
        let error = streams_in_order(2, 9, 5, make, take).unwrap_err();
        assert!(error.message().contains("of stream 2"));
        assert_eq!(taken, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        let refuse = |part| if part == 1 { Err(Error::internal("refused")) } else { Ok(()) };
        assert!(streams_in_order(2, 9, 5, make, refuse).unwrap_err().message().contains("refused"));
    }

    #[test]
    #[should_panic(expected = "scoped thread panicked")]
    fn a_panic_is_passed_on() {
        let make = |stream: usize, parts: &Parts<'_, usize>| {
            parts.put(stream, 1);
            assert!(stream == 0, "of a stream");
            Ok(())
        };
        let _ = streams_in_order(2, 3, 5, make, |_| Ok(()));
    }
}
