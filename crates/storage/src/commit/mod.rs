//! Makes a write set true: the one lock of the engine.
//!
//! Comes in: a [`WriteSet`](crate::write_set::WriteSet) and the snapshot it was made at, a finished merge, or a wish to
//! freeze. Goes out: a timestamp, a log record, and rows and deletes in the stores.
//!
//! 1. `prepare` (contract 2a, outside the lock): large inserts are written aside; at P = applied, deletes are forwarded
//!    to where their rows live now and checked to be live, new keys to be free; the log record is encoded and log space
//!    reserved.
//! 2. `apply` (2b, under the lock, memory only): what was committed after P is validated; timestamp; log buffer; deltas
//!    and delete logs; a new root if containers changed; *applied* moves.
//! 3. `wait` (2c, outside): one write and fsync serve all waiting commits; *visible* moves.
//! 4. `row` is the same for one row of one key, which a short statement writes, without a write set.
//! 5. `ddl` changes the catalog in `apply`, and reserves the numbers of IDENTITY columns.
//! 6. `early` looks, for a running statement, for rows that it would only lose at its commit.
//! 7. `gate` lets those through who would lose to others again and again.
//! 8. `freeze` and `install` edit the current version under the same lock (contract 3); `checkpoint` writes it down
//!    (contract 4).
//!
//! Invariants: timestamps are consecutive; the log has every timestamp's record in order; what a snapshot at or below
//! *visible* reads is complete; after a panic under the lock nothing is written any more. It does not own: the merge,
//! the log's files, what a statement means.

mod apply;
mod checkpoint;
mod conflict;
mod ddl;
mod delta_starts;
mod early;
mod engine;
mod freeze;
mod gate;
mod install;
mod prepare;
mod pressure;
mod recent;
mod row;
pub mod record;

#[cfg(test)]
mod tests;

pub use conflict::altered;
pub use ddl::numbers::NumberSource;
pub use engine::{Engine, EngineParts, TableStamp};
pub use gate::{Gates, WriteGate};
pub use prepare::own_key_conflict;
pub use pressure::QueryMemory;
pub use row::{RowWrite, RowsWrite};
#[cfg(test)]
pub(crate) use tests::once_under_lock;
