//! The pace of a load: it leaves a part of a core to short writes while they come one after the other.
//!
//! Comes in: at each part of a load, how many commits there were. Goes out: how long the load rests.
//!
//! A load has a thread for each core, and more at times; who writes row after row beside it is one more, and gets what
//! is left of one core by the system's order alone. The load rests for a part of the time it has worked, the smaller
//! the more cores there are. It does not own: the pace of merges (`background`), which yield to all.

use std::time::{Duration, Instant};

use crate::ids::CommitTs;

/// How long a load works before it looks around.
const SLICE: Duration = Duration::from_millis(5);
/// How long it rests at most, however long that was: what it waits for counts as work, and a cancel waits for the rest.
const REST_MAX: Duration = Duration::from_millis(20);
/// Somebody writes row after row if there was a commit each so long.
const COMMIT_EACH: Duration = Duration::from_micros(200);

/// How long a load rests that has worked for `worked`, beside as many commits.
fn rest(worked: Duration, commits: u64, cores: usize) -> Duration {
    let is_beside_writes = u128::from(commits) * COMMIT_EACH.as_nanos() >= worked.as_nanos();
    // A quarter beside two cores: transactions beside a load then have more than three fifths of their rate.
    let cores = u32::try_from(cores.max(1)).unwrap_or(u32::MAX);
    if is_beside_writes { (worked / cores.saturating_mul(2)).min(REST_MAX) } else { Duration::ZERO }
}

/// See the module.
#[derive(Debug)]
pub struct Pace {
    cores: usize,
    /// When it last began to work, and the newest commit then.
    since: Instant,
    newest: CommitTs,
}

impl Pace {
    /// Of a load that begins now, on so many cores; `newest` is the newest commit.
    #[must_use]
    pub fn new(cores: usize, newest: CommitTs) -> Self {
        Self { cores, since: Instant::now(), newest }
    }

    /// Rests, by `sleep`, if it is time to. `newest` tells the newest commit.
    pub fn breathe(&mut self, newest: impl Fn() -> CommitTs, sleep: impl FnOnce(Duration)) {
        self.breathe_after(self.since.elapsed(), newest, sleep);
    }

    fn breathe_after(&mut self, worked: Duration, newest: impl Fn() -> CommitTs, sleep: impl FnOnce(Duration)) {
        if worked < SLICE {
            return;
        }
        let rest = rest(worked, newest().0.saturating_sub(self.newest.0), self.cores);
        if !rest.is_zero() {
            sleep(rest);
        }
        // What was committed in the meantime says nothing of the time to come.
        *self = Self::new(self.cores, newest());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn loads_rest_beside_short_writes_alone() {
        assert_eq!(rest(20 * MS, 0, 2), Duration::ZERO);
        assert_eq!(rest(20 * MS, 99, 2), Duration::ZERO, "less than one each 200 us");
        assert_eq!(rest(16 * MS, 80, 2), 4 * MS);
        assert_eq!(rest(80 * MS, 1 << 40, 20), 2 * MS);
        assert_eq!(rest(8 * MS, 200, 0), 4 * MS);
        assert_eq!(rest(Duration::from_secs(600), u64::MAX, 2), REST_MAX);
    }

    #[test]
    fn commits_count_once() {
        let newest = Cell::new(7);
        let mut pace = Pace::new(1, CommitTs(7));
        let mut rested = |worked, committed, meanwhile| {
            newest.set(newest.get() + committed);
            let mut rested = None;
            pace.breathe_after(
                worked,
                || CommitTs(newest.get()),
                |rest| {
                    rested = Some(rest);
                    newest.set(newest.get() + meanwhile);
                },
            );
            rested
        };
        assert_eq!(rested(4 * MS, 1 << 20, 0), None, "it has hardly worked");
        assert_eq!(rested(12 * MS, 0, 1 << 20), Some(6 * MS));
        assert_eq!(rested(12 * MS, 0, 0), None, "what came in the rest is of no slice");
        assert_eq!(rested(12 * MS, 60, 0), Some(6 * MS));
    }
}
