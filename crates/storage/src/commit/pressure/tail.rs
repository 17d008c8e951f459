//! Back-pressure on the log's tail: a restart never has more to replay than `log_tail_bytes_max` (contracts 4 and 8).
//!
//! 1. A commit reserves log space before phase (b), holding no lock. While the tail, with what others have reserved and
//!    the files aside that its records name, has reached the writers' part of the bound it waits, and asks the
//!    background to shorten the tail.
//! 2. An attempt flushes the deltas that hold the oldest records and makes a checkpoint: nothing in it waits for a
//!    snapshot or a transaction to end.
//! 3. An attempt that began after the writer did, failed, and moved nothing ends the wait with 53100, as does the
//!    deadline.
//!
//! Invariants: installs never wait, for they are what makes the tail shorter: the last eighth of the bound is theirs
//! (one of tens of thousands of segments, whose file aside is larger still, may pass the bound); a commit passes the
//! writers' part by its own record and files aside at most. It does not own: the attempt (`background`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::commit::Engine;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::LogPosition;
use crate::limits;
use crate::wal::Reservation;

/// How often a waiting writer looks whether writing has ended meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Share of the bound that is left to installs: 1 / this.
const INSTALL_SHARE: u64 = 8;

/// Who waits for a shorter tail, and what came of the attempts to make it so.
#[derive(Debug, Default)]
pub(in crate::commit) struct TailGauge {
    waiting: AtomicUsize,
    attempts: Mutex<Attempts>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Attempts {
    begun: u64,
    ended: u64,
    /// Why the last one failed.
    failed: Option<Error>,
}

/// A writer that waits; counted while it lives.
struct Waiting<'a>(&'a TailGauge);

impl<'a> Waiting<'a> {
    fn new(gauge: &'a TailGauge) -> Self {
        gauge.waiting.fetch_add(1, Ordering::AcqRel);
        Self(gauge)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Engine {
    /// Bytes of log tail above which the background shortens it.
    #[must_use]
    pub fn tail_bytes_wanted(&self) -> u64 {
        self.options.checkpoint_bytes.min(self.writers_tail_bytes() / 2)
    }

    /// Whether a writer waits for a shorter tail.
    #[must_use]
    pub fn is_tail_waited_for(&self) -> bool {
        self.tail.waiting.load(Ordering::Acquire) > 0
    }

    /// Does `attempt` to shorten the tail, and tells the writers that wait what came of it.
    ///
    /// # Errors
    /// Those of `attempt`.
    pub fn shortening_tail(&self, attempt: impl FnOnce() -> Result<()>) -> Result<()> {
        self.tail.attempts.lock().begun += 1;
        // Told also when it panics.
        let mut attempted = Attempted { gauge: &self.tail, failed: Some(Error::internal("it panicked")) };
        let done = attempt();
        attempted.failed = done.as_ref().err().cloned();
        done
    }

    /// Reserves log space for a commit of `bytes`. `before_waiting` lets go of whatever the attempt needs.
    ///
    /// # Errors
    /// Full (53100) when the tail cannot be made shorter, or not in time, or the disk is full; Closed.
    pub(in crate::commit) fn reserve_log(&self, bytes: usize, before_waiting: impl FnOnce()) -> Result<Reservation> {
        let space = self.log.reserve_below(bytes, self.writers_tail_end())?;
        #[cfg(test)]
        let space = space.filter(|_| !crate::commit::tests::has_no_log_space());
        if let Some(space) = space {
            return Ok(space);
        }
        before_waiting();
        #[cfg(test)]
        crate::commit::tests::while_waiting_for_log_space();
        let _waiting = Waiting::new(&self.tail);
        let deadline = Instant::now() + Duration::from_millis(limits::BACK_PRESSURE_MS_MAX);
        let next_attempt = || self.tail.attempts.lock().begun + 1;
        let (mut wanted, mut start) = (next_attempt(), self.shortened_by());
        loop {
            if let Some(space) = self.log.reserve_below(bytes, self.writers_tail_end())? {
                return Ok(space);
            }
            self.check_writable()?;
            let mut attempts = self.tail.attempts.lock();
            if attempts.ended >= wanted {
                let now = self.shortened_by();
                if now == start {
                    return Err(self.tail_full(attempts.failed.as_ref()));
                }
                (wanted, start) = (attempts.begun + 1, now);
                continue;
            }
            if Instant::now() >= deadline {
                return Err(self.tail_full(attempts.failed.as_ref()));
            }
            self.tail.ended.wait_for(&mut attempts, LOOK_AGAIN);
        }
    }

    /// Bytes of tail from which on commits wait: all of the bound but what is left to installs. Without background work
    /// nobody would shorten it, so nobody waits.
    pub(super) fn writers_tail_bytes(&self) -> u64 {
        let max = self.options.log_tail_bytes_max;
        if self.options.background { max - max / INSTALL_SHARE } else { u64::MAX }
    }

    /// The position from which on commits wait: files aside that a restart would read count as if they stood in the
    /// log.
    fn writers_tail_end(&self) -> LogPosition {
        let covered = self.aside_bytes_covered.load(Ordering::Acquire);
        let files = self.aside_bytes.load(Ordering::Acquire).saturating_sub(covered);
        let end = self.log_start.load(Ordering::Acquire).saturating_add(self.writers_tail_bytes());
        LogPosition(end.saturating_sub(files))
    }

    /// Bytes of log and of files aside that a restart need not read; only its growth means anything.
    fn shortened_by(&self) -> u64 {
        self.log_start.load(Ordering::Acquire).saturating_add(self.aside_bytes_covered.load(Ordering::Acquire))
    }

    fn tail_full(&self, cause: Option<&Error>) -> Error {
        let why = cause.map_or_else(
            || {
                "recent rows were not written to segments in time: write more slowly, or raise log_tail_bytes_max"
                    .into()
            },
            |cause| {
                format!("recent rows could not be written to segments ({}): make room on the disk", cause.message())
            },
        );
        let bytes = self.options.log_tail_bytes_max;
        Error::new(
            ErrorKind::Full,
            sqlstate::DISK_FULL,
            format!(
                "the log has as many bytes as a restart may have to replay (log_tail_bytes_max, {bytes}), and {why}"
            ),
        )
    }
}

/// An attempt under way.
struct Attempted<'a> {
    gauge: &'a TailGauge,
    failed: Option<Error>,
}

impl Drop for Attempted<'_> {
    fn drop(&mut self) {
        let mut attempts = self.gauge.attempts.lock();
        attempts.ended = attempts.begun;
        attempts.failed = self.failed.take();
        self.gauge.ended.notify_all();
    }
}
