//! Deletes of one commit in many containers, which take effect in all of them at once.
//!
//! Ahead of the commit lock each container's log gets an *intent*: a set of offsets with a [`Decision`] that all
//! intents of the commit share. Under the lock the decision is made, one store. Whoever comes to a log afterwards moves
//! its decided intents into it.
//!
//! Invariants: an intent that is not decided deletes nothing, for nobody; a decision is made under the commit lock,
//! once, before its timestamp is applied. `docs/design/0001-delete-log.md` says why no reader can miss it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::DeleteSet;
use crate::ids::CommitTs;

/// When the intents of one commit take effect: never, until it is made.
#[derive(Clone, Debug)]
pub struct Decision(Arc<AtomicU64>);

impl Default for Decision {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(CommitTs::INFINITY.0)))
    }
}

impl Decision {
    /// Under the commit lock: all rows intended are deleted from `ts` on.
    pub fn make(&self, ts: CommitTs) {
        debug_assert!(!self.is_made(), "decided twice");
        self.0.store(ts.0, Ordering::Release);
    }

    /// Whether it is made.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.end() != CommitTs::INFINITY
    }

    fn end(&self) -> CommitTs {
        CommitTs(self.0.load(Ordering::Acquire))
    }
}

/// The intents in one delete log.
#[derive(Default)]
pub(super) struct Intents(Vec<(Decision, DeleteSet)>);

impl Intents {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, decision: &Decision, set: DeleteSet) {
        self.0.push((decision.clone(), set));
    }

    /// Takes back what waits for `decision`.
    pub(super) fn withdraw(&mut self, decision: &Decision) {
        self.0.retain(|(other, _)| !Arc::ptr_eq(&other.0, &decision.0));
    }

    /// Whether some are decided.
    #[inline]
    pub(super) fn any_decided(&self) -> bool {
        self.0.iter().any(|(decision, _)| decision.is_made())
    }

    /// Takes those that are decided, in commit order: with one all that were decided before it.
    pub(super) fn take_decided(&mut self) -> Vec<(CommitTs, DeleteSet)> {
        let decided = self.0.iter().map(|(decision, _)| decision.end()).filter(|end| *end != CommitTs::INFINITY);
        let Some(newest) = decided.max() else { return Vec::new() };
        // Looked at a second time: an earlier decision, perhaps not yet made at the first look, is seen now that the
        // newest one was.
        let mut taken: Vec<_> = self.0.extract_if(.., |(decision, _)| decision.end() <= newest).collect();
        taken.sort_by_key(|(decision, _)| decision.end());
        taken.into_iter().map(|(decision, set)| (decision.end(), set)).collect()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let sets = self.0.iter().map(|(_, set)| set.heap_bytes()).sum::<usize>();
        sets + self.0.capacity() * size_of::<(Decision, DeleteSet)>()
    }
}
