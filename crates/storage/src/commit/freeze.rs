//! Freeze: swaps in an empty delta generation (contract 3). Microseconds under the lock; no row moves, so no timestamp is
//! drawn and no record written: replay learns of generations from the inserts that name them.

use std::sync::Arc;

use crate::commit::Engine;
use crate::delta_store::DeltaGeneration;
use crate::error::Result;
use crate::ids::TableId;
use crate::memory::MemoryKind;
use crate::version::{Root, TableVersion};

impl Engine {
    /// Freezes the active delta of `table` unless it is empty. Returns whether it did.
    ///
    /// # Errors
    /// As [`Engine::check_open`].
    pub fn freeze(&self, table: TableId) -> Result<bool> {
        let _lock = self.lock()?;
        let (_, root) = self.timeline.present();
        let Some(version) = root.tables.get(&table) else { return Ok(false) };
        if version.active_delta().is_none_or(|delta| delta.rows() == 0) {
            return Ok(false);
        }
        let frozen = self.frozen(version);
        self.timeline.replace_newest(Arc::new(replace(&root, frozen)));
        Ok(true)
    }

    /// `version` with its active delta frozen and a fresh one behind it. Under the lock.
    pub(super) fn frozen(&self, version: &TableVersion) -> TableVersion {
        let fresh = DeltaGeneration::new(self.next_container(), version.schema.clone());
        if let Some(active) = version.active_delta() {
            active.freeze();
            active.count_as(&self.memory, MemoryKind::FrozenDeltas);
        }
        version.with_freeze(Arc::new(fresh))
    }
}

fn replace(root: &Root, version: TableVersion) -> Root {
    let mut next = root.clone();
    next.tables.insert(version.schema.id, Arc::new(version));
    next
}
