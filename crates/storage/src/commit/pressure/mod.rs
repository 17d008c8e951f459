//! Back-pressure: writers wait, holding no lock, while merges have too many frozen deltas to work off (contract 8).

mod tail;

pub(super) use tail::TailGauge;

use std::time::{Duration, Instant};

use crate::commit::Engine;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::TableId;
use crate::limits;
use crate::memory::MemoryKind;
use crate::version::TableVersion;

/// How often a waiting writer looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Engine {
    /// Waits until frozen deltas take no more than their share of memory. Only for work that can run now, and for a bounded
    /// time.
    ///
    /// # Errors
    /// Full (53200) when merges did not free enough in time; Closed.
    pub(super) fn wait_for_room(&self) -> Result<()> {
        if !self.options.background || !self.is_crowded() {
            return Ok(());
        }
        let deadline = Instant::now() + Duration::from_millis(limits::BACK_PRESSURE_MS_MAX);
        while self.is_crowded() {
            if Instant::now() >= deadline {
                return Err(Error::new(
                    ErrorKind::Full,
                    sqlstate::OUT_OF_MEMORY,
                    "recent rows take their whole share of memory_limit and merges cannot keep up: raise memory_limit, or write more slowly",
                ));
            }
            std::thread::sleep(LOOK_AGAIN);
            self.check_writable()?;
        }
        Ok(())
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.memory.is_over(MemoryKind::FrozenDeltas)
    }

    /// Counts what grows where nobody may wait for its counting: deltas (frozen ones again, for their delete logs grow), forwarding, delete logs, cached blocks. O(segments).
    pub fn measure_memory(&self) {
        let (_, root) = self.timeline.present();
        let (mut active, mut logs) = (0, 0);
        for version in root.tables.values() {
            active += version.active_delta().map_or(0, |delta| delta.memory_bytes());
            let segments = version.runs.iter().flat_map(|run| run.segments());
            logs += segments.map(|part| part.segment.deletes().memory_bytes()).sum::<usize>();
        }
        root.tables.values().flat_map(|version| version.frozen_deltas()).for_each(|delta| delta.recount());
        self.memory.note(MemoryKind::ActiveDeltas, active as u64);
        self.memory.note(MemoryKind::DeleteLogs, logs as u64);
        self.memory.note(MemoryKind::Forwarding, self.forwardings.memory_bytes() as u64);
        self.memory.note(MemoryKind::BlockCache, self.cache.stats().bytes);
    }

    /// The table with the largest active delta, when active deltas take more than their share and freezing it helps.
    #[must_use]
    pub fn table_to_freeze(&self) -> Option<TableId> {
        if !self.memory.is_over(MemoryKind::ActiveDeltas) {
            return None;
        }
        let (_, root) = self.timeline.present();
        let of_rows = |version: &TableVersion| version.active_delta().map_or(0, |delta| delta.bytes_of_rows());
        let (table, version) = root.tables.iter().max_by_key(|(_, version)| of_rows(version))?;
        let worth_it = self.memory.share(MemoryKind::ActiveDeltas) / 8;
        (of_rows(version) >= limits::SPILL_BYTES_MIN.min(worth_it)).then_some(*table)
    }
}
