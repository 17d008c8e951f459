//! How a query is run with the memory there is.

use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::MemoryLimit;

use crate::exec::spilling::certain_bytes;

/// Bytes that each sort of a partition sets aside for the merge of what it spills, where there is enough.
const MERGE_BYTES_MAX: usize = 10 << 20;
/// A sort takes several batches at once, of 1 MiB if their rows are wide.
const PARTITION_BYTES: usize = 4 << 20;
/// Bytes of a join's build side, where they are estimated, up to which all partitions of the probe side share it: it is
/// made once rather than in parts, and the probe side need not be repartitioned then.
const BUILD_BYTES_MAX: usize = 32 << 20;
/// Bytes of such a row whose width is not known.
const BUILD_ROW_BYTES: usize = 32;

/// Sizes that follow from the memory of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WithinMemory {
    partitions: usize,
    /// Bytes that each sort of a partition sets aside for the merge of what it spills.
    merge_bytes: usize,
    /// Spilled runs that it merges at once; 0 for as many as there are.
    fan_in: usize,
    /// Bytes of a build side that is not divided: one that is, can spill.
    build_bytes: usize,
}

impl WithinMemory {
    /// As many of `partitions` as queries have memory for, and DataFusion's defaults for sorts, or less where queries
    /// may take little. So there are sorts, of fewer rows at a time, at any `memory_limit` that can be set.
    pub(super) fn of(limit: &MemoryLimit, partitions: usize) -> Self {
        let MemoryLimit::Finite(bytes) = *limit else {
            return Self { partitions, merge_bytes: MERGE_BYTES_MAX, fan_in: 0, build_bytes: BUILD_BYTES_MAX };
        };
        let partitions = partitions.min(bytes / PARTITION_BYTES).max(1);
        Self {
            partitions,
            merge_bytes: MERGE_BYTES_MAX.min(bytes / 8 / partitions),
            // A merge takes all it can get for its runs, and whoever reads it would be left with nothing.
            fan_in: (bytes / PARTITION_BYTES / partitions).max(2),
            build_bytes: BUILD_BYTES_MAX.min(certain_bytes(bytes as u64) as usize),
        }
    }

    /// Has plans of `state` made and run so.
    pub(super) fn set(self, state: &mut SessionState) {
        state.runtime_env().disk_manager.set_max_spill_merge_fan_in(self.fan_in);
        let options = state.config_options();
        let before = (
            options.execution.target_partitions,
            options.execution.sort_spill_reservation_bytes,
            options.optimizer.hash_join_single_partition_threshold,
        );
        // Options that something else holds are copied to be changed.
        if before == (self.partitions, self.merge_bytes, self.build_bytes) {
            return;
        }
        let options = state.config_mut().options_mut();
        options.execution.target_partitions = self.partitions;
        options.execution.sort_spill_reservation_bytes = self.merge_bytes;
        options.optimizer.hash_join_single_partition_threshold = self.build_bytes;
        options.optimizer.hash_join_single_partition_threshold_rows = self.build_bytes / BUILD_ROW_BYTES;
    }
}
