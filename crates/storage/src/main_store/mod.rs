//! Runs: what main is made of. A run is an ordered list of segments; in layout `sorted` each ends at or before the key
//! where the next begins, so a key is in one segment, or on the boundary of a few (MemSQL section IV).
//!
//! Comes in: open segments in order. Goes out: the segments that a key or a predicate concerns.
//!
//! 1. [`Run::new`] proves the order from key bounds.
//! 2. A probe asks [`Run::find_segments`]: O(log segments).
//! 3. A scan asks [`Run::overlapping`]: segment elimination by zone map (MemSQL section III).
//! 4. A run has a key index, a run of its own, for each key of its table that is not its order: [`Run::index`]
//!    (`key_index`).
//! 5. Records and the manifest name runs, and opening makes runs of the names (`run_records`).
//! 6. A merge that installs in steps takes rows off the front: [`Run::without_front`]. Consumed is not deleted.
//!
//! Invariants: a run is immutable; its ranges are not empty and within their segments; key bounds ascend.
//!
//! It does not own: how many runs there are (`merge`), which rows of them are visible (`version`).

pub(crate) mod key_index;
mod run_records;
mod run;

#[cfg(test)]
mod tests;

pub use key_index::{index_key, index_schema};
pub use run::{ColumnBounds, Run, RunIndex, RunSegment};
pub use run_records::{NamedRun, NamedRuns, encode_runs, write_runs_aside};
