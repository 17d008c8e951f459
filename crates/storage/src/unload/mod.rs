//! Load-work-unload: the tables of a snapshot as files of a folder, and back (Muehlbauer et al., "Instant Loading for
//! Main Memory Databases", VLDB 2013, section 4; `docs/design/0007-unload.md`, bytes in `docs/formats/unload.md`).
//!
//! Comes in: a snapshot, or a folder that was written. Goes out: the other, as runs aside.
//!
//! 1. A segment all of whose rows the snapshot sees is copied block by block: nothing is decoded (`write`).
//! 2. The rows of all other containers, deltas and segments with deletes, are merged in the order of the table, and
//!    written as segments of their own.
//! 3. Threads do that side by side, a file each; [`UnloadManifest`] names the files with their checksums. It is written
//!    last, so that a folder without it is none.
//! 4. [`Unloaded`] reads the manifest. Files become segments of the database that they are read into, and key indexes
//!    are made anew (`read`).
//!
//! Invariants: writers and merges go on meanwhile, and what is written holds exactly the rows of the snapshot; a byte
//! that differs from what was written is a Corrupt error that names the file. It does not own: folders of the operating
//! system, transactions, whether keys are taken already.

mod compress;
mod manifest;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use compress::Compression;
pub use manifest::{UnloadManifest, UnloadedFile, UnloadedTable};
pub use read::Unloaded;
pub use write::{Unload, UnloadSummary, ViewedTable};

/// The folder of files with rows.
pub const ROWS_DIR: &str = "rows";
/// Name of the manifest.
pub const UNLOAD_FILE: &str = "UNLOAD";
/// Name it has while it is written.
const UNLOAD_ASIDE: &str = "UNLOAD.tmp";

/// The path of file number `number`.
fn rows_path(number: u64) -> String {
    format!("{ROWS_DIR}/{number:010}.rows")
}
