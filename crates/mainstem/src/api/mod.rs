//! What a program uses: databases, connections, results, appenders.
//!
//! Comes in: SQL text, parameters, rows, batches. Goes out: row counts, rows and Arrow batches. Everything blocks the
//! calling thread and nothing else, so it may be called inside an async runtime as well as outside; `asynchronous` has
//! the same calls as futures that block no thread. It does not own: what SQL means.

mod appender;
mod asynchronous;
mod connection;
mod database;
mod external;
mod many;
mod pending;
mod result;
mod retry;
mod row;
mod statement;
mod transaction;

pub use appender::Appender;
pub use asynchronous::{AsyncAppender, AsyncConnection, AsyncQueryResult, AsyncRows, AsyncStatement, AsyncTransaction};
pub use connection::{Connection, InterruptHandle};
pub use database::{Database, SharedDatabase, forget_after_fork};
pub use many::{InsertRows, Scope};
pub use pending::Statements;
pub use result::{QueryResult, ResultReader, StatementOutcome};
pub use retry::RetryOptions;
pub use row::{ColumnIndex, Row, Rows};
pub use statement::{OwnedStatement, Statement};
pub use transaction::Transaction;
