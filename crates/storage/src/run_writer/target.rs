//! Where runs are written, and who numbers what is made.

use std::fmt::Debug;
use std::sync::Arc;

use crate::disk::Disk;
use crate::ids::{ContainerId, FileId, RunId};
use crate::memory::MemoryBudget;
use crate::segment::BlockCache;
use crate::settings::Encodings;

/// Where new ids come from. None is given out twice, also not after a crash once something that is logged names it.
pub trait IdSource: Send + Sync + Debug {
    /// For a new segment.
    fn next_container(&self) -> ContainerId;
    /// For a new file.
    fn next_file(&self) -> FileId;
    /// For a new run.
    fn next_run(&self) -> RunId;
}

/// Where segments are written.
#[derive(Clone, Debug)]
pub struct SegmentTarget {
    /// The disk, with the folder of segment files in it.
    pub disk: Arc<dyn Disk>,
    /// The cache that the new segments are read through.
    pub cache: Arc<BlockCache>,
    /// How their columns are encoded.
    pub encodings: Encodings,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
    /// Entries of key indexes that a run's writer sorts in memory at once.
    pub sort_entries: usize,
    /// Counts what merging sorted entries takes, in the reserve.
    pub memory: Arc<MemoryBudget>,
}
