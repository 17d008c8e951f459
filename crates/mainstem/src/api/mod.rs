//! What a program uses: databases, connections, results, appenders.
//!
//! Comes in: SQL text, rows, batches. Goes out: row counts and Arrow batches. Everything blocks the calling thread and nothing
//! else, so it may be called inside an async runtime as well as outside. It does not own: what SQL means.

mod appender;
mod connection;
mod database;
mod result;
mod row;
mod statement;
mod transaction;

pub use appender::Appender;
pub use connection::{Connection, InterruptHandle, Statements};
pub use database::Database;
pub use result::{QueryResult, StatementOutcome};
pub use row::{ColumnIndex, Row, Rows};
pub use statement::Statement;
pub use transaction::Transaction;
