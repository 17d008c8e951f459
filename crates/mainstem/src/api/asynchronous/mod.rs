//! The same calls as futures, for programs that are async.
//!
//! Comes in: calls from tasks of any runtime. Goes out: futures that never block the thread that polls them: statements
//! run on threads of the database, rows are awaited as they come. Calls on one connection run one after the other, in
//! the order in which they were first polled. Dropping a future cancels its statement, and with it results of the same
//! connection that are still being read, as an interrupt does: the statement is undone, unless it was done already;
//! whether a COMMIT that was dropped took place shows only by looking. It does not own: what a statement does.

mod appender;
mod connection;
mod retry;
mod rows;
mod transaction;

pub use appender::AsyncAppender;
pub use connection::{AsyncConnection, AsyncStatement};
pub use rows::{AsyncQueryResult, AsyncRows};
pub use transaction::AsyncTransaction;
