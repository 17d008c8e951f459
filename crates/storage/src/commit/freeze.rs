//! Freeze: swaps in an empty delta generation (contract 3). Microseconds under the lock; no row moves, so no timestamp
//! is drawn and no record written: replay learns of generations from the inserts that name them.

use std::sync::Arc;

use crate::commit::Engine;
use crate::delta_store::DeltaGeneration;
use crate::error::Result;
use crate::ids::TableId;
use crate::memory::MemoryKind;
use crate::version::TableVersion;

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
        let frozen = self.with_fresh_delta(version);
        self.seal(&frozen);
        self.timeline.replace_newest(Arc::new(root.with_table_version(Arc::new(frozen))));
        Ok(true)
    }

    /// `version` with a fresh delta behind the active one, which takes rows until [`Engine::seal`].
    pub(super) fn with_fresh_delta(&self, version: &TableVersion) -> TableVersion {
        version.with_freeze(Arc::new(DeltaGeneration::new(self.next_container(), version.schema.clone())))
    }

    /// Ends appends to all deltas of `version` but the active one. Under the lock, when nothing keeps `version` from
    /// being published: were it thrown away, the version before it would be left with an active delta that takes no
    /// rows.
    pub(super) fn seal(&self, version: &TableVersion) {
        for delta in version.frozen_deltas().iter().filter(|delta| !delta.is_frozen()) {
            delta.freeze();
            delta.count_as(&self.memory, MemoryKind::FrozenDeltas);
        }
    }
}
