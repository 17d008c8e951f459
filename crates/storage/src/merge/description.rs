//! A table as the policy sees it.

use crate::ids::{ContainerId, RunId};

/// What a merge policy may know of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableDescription {
    /// Rows of a full segment.
    pub segment_rows: u32,
    /// Frozen deltas, oldest first.
    pub frozen: Vec<DeltaDescription>,
    /// Runs, oldest first.
    pub runs: Vec<RunDescription>,
}

/// A frozen delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaDescription {
    /// Its container.
    pub id: ContainerId,
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Rows not deleted.
    pub live_rows: u64,
    /// Bytes of the rows.
    pub bytes: u64,
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunDescription {
    /// Its id.
    pub id: RunId,
    /// Segments.
    pub segments: u64,
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Rows not deleted.
    pub live_rows: u64,
    /// Whether readers have stepped over dead rows of one of its segments again and again.
    pub stepped_over: bool,
    /// Whether a merge under way reads it: another one must not.
    pub busy: bool,
}
