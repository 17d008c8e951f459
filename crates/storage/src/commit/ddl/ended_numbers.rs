//! Numbers of IDENTITY columns whose counting has ended, for those who see rows of before.

use crate::ids::CommitTs;

/// What was taken of a column whenever its counting ended: with TRUNCATE ... RESTART IDENTITY, the column, or its
/// table. Ascending by timestamp.
#[derive(Debug, Default)]
pub(in crate::commit) struct EndedNumbers(Vec<(CommitTs, u64)>);

impl EndedNumbers {
    pub(super) fn push(&mut self, ts: CommitTs, taken: u64) {
        self.0.push((ts, taken));
    }

    /// What was taken in the era that a transaction at `at` sees, if that has ended.
    pub(super) fn at(&self, at: CommitTs) -> Option<u64> {
        self.0.iter().find(|(ended, _)| *ended > at).map(|(_, taken)| *taken)
    }

    /// Forgets eras that nobody sees who stands at `oldest` or later; whether there are no others.
    pub(super) fn forget_before(&mut self, oldest: CommitTs) -> bool {
        self.0.retain(|(ended, _)| *ended > oldest);
        self.0.is_empty()
    }
}
