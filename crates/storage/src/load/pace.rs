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
/// Somebody writes row after row if there was a commit each so long.
const COMMIT_EACH: Duration = Duration::from_micros(200);

/// How long a load rests that has worked for `worked`, beside as many commits.
fn rest(worked: Duration, commits: u64, cores: usize) -> Duration {
    let is_beside_writes = u128::from(commits) * COMMIT_EACH.as_nanos() >= worked.as_nanos();
    let share = u32::try_from((5 * cores.max(1)).div_ceil(2)).unwrap_or(u32::MAX);
    if is_beside_writes { worked / share } else { Duration::ZERO }
}

/// See the module.
#[derive(Debug)]
pub struct Pace {
    /// When it last began to work, and the newest commit then.
    since: Instant,
    newest: CommitTs,
}

impl Pace {
    /// Of a load that begins now.
    #[must_use]
    pub fn new(newest: CommitTs) -> Self {
        Self { since: Instant::now(), newest }
    }

    /// Rests, by `sleep`, if it is time to. `newest` is the newest commit.
    pub fn breathe(&mut self, newest: CommitTs, cores: usize, sleep: impl FnOnce(Duration)) {
        let worked = self.since.elapsed();
        if worked < SLICE {
            return;
        }
        let rest = rest(worked, newest.0.saturating_sub(self.newest.0), cores);
        if !rest.is_zero() {
            sleep(rest);
        }
        *self = Self::new(newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_rest_beside_short_writes_alone() {
        let ms = Duration::from_millis;
        assert_eq!(rest(ms(20), 0, 2), Duration::ZERO);
        assert_eq!(rest(ms(20), 99, 2), Duration::ZERO, "less than one each 200 us");
        assert_eq!(rest(ms(20), 100, 2), ms(4));
        assert_eq!(rest(ms(20), 1 << 40, 20), ms(20) / 50);
        assert_eq!(rest(ms(21), 100, 0), Duration::ZERO);
        assert_eq!(rest(ms(21), 200, 0), ms(7));
    }

    #[test]
    fn what_was_looked_at_counts_no_more() {
        let mut pace = Pace::new(CommitTs(7));
        let rested = |pace: &mut Pace, newest| {
            let mut rested = None;
            std::thread::sleep(SLICE);
            pace.breathe(CommitTs(newest), 1, |rest| rested = Some(rest));
            rested
        };
        assert!(rested(&mut pace, 1 << 30).is_some_and(|rest| rest >= SLICE / 3));
        assert_eq!(rested(&mut pace, 1 << 30), None, "no commit since");
        pace.breathe(CommitTs(1 << 40), 1, |_| panic!("it has hardly worked"));
    }
}
