//! A reference model of the storage engine: every row version of every table in plain maps, and a driver that does the
//! same operations on both and compares.
//!
//! Comes in: a list of [`Op`]s, made from a seed by [`generate`]. Goes out: nothing, or what differed and a short list
//! of operations that still shows it.
//!
//! 1. `shape` has the kinds of tables, `columns` what ALTER makes of them, `rows` their values and batches;
//! 2. `history` holds row versions with begin and end, and says what a commit must answer (first committer wins);
//! 3. `op` makes operations; each has its own seed, so that any of them can be left out;
//! 4. `driver` does an operation on the engine and on the history; `statement` is one writing statement, `check`
//!    compares every open snapshot with the history: rows, counts, predicates, keys;
//! 5. `recovery` says which states may be found after a power cut, a kill or a failed log;
//! 6. `shrink` leaves operations out while the failure stays.
//!
//! Invariant: timestamps are the engine's own, so that the history at a snapshot is a plain filter. It does not own:
//! disks that fail (`disk`), or when to fail them (the tests).

mod check;
mod columns;
mod driver;
mod history;
mod op;
mod recovery;
mod rows;
mod shape;
mod shrink;
mod statement;

pub use driver::{Driver, Durable, Mismatch, Seen, Settings};
pub use history::{Cause, History, Outcome, Pending};
pub use op::{Flaw, Op, Weights, generate};
pub use recovery::Found;
pub use rows::{Row, read_batch, to_batch};
pub use shape::Shape;
pub use shrink::{run, shrink};
