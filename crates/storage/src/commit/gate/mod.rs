//! Gates: how the few who would lose again and again get through a stream of others.
//!
//! 1. `write`: a long statement's third run closes its table's *write gate*. Writing statements that come later, of
//!    any transaction, wait at their start until it is done (contract 2).
//! 2. [`turn`]: a commit that others have overtaken, so that it must be prepared again, first has installs wait for it,
//!    and then takes a *turn*: commits and installs of its tables wait before they begin.
//!
//! Nobody can wait for ever, for every wait points the same way:
//!
//! 1. Who waits at a write gate waits for the one statement that has it closed. That one is a transaction of its own:
//!    it closes the gates of its tables, of most statements one, before its snapshot is taken, and passes none while it
//!    holds one; it reads no input that a client has still to send, for what cannot be read twice was kept in its first
//!    run. One that closes several does so in the order of the tables' ids, so that whoever waits for a gate waits for
//!    holders of the same or later ones. So no statements at gates wait for one another, whatever tables their
//!    transactions have written to before: there are no row locks, and nobody waits for an open transaction to end.
//! 2. Whoever commits, the holder of a write gate among them, may wait for a turn: for the one commit in the database
//!    that has it. That one waits for nobody: its log space was set aside before, it passes no gate, and installs that
//!    it needs for nothing wait for it.
//! 3. A turn is taken by a commit that holds no other one and no log space that it would wait to enlarge. Others that
//!    want one are queued; while they wait they hold back installs at most, and these only until somebody waits for
//!    their work.
//!
//! So the waits are ordered: statement, then write gate, then commit, then turn, then lock; and each ends with work
//! that is under way. Who waits holds no lock, and can be canceled where a client could want it.

mod turn;
mod write;

#[cfg(test)]
mod tests;

pub(super) use turn::{Overtaken, Turns};
pub use write::{Gates, WriteGate};
