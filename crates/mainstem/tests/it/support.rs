//! Databases and answers for tests.

use mainstem::arrow::util::display::{ArrayFormatter, FormatOptions};
use mainstem::{Connection, Database, OpenOptions};
use mainstem_storage::ids::TableId;
use mainstem_storage::transaction::TransactionMode;

use super::printing::printed;

/// A database in memory that moves no rows by itself.
pub fn quiet() -> Database {
    Database::in_memory_with(OpenOptions::new().background(false)).unwrap()
}

/// The rows of a query as text, values joined by `|`.
pub fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    try_rows(connection, sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"))
}

/// The rows of a query as text, sorted; a REAL and a timestamp as PostgreSQL writes them.
pub fn sorted_rows(connection: &Connection, sql: &str) -> Vec<String> {
    let batches = connection.query(sql).and_then(|rows| rows.collect_batches());
    let batches = batches.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let mut rows: Vec<String> = batches.iter().flat_map(printed).map(|row| row.join("|")).collect();
    rows.sort();
    rows
}

fn id_of(database: &Database, table: &str) -> TableId {
    let look = database.storage().begin(TransactionMode::default()).unwrap();
    look.catalog().tables().find(|t| t.name == table).unwrap().id
}

/// Moves all rows of `table` into one run.
pub fn merge(database: &Database, table: &str) {
    database.storage().merge(id_of(database, table)).unwrap();
}

/// Has `table`'s delta become a run of its own.
pub fn flush(database: &Database, table: &str) {
    database.storage().flush(id_of(database, table)).unwrap();
}

/// As [`rows`], or the SQLSTATE and message of the error.
pub fn try_rows(connection: &Connection, sql: &str) -> mainstem::Result<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in connection.query(sql)? {
        let batch = batch?;
        let formatters: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let values: Vec<String> = formatters.iter().map(|f| f.value(row).to_string()).collect();
            rows.push(values.join("|"));
        }
    }
    Ok(rows)
}

/// The SQLSTATE that `sql` fails with.
pub fn code(connection: &Connection, sql: &str) -> &'static str {
    match connection.execute(sql) {
        Ok(_) => "no error",
        Err(e) => e.sqlstate(),
    }
}
