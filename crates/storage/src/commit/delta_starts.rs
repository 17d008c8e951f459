//! Where in the log the rows of each delta begin: replay starts at the oldest of those that are still part of a table.
//!
//! Invariant: looking for the oldest costs a logarithm, whatever the number of tables and deltas: what has left its table is
//! forgotten when it turns out to be the oldest, once for each delta.

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

    /// Where the oldest rows of `root`'s deltas begin, and whose they are. `root` is the present.
    pub fn oldest(&mut self, root: &Root) -> Option<(LogPosition, TableId)> {
        while let Some(&(position, delta)) = self.by_position.first() {
            let table = self.of_delta.get(&delta).map(|(_, table)| *table);
            let version = table.and_then(|table| root.tables.get(&table));
            if let (Some(table), true) = (table, version.is_some_and(|v| v.deltas.iter().any(|d| d.id() == delta))) {
                return Some((position, table));
            }
            self.by_position.pop_first();
            self.of_delta.remove(&delta);
        }
        None
    }

    /// How many are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.of_delta.len()
    }
}
