//! The log: it alone makes a change true (contract 4).
//!
//! Comes in: one record per commit or install, in timestamp order. Goes out: the promise that a record is durable under
//! its own mode together with all before it ([`Log::visible`]), and, after a restart, the records again
//! ([`LogReader`]).
//!
//! A commit uses it in this order:
//! 1. [`Log::reserve`], outside the commit lock: sets disk space aside, or fails with Full, and nothing has changed;
//! 2. [`Log::append`], under the commit lock: copies the record into memory; no I/O, no waiting;
//! 3. it applies the change to the stores, then [`Log::mark_applied`], still under the lock;
//! 4. [`Log::wait_visible`], outside the lock: the first to come writes and fsyncs for all who wait (group commit).
//!
//! Invariants:
//! - `visible` covers a prefix of the records, each applied and durable under its own mode; it never goes back;
//! - a log file is fsynced whole before the first byte of the next one is written;
//! - every record carries a position that was fsynced when it was appended, so that [`LogReader`] can tell damage from
//!   the torn tail of a power cut;
//! - after a failed write or fsync nothing is written any more, and `visible` stays;
//! - a log that was closed has its end marked outside of it (`end_mark`), so that nothing of it passes for a torn tail.
//!
//! Byte table: `docs/formats/wal.md`. It does not own: what is in a record, when to flush or checkpoint, what to do on
//! damage.

mod end_mark;
mod files;
mod format;
mod group_commit;
mod reader;
mod state;
mod tail;
mod writer;

pub use crate::ids::LogPosition;
pub use end_mark::{END_MARK_ASIDE, END_MARK_FILE, EndMark};
pub use files::{LogStatus, is_left_by_creation, is_log_name};
pub use format::{RecordKind, WAL_DIR};
pub use reader::{LogReader, LogRecord};
pub use state::{Log, LogStart};
pub use tail::TailState;
pub use writer::{NewRecord, Reservation};

#[cfg(test)]
mod tests;
