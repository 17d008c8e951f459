//! Which rows of a container are deleted, since when.
//!
//! Comes in: a [`DeleteSet`] of offsets for each commit that deleted rows of the container. Goes out: a bitmap of what
//! a snapshot must not see, counts, and what a commit or a merge has to know about deletes since its own snapshot.
//!
//! 1. A commit calls [`DeleteLog::record`] under the commit lock: the set joins the log, its bits join `latest`.
//! 2. A reader at timestamp `t` takes the newest bitmap valid from `t` or before, and the log from there up to `t`.
//! 3. [`DeleteLog::fold`] turns the log into bitmaps, keeping apart only what a pinned snapshot can tell apart.
//!
//! A commit of many deletes, or in many containers, has its [`intent`] in each of them ahead of the commit lock
//! ([`DeleteLog::intend`]) and makes one [`Decision`] under it; the bits join `latest` afterwards
//! ([`DeleteLog::pour`]). Sets too large for a record stand in files (`file`, `set_records`).
//!
//! Invariants:
//! - The log is in commit order; a row is deleted once, and its first end stands.
//! - A bitmap, once handed out, never changes. A bitmap valid from `t` holds exactly the rows with end at or before
//!   `t`.
//! - Log entries end after `floor`, the timestamp of the oldest bitmap; nobody reads below `floor`.
//! - A row whose bit in `latest` is off, while no set waits to be poured, was never deleted: live rows cost two loads,
//!   no lock.
//!
//! It does not own: whether a row had begun (its container knows), forwarding, which snapshots are pinned, or how long
//! a delete file is needed. `docs/design/0001-delete-log.md` says why a row's end stands here and not beside the row.

mod file;
mod intent;
mod latest;
mod log;
mod set_records;
mod set;

#[cfg(test)]
mod tests;

pub use file::{DeleteFileWriter, read_deletes};
pub use intent::Decision;
pub use log::{DeleteLog, Lookups};
pub use set::{DeleteSet, Offsets};
pub use set_records::{Collected, DeleteCollector, NamedDeletes, named_bytes};
