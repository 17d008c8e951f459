//! Mainstem: an embedded column store with SQL, on Arrow and DataFusion.
//!
//! ```
//! # fn main() -> mainstem::Result<()> {
//! let database = mainstem::Database::in_memory()?;
//! let connection = database.connect()?;
//! connection.execute("CREATE TABLE city (name TEXT PRIMARY KEY, people INTEGER)")?;
//! connection.execute("INSERT INTO city VALUES ('Ulm', 128928), ('Jena', 111343)")?;
//! let rows = connection.query("SELECT name FROM city WHERE people > 120000")?.collect_batches()?;
//! assert_eq!(rows[0].num_rows(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! Features, none of which is on by default, make values of other crates' types parameters and read them out of rows:
//!
//! | feature | types |
//! |---|---|
//! | `chrono` | `NaiveDate`, `NaiveTime`, `NaiveDateTime`, `DateTime<Utc>`, `DateTime<FixedOffset>` (and, as parameters, of any zone) |
//! | `uuid` | `Uuid` |
//! | `rust_decimal` | `Decimal`: exact, or 22003 |
//! | `serde_json` | `Value` of any value; arrays and objects are bound as text; [`Row`] as an object or an array |
//!
//! The module lines stand from the top down, each using those below: `api` takes a statement, `session` runs it in a
//! transaction, `point_path` without a plan where it can; `plan` turns it into rows read and written, `exec` plans and
//! runs queries. `analyze`, `decorrelate` and `optimize` make DataFusion's plans mean what SQL means, `provider` lets
//! it read our tables, `csv` reads and writes files of COPY, `sql` reads statements.

mod api;
mod session;
mod point_path;
mod plan;
mod exec;
mod optimize;
mod decorrelate;
mod analyze;
mod provider;
mod csv;
mod error;
mod sql;
mod names;
mod read_at;
mod value;
mod walk;

pub use api::{
    Appender, AsyncAppender, AsyncConnection, AsyncQueryResult, AsyncRows, AsyncStatement, AsyncTransaction,
    ColumnIndex, Connection, Database, InsertRows, InterruptHandle, OwnedStatement, QueryResult, ResultReader,
    RetryOptions, Row, Rows, Scope, SharedDatabase, Statement, StatementOutcome, Statements, Transaction,
    forget_after_fork,
};
/// For the target of `fuzz/`, no part of the interface.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use csv::parallel::read_alike;
pub use exec::Notice;
pub use mainstem_postgres::types::parse_byte_size;
pub use provider::{ExternalBatches, ExternalTable, Progress, TableResolver};
pub use session::TransactionStatus;
pub use sql::{CopyStream, copy_stream, number_placeholders, split_statements};
pub use value::{
    Date, Decimal, FromValue, Params, ResultColumn, Time, Timestamp, TimestampTz, ToValue, Uuid, ValueRef, ValueRows,
    batch_of, values_of, with_composed_as_text,
};

pub use arrow;
pub use mainstem_storage::database::CheckReport;
pub use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
pub use mainstem_storage::row::Value;
pub use mainstem_storage::schema::{Column, DataType, TableSchema};
pub use mainstem_storage::settings::{Encodings, OpenOptions, Synchronous};
pub use mainstem_storage::{Error, ErrorKind, Result};
