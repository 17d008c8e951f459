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
    /// The commit of `ts` deletes rows of `container`.
    pub fn note(&mut self, ts: CommitTs, container: ContainerId) {
        if self.entries.len() >= limits::RECENT_DELETES
            && let Some((forgotten, _)) = self.entries.pop_front()
        {
            self.since = forgotten;
        }
        self.entries.push_back((ts, container));
    }

    /// The containers that commits after `ts` deleted rows of, some of them repeatedly; `None` when that is not known any more.
    pub fn after(&self, ts: CommitTs) -> Option<impl Iterator<Item = ContainerId>> {
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
            recent.note(CommitTs(ts), ContainerId(10 + ts));
            recent.note(CommitTs(ts), ContainerId(20 + ts));
        }
        assert_eq!(after(&recent, 0), Some(vec![11, 21, 12, 22, 13, 23]));
        assert_eq!(after(&recent, 2), Some(vec![13, 23]));
        assert_eq!(after(&recent, 3), Some(vec![]));
        // One of the two of the first commit goes: it is not known any more, the second one is.
        for _ in 0..limits::RECENT_DELETES - 5 {
            recent.note(CommitTs(4), ContainerId(4));
        }
        assert_eq!(after(&recent, 0), None);
        assert_eq!(after(&recent, 1).map(|found| found.len()), Some(limits::RECENT_DELETES - 1));
        assert_eq!(recent.entries.len(), limits::RECENT_DELETES);
    }
}
