//! Mainstem as an ADBC driver: databases, connections and statements as Arrow Database Connectivity 1.1 has them.
//!
//! Comes in: SQL, options, Arrow batches to bind or to ingest. Goes out: Arrow streams, and errors with their
//! SQLSTATE. Languages reach it through a driver manager, which loads the library and calls [`AdbcMainstemAdbcInit`];
//! a program in Rust can use [`MainstemDriver`] by the traits of `adbc_core`.
//!
//! 1. A database is opened by its options (`database`). Who opens the same folder again in this process shares it.
//! 2. A connection is a session (`connection`, `session`). With autocommit off a statement begins a transaction.
//! 3. A statement is run as it stands, once for each row that is bound (`statement`, `bound`), or puts its rows into a
//!    table as one INSERT (`ingest`).
//! 4. What there is in the database comes out as ADBC's own tables (`objects`, `info`).
//!
//! Invariants: a stream of a statement without bound rows lives on its own; nothing is retained of a
//! statement that failed. It does not own: what SQL means, or the C interface (`adbc_ffi`).

mod database;
mod connection;
mod statement;
mod ingest;
mod bound;
mod objects;
mod info;
mod results;
mod session;
mod options;
mod errors;

pub use connection::MainstemConnection;
pub use database::{MainstemDatabase, MainstemDriver};
pub use statement::MainstemStatement;

/// What driver managers call: its two functions have the meaning that ADBC gives them.
mod entry {
    #![allow(missing_docs, reason = "the macro writes none")]

    adbc_ffi::export_driver!(AdbcMainstemAdbcInit, super::MainstemDriver);
}
pub use entry::{AdbcDriverInit, AdbcMainstemAdbcInit};
