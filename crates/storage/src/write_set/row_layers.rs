//! Rows of the stores or its own that a transaction names: those it has deleted, those it has locked.
//!
//! Each statement adds a layer, which views of earlier statements do not see; a layer is joined with those before it
//! that are no larger, so that there are at most log2(rows) and a row is copied as often.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::ids::{ContainerId, RowRef};
use crate::memory::{Charge, MemoryBudget, MemoryKind};

/// Offsets by container.
pub type RowSets = BTreeMap<ContainerId, RoaringBitmap>;

/// Bytes of an entry of [`RowSets`] beside those of its bitmap.
const ENTRY_BYTES: usize = size_of::<ContainerId>() + size_of::<RoaringBitmap>() + 32;

/// What some statements named.
#[derive(Debug)]
struct Layer {
    sets: RowSets,
    rows: u64,
    charge: Charge,
}

/// The rows, each once. A clone costs O(log rows), and stays as it is.
#[derive(Clone, Debug)]
pub struct RowLayers {
    /// Each has more rows than the next.
    layers: Vec<Arc<Layer>>,
    budget: Arc<MemoryBudget>,
}

impl RowLayers {
    /// None yet.
    #[must_use]
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { layers: Vec::new(), budget }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Whether `row` is among them.
    #[must_use]
    pub fn contains(&self, row: RowRef) -> bool {
        self.sets_of(row.container()).any(|set| set.contains(row.offset()))
    }

    /// The rows of `container`, in sets that have none in common.
    pub fn sets_of(&self, container: ContainerId) -> impl Iterator<Item = &RoaringBitmap> {
        self.layers.iter().filter_map(move |layer| layer.sets.get(&container))
    }

    /// How many rows of `container`.
    #[must_use]
    pub fn count_of(&self, container: ContainerId) -> u64 {
        self.sets_of(container).map(RoaringBitmap::len).sum()
    }

    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.layers.iter().map(|layer| layer.rows).sum()
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.charge.bytes() as usize).sum()
    }

    #[cfg(test)]
    pub(super) fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Those of the containers that are `wanted`, in one.
    #[must_use]
    pub fn collect(&self, wanted: impl Fn(ContainerId) -> bool) -> RowSets {
        let mut all = RowSets::new();
        for layer in &self.layers {
            for (&id, set) in layer.sets.iter().filter(|(id, _)| wanted(**id)) {
                *all.entry(id).or_default() |= set;
            }
        }
        all
    }

    /// Adds `sets`.
    pub fn add(&mut self, mut sets: RowSets) {
        for (&id, set) in &mut sets {
            for known in self.sets_of(id) {
                *set -= known;
            }
        }
        sets.retain(|_, set| !set.is_empty());
        let mut rows: u64 = sets.values().map(RoaringBitmap::len).sum();
        if rows == 0 {
            return;
        }
        while let Some(before) = self.layers.pop_if(|before| before.rows <= rows) {
            rows += before.rows;
            for (&id, set) in &before.sets {
                *sets.entry(id).or_default() |= set;
            }
        }
        self.push(sets, rows);
    }

    /// Forgets those of the containers that are `gone`.
    pub fn forget(&mut self, gone: impl Fn(ContainerId) -> bool) {
        if self.layers.iter().any(|layer| layer.sets.keys().any(|id| gone(*id))) {
            let kept = self.collect(|id| !gone(id));
            self.layers.clear();
            self.add(kept);
        }
    }

    fn push(&mut self, sets: RowSets, rows: u64) {
        let bytes = sets.values().map(|set| ENTRY_BYTES + set.serialized_size()).sum();
        let charge = self.budget.charge(MemoryKind::WriteSets, bytes);
        self.layers.push(Arc::new(Layer { sets, rows, charge }));
    }
}
