//! Where in the log the rows of each delta begin: replay starts at the oldest of those that are still part of a table.
//!
//! Invariant: all deltas with rows of the present versions, and no others: an install, DROP and TRUNCATE forget those
//! they take away. So every step under the commit lock costs a logarithm, whatever the number of tables and deltas.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ContainerId, LogPosition, TableId};
use crate::version::Root;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::commit) struct DeltaStarts {
    of_delta: BTreeMap<ContainerId, (LogPosition, TableId)>,
    by_position: BTreeSet<(LogPosition, ContainerId)>,
}

impl DeltaStarts {
    /// The deltas of `root` among `starts`.
    pub fn of(root: &Root, starts: &BTreeMap<ContainerId, LogPosition>) -> Self {
        let mut of_root = Self::default();
        for (table, version) in &root.tables {
            for delta in &version.deltas {
                if let Some(start) = starts.get(&delta.id()) {
                    of_root.note(*table, delta.id(), *start);
                }
            }
        }
        of_root
    }

    /// The record at `position` has rows of `delta`, which belongs to `table`: the first ones, or later ones.
    pub fn note(&mut self, table: TableId, delta: ContainerId, position: LogPosition) {
        if let std::collections::btree_map::Entry::Vacant(first) = self.of_delta.entry(delta) {
            first.insert((position, table));
            self.by_position.insert((position, delta));
        }
    }

    /// `delta` is part of its table no longer.
    pub fn forget(&mut self, delta: ContainerId) {
        if let Some((position, _)) = self.of_delta.remove(&delta) {
            self.by_position.remove(&(position, delta));
        }
    }

    /// Where the oldest rows begin, and whose they are.
    pub fn oldest(&self) -> Option<(LogPosition, TableId)> {
        let (position, delta) = self.by_position.first()?;
        self.of_delta.get(delta).map(|(_, table)| (*position, *table))
    }

    /// How many are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.of_delta.len()
    }
}
