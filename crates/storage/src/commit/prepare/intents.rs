//! Deletes that take effect all at once under the commit lock, in however many rows and containers: ahead of it each
//! container's delete log gets an intent ([`crate::deletes::Decision`]).
//!
//! Invariants: placed in the containers of the version that the commit was validated against, right before it asks for
//! the lock; when it was overtaken they are withdrawn, and placed anew where the rows are then. None stands while a
//! commit waits for anything but the lock. One that is dropped undecided leaves nothing behind. It does not own: what
//! is deleted, and whether it is live.

use std::sync::Arc;

use super::PreparedTable;
use crate::deletes::{Decision, DeleteLog};
use crate::delta_store::DeltaGeneration;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, ContainerId};
use crate::segment::Segment;
use crate::version::Container;

/// The intents of one table's part of a commit.
pub(in crate::commit) struct Intents {
    decision: Decision,
    placed: Vec<Holder>,
}

/// A container with an intent in its log.
enum Holder {
    Delta(Arc<DeltaGeneration>),
    Segment(Arc<Segment>),
}

impl Holder {
    fn find(table: &PreparedTable, id: ContainerId) -> Option<Self> {
        let stored = table.version.as_ref().and_then(|version| version.container(id));
        let own = || table.runs.iter().find_map(|run| run.segment(id)).map(|part| Container::Segment(&part.segment));
        Some(match stored.or_else(own)? {
            Container::Delta(delta) => Self::Delta(delta.clone()),
            Container::Segment(segment) => Self::Segment(segment.clone()),
        })
    }

    fn deletes(&self) -> &DeleteLog {
        match self {
            Self::Delta(delta) => delta.deletes(),
            Self::Segment(segment) => segment.deletes(),
        }
    }
}

impl Intents {
    /// Places those of `table`, as it was validated last.
    ///
    /// # Errors
    /// Internal, when a container is nowhere.
    pub(super) fn place(table: &PreparedTable) -> Result<Self> {
        let mut intents = Self { decision: Decision::default(), placed: Vec::with_capacity(table.deletes.len()) };
        for (&id, set) in &table.deletes {
            let holder = Holder::find(table, id);
            let holder = holder.ok_or_else(|| Error::internal(format!("no container {id} to delete from")))?;
            holder.deletes().intend(&intents.decision, set);
            intents.placed.push(holder);
        }
        Ok(intents)
    }

    /// Under the lock, behind the record: the rows are deleted from `ts` on.
    pub fn decide(&self, ts: CommitTs) {
        self.decision.make(ts);
    }
}

impl Drop for Intents {
    /// What is left of them: work for each row, without the commit lock.
    fn drop(&mut self) {
        for log in self.placed.iter().map(Holder::deletes) {
            if self.decision.is_made() { log.pour() } else { log.withdraw(&self.decision) }
        }
    }
}
