//! Back-pressure: writers wait, holding no lock, while merges have too many frozen deltas to work off (contract 8).
//!
//! Comes in: what is counted and measured, and what came of merges. Goes out: writers that wait or fail, and what there
//! is for the background to do about it. `demand` decides, `tail` is about the log's tail, `lending` about what queries
//! leave. It does not own: the work (`background`).

mod demand;
mod lending;
mod tail;

pub use demand::{Demand, Filled};
pub use lending::QueryMemory;
pub(super) use tail::TailGauge;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::commit::Engine;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::TableId;
use crate::limits;
use crate::memory::MemoryKind;
use crate::version::TableVersion;

/// How often a waiting writer looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// What came of flushes, for those who wait for one.
#[derive(Debug, Default)]
pub(in crate::commit) struct FlushGauge(Mutex<Flushes>);

#[derive(Clone, Debug, Default)]
struct Flushes {
    done: u64,
    failed: u64,
    /// Why the last one failed.
    cause: Option<Error>,
}

/// Flushes that fail one after the other, and none that succeeds, after which nobody waits for the next: the first may
/// have begun before the wait.
const FAILURES_MAX: u64 = 2;

impl Engine {
    /// Waits until frozen deltas take no more than their share of memory. Only for work that can run now, and for a
    /// bounded time: not for flushes that fail.
    ///
    /// # Errors
    /// Full (53200) when merges did not free enough in time, or cannot; Closed.
    pub(super) fn wait_for_room(&self) -> Result<()> {
        if !self.options.background || !self.is_crowded() {
            return Ok(());
        }
        let deadline = Instant::now() + Duration::from_millis(limits::BACK_PRESSURE_MS_MAX);
        let before = self.flushes.0.lock().clone();
        while self.is_crowded() {
            let now = self.flushes.0.lock().clone();
            if now.done == before.done && now.failed >= before.failed + FAILURES_MAX {
                return Err(no_room(now.cause.as_ref()));
            }
            if Instant::now() >= deadline {
                return Err(no_room(now.cause.as_ref().filter(|_| now.failed > before.failed)));
            }
            std::thread::sleep(LOOK_AGAIN);
            self.check_writable()?;
        }
        Ok(())
    }

    /// Notes what came of a flush, for those who wait for one.
    pub fn note_flush<T>(&self, flushed: &Result<T>) {
        let mut flushes = self.flushes.0.lock();
        match flushed {
            Ok(_) => flushes.done += 1,
            Err(e) => {
                flushes.failed += 1;
                flushes.cause = Some(e.clone());
            }
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.memory.is_over(MemoryKind::FrozenDeltas)
    }

    /// How near writers are to waiting. O(1).
    #[must_use]
    pub fn demand(&self) -> Demand {
        Demand {
            active: self.filled(MemoryKind::ActiveDeltas),
            frozen: self.filled(MemoryKind::FrozenDeltas),
            tail: Filled { bytes: self.log_tail_bytes(), max: self.writers_tail_bytes() },
            tail_waited_for: self.is_tail_waited_for(),
        }
    }

    fn filled(&self, kind: MemoryKind) -> Filled {
        Filled { bytes: self.memory.used(kind), max: self.memory.share(kind) }
    }

    /// Whether a writer waits, or would have to, for background work.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.is_tail_waited_for() || self.is_crowded()
    }

    /// Counts what grows where nobody may wait for its counting: deltas, forwarding, delete logs, cached blocks.
    /// O(segments).
    pub fn measure_memory(&self) {
        self.measure_deltas();
        let (_, root) = self.timeline.present();
        let parts = root.tables.values().flat_map(|version| &version.runs).flat_map(|run| run.segments());
        let logs = parts.map(|part| part.segment.deletes().memory_bytes() as u64).sum();
        self.memory.note(MemoryKind::DeleteLogs, logs);
        self.memory.note(MemoryKind::Forwarding, self.forwardings.memory_bytes() as u64);
        self.lend_to_cache();
        self.memory.note(MemoryKind::BlockCache, self.cache.stats().bytes);
    }

    /// Counts active deltas, and frozen ones again, for their delete logs grow. O(deltas).
    fn measure_deltas(&self) {
        let (_, root) = self.timeline.present();
        let active = root.tables.values().filter_map(|version| version.active_delta());
        self.memory.note(MemoryKind::ActiveDeltas, active.map(|delta| delta.memory_bytes() as u64).sum());
        root.tables.values().flat_map(|version| version.frozen_deltas()).for_each(|delta| delta.recount());
    }

    /// Measures deltas, and freezes the largest active ones when all of them take more than their share, and those
    /// whose dead rows readers step over again and again. Returns how many. O(deltas).
    ///
    /// # Errors
    /// As [`Engine::freeze`].
    pub fn watch_deltas(&self) -> Result<usize> {
        self.measure_deltas();
        let active = self.filled(MemoryKind::ActiveDeltas);
        let (_, root) = self.timeline.present();
        let mut tables: Vec<_> =
            root.tables.iter().filter(|(_, version)| is_stepped_over(version)).map(|(id, _)| *id).collect();
        if active.is_over() {
            let of_rows = |(table, version): (&TableId, &Arc<TableVersion>)| {
                Some((*table, version.active_delta()?.bytes_of_rows()))
            };
            tables.extend(demand::to_freeze(active, root.tables.iter().filter_map(of_rows).collect()));
        }
        for table in &tables {
            self.freeze(*table)?;
        }
        if !tables.is_empty() {
            self.measure_deltas();
        }
        Ok(tables.len())
    }
}

/// Whether readers step over dead rows of the active delta of `version` again and again: a flush leaves them out.
fn is_stepped_over(version: &TableVersion) -> bool {
    version
        .active_delta()
        .is_some_and(|delta| delta.deletes().is_stepped_over(u64::from(delta.rows()) * limits::DELTA_DEAD_STEPS_OF_ROW))
}

/// Frozen deltas take all the memory they may.
fn no_room(cause: Option<&Error>) -> Error {
    let message = match cause {
        None => "recent rows take their whole share of memory_limit and merges cannot keep up: raise memory_limit, or write more slowly".to_owned(),
        Some(cause) => format!(
            "recent rows take their whole share of memory_limit and could not be written to segments ({}): mend that, on a full disk by making room, or raise memory_limit",
            cause.message()
        ),
    };
    Error::new(ErrorKind::Full, sqlstate::OUT_OF_MEMORY, message)
}
