//! What joins and aggregations that spill have in common.
//!
//! Comes in: a plan, of which is asked how much an operator may have to hold; batches of an operator that has no memory
//! left. Goes out: an estimate ([`size`]); whether there is more memory ([`room`]); files, of which each has all rows
//! of some keys ([`partitions`]), and the folder that files stand in ([`temporary_files`]).
//!
//! It does not own: how large files may become (DataFusion's disk manager); what is done with the rows of a file
//! (`spilling_joins`, `spilling_aggregates`).

mod partitions;
mod room;
mod size;
mod temporary_files;

pub(super) use self::partitions::Partitions;
pub(super) use self::room::Room;
pub(super) use self::size::{
    QueryBytes, TABLE_BYTES, certain_bytes, estimated_bytes, may_read_in_key_order, most_bytes,
};
pub(super) use self::temporary_files::TemporaryFiles;
pub(crate) use self::temporary_files::unnamed_file;

/// Levels of division: beyond them keys are alike, and no hash would take them apart.
pub(super) const DEPTH_MAX: u32 = 4;
