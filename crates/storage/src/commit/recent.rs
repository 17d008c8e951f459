//! Containers that the last commits deleted rows of: an install has to look at no others under the commit lock.
//!
//! Invariant: bounded, whatever was deleted; what is forgotten is said to be.

use std::collections::VecDeque;

use crate::ids::{CommitTs, ContainerId};
use crate::limits;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::commit) struct RecentDeletes {
    /// In commit order.
    entries: VecDeque<(CommitTs, ContainerId)>,
    /// All deletes of commits after this one are in `entries`.
    since: CommitTs,
}

impl RecentDeletes {
    /// The commit of `ts` deletes rows of `containers`.
    pub fn note(&mut self, ts: CommitTs, containers: impl ExactSizeIterator<Item = ContainerId>) {
        if containers.len() > limits::RECENT_DELETES {
            self.entries.clear();
            self.since = ts;
            return;
        }
        let forgotten = (self.entries.len() + containers.len()).saturating_sub(limits::RECENT_DELETES);
        if let Some((last, _)) = self.entries.drain(..forgotten).next_back() {
            self.since = last;
        }
        self.entries.extend(containers.map(|container| (ts, container)));
    }

    /// The containers that commits after `ts` deleted rows of, some of them repeatedly; `None` when that is not known
    /// any more.
    pub fn after(&self, ts: CommitTs) -> Option<impl ExactSizeIterator<Item = ContainerId>> {
        let first = self.entries.partition_point(|(at, _)| *at <= ts);
        (ts >= self.since).then(|| self.entries.range(first..).map(|(_, container)| *container))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_not_claimed_to_be_known() {
        let mut recent = RecentDeletes::default();
        let after = |recent: &RecentDeletes, ts| recent.after(CommitTs(ts)).map(|found| found.map(|id| id.0).collect());
        assert_eq!(after(&recent, 0), Some(vec![]));
        for ts in 1..=3 {
            recent.note(CommitTs(ts), [10, 20].map(|base| ContainerId(base + ts)).into_iter());
        }
        assert_eq!(after(&recent, 0), Some(vec![11, 21, 12, 22, 13, 23]));
        assert_eq!(after(&recent, 2), Some(vec![13, 23]));
        assert_eq!(after(&recent, 3), Some(vec![]));
        // One of the two of the first commit goes: it is not known any more, the second one is.
        for _ in 0..limits::RECENT_DELETES - 5 {
            recent.note(CommitTs(4), std::iter::once(ContainerId(4)));
        }
        assert_eq!(after(&recent, 0), None);
        assert_eq!(after(&recent, 1).map(|found| found.len()), Some(limits::RECENT_DELETES - 1));
        assert_eq!(recent.entries.len(), limits::RECENT_DELETES);
        // As many as there is room for take the place of all others; of more nothing is known but that they were.
        let many = |count: usize| (0..count as u64).map(ContainerId).collect::<Vec<_>>().into_iter();
        recent.note(CommitTs(5), many(limits::RECENT_DELETES));
        assert_eq!(
            (after(&recent, 3), after(&recent, 4).map(|found| found.len())),
            (None, Some(limits::RECENT_DELETES))
        );
        recent.note(CommitTs(6), many(limits::RECENT_DELETES + 1));
        recent.note(CommitTs(7), many(1));
        assert_eq!((after(&recent, 5), after(&recent, 6)), (None, Some(vec![0])));
    }
}
