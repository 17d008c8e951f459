//! A transaction's private data: what it wants to write. Data only; `commit` makes it true.
//!
//! Comes in: rows and row references of finished statements. Goes out: one [`WriteSet`] to validate, log and apply.
//! Invariants: nothing here is in any store; a row the transaction inserted and deleted again leaves no trace; a row of
//! the store is named at most once among the deletes. It does not own: snapshots, or whether the writes may commit.

mod write_set;

pub use write_set::{DdlChange, OwnKeys, TableWrites, WriteSet};
