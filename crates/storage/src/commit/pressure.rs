//! Back-pressure: writers wait, holding no lock, while merges have too many frozen deltas to work off (contract 8).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::commit::Engine;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::limits;
use crate::version::Root;

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
        self.frozen_bytes.load(Ordering::Relaxed) > self.options.memory_limit / limits::FROZEN_DELTA_SHARE
    }

    /// Counts the frozen deltas of `root`, the new present: commits only look at the sum.
    pub(super) fn note_frozen(&self, root: &Root) {
        let frozen = root.tables.values().flat_map(|version| version.frozen_deltas());
        let bytes: usize = frozen.map(|delta| delta.memory_bytes()).sum();
        self.frozen_bytes.store(bytes as u64, Ordering::Relaxed);
    }
}
