//! Merge: frozen deltas and runs become one run (contract 3; MemSQL sections IV.A and V, HYRISE section 4).
//!
//! Comes in: a table version. Goes out: a run written aside, what it replaces, where each row went, and what has to be
//! carried.
//!
//! 1. [`TableDescription`] says what is there, and which runs another merge reads; [`choose`] decides from it alone,
//!    for a
//!    [`Lane`]: a [`MergeChoice`].
//! 2. [`MergePlan`] makes inputs of the choice, as of a snapshot H at which they were all frozen.
//! 3. [`MergeJob`] merges them, one output segment a step: rows deleted at H are dropped, full segments that no other
//!    input reaches into are kept as they are. Cancelled or failed, it leaves no file.
//! 4. [`MergeOutcome`] is what `commit` installs; [`MergeOutcome::carry`] translates deletes that came after H.
//!
//! Invariants:
//! - The output's rows live at H are exactly those of the inputs, in the table's order, ties older input first.
//! - A kept segment's rows do not move: it has no forwarding, and its delete log goes on.
//! - The policy ends: each choice lessens deltas, runs or dead rows, and makes none of those before it more, but for a
//!   flush, which may add one run.
//!
//! It does not own: when to freeze or to merge (`background`), the install (`commit`), old versions (`version`).

mod description;
mod policy;
mod plan;
mod job;
mod outcome;

#[cfg(test)]
mod tests;

pub use description::{DeltaDescription, RunDescription, TableDescription};
pub use job::{MergeControl, MergeJob};
pub use outcome::MergeOutcome;
pub use plan::MergePlan;
pub use policy::{Lane, MergeChoice, MergeReason, choose, has_too_many_runs, short_rows_max};
